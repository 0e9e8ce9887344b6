package dialect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// book is a dialect for batches with a Decode of their own: what an item does is said by its path.
//
//	/api/w/NAME       inserts NAME
//	/api/ref/N        inserts with a Ref to op N of its group
//	/api/r/NAME       reads
//	/api/more/NAME    reads, then reads again
//	/api/two/NAME     two inserts that are no group
//	/api/bad          cannot be decoded
//	/api/fails        inserts and fails
//	/api/empty        a read that finds nothing: its answer is 404 though no op failed
type book struct{ paper }

func (b *book) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	b.calls = append(b.calls, *c)
	kind, name, _ := strings.Cut(strings.TrimPrefix(c.Path, "/api/"), "/")
	op := record.Op{Verb: record.Insert, Table: name}
	status := 201
	e := &dialect.Exchange{}
	switch kind {
	case "bad":
		return nil, record.Errorf(record.Invalid, "", "bad %s", c.ContentID)
	case "ref":
		var n int
		fmt.Sscan(name, &n)
		op.Set = []record.Assign{{Field: "up", Value: record.RefTo(n, "key")}}
	case "r", "empty", "more":
		op.Verb, status = record.Get, 200
		if kind == "empty" {
			status = 404
		}
	case "two":
		e.Ops = append(e.Ops, op)
	case "fails":
		op.Table = "fails"
	}
	e.Ops = append(e.Ops, op)
	e.Reply = func(out []record.Outcome, a *wire.Answer) {
		for k := range out {
			if out[k].Err != nil {
				b.Fail(c, out[k].Err, a)
				return
			}
		}
		a.Status = status
		a.Body = append(a.Body, kind+" "+name+" "+string(out[len(out)-1].Result)...)
	}
	if kind == "more" {
		e.Next = func([]record.Outcome) (*dialect.Exchange, error) {
			return &dialect.Exchange{Ops: []record.Op{{Verb: record.Get, Table: "next " + name}}, Reply: e.Reply}, nil
		}
	}
	return e, nil
}

// shelf is an executor over books: groups fail together, and a unit that stops does.
type shelf struct{ units []*record.Unit }

func (s *shelf) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	panic("streamed")
}

func (s *shelf) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	s.units = append(s.units, u)
	out := make([]record.Outcome, len(u.Ops))
	stopped, group := false, 0
	for i := range u.Ops {
		o := &u.Ops[i]
		if out[i].Err == nil {
			out[i].Result = fmt.Appendf(nil, "%d.%d", len(s.units)-1, i)
		}
		if stopped && o.Group != 0 && o.Group == group {
			continue
		}
		if stopped {
			out[i] = record.Outcome{Err: record.Errorf(record.Dependency, "", "skipped"), Unserviced: true}
		}
		if o.Table != "fails" || stopped {
			continue
		}
		for k := range u.Ops {
			if o.Group != 0 && u.Ops[k].Group == o.Group {
				out[k] = record.Outcome{Err: record.Errorf(record.Dependency, "", "undone")}
			}
		}
		out[i] = record.Outcome{Err: record.Errorf(record.Rejected, "", "fails")}
		stopped, group = u.StopOnError, o.Group
	}
	return out
}

func (s *shelf) brief() []string {
	var list []string
	for _, u := range s.units {
		var ops []string
		for i := range u.Ops {
			op := &u.Ops[i]
			text := op.Verb.String() + " " + op.Table
			if op.Group != 0 {
				text += fmt.Sprintf(" in %d", op.Group)
			}
			if len(op.Set) > 0 {
				text += " up " + op.Set[0].Value.Text()
			}
			ops = append(ops, text)
		}
		text := strings.Join(ops, ", ")
		if u.Ordered {
			text = "ordered: " + text
		}
		if u.StopOnError {
			text = "stopping " + text
		}
		list = append(list, text)
	}
	return list
}

type library struct {
	book  book
	shelf shelf
	got   []string // what Answered had
	opt   dialect.Options
	time  time.Duration
}

