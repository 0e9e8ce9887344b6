package engine_test

import (
	"context"
	"sync"
	"testing"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
)

func TestInsert_FillsDefaultsNumbersAuditAndRules(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("dept", id(1), "name", "Sales", "grp", "north"))
		op := insert("incident", id(2), "title", "disk full", "prio", 2, "dept", id(1), "ci_name", "srv1", "number", "")
		op.Return = []string{"number", "state", "score", "grp", "severity", "sys_class_name", "sys_created_by", "sys_created_on", "sys_mod_count", "dept.name", "ci.name", "ci.number", "ci_state"}
		want(t, b.must(op), "ok inserted TSK00001 1 12 north 3 incident admin 2026-11-30 12:00:00 0 Sales srv1 CI0001 inserted")
	})
}

func TestUnit_FusedInsertsKeepTheirOrderAndFailAlone(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		ops := []record.Op{
			insert("task", id(1), "title", "a", "code", "X"),
			insert("task", id(2), "title", "b", "code", "X"),
			insert("task", id(3), "title", "c", "prio", 9),
			insert("task", id(4)),
			insert("task", id(5), "title", "e"),
			insert("task", id(6), "title", "much longer than twenty characters"),
			insert("task", id(7), "nope", "x"),
		}
		for i := range ops {
			ops[i].Return = []string{"number"}
		}
		want(t, b.do(enginetest.Admin, ops...), "ok inserted TSK00001", "conflict code", "rejected prio", "invalid title", "ok inserted TSK00005", "invalid title", "invalid nope")
		want(t, b.must(list("task", nil, "title")), "ok a / e")
	})
}

func TestUpdate_WritesOnlyWhatChanges(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("task", id(1), "title", "a", "prio", 1), insert("task", id(2), "title", "b"))
		same, other := update("task", id(1), "title", "a"), update("task", id(2), "prio", 3)
		same.Return, other.Return = []string{"sys_mod_count"}, []string{"sys_mod_count", "score"}
		want(t, b.must(same, other), "ok 0", "ok changed 1 13")
		want(t, b.do(enginetest.Admin, update("task", id(9), "prio", 1), update("incident", id(1), "prio", 2)), "not found", "not found")
	})
}

func TestGroup_FailsAsAWholeAndNamesTheFirst(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		grouped := func(g int, op record.Op) record.Op { op.Group = g; return op }
		want(t, b.do(enginetest.Admin,
			grouped(1, insert("dept", id(1), "name", "one")),
			grouped(1, insert("task", id(2), "title", "x", "dept", record.RefTo(0, "sys_id"))),
			grouped(2, insert("dept", id(3), "name", "two")),
			grouped(2, insert("task", id(4), "title", "x", "prio", 8)),
			grouped(2, insert("dept", id(5), "name", "three")),
			insert("task", id(6), "title", "alone"),
		), "ok inserted", "ok inserted", "dependency 3", "rejected prio", "dependency 3", "ok inserted")
		want(t, b.must(list("dept", nil, "name"), list("task", nil, "title", "dept.name")), "ok one", "ok x one / alone -")
	})
}

func TestStopOnError_LeavesNothingOfWhatComesAfter(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		out := b.unit(record.Unit{Ordered: true, StopOnError: true, Ops: []record.Op{
			insert("task", id(1), "title", "a"), insert("task", id(2), "title", "b", "prio", 7), insert("task", id(3), "title", "c"), get("task", id(1), "title"),
		}})
		want(t, out, "ok inserted", "rejected prio", "dependency 1 unserviced", "dependency 1 unserviced")
		want(t, b.must(list("task", nil, "title")), "ok a")
	})
}

func TestDelete_CascadesClearsAndRestricts(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(
			insert("dept", id(1), "name", "d"),
			insert("incident", id(2), "title", "a", "dept", id(1)), insert("task", id(3), "title", "b"), insert("task", id(4), "title", "c"),
			insert("step", id(5), "task", id(2), "text", "s1"), insert("step", id(6), "task", id(2), "text", "s2"), insert("step", id(7), "blocker", id(3)),
		)
		want(t, b.do(enginetest.Admin, del("task", id(2)), del("task", id(3)), del("task", id(4)), del("dept", id(1)), del("dept", id(1))),
			"ok changed", "restricted", "ok changed", "ok changed", "not found")
		want(t, b.must(list("task", nil, "sys_id"), list("step", nil, "sys_id")), "ok "+id(3), "ok "+id(7))
		b.must(insert("dept", id(1), "name", "d"), insert("task", id(2), "title", "a", "dept", id(1)))
		want(t, b.must(del("dept", id(1)), get("task", id(2), "dept", "sys_mod_count")), "ok changed", "ok - 1")
	})
}

func TestUpsert_FindsByMatchFields(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("dept", id(1), "name", "one", "grp", "x"))
		op := func(name, grp string) record.Op {
			return record.Op{Verb: record.Upsert, Table: "dept", Match: []string{"name"}, Set: set("name", name, "grp", grp), Return: []string{"name", "grp"}}
		}
		want(t, b.do(enginetest.Admin, op("one", "y"), op("two", "z"), op("two", "zz"), op("one", "y")),
			"ok changed one y", "ok inserted two z", "ok changed two zz", "ok one y")
	})
}

