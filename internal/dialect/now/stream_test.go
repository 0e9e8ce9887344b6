package now_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/now"
	"weir/internal/record"
	"weir/internal/wire"
)

// counting is a cursor of n rows of text, then err.
type counting struct {
	n, at int
	width int
	row   []record.Value
	err   error
}

func (c *counting) Next() ([]record.Value, bool) {
	if c.at == c.n {
		return nil, false
	}
	c.at++
	for i := range c.row {
		c.row[i] = record.TextValue(strings.Repeat("x", c.width))
	}
	return c.row, true
}

func (c *counting) Err() error   { return c.err }
func (c *counting) Close() error { return nil }

// streamed answers a list of n rows through an answer that flushes, and gives what was sent with the number of pieces.
func streamed(t *testing.T, snap *catalog.Snapshot, query string, n int, broken error, flush func(piece []byte) error) (*wire.Answer, []byte, int) {
	t.Helper()
	d := now.New(now.Options{})
	x, err := d.Decode(snap, &dialect.Call{Method: "GET", Path: "/api/now/table/sys_user", RawQuery: "sysparm_fields=name" + query, Base: "https://h"})
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	pieces := 0
	a := &wire.Answer{}
	a.Flush = func(a *wire.Answer) error {
		pieces++
		sent.Write(a.Body)
		if flush != nil {
			if err := flush(a.Body); err != nil {
				return err
			}
		}
		a.Body = a.Body[:0]
		return nil
	}
	src := &counting{n: n, width: 1000, row: make([]record.Value, 1), err: broken}
	rows := record.StreamRows([]string{"name"}, []record.Type{record.TypeString}, src)
	x.Reply([]record.Outcome{{Rows: rows, Total: int64(n)}}, a)
	sent.Write(a.Body)
	return a, sent.Bytes(), pieces
}

func TestList_LongListIsSentInPieces(t *testing.T) {
	a, sent, pieces := streamed(t, small(t), "", 1000, nil, func(piece []byte) error {
		if len(piece) > wire.FlushAt+2000 {
			t.Errorf("a piece of %d bytes", len(piece))
		}
		return nil
	})
	var got struct{ Result []map[string]string }
	if err := json.Unmarshal(sent, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Result) != 1000 || pieces < 10 || a.Err != nil || a.Header.Get("X-Total-Count") != "1000" {
		t.Fatalf("%d rows in %d pieces, err %v, header %v", len(got.Result), pieces, a.Err, a.Header)
	}
}

func TestList_ErrorAfterSendingBreaksTheConnection(t *testing.T) {
	broken := record.Errorf(record.Timeout, "", "statement cancelled")
	a, sent, _ := streamed(t, small(t), "", 1000, broken, nil)
	if !errors.Is(a.Err, error(broken)) {
		t.Fatalf("answer's error is %v", a.Err)
	}
	if json.Valid(sent) {
		t.Fatal("a cut list passes for a whole one")
	}
}

func TestList_ErrorBeforeSendingIsTheAnswer(t *testing.T) {
	a, sent, pieces := streamed(t, small(t), "", 10, record.Errorf(record.Unavailable, "", "gone"), nil)
	if a.Status != 503 || a.Err != nil || pieces != 0 || !json.Valid(sent) || a.Header.Has("X-Total-Count") {
		t.Fatalf("%d %s (err %v, header %v)", a.Status, sent, a.Err, a.Header)
	}
}

func TestList_ClientThatGoesAwayEndsTheReading(t *testing.T) {
	gone := errors.New("connection reset")
	a, _, pieces := streamed(t, small(t), "", 1000, nil, func([]byte) error { return gone })
	if !errors.Is(a.Err, gone) || pieces != 1 {
		t.Fatalf("err %v after %d pieces", a.Err, pieces)
	}
}

func TestList_UncountedListNamesNextBeforeTheFirstPiece(t *testing.T) {
	a, _, _ := streamed(t, small(t), "&sysparm_no_count=true&sysparm_limit=1000", 1000, nil, nil)
	if got := strings.Count(a.Header.Get("Link"), "rel="); got != 2 || a.Header.Has("X-Total-Count") {
		t.Fatalf("header %v", a.Header)
	}
}

func TestProjection_IsSharedWithinASnapshotOnly(t *testing.T) {
	d := now.New(now.Options{})
	call := &dialect.Call{Method: "GET", Path: "/api/now/table/sys_user", RawQuery: "sysparm_fields=name,email", Base: "https://h"}
	paths := func(snap *catalog.Snapshot) []string {
		x, err := d.Decode(snap, call)
		if err != nil {
			t.Fatal(err)
		}
		return x.Ops[0].Return
	}
	first, again := paths(small(t)), paths(small(t))
	if len(first) != 2 || len(again) != 2 || &first[0] == &again[0] {
		t.Fatalf("projections of two snapshots: %v %v", first, again)
	}
	snap := small(t)
	if a, b := paths(snap), paths(snap); &a[0] != &b[0] {
		t.Fatal("a projection was made twice")
	}
	without, err := catalog.Build(2, catalog.Definitions{Tables: []catalog.TableDef{{Name: "sys_user", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := paths(without); len(got) != 1 {
		t.Fatalf("a field of an old snapshot is read: %v", got)
	}
}
