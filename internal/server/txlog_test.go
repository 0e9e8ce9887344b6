package server

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store/sqlite"
)

func TestTxLog_WritesRowsAndTrimsOldOnesOnly(t *testing.T) {
	snap := testSnapshot(t)
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "log.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	plan, err := db.Schema().Plan(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Schema().Apply(t.Context(), plan.Additive); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(db, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l := newTxLog(Defaults().TxLog, e, func(context.Context) (*catalog.Snapshot, error) { return snap, nil }, slog.New(slog.DiscardHandler))
	now := time.Now()
	var rows []txRow
	for i := range 1500 { // more than are trimmed at a time
		rows = append(rows, txRow{id: newSysID(), at: now.Add(-8 * 24 * time.Hour), user: "eve", url: "/old", sqlCount: int64(i)})
	}
	parent := newSysID()
	rows = append(rows, txRow{id: parent, at: now, user: "ann", url: "/new", total: 1234567 * time.Nanosecond},
		txRow{id: newSysID(), parent: parent, item: "7", at: now, user: "ann", url: "/item", sqlCount: 3})
	l.size.Add(int64(len(rows)))
	l.write(t.Context(), rows)
	if l.written.Load() != 1502 || l.lost.Load() != 0 || l.queued() != 0 {
		t.Fatalf("written %d, lost %d, queued %d", l.written.Load(), l.lost.Load(), l.queued())
	}
	l.trim(t.Context())
	out := e.Execute(t.Context(), snap, &record.Unit{Version: snap.Version, Actors: []record.Actor{{System: true}}, Ops: []record.Op{{
		Verb: record.List, Table: "syslog_transaction", Return: []string{"sys_created_by", "url", "parent", "item_id", "response_time", "sql_count"},
		Query: &record.Query{Limit: -1, Sort: []record.Sort{{Path: "url"}}},
	}}})
	if out[0].Err != nil {
		t.Fatal(out[0].Err)
	}
	var got [][]string
	for i := range out[0].Rows.Len() {
		var line []string
		for _, v := range out[0].Rows.At(i) {
			line = append(line, v.Text())
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([][]string{{"ann", "/item", parent, "7", "0", "3"}, {"ann", "/new", "", "", "1.234", "0"}}, got); diff != "" {
		t.Error(diff)
	}
}

// awayExec begins nothing until it is back.
type awayExec struct {
	fakeExec
	back  chan struct{}
	asked chan struct{}
}

func (a *awayExec) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	select {
	case <-a.back:
		return a.fakeExec.Execute(ctx, snap, u)
	case a.asked <- struct{}{}:
	}
	out := make([]record.Outcome, len(u.Ops))
	for i := range out {
		out[i] = record.Outcome{Err: record.Errorf(record.Unavailable, "", "nobody is there"), Unserviced: true, Total: -1}
	}
	return out
}

// TestTxLog_KeepsWhatNobodyTakes lets the executor be away for a while, as when the only backend starts anew.
func TestTxLog_KeepsWhatNobodyTakes(t *testing.T) {
	snap := testSnapshot(t)
	x := &awayExec{back: make(chan struct{}), asked: make(chan struct{})}
	cfg := Defaults().TxLog
	cfg.Flush, cfg.Batch, cfg.Queue = time.Millisecond, 2, 5
	l := newTxLog(cfg, x, func(context.Context) (*catalog.Snapshot, error) { return snap, nil }, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.run(ctx); close(ended) }()
	put := func(n int) {
		rows := make([]txRow, n)
		for i := range rows {
			rows[i] = txRow{id: newSysID()}
		}
		l.size.Add(int64(n))
		l.rows <- rows
	}
	put(2)
	for range 3 {
		<-x.asked
	}
	put(1) // waits behind them
	if l.lost.Load() != 0 || l.queued() != 3 {
		t.Errorf("lost %d, queued %d", l.lost.Load(), l.queued())
	}
	close(x.back)
	for l.written.Load() < 3 {
		select {
		case <-x.asked:
		default:
			runtime.Gosched()
		}
	}
	stop()
	<-ended
	if l.lost.Load() != 0 || l.queued() != 0 || len(x.logged()) != 3 {
		t.Errorf("lost %d, queued %d, logged %d", l.lost.Load(), l.queued(), len(x.logged()))
	}
}