func TestAccess_EntersEveryOccurrence(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(
			insert("task", id(1), "title", "hers", "owner", "beth", "hidden", "h"),
			insert("task", id(2), "title", "not hers", "owner", "agent"),
			insert("step", id(3), "task", id(2), "text", "s"),
		)
		field := record.Compare(record.Eq, record.F("hidden"), record.C(text("h")))
		want(t, b.do(enginetest.Beth,
			get("task", id(1), "title", "hidden"), get("task", id(2), "title"), list("task", nil, "title"),
			list("task", field, "title"), list("step", nil, "text", "task.title"),
			update("task", id(1), "title", "mine"), update("task", id(2), "title", "mine"), update("task", id(1), "hidden", "x"),
			del("task", id(1)), insert("task", id(4), "title", "x", "owner", "agent"), insert("task", id(5), "title", "y", "owner", "beth"),
			insert("dept", "", "name", "d"),
		),
			"ok hers -", "not found", "ok hers", "forbidden hidden", "ok s -", "ok changed", "not found", "forbidden hidden",
			"forbidden", "forbidden", "ok inserted", "forbidden")
		want(t, b.do(enginetest.Boss, get("task", id(1), "hidden"), list("task", field, "title")), "ok h", "ok mine")
	})
}

func TestConditions_HoldOnTheRecordAndOnOtherOps(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("task", id(1), "title", "a"), insert("task", id(2), "title", "b"))
		version := func(op record.Op, n int64) record.Op {
			op.If = append(op.If, record.Condition{Field: "sys_mod_count", Values: []record.Value{record.IntValue(n)}})
			return op
		}
		after := func(op record.Op, i int, failed bool) record.Op {
			op.If = append(op.If, record.Condition{Op: i, Failed: failed})
			return op
		}
		want(t, b.do(enginetest.Admin,
			version(update("task", id(1), "prio", 1), 0), version(update("task", id(1), "prio", 2), 0), version(del("task", id(2)), 5),
			after(insert("dept", "", "name", "x"), 1, false), after(insert("dept", "", "name", "y"), 1, true),
		), "ok changed", "precondition sys_mod_count", "precondition sys_mod_count", "dependency 1", "ok inserted")
	})
}

func TestJournalAndPassword_AreStoredBesideTheRecord(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("task", id(1), "title", "a", "note", "first", "pin", "1234"))
		up := update("task", id(1), "note", "second")
		up.Return = []string{"note", "pin", "sys_mod_count"}
		want(t, b.must(up), "ok changed - - 1")
		entries := list("sys_journal_field", nil, "element", "element_id", "value", "sys_created_by")
		want(t, b.must(entries), "ok note "+id(1)+" first admin / note "+id(1)+" second admin")
	})
}

func TestToken_RepeatGetsTheStoredOutcome(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		op := insert("task", "", "title", "once")
		op.Token, op.Return = "k1", []string{"number", "sys_id"}
		first := b.must(op)
		want(t, b.must(op), show(first[0]))
		other := op
		other.Set = set("title", "twice")
		want(t, b.do(enginetest.Admin, op, other), show(first[0]), "conflict")
		want(t, b.do(enginetest.Agent, op), "ok inserted TSK00002 "+"0000000000000000000000000f000002")
		want(t, b.must(list("task", nil, "title")), "ok once / once")
	})
}

func TestDeepInserts_FuseByLevel(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		const bills, lines = 20, 3
		var ops []record.Op
		for i := range bills {
			at := len(ops)
			ops = append(ops, insert("bill", "", "label", "x"))
			for k := range lines {
				ops = append(ops, insert("line", id(100+i*lines+k), "bill", record.RefTo(at, "number"), "amount", k+1))
			}
			for j := at; j < len(ops); j++ {
				ops[j].Group = i + 1
			}
		}
		out := b.must(ops...)
		for i, o := range out {
			want := bills * lines
			if ops[i].Table == "bill" {
				want = bills
			}
			if o.Stat.SetOps != want {
				t.Fatalf("op %d ran in a set of %d, want %d", i, o.Stat.SetOps, want)
			}
		}
		want(t, b.must(list("line", record.Compare(record.Eq, record.F("sys_id"), record.C(text(id(102)))), "pos", "bill.total")), "ok 30 6")
	})
}

func TestPositions_AreDistinctUnderConcurrency(t *testing.T) {
	off := false
	each(t, engine.Options{Coalesce: &off}, func(t *testing.T, b *bench) {
		bill := b.must(insert("bill", "", "label", "x"))[0].Key[0]
		const writers, rounds = 4, 10
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range rounds {
					u := &record.Unit{Version: b.snap.Version, Actors: []record.Actor{enginetest.Admin}, Ops: []record.Op{
						insert("line", id(1000+w*rounds+i), "bill", bill, "amount", 1),
					}}
					if out := b.x.Execute(context.Background(), b.snap, u); out[0].Err != nil {
						t.Errorf("writer %d: %v", w, out[0].Err)
					}
				}
			})
		}
		wg.Wait()
		rows := b.must(list("line", nil, "pos", "bill.total"))[0].Rows
		seen := map[int64]bool{}
		for i := range rows.Len() {
			row := rows.At(i)
			seen[row[0].N] = true
			if row[1].N != writers*rounds {
				t.Fatalf("the total is %d, want %d", row[1].N, writers*rounds)
			}
		}
		if len(seen) != writers*rounds || !seen[10] || !seen[10*writers*rounds] {
			t.Fatalf("%d positions: %v", len(seen), seen)
		}
	})
}
