package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/telemetry"
)

// txLog writes the transaction log: one row for each request and, below it, one for each item of its batch. Rows are written
// behind, many at a time; a request never waits for it, and what does not fit is lost and counted.
type txLog struct {
	cfg      TxLog
	exec     dialect.Executor
	snapshot func(context.Context) (*catalog.Snapshot, error)
	log      *slog.Logger
	rows     chan []txRow // a request's row with its items
	size     atomic.Int64 // rows in the channel
	host     string
	planned  *txPlan // of run alone

	written, lost atomic.Int64
}

// txRow is one row, by the names of the table's fields. Times are fractions of milliseconds.
type txRow struct {
	id, parent, item string
	at               time.Time
	user             string
	kind, method     string
	url              string
	pattern          string
	protocol         string
	remote, agent    string
	referer          string
	session          string
	link             string
	status           int
	bytes, rows      int64
	gzipped          bool
	total            time.Duration
	layers           [4]time.Duration
	sql              time.Duration
	sqlCount         int64
	rules            time.Duration
	ruleCount        int64
}

func newTxLog(cfg TxLog, exec dialect.Executor, snapshot func(context.Context) (*catalog.Snapshot, error), log *slog.Logger) *txLog {
	return &txLog{cfg: cfg, exec: exec, snapshot: snapshot, log: log, rows: make(chan []txRow, cfg.Queue)}
}

// add notes a finished request. It does not block.
func (t *txLog) add(v *Visit) {
	if t.cfg.Table == "" {
		return
	}
	name, _, session := v.user()
	r := v.Recorder
	row := txRow{
		id: newSysID(), at: r.Begin, user: name, kind: v.kind(), method: clean(v.Method, 16), url: v.URL,
		protocol: v.r.Proto, remote: remote(v.r), agent: clean(v.r.UserAgent(), 1000), referer: clean(v.r.Referer(), 1000),
		session: session, link: r.ID, status: v.Status, bytes: r.Bytes.Load(), rows: r.Rows.Load(), gzipped: v.Gzipped,
		total: v.Total, sql: time.Duration(r.SQL.Load()), sqlCount: r.SQLCount.Load(),
		rules: time.Duration(r.Rules.Load()), ruleCount: r.RuleCount.Load(),
	}
	_, row.pattern = apiName(v.Path)
	row.pattern = clean(row.pattern, 255)
	for i, l := range shownLayers {
		row.layers[i] = r.Layer(l)
	}
	rows := make([]txRow, 1, 1+len(v.Items))
	rows[0] = row
	for i := range v.Items {
		it := &v.Items[i]
		child := txRow{
			id: newSysID(), parent: row.id, item: clean(it.ID, 100), at: r.Begin.Add(v.batchAt + it.Start), user: name, kind: "rest",
			method: clean(it.Method, 16), url: v.s.redact.item(it.URL), protocol: row.protocol, remote: row.remote, session: session,
			link: r.ID, status: it.Status, bytes: int64(it.Bytes), rows: int64(it.Rows), total: it.Time, sql: it.SQL, sqlCount: int64(it.SQLCount),
		}
		child.layers[3] = it.SQL
		rows = append(rows, child)
	}
	n := int64(len(rows))
	if t.size.Add(n) > int64(t.cfg.Queue) {
		t.size.Add(-n)
		t.lost.Add(n)
		return
	}
	select {
	case t.rows <- rows:
	default: // the channel has room for as many requests as rows
		t.size.Add(-n)
		t.lost.Add(n)
	}
}

func (t *txLog) queued() int64 { return t.size.Load() }

// run writes rows until ctx ends, then what is left.
func (t *txLog) run(ctx context.Context) {
	trim := time.NewTicker(time.Minute)
	defer trim.Stop()
	flush := time.NewTimer(t.cfg.Flush)
	defer flush.Stop()
	var batch []txRow
	for {
		select {
		case rows := <-t.rows:
			if len(batch) == 0 {
				flush.Reset(t.cfg.Flush)
			}
			batch = append(batch, rows...)
			if len(batch) < t.cfg.Batch {
				continue
			}
		case <-flush.C:
		case <-trim.C:
			t.trim(ctx)
			continue
		case <-ctx.Done():
			// The requests are over, so this is all there will ever be. It gets a time of its own.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			for {
				select {
				case rows := <-t.rows:
					batch = append(batch, rows...)
					continue
				default:
				}
				break
			}
			for len(batch) > 0 {
				n := min(len(batch), t.cfg.Batch)
				t.write(last, batch[:n])
				batch = batch[n:]
			}
			return
		}
		if len(batch) > 0 {
			t.write(context.WithoutCancel(ctx), batch)
			clear(batch)
			batch = batch[:0]
		}
	}
}

