package remote

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
)

func frames() []*frame {
	head := &streamHead{Outcome: record.Outcome{Total: 3}, Rows: true, Fields: []string{"a", "b"}, Types: []record.Type{record.TypeString, record.TypeInteger}}
	rows := record.AppendRow(nil, []record.Value{record.TextValue("x"), record.IntValue(4)})
	none := func() figures { return figures{SQLCount: 2} }
	return []*frame{
		{head: head, rows: rows},
		{rows: rows},
		{rows: rows, tail: &streamTail{Err: record.Errorf(record.Timeout, "", "late")}, measure: none},
		{head: head, tail: &streamTail{}, measure: none},
	}
}

func TestFrame_ComesBackAsItWas(t *testing.T) {
	var got frame // used again and again, as cursors do
	for i, f := range frames() {
		if err := got.decode(f.append(nil)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if d := cmp.Diff(f.head, got.head); d != "" {
			t.Errorf("%d: head: %s", i, d)
		}
		if d := cmp.Diff(string(f.rows), string(got.rows)); d != "" {
			t.Errorf("%d: rows: %s", i, d)
		}
		if d := cmp.Diff(f.tail, got.tail); d != "" {
			t.Errorf("%d: tail: %s", i, d)
		}
	}
}

func FuzzFrame(f *testing.F) {
	for _, x := range frames() {
		f.Add(x.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		var got frame
		if got.decode(b) != nil {
			return
		}
		row := make([]record.Value, 2)
		for rest, err := record.DecodeRow(got.rows, row); err == nil && len(rest) > 0; rest, err = record.DecodeRow(rest, row) {
			row[0].Text()
		}
	})
}