func (l *library) run(t *testing.T, items ...dialect.Item) []dialect.Part {
	t.Helper()
	mux := &dialect.Mux{}
	mux.Handle("/api/", &l.book)
	j := dialect.Join{Name: "odata.batch"}
	j.Config.Defaults()
	if l.time != 0 {
		j.Config.Time = l.time
	}
	if l.opt.Decode == nil {
		l.opt.Decode = func(i int, d dialect.Dialect, c *dialect.Call, before int, parts []dialect.Part) (*dialect.Exchange, error) {
			return d.Decode(nil, c)
		}
	}
	l.opt.Answered = func(i int, p *dialect.Part) {
		text := fmt.Sprintf("%s %d %s", p.ID, p.Answer.Status, p.Body)
		switch {
		case p.Guilty:
			text += " (guilty)"
		case p.Undone:
			text += " (undone)"
		}
		l.got = append(l.got, text)
	}
	parts, err := j.Run(t.Context(), &dialect.BatchRun{Snapshot: &catalog.Snapshot{}, Exec: &l.shelf, Mux: mux}, &l.book, &dialect.Call{Base: "https://weir.test"}, items, l.opt)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func (l *library) check(t *testing.T, units, answers []string) {
	t.Helper()
	if d := cmp.Diff(units, l.shelf.brief()); d != "" {
		t.Errorf("units (-want +got):\n%s", d)
	}
	if d := cmp.Diff(answers, l.got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
}

func in(group int, it dialect.Item) dialect.Item {
	it.Group = group
	return it
}

func after(it dialect.Item, items ...int) dialect.Item {
	it.After = items
	return it
}

func get(id, url string) dialect.Item { return dialect.Item{ID: id, Method: "GET", URL: url} }

func TestGroup_IsOneGroupOfOpsWhoseRefsCountFromItsFirst(t *testing.T) {
	l := &library{opt: dialect.Options{Ordered: true}}
	l.run(t, post("1", "/api/w/a"), in(7, post("2", "/api/w/b")), in(7, post("3", "/api/two/c")), in(7, post("4", "/api/ref/2")),
		in(9, post("5", "/api/w/d")), in(9, post("6", "/api/ref/0")), post("7", "/api/w/e"))
	l.check(t, []string{
		"ordered: insert a, insert b in 1, insert c in 1, insert c in 1, insert 2 in 1 up $3.key, insert d in 2, insert 0 in 2 up $5.key, insert e",
	}, []string{"1 201 w a 0.0", "2 201 w b 0.1", "3 201 two c 0.3", "4 201 ref 2 0.4", "5 201 w d 0.5", "6 201 ref 0 0.6", "7 201 w e 0.7"})
}

func TestGroup_ExchangesOfOtherDialectsCountFromThemselves(t *testing.T) {
	l := &library{}
	l.opt.Decode = func(i int, d dialect.Dialect, c *dialect.Call, before int, _ []dialect.Part) (*dialect.Exchange, error) {
		if i == 2 {
			return nil, nil
		}
		return d.Decode(nil, c)
	}
	l.run(t, post("1", "/api/w/a"), in(1, post("2", "/api/w/b")), in(1, post("3", "/api/ref/0")), in(1, post("4", "/api/ref/0")))
	l.check(t, []string{"insert a, insert b in 1, insert 0 in 1 up $2.key, insert 0 in 1 up $1.key"},
		[]string{"1 201 w a 0.0", "2 201 w b 0.1", "3 201 ref 0 0.2", "4 201 ref 0 0.3"})
}

func TestGroup_FailsAsAWholeAndOneItemIsGuilty(t *testing.T) {
	l := &library{opt: dialect.Options{Ordered: true}}
	l.run(t, in(1, post("1", "/api/w/a")), in(1, post("2", "/api/fails")), in(1, post("3", "/api/w/b")), post("4", "/api/w/c"))
	l.check(t, []string{"ordered: insert a in 1, insert fails in 1, insert b in 1, insert c"},
		[]string{"1 424 undone, since another request of its group failed (undone)", "2 400 fails (guilty)", "3 424 undone, since another request of its group failed (undone)", "4 201 w c 0.3"})
}

func TestGroup_ThatCannotBeDecodedIsNotRun(t *testing.T) {
	l := &library{opt: dialect.Options{Ordered: true}}
	spoiled := in(2, post("7", "/api/w/e"))
	spoiled.Err = record.Errorf(record.Invalid, "", "no GET")
	l.run(t, post("0", "/api/w/0"), in(1, post("1", "/api/w/a")), in(1, post("2", "/api/bad")), in(1, post("3", "/api/bad")), post("4", "/api/w/c"),
		in(2, post("6", "/api/w/d")), spoiled, in(3, post("8", "/api/bad")), in(3, post("9", "/api/w/f")))
	l.check(t, []string{"ordered: insert 0, insert c"}, []string{
		"0 201 w 0 0.0",
		"1 424 not run, since another request of its group failed (undone)",
		"2 400 bad 2 (guilty)",
		"3 424 not run, since another request of its group failed (undone)",
		"4 201 w c 0.1",
		"6 424 not run, since another request of its group failed (undone)",
		"7 400 no GET (guilty)",
		"8 400 bad 8 (guilty)",
		"9 424 not run, since another request of its group failed (undone)",
	})
}

func TestOrder_ReadsThatWantMoreShareTheirRounds(t *testing.T) {
	l := &library{opt: dialect.Options{Ordered: true}}
	l.run(t, get("1", "/api/more/a"), get("2", "/api/r/b"), get("3", "/api/more/c"), post("4", "/api/w/d"), get("5", "/api/more/e"), get("6", "/api/r/f"))
	l.check(t, []string{
		"ordered: get a, get b, get c",
		"ordered: get next a, get next c",
		"ordered: insert d, get e, get f",
		"ordered: get next e",
	}, []string{"1 200 more a 1.0", "2 200 r b 0.1", "3 200 more c 1.1", "4 201 w d 2.0", "5 200 more e 3.0", "6 200 r f 2.2"})
}

func TestStopOnError_NothingAfterTheFirstFailureHappens(t *testing.T) {
	stop := dialect.Options{Ordered: true, StopOnError: true}
	for name, c := range map[string]struct {
		items   []dialect.Item
		units   []string
		answers []string
	}{
		"an op fails": {
			[]dialect.Item{post("1", "/api/w/a"), post("2", "/api/fails"), post("3", "/api/w/b"), get("4", "/api/r/c")},
			[]string{"stopping ordered: insert a, insert fails, insert b, get c"},
			[]string{"1 201 w a 0.0", "2 400 fails"},
		},
		"a call cannot be decoded": {
			[]dialect.Item{post("1", "/api/w/a"), post("2", "/api/bad"), post("3", "/api/w/b")},
			[]string{"stopping ordered: insert a"},
			[]string{"1 201 w a 0.0", "2 400 bad 2"},
		},
		"a call before one that cannot be decoded fails": {
			[]dialect.Item{post("1", "/api/fails"), post("2", "/api/bad"), post("3", "/api/w/b")},
			[]string{"stopping ordered: insert fails"},
			[]string{"1 400 fails"},
		},
		"an answer is a failure though no op failed": {
			[]dialect.Item{post("1", "/api/w/a"), get("2", "/api/empty"), post("3", "/api/w/b")},
			[]string{"stopping ordered: insert a, get "},
			[]string{"1 201 w a 0.0", "2 404 empty  0.1"},
		},
		"what succeeds goes on": {
			[]dialect.Item{get("1", "/api/r/a"), get("2", "/api/more/b"), post("3", "/api/w/c"), post("4", "/api/two/d"), post("5", "/api/w/e")},
			[]string{"stopping ordered: get a, get b", "stopping ordered: get next b", "stopping ordered: insert c, insert d, insert d", "stopping ordered: insert e"},
			[]string{"1 200 r a 0.0", "2 200 more b 1.0", "3 201 w c 2.0", "4 201 two d 2.2", "5 201 w e 3.0"},
		},
		"a group fails": {
			[]dialect.Item{in(1, post("1", "/api/w/a")), in(1, post("2", "/api/w/b")), in(2, post("3", "/api/fails")), in(2, post("4", "/api/w/b")), post("5", "/api/w/c")},
			[]string{"stopping ordered: insert a in 1, insert b in 1, insert fails in 2, insert b in 2, insert c"},
			[]string{"1 201 w a 0.0", "2 201 w b 0.1", "3 400 fails (guilty)", "4 424 undone, since another request of its group failed (undone)"},
		},
		"a group cannot be decoded": {
			[]dialect.Item{post("1", "/api/w/a"), in(2, post("3", "/api/w/c")), in(2, post("4", "/api/bad")), post("5", "/api/w/c")},
			[]string{"stopping ordered: insert a"},
			[]string{"1 201 w a 0.0", "3 424 not run, since another request of its group failed (undone)", "4 400 bad 4 (guilty)"},
		},
		"later stages": {
			[]dialect.Item{post("1", "/api/w/a"), post("2", "/api/fails"), after(post("3", "/api/w/b"), 0)},
			[]string{"stopping ordered: insert a, insert fails"},
			[]string{"1 201 w a 0.0", "2 400 fails"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &library{opt: stop}
			parts := l.run(t, c.items...)
			l.check(t, c.units, c.answers)
			for i, p := range parts {
				if p.Unserviced != (i >= len(c.answers)) {
					t.Errorf("part %d: unserviced %v", i, p.Unserviced)
				}
			}
		})
	}
}

func TestAfter_WaitsForAnswersAndLiftsItsGroup(t *testing.T) {
	l := &library{}
	var seen []string
	l.opt.Decode = func(i int, d dialect.Dialect, c *dialect.Call, _ int, parts []dialect.Part) (*dialect.Exchange, error) {
		if i == 2 {
			seen = append(seen, fmt.Sprint(parts[0].Answer.Status))
		}
		return d.Decode(nil, c)
	}
	l.run(t, post("1", "/api/w/a"), in(1, post("2", "/api/w/b")), in(1, after(post("3", "/api/w/c"), 0)), post("4", "/api/w/d"), after(get("5", "/api/r/e"), 1))
	l.check(t, []string{"insert a, insert d", "insert b in 1, insert c in 1", "get e"},
		[]string{"1 201 w a 0.0", "2 201 w b 1.0", "3 201 w c 1.1", "4 201 w d 0.1", "5 200 r e 2.0"})
	if len(seen) != 1 || seen[0] != "201" {
		t.Error(seen)
	}
	// Under order, what comes later stays later.
	l = &library{opt: dialect.Options{Ordered: true}}
	l.run(t, post("1", "/api/w/a"), after(get("2", "/api/r/b"), 0), post("3", "/api/w/c"))
	l.check(t, []string{"ordered: insert a", "ordered: get b, insert c"}, []string{"1 201 w a 0.0", "2 200 r b 1.0", "3 201 w c 1.1"})
}

func TestAnswered_TellsWhatItsTimeKeptFromRunning(t *testing.T) {
	l := &library{time: time.Nanosecond}
	parts := l.run(t, in(1, post("1", "/api/w/a")), in(1, post("2", "/api/w/b")), post("3", "/api/w/c"))
	says := "503 not begun within the 1ns allowed for a batch; see odata.batch.time"
	l.check(t, nil, []string{"1 " + says + " (guilty)", "2 " + says + " (undone)", "3 " + says})
	for i, p := range parts {
		if !p.Unserviced {
			t.Errorf("part %d: %+v", i, p)
		}
	}
}

func TestAnswered_LeavesTheLimitOfAnswersToReads(t *testing.T) {
	l := &library{opt: dialect.Options{Ordered: true}}
	mux := &dialect.Mux{}
	mux.Handle("/api/", &l.book)
	j := dialect.Join{Name: "odata.batch"}
	j.Config.Defaults()
	j.Config.MaxTotal = 10
	l.opt.Decode = func(_ int, d dialect.Dialect, c *dialect.Call, _ int, _ []dialect.Part) (*dialect.Exchange, error) {
		return d.Decode(nil, c)
	}
	l.opt.Answered = func(_ int, p *dialect.Part) { l.got = append(l.got, fmt.Sprintf("%s %d", p.ID, p.Answer.Status)) }
	_, err := j.Run(t.Context(), &dialect.BatchRun{Snapshot: &catalog.Snapshot{}, Exec: &l.shelf, Mux: mux}, &l.book, &dialect.Call{}, []dialect.Item{
		post("1", "/api/w/aaaaaaaaaa"), get("2", "/api/r/bbbbbbbbbb"), post("3", "/api/w/cccccccccc"),
	}, l.opt)
	if d := cmp.Diff([]string{"1 201", "2 413", "3 201"}, l.got); d != "" || err != nil {
		t.Error(d, errors.Join(err))
	}
}
