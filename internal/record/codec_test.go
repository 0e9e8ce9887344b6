package record_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
)

func unit() *record.Unit {
	where := record.AllOf(
		record.Compare(record.Eq, record.F("a.b"), record.C(record.RefTo(1, "x"))),
		&record.Expr{Op: record.Related, Rel: &record.Relation{Table: "t", Field: "f", Own: "o", Cmp: record.Ge, Count: 1, Where: record.F("z")}},
	)
	return &record.Unit{
		Version: 7, Ordered: true, Budget: time.Second, Parallel: 3,
		Actors: []record.Actor{{Key: "k", Name: "n", Roles: []string{"r"}}},
		Ops: []record.Op{
			{
				Verb: record.Update, Table: "t", Key: []record.Value{record.IntValue(-1), record.NumValue(2.5)}, Return: []string{}, Group: 2, Token: "tok", Keep: true,
				Set: []record.Assign{{Field: "f", Value: record.TextValue("é")}},
				If:  []record.Condition{{Op: 1, Failed: true}, {Field: "v", Values: []record.Value{record.BoolValue(true)}, Negate: true}},
			},
			{Verb: record.List, Query: &record.Query{Where: where, Limit: -1, Each: &record.Each{Paths: []string{"p"}, Limit: 3}, Sort: []record.Sort{{Agg: &record.Agg{Func: record.Max, Path: "p"}}}, Having: []record.Having{{Cmp: record.Gt}}}},
			{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: "e", Args: []byte{0, 1}}},
		},
	}
}

func TestCodec_UnitsComeBackAsTheyWere(t *testing.T) {
	got, err := record.DecodeUnit(record.AppendUnit(nil, unit()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(unit(), got); d != "" {
		t.Error(d)
	}
}

func TestCodec_OutcomesComeBackWithRowsAndErrors(t *testing.T) {
	rows := record.NewRows([]string{"a", "b"}, []record.Type{record.TypeString, record.TypeInteger})
	rows.Append([]record.Value{record.TextValue("x"), {}})
	rows.Append([]record.Value{{}, record.IntValue(4)})
	out := []record.Outcome{
		{Rows: rows, Total: 9, Key: []record.Value{record.TextValue("k")}, Inserted: true, Stat: record.Stat{SQL: 3, Rows: 2}},
		{Err: record.Errorf(record.Conflict, "f", "m").Because(errors.New("cause")), Unserviced: true, Total: -1},
	}
	got, err := record.DecodeOutcomes(record.AppendOutcomes(nil, out))
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Rows.Len() != 2 || got[0].Rows.At(1)[1] != record.IntValue(4) || got[0].Rows.Types[1] != record.TypeInteger || got[0].Total != 9 || !got[0].Inserted || got[0].Stat.SQL != 3 {
		t.Errorf("%+v", got[0])
	}
	e := got[1].Err
	if e.Kind != record.Conflict || e.Field != "f" || e.Msg != "m" || e.Err.Error() != "cause" || !got[1].Unserviced {
		t.Errorf("%+v", e)
	}
}

// What is encoded without reflection has the form that the fields of the structs give: the one of stored outcomes.
func TestCodec_FormIsTheFieldsInOrder(t *testing.T) {
	rows := record.NewRows([]string{"a", "b"}, []record.Type{record.TypeString, record.TypeInteger})
	rows.Append([]record.Value{record.TextValue("x"), {}})
	rows.Append([]record.Value{{}, record.IntValue(-4)})
	out := []record.Outcome{{Rows: rows, Total: -1, Key: []record.Value{record.TextValue("k")}, Inserted: true, Err: record.Errorf(record.Conflict, "f", "m")}}
	const head = "020108016600016d0000020400016b010301610162030001050400017800000000000002070001010000" // and zeros for the statistics
	got := hex.EncodeToString(record.AppendOutcomes(nil, out))
	if !strings.HasPrefix(got, head) || strings.Trim(got[len(head):], "0") != "" {
		t.Errorf("%s", got)
	}
}

func TestCodec_RowsComeBackAsViews(t *testing.T) {
	row := []record.Value{record.TextValue("é"), {}, record.IntValue(-7), record.NumValue(1.5), record.BoolValue(true), record.TextValue("")}
	b := record.AppendRow(record.AppendRow(nil, row), row[:1])
	got := make([]record.Value, len(row))
	rest, err := record.DecodeRow(b, got)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(row, got); d != "" {
		t.Error(d)
	}
	if rest, err = record.DecodeRow(rest, got[:1]); err != nil || len(rest) != 0 || got[0] != row[0] {
		t.Errorf("%v %v, %d left", got[0], err, len(rest))
	}
	if n := testing.AllocsPerRun(100, func() { record.DecodeRow(b, got) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for i := range b {
		if _, err := record.DecodeRow(b[:i], make([]record.Value, len(row)+1)); record.KindOf(err) != record.Invalid {
			t.Fatalf("%d bytes of a row: %v", i, err)
		}
	}
}

// What is decoded keeps nothing of the message, which is used again.
func TestCodec_KeepsNothingOfTheMessage(t *testing.T) {
	b := record.AppendUnit(nil, unit())
	got, err := record.DecodeUnit(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if d := cmp.Diff(unit(), got); d != "" {
		t.Error(d)
	}
}

func TestLayout_DiffersWithTheTypes(t *testing.T) {
	type a struct{ A, B int }
	type b struct{ B, A int }
	seen := map[string]bool{}
	for _, types := range [][]reflect.Type{{}, {reflect.TypeFor[a]()}, {reflect.TypeFor[b]()}} {
		seen[record.Layout(types...)] = true
	}
	if len(seen) != 3 || !seen[record.Layout()] {
		t.Errorf("%v", seen)
	}
}

func FuzzCodec_Unit(f *testing.F) {
	f.Add(record.AppendUnit(nil, unit()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		u, err := record.DecodeUnit(b)
		if err != nil {
			if record.KindOf(err) != record.Invalid {
				t.Fatalf("kind %s", record.KindOf(err))
			}
			return
		}
		again, err := record.DecodeUnit(record.AppendUnit(nil, u))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(u, again); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzCodec_Outcomes(f *testing.F) {
	f.Add(record.AppendOutcomes(nil, []record.Outcome{{Total: -1, Rows: record.NewRows([]string{"a"}, []record.Type{1})}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		if out, err := record.DecodeOutcomes(b); err == nil {
			for i := range out {
				if r := out[i].Rows; r != nil {
					for j := range r.Len() {
						r.At(j)
					}
				}
			}
			record.AppendOutcomes(nil, out)
		}
	})
}
