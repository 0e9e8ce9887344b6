package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/telemetry"
	"weir/internal/wire"
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
	in, bytes, rows  int64
	format           string
	items            int64
	sets             string // the numbers of the sets: "1", "1,2"
	setOps, setRows  int64
	setTime          time.Duration
	statements       string // of a request: its sets, as JSON
	gzipped          bool
	total            time.Duration
	layers           [len(shownLayers)]time.Duration
	sql              time.Duration
	sqlCount         int64
	rules            time.Duration
	ruleCount        int64
	trips            int64
	auth, borrow     time.Duration
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
		trips: r.Trips.Load(), auth: time.Duration(r.Auth.Load() + r.Login.Load()), borrow: time.Duration(r.Borrow.Load()),
		pattern: v.resource(255), in: int64(v.In), format: v.Format, items: int64(len(v.Items)),
	}
	sets := r.Sets()
	row.statements = statements(sets)
	if len(v.Items) == 0 {
		for n := range sets {
			row.rode(sets, n+1)
		}
	}
	for i, l := range shownLayers {
		row.layers[i] = r.Layer(l)
	}
	rows := make([]txRow, 1, 1+len(v.Items))
	rows[0] = row
	id := sysIDs(row.id)
	names := itemNames{v: v}
	for i := range v.Items {
		it := &v.Items[i]
		child := txRow{
			id: id(), parent: row.id, item: clean(it.ID, 100), at: r.Begin.Add(v.batchAt + it.Start), user: name, kind: "rest",
			method: clean(it.Method, 16), url: v.s.redact.item(it.URL), protocol: row.protocol, remote: row.remote, session: session,
			link: r.ID, status: it.Status, bytes: int64(it.Bytes), rows: int64(it.Rows), total: it.Time, sql: it.SQL, sqlCount: int64(it.SQLCount),
		}
		child.layers[3] = it.SQL
		child.in, child.format = int64(it.In), it.Format
		child.pattern = names.of(it.URL)
		for _, n := range it.Sets {
			child.rode(sets, n)
		}
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
	held := false // nobody takes the batch now; what comes meanwhile waits in the channel
	for {
		in := t.rows
		if held {
			in = nil
		}
		select {
		case rows := <-in:
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
				if err := t.write(last, batch[:n]); err != nil {
					t.lose(n, err)
				}
				batch = batch[n:]
			}
			return
		}
		if len(batch) == 0 {
			continue
		}
		if held = t.write(context.WithoutCancel(ctx), batch) != nil; held {
			flush.Reset(t.cfg.Flush)
			continue
		}
		clear(batch)
		batch = batch[:0]
	}
}

// write stores rows as one unit, as weir itself. An error says that nothing of it was begun, as when no backend is there.
func (t *txLog) write(ctx context.Context, rows []txRow) error {
	ctx, cancel := context.WithTimeout(telemetry.With(ctx, nil), 30*time.Second)
	defer cancel()
	snap, err := t.snapshot(ctx)
	if err != nil {
		return err
	}
	table, err := snap.Table(t.cfg.Table)
	if err != nil {
		t.size.Add(-int64(len(rows)))
		return nil // the project keeps no transaction log
	}
	plan := t.plan(table)
	cells := make([]record.Value, 0, len(rows)*len(plan.names))
	for i := range rows {
		cells = rows[i].appendTo(cells, plan, t.host)
	}
	out := t.exec.Execute(ctx, snap, &record.Unit{
		Version: snap.Version, Actors: []record.Actor{{Name: "system", System: true}},
		Ops: []record.Op{{Verb: record.Load, Table: t.cfg.Table, Load: &record.Loading{Fields: plan.names, Cells: cells}, Keep: true}},
	})[0]
	if out.Err != nil {
		if out.Unserviced && out.Err.Kind == record.Unavailable {
			return out.Err
		}
		t.lose(len(rows), out.Err)
		return nil
	}
	failed := len(out.Load.Errs)
	t.size.Add(-int64(len(rows) - failed))
	t.written.Add(int64(len(rows) - failed))
	if failed > 0 {
		t.lose(failed, out.Load.Errs[0].Err)
	}
	return nil
}

func (t *txLog) lose(n int, err error) {
	t.size.Add(-int64(n))
	t.lost.Add(int64(n))
	t.log.Warn("transaction log rows lost", "rows", n, "error", err.Error())
}

// txFields are the fields of a row, in the order in which appendTo gives them.
var txFields = [...]string{
	"sys_id", "sys_created_on", "sys_updated_on", "sys_created_by", "sys_updated_by", "parent", "item_id", "type", "method", "url",
	"transaction_pattern", "protocol", "remote_ip", "user_agent", "x_referer", "session_id", "link", "system_id",
	"http_status", "input_length", "output_length", "format", "rows", "items", "gzipped",
	"statement", "statement_operations", "statement_rows", "statement_time", "statements",
	"response_time", "hub_time", "queue_time", "be_time", "app_time", "network_time",
	"sql_time", "sql_count", "business_rule_time", "business_rule_count",
	"round_trips", "auth_time", "borrow_time",
}

// txPlan is the fields that the table of a snapshot has: by txFields, nil for one that it lacks, and their names.
type txPlan struct {
	table  *catalog.Table
	fields [len(txFields)]*catalog.Field
	names  []string
}