// write stores rows as one unit, as weir itself.
func (t *txLog) write(ctx context.Context, rows []txRow) {
	t.size.Add(-int64(len(rows)))
	ctx, cancel := context.WithTimeout(telemetry.With(ctx, nil), 30*time.Second)
	defer cancel()
	snap, err := t.snapshot(ctx)
	if err != nil {
		t.lose(len(rows), err)
		return
	}
	table, err := snap.Table(t.cfg.Table)
	if err != nil {
		return // the project keeps no transaction log
	}
	plan := t.plan(table)
	u := &record.Unit{Version: snap.Version, Ops: make([]record.Op, len(rows)), Actors: []record.Actor{{Name: "system", System: true}}}
	for i := range rows {
		u.Ops[i] = record.Op{Verb: record.Insert, Table: t.cfg.Table, Set: rows[i].set(plan, t.host), Keep: true}
	}
	failed := 0
	for _, o := range t.exec.Execute(ctx, snap, u) {
		if o.Err != nil {
			failed++
			err = o.Err
		}
	}
	t.written.Add(int64(len(rows) - failed))
	if failed > 0 {
		t.lose(failed, err)
	}
}

func (t *txLog) lose(n int, err error) {
	t.lost.Add(int64(n))
	t.log.Warn("transaction log rows lost", "rows", n, "error", err.Error())
}

// txFields are the fields of a row, in the order in which set gives them.
var txFields = [...]string{
	"sys_id", "sys_created_on", "sys_updated_on", "sys_created_by", "sys_updated_by", "parent", "item_id", "type", "method", "url",
	"transaction_pattern", "protocol", "remote_ip", "user_agent", "x_referer", "session_id", "link", "system_id",
	"http_status", "output_length", "rows", "gzipped", "response_time", "hub_time", "queue_time", "be_time", "app_time",
	"sql_time", "sql_count", "business_rule_time", "business_rule_count",
}

// txPlan is the fields that the table of a snapshot has, by txFields; nil for one that it lacks.
type txPlan struct {
	table  *catalog.Table
	fields [len(txFields)]*catalog.Field
}

func (t *txLog) plan(table *catalog.Table) *txPlan {
	if t.planned == nil || t.planned.table != table {
		t.planned = &txPlan{table: table}
		for i, name := range txFields {
			t.planned.fields[i] = table.Field(name)
		}
	}
	return t.planned
}

// set is a row's values for those fields that the table has.
func (r *txRow) set(p *txPlan, host string) []record.Assign {
	set := make([]record.Assign, 0, len(txFields))
	next := 0
	put := func(v record.Value) {
		f := p.fields[next]
		next++
		if f == nil || v.Empty() {
			return
		}
		if v.Form == record.Text && f.MaxLength > 0 && len(v.S) > f.MaxLength {
			v.S = clean(v.S, f.MaxLength)
		}
		set = append(set, record.Assign{Field: f.Name, Value: v})
	}
	millis := func(d time.Duration) {
		var room [24]byte
		put(record.TextValue(string(appendMillis(room[:0], d))))
	}
	put(record.TextValue(r.id))
	put(record.TimeValue(r.at))
	put(record.TimeValue(r.at))
	for _, s := range [...]string{
		r.user, r.user, r.parent, r.item, r.kind, r.method, r.url, r.pattern, r.protocol, r.remote, r.agent, r.referer, r.session, r.link, host,
	} {
		put(record.TextValue(s))
	}
	put(record.IntValue(int64(r.status)))
	put(record.IntValue(r.bytes))
	put(record.IntValue(r.rows))
	put(record.BoolValue(r.gzipped))
	millis(r.total)
	for _, d := range r.layers {
		millis(d)
	}
	millis(r.sql)
	put(record.IntValue(r.sqlCount))
	millis(r.rules)
	put(record.IntValue(r.ruleCount))
	return set
}

// trim removes rows older than transactions.keep, a thousand at a time.
func (t *txLog) trim(ctx context.Context) {
	if t.cfg.Keep == 0 || t.cfg.Table == "" {
		return
	}
	snap, err := t.snapshot(ctx)
	if err != nil {
		return
	}
	table, err := snap.Table(t.cfg.Table)
	if err != nil || table.SingleKey() == nil || table.Field("sys_created_on") == nil {
		return
	}
	system := []record.Actor{{Name: "system", System: true}}
	key := table.Key[0]
	for ctx.Err() == nil {
		old := record.Compare(record.Lt, record.F("sys_created_on"), record.C(record.TimeValue(time.Now().Add(-t.cfg.Keep))))
		out := t.exec.Execute(ctx, snap, &record.Unit{Version: snap.Version, Actors: system, Ops: []record.Op{{
			Verb: record.List, Table: t.cfg.Table, Query: &record.Query{Where: old, Limit: 1000}, Return: []string{key},
		}}})
		if out[0].Err != nil || out[0].Rows == nil || out[0].Rows.Len() == 0 {
			return
		}
		u := &record.Unit{Version: snap.Version, Actors: system}
		for i := range out[0].Rows.Len() {
			u.Ops = append(u.Ops, record.Op{Verb: record.Delete, Table: t.cfg.Table, Key: out[0].Rows.At(i)[:1]})
		}
		deleted := 0
		for _, o := range t.exec.Execute(ctx, snap, u) {
			if o.Err == nil {
				deleted++
			}
		}
		if deleted == 0 {
			return
		}
	}
}

// newSysID begins with the time, so that rows are added at the end of their index.
func newSysID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	rand.Read(b[6:])
	var text [32]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}

// remote is the address at the other end of the connection.
func remote(r *http.Request) string {
	if h, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return h
	}
	return r.RemoteAddr
}
