package dialecttest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/record"
)

// memory is an executor of one table, as small as it can be: it tests the runner, not an engine.
type memory struct {
	rows []map[string]record.Value
}

func (m *memory) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	out := make([]record.Outcome, len(u.Ops))
	for i := range u.Ops {
		out[i] = m.run(&u.Ops[i])
	}
	return out
}

func (m *memory) Stream(ctx context.Context, s *catalog.Snapshot, u *record.Unit) record.Outcome {
	return m.Execute(ctx, s, u)[0]
}

func (m *memory) run(op *record.Op) record.Outcome {
	o := record.Outcome{Total: -1, Rows: record.NewRows(op.Return, make([]record.Type, len(op.Return)))}
	show := func(row map[string]record.Value) {
		var values []record.Value
		for _, f := range op.Return {
			values = append(values, row[f])
		}
		o.Rows.Append(values)
	}
	switch op.Verb {
	case record.Insert:
		id := record.TextValue(fmt.Sprintf("%032x", time.Now().UnixNano()+int64(len(m.rows))))
		row := map[string]record.Value{"sys_id": id, "sys_created_on": record.TimeValue(time.Now())}
		for _, a := range op.Set {
			row[a.Field] = a.Value
		}
		m.rows = append(m.rows, row)
		o.Key = []record.Value{id}
		show(row)
	case record.Get:
		for _, row := range m.rows {
			if row["sys_id"] == op.Key[0] {
				show(row)
				return o
			}
		}
		return record.Outcome{Err: record.Errorf(record.NotFound, "", "no such record")}
	case record.List:
		for _, row := range m.rows {
			if w := op.Query.Where; w == nil || row[w.Args[0].Path] == w.Args[1].Value {
				show(row)
			}
		}
		o.Total = int64(o.Rows.Len())
	}
	return o
}

func TestEndToEnd_NamesWhatDiffersFromRunToRun(t *testing.T) {
	snap, err := catalog.Build(1, catalog.Definitions{Tables: []catalog.TableDef{{Name: "note", Display: "text", Fields: []catalog.FieldDef{
		{Name: "text", Type: "string"}, {Name: "author", Type: "reference", Reference: "note"},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	dialecttest.EndToEnd(t, "testdata/*.txtar", func(*testing.T) dialecttest.Server {
		return dialecttest.Server{Snapshot: snap, Executor: &memory{}, Dialect: now.New(now.Options{})}
	})
}

func TestPrint_SaysAllOfAnOp(t *testing.T) {
	op := record.Op{
		Verb: record.Update, Table: "t", Key: []record.Value{record.RefTo(0, "sys_id")}, Match: []string{"m"},
		Set:   []record.Assign{{Field: "a", Value: record.TextValue("x\n")}, {Field: "b"}},
		If:    []record.Condition{{Op: 1}, {Op: 2, Failed: true}, {Field: "v", Values: []record.Value{record.IntValue(3)}}, {Field: "v", Negate: true}},
		Group: 4, Actor: 5, Keep: true, Token: "k", Return: []string{"a"},
	}
	want := `update t [$0.sys_id] match m {a: "x\n", b: null} if op 1 succeeded if op 2 failed if v in (3) if v not in () in group 4 by actor 5 keep token "k" returning a` + "\n"
	if got := dialecttest.Print([]record.Op{op}); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestPrint_NamesEveryOperator(t *testing.T) {
	arg := record.F("f")
	seen := map[string]record.ExprOp{}
	for op := record.Const; op <= record.Quarter; op++ {
		e := &record.Expr{Op: op, Path: "p", Value: record.TextValue("v"), Args: []*record.Expr{arg, arg}, Rel: &record.Relation{Table: "t", Field: "r", Own: "o", Cmp: record.Ge, Count: 1}}
		s := dialecttest.PrintExpr(e)
		if other, taken := seen[s]; taken || s == "(f, f)" {
			t.Errorf("operators %d and %d are both printed %q", op, other, s)
		}
		seen[s] = op
	}
}