func (t *txLog) plan(table *catalog.Table) *txPlan {
	if t.planned == nil || t.planned.table != table {
		t.planned = &txPlan{table: table}
		for i, name := range txFields {
			if f := table.Field(name); f != nil {
				t.planned.fields[i], t.planned.names = f, append(t.planned.names, name)
			}
		}
	}
	return t.planned
}

// appendTo appends a row's values for those fields that the table has.
func (r *txRow) appendTo(cells []record.Value, p *txPlan, host string) []record.Value {
	next := 0
	put := func(v record.Value) {
		f := p.fields[next]
		next++
		if f == nil {
			return
		}
		if v.Form == record.Text && f.MaxLength > 0 && len(v.S) > f.MaxLength {
			v.S = clean(v.S, f.MaxLength)
		}
		cells = append(cells, v)
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
	some := func(n int64) {
		if n == 0 {
			put(record.Value{})
			return
		}
		put(record.IntValue(n))
	}
	put(record.IntValue(int64(r.status)))
	put(record.IntValue(r.in))
	put(record.IntValue(r.bytes))
	put(record.TextValue(r.format))
	put(record.IntValue(r.rows))
	some(r.items)
	put(record.BoolValue(r.gzipped))
	put(record.TextValue(r.sets))
	some(r.setOps)
	some(r.setRows)
	if r.sets == "" {
		put(record.Value{})
	} else {
		millis(r.setTime)
	}
	put(record.TextValue(r.statements))
	millis(r.total)
	for _, d := range r.layers {
		millis(d)
	}
	millis(r.sql)
	put(record.IntValue(r.sqlCount))
	millis(r.rules)
	put(record.IntValue(r.ruleCount))
	some(r.trips) // of an item of a batch they are not known
	if r.parent == "" {
		millis(r.auth)
		millis(r.borrow)
	}
	return cells
}

// rode adds set n, of those of the request, to what a row tells: how many operations and rows its largest set had, and how long all took.
func (r *txRow) rode(sets []telemetry.Set, n int) {
	if n > len(sets) || len(r.sets) > 240 {
		return
	}
	if r.sets == "" {
		r.sets = strconv.Itoa(n)
	} else {
		r.sets += "," + strconv.Itoa(n)
	}
	s := &sets[n-1]
	r.setOps = max(r.setOps, int64(s.Ops))
	r.setRows = max(r.setRows, int64(s.Rows))
	r.setTime += s.Time
}

// maxStatements is how much of a request's list of sets the log keeps.
const maxStatements = 4000

// statements are the sets of a request as JSON: number, verb, table, operations, rows, start and time in milliseconds. What does not fit is left out
// and counted as "more".
func statements(sets []telemetry.Set) string {
	if len(sets) == 0 {
		return ""
	}
	b := append(make([]byte, 0, 128*min(len(sets), 32)), '[')
	for i := range sets {
		s := &sets[i]
		at := len(b)
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"n":`...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, `,"verb":`...)
		b = wire.AppendQuote(b, s.Verb)
		b = append(b, `,"table":`...)
		b = wire.AppendQuote(b, s.Table)
		b = append(b, `,"ops":`...)
		b = strconv.AppendInt(b, int64(s.Ops), 10)
		b = append(b, `,"rows":`...)
		b = strconv.AppendInt(b, int64(s.Rows), 10)
		b = append(b, `,"start":`...)
		b = appendMillis(b, s.Start)
		b = append(b, `,"ms":`...)
		b = appendMillis(b, s.Time)
		b = append(b, '}')
		if len(b) > maxStatements-24 && i < len(sets)-1 {
			b = append(b[:at], `,{"more":`...)
			b = strconv.AppendInt(b, int64(len(sets)-i), 10)
			b = append(b, '}')
			break
		}
	}
	return string(append(b, ']'))
}

// itemNames names what the items of a batch address. Items that are alike stand together, so the last one is remembered.
type itemNames struct {
	v          *Visit
	path, name string
}

func (n *itemNames) of(u string) string {
	path, _, _ := strings.Cut(u, "?")
	if _, rest, ok := strings.Cut(path, "://"); ok {
		path = rest[max(strings.IndexByte(rest, '/'), 0):]
	}
	if !strings.HasPrefix(path, "/") { // relative to where the batch is
		path = n.v.Path[:strings.LastIndexByte(n.v.Path, '/')+1] + path
	}
	if path != n.path {
		n.path = path
		n.name, _ = nameOf(n.v.snap, n.v.s.o.Mux.Find(path), path)
		n.name = clean(n.name, 255)
	}
	return n.name
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

// sysIDs are keys that follow first, in the order in which they are drawn: the items of a batch are read back in their order by key.
func sysIDs(first string) func() string {
	var b [16]byte
	hex.Decode(b[:], []byte(first)) // made by newSysID
	n := binary.BigEndian.Uint64(b[8:]) >> 1
	return func() string {
		n++
		binary.BigEndian.PutUint64(b[8:], n)
		return hex.EncodeToString(b[:])
	}
}

// remote is the address at the other end of the connection.
func remote(r *http.Request) string {
	if h, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return h
	}
	return r.RemoteAddr
}
