package dialect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// paper is a dialect that says what it was asked: "POST /api/now/t?q body" becomes an insert whose answer is JSON.
type paper struct{ calls []dialect.Call }

func (p *paper) Name() string                { return "now" }
func (p *paper) IsBatch(_, path string) bool { return strings.HasSuffix(path, "/batch") }
func (p *paper) Batch(context.Context, *dialect.BatchRun, *dialect.Call, *wire.Answer) []dialect.ItemRecord {
	panic("a batch within a batch")
}

func (p *paper) Decode(_ *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	p.calls = append(p.calls, *c)
	e := &dialect.Exchange{
		Ops: []record.Op{{Verb: record.Insert, Table: "t", Set: []record.Assign{{Field: "body", Value: record.TextValue(string(c.Body))}}}},
		Reply: func(out []record.Outcome, a *wire.Answer) {
			if err := out[len(out)-1].Err; err != nil {
				p.Fail(c, err, a)
				return
			}
			a.Status = 201
			a.Body = append(a.Body, out[len(out)-1].Result...)
		},
	}
	switch {
	case strings.HasSuffix(c.Path, "/bad"):
		return nil, record.Errorf(record.Invalid, "", "bad")
	case strings.HasSuffix(c.Path, "/pair"):
		e.Ops = append(e.Ops, record.Op{
			Verb: record.Insert, Table: "t", Group: 1, Key: []record.Value{record.RefTo(0, "sys_id")},
			Set: []record.Assign{{Field: "up", Value: record.RefTo(0, "sys_id")}},
			If:  []record.Condition{{Op: 0}, {Field: "v", Values: []record.Value{record.IntValue(7)}}},
		})
		e.Ops[0].Group = 1
	case strings.HasSuffix(c.Path, "/tight"):
		e.Ops = append(e.Ops, e.Ops[0])
		e.Ordered = true
	case strings.HasSuffix(c.Path, "/more"):
		reply := e.Reply
		e.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
			return &dialect.Exchange{Ops: []record.Op{{Verb: record.Get, Table: "t"}}, Reply: reply}, nil
		}
	}
	return e, nil
}

func (p *paper) Fail(_ *dialect.Call, err error, a *wire.Answer) {
	e := record.AsError(err)
	a.Status = map[record.Kind]int{record.Dependency: 424, record.TooLarge: 413, record.Timeout: 503}[e.Kind]
	if a.Status == 0 {
		a.Status = 400
	}
	a.Body = append(a.Body, e.Msg...)
}

// scribe is an executor that keeps the units it was given.
type scribe struct {
	units  []*record.Unit
	result func(unit, op int, o *record.Op) record.Outcome
}

func (s *scribe) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	s.units = append(s.units, u)
	out := make([]record.Outcome, len(u.Ops))
	for i := range out {
		if s.result != nil {
			out[i] = s.result(len(s.units)-1, i, &u.Ops[i])
			continue
		}
		out[i] = record.Outcome{Result: fmt.Appendf(nil, `{"result":{"sys_id":"u%d.%d","number":"INC^1","n":5}}`, len(s.units)-1, i)}
	}
	return out
}

func (s *scribe) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	panic("streamed")
}

type rig struct {
	paper  paper
	exec   scribe
	config dialect.BatchConfig
	outer  dialect.Call
	admit  func(*dialect.Call) (wire.Header, error)
}

func newRig() *rig {
	r := &rig{outer: dialect.Call{
		Base: "https://weir.test", Actor: record.Actor{Key: "k", Name: "abel"},
		Header: wire.Header{{Name: "Authorization", Value: "Basic x"}},
	}}
	r.config.Defaults()
	return r
}

func (r *rig) run(t *testing.T, opt dialect.Options, items ...dialect.Item) []dialect.Part {
	t.Helper()
	mux := &dialect.Mux{}
	mux.Handle("/api/", &r.paper)
	j := dialect.Join{Config: r.config}
	b := &dialect.BatchRun{Snapshot: &catalog.Snapshot{Version: 3}, Exec: &r.exec, Mux: mux, Admit: r.admit}
	parts, err := j.Run(context.Background(), b, &r.paper, &r.outer, items, opt)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func post(id, url string) dialect.Item { return dialect.Item{ID: id, Method: "POST", URL: url} }

// brief is the parts in one line each.
func brief(parts []dialect.Part) []string {
	var list []string
	for _, p := range parts {
		if p.Unserviced {
			list = append(list, p.ID+" unserviced")
		} else {
			list = append(list, fmt.Sprintf("%s %d %s", p.ID, p.Answer.Status, p.Body))
		}
	}
	return list
}

func TestJoin_ItemsShareOneUnitWithShiftedIndexes(t *testing.T) {
	r := newRig()
	r.run(t, dialect.Options{}, post("a", "/api/now/t"), post("b", "/api/now/pair"), post("c", "/api/now/pair"))
	if len(r.exec.units) != 1 {
		t.Fatalf("%d units, want 1", len(r.exec.units))
	}
	u := r.exec.units[0]
	var got []string
	for _, op := range u.Ops {
		line := fmt.Sprintf("group %d", op.Group)
		if len(op.Key) > 0 {
			line += fmt.Sprintf(" key %s set %s if %d", op.Key[0].Text(), op.Set[0].Value.Text(), op.If[0].Op)
		}
		got = append(got, line)
	}
	want := []string{"group 0", "group 1", "group 1 key $1.sys_id set $1.sys_id if 1", "group 2", "group 2 key $3.sys_id set $3.sys_id if 3"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if u.Version != 3 || u.Ordered || len(u.Actors) != 1 || u.Actors[0].Name != "abel" || u.Budget <= 0 {
		t.Errorf("unit %+v", u)
	}
}

func TestJoin_OrderOfOneItemDoesNotOrderTheOthers(t *testing.T) {
	r := newRig()
	r.run(t, dialect.Options{}, post("a", "/api/now/t"), post("b", "/api/now/tight"), post("c", "/api/now/t"))
	if len(r.exec.units) != 2 || r.exec.units[0].Ordered || len(r.exec.units[0].Ops) != 2 || !r.exec.units[1].Ordered {
		t.Errorf("units %+v", r.exec.units)
	}
	r = newRig()
	r.run(t, dialect.Options{Ordered: true}, post("a", "/api/now/t"), post("b", "/api/now/tight"), post("c", "/api/now/t"))
	if len(r.exec.units) != 1 || !r.exec.units[0].Ordered {
		t.Errorf("units %+v", r.exec.units)
	}
}

func TestJoin_WhatComesNextIsJoinedAgain(t *testing.T) {
	r := newRig()
	parts := r.run(t, dialect.Options{}, post("a", "/api/now/more"), post("b", "/api/now/t"), post("c", "/api/now/more"))
	if len(r.exec.units) != 2 || len(r.exec.units[1].Ops) != 2 {
		t.Fatalf("units %+v", r.exec.units)
	}
	if got := string(parts[2].Body); !strings.Contains(got, "u1.1") {
		t.Errorf("answer %s", got)
	}
	// Under order nothing may come between an item and what it does next.
	r = newRig()
	r.run(t, dialect.Options{Ordered: true}, post("a", "/api/now/more"), post("b", "/api/now/t"))
	if len(r.exec.units) != 3 {
		t.Errorf("%d units, want 3", len(r.exec.units))
	}
}

func TestJoin_RefusesWhatNoItemMayReach(t *testing.T) {
	r := newRig()
	parts := r.run(t, dialect.Options{},
		post("1", "/api/now/v1/batch"), post("2", "/api/now/%62atch"), post("3", "/oauth_token.do"), post("4", "/api/jwt/login"),
		post("5", "https://evil.test/api/now/t"), post("6", "/metrics"), post("7", "https://weir.test/api/now/t"), post("8", "api/now/t"),
		post("9", "/api/now/%zz"), post("10", "/weir/gate"), post("11", "/oauth_revoke_token.do?token=x"))
	var got []int
	for _, p := range parts {
		got = append(got, p.Answer.Status)
	}
	if d := cmp.Diff([]int{400, 400, 400, 400, 400, 400, 201, 201, 400, 400, 400}, got); d != "" {
		t.Error(d)
	}
	for _, k := range []int{0, 1, 3, 4, 8} {
		if parts[k].Fault == "" {
			t.Errorf("item %s has no fault text", parts[k].ID)
		}
	}
}

func TestJoin_IdentityComesFromTheOuterRequestAlone(t *testing.T) {
	r := newRig()
	it := post("1", "/api/now/t")
	it.Header = wire.Header{
		{Name: "authorization", Value: "Basic evil"},
		{Name: "Cookie", Value: "c"},
		{Name: "X-Forwarded-For", Value: "1"},
		{Name: "X-Impersonate-User", Value: "admin"},
		{Name: "ACCEPT", Value: "application/xml"},
		{Name: "X-Mine", Value: "m"},
	}
	r.config.Headers = []string{"X-Mine"}
	r.run(t, dialect.Options{}, it)
	want := wire.Header{{Name: "ACCEPT", Value: "application/xml"}, {Name: "X-Mine", Value: "m"}}
	if d := cmp.Diff(want, r.paper.calls[0].Header); d != "" {
		t.Error(d)
	}
	if c := r.paper.calls[0]; c.Actor.Name != "abel" || c.Base != "https://weir.test" || !c.Item {
		t.Errorf("call %+v", c)
	}
}

func TestJoin_OneBadItemDoesNotHarmTheOthers(t *testing.T) {
	r := newRig()
	parts := r.run(t, dialect.Options{}, post("a", "/api/now/bad"), post("b", "/api/now/t"), dialect.Item{ID: "c", Err: record.Errorf(record.Invalid, "", "no url")})
	want := []string{"a 400 bad", `b 201 {"result":{"sys_id":"u0.0","number":"INC^1","n":5}}`, "c 400 no url"}
	if d := cmp.Diff(want, brief(parts)); d != "" {
		t.Error(d)
	}
}

func TestJoin_AnItemThatIsNotAdmittedDoesNotRunAndSaysSo(t *testing.T) {
	r := newRig()
	var asked []string
	r.admit = func(c *dialect.Call) (wire.Header, error) {
		asked = append(asked, c.Method+" "+c.Path)
		h := wire.Header{{Name: "X-RateLimit-Rule", Value: "r"}}
		if len(asked) > 1 {
			return h, record.Errorf(record.RateLimited, "", "enough")
		}
		return h, nil
	}
	parts := r.run(t, dialect.Options{}, post("a", "/api/now/table/t?q=1"), post("b", "/api/now/t%61ble/t"), post("c", "/api/now/batch"))
	want := []string{`a 201 {"result":{"sys_id":"u0.0","number":"INC^1","n":5}}`, "b 400 enough", "c 400 /api/now/batch cannot be part of a batch"}
	if diff := cmp.Diff(want, brief(parts)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"POST /api/now/table/t", "POST /api/now/table/t"}, asked); diff != "" {
		t.Error(diff)
	}
	for _, p := range parts[:2] {
		if p.Header.Get("X-RateLimit-Rule") != "r" {
			t.Errorf("item %s: %v", p.ID, p.Header)
		}
	}
	if len(r.exec.units) != 1 || len(r.exec.units[0].Ops) != 1 {
		t.Errorf("units: %v", r.exec.units)
	}
}

func TestJoin_TooLargeAnInputLeavesTheRestUnserviced(t *testing.T) {
	r := newRig()
	r.config.MaxInput = 10
	big := post("b", "/api/now/t")
	big.Body = make([]byte, 11)
	parts := r.run(t, dialect.Options{}, post("a", "/api/now/t"), big, post("c", "/api/now/t"))
	if parts[0].Answer.Status != 201 || parts[1].Answer.Status != 413 || !parts[2].Unserviced {
		t.Error(brief(parts))
	}
}

func TestJoin_TooLargeAnAnswerIsAnErrorOfThatItem(t *testing.T) {
	r := newRig()
	parts := r.run(t, dialect.Options{MaxOutput: 10}, post("a", "/api/now/t"), post("b", "/api/now/bad"))
	if parts[0].Answer.Status != 413 || !strings.Contains(string(parts[0].Body), "max_output") || parts[1].Answer.Status != 400 {
		t.Error(brief(parts))
	}
	r = newRig()
	r.config.MaxTotal = 80
	parts = r.run(t, dialect.Options{}, post("a", "/api/now/t"), post("b", "/api/now/t"))
	if parts[0].Answer.Status != 201 || parts[1].Answer.Status != 413 {
		t.Error(brief(parts))
	}
}

func TestJoin_UnservicedIsOnlyWhatDidNotBegin(t *testing.T) {
	r := newRig()
	late := record.Errorf(record.Timeout, "", "late")
	r.exec.result = func(_, op int, _ *record.Op) record.Outcome {
		switch op {
		case 1:
			return record.Outcome{Err: late}
		case 2, 3:
			return record.Outcome{Err: late, Unserviced: true}
		}
		return record.Outcome{Result: []byte("ok")}
	}
	parts := r.run(t, dialect.Options{}, post("a", "/api/now/t"), post("b", "/api/now/t"), post("c", "/api/now/t"), post("d", "/api/now/t"))
	if d := cmp.Diff([]string{"a 201 ok", "b 503 late", "c unserviced", "d unserviced"}, brief(parts)); d != "" {
		t.Error(d)
	}
}

func TestJoin_NothingBeginsAfterItsTime(t *testing.T) {
	r := newRig()
	r.config.Time = time.Nanosecond
	parts := r.run(t, dialect.Options{}, post("a", "/api/now/t"))
	if !parts[0].Unserviced || len(r.exec.units) != 0 {
		t.Error(brief(parts))
	}
}

func TestJoin_TooManyItemsAreRefusedAsAWhole(t *testing.T) {
	r := newRig()
	j := dialect.Join{Config: dialect.BatchConfig{MaxItems: 1}}
	_, err := j.Run(context.Background(), &dialect.BatchRun{}, &r.paper, &r.outer, make([]dialect.Item, 2), dialect.Options{})
	if record.KindOf(err) != record.TooLarge || !strings.Contains(err.Error(), "max_items") {
		t.Error(err)
	}
}

func TestJoin_EveryWriteHasATokenOfItsOwn(t *testing.T) {
	r := newRig()
	r.outer.Header.Set("Idempotency-Key", "k1")
	r.run(t, dialect.Options{}, post("a", "/api/now/pair"), post("b", "/api/now/t"))
	var got []string
	for _, op := range r.exec.units[0].Ops {
		got = append(got, op.Token)
	}
	if d := cmp.Diff([]string{"k1#0/0", "k1#0/1", "k1#1/0"}, got); d != "" {
		t.Error(d)
	}
}

func TestJoin_FiguresOfItemsCountFromTheBatch(t *testing.T) {
	r := newRig()
	r.exec.result = func(_, op int, _ *record.Op) record.Outcome {
		return record.Outcome{Result: []byte("{}"), Stat: record.Stat{
			Start: time.Millisecond, End: time.Duration(op+2) * time.Millisecond, SQL: time.Millisecond, SQLCount: 1, SetOps: 2, Rows: 1,
		}}
	}
	p := r.run(t, dialect.Options{}, post("a", "/api/now/pair"))[0]
	if p.Time != 2*time.Millisecond || p.Start < time.Millisecond || p.SQL != 2*time.Millisecond || p.SQLCount != 2 || p.SetOps != 2 || p.Rows != 2 || p.Bytes != 2 {
		t.Errorf("%+v", p.ItemRecord)
	}
}

func depend(it dialect.Item, ids ...string) dialect.Item {
	it.Depends = ids
	return it
}

func TestStages_ADependentItemUsesItsParentsAnswer(t *testing.T) {
	r := newRig()
	child := depend(post("2", "/api/now/t/${1.result.sys_id}?sysparm_query=number=${1.result.number}^a=1&caller=${1.result.number}"), "1")
	child.Body = []byte(`{"parent":"${1.result.sys_id}","n":${1.result.n},"plain":"$${1.result.n}",'q':'${1.result.number}'}`)
	parts := r.run(t, dialect.Options{}, child, post("1", "/api/now/t"))
	if parts[0].Answer.Status != 201 {
		t.Fatal(brief(parts))
	}
	c := r.paper.calls[1]
	if c.Path != "/api/now/t/u0.0" || c.RawQuery != "sysparm_query=number=INC%5E%5E1^a=1&caller=INC%5E1" {
		t.Errorf("path %s query %s", c.Path, c.RawQuery)
	}
	want := `{"parent":"u0.0","n":5,"plain":"${1.result.n}",'q':'INC^1'}`
	if d := cmp.Diff(want, string(c.Body)); d != "" {
		t.Error(d)
	}
}

func TestStages_FailuresTravelDown(t *testing.T) {
	r := newRig()
	parts := r.run(t, dialect.Options{},
		post("1", "/api/now/bad"), depend(post("2", "/api/now/t"), "1"), depend(post("3", "/api/now/t"), "2"),
		depend(post("4", "/api/now/t"), "nobody"), depend(post("5", "/api/now/t"), "6"), depend(post("6", "/api/now/t"), "5"),
		depend(post("7", "/api/now/t"), "6"), depend(post("8", "/api/now/t"), "8"), post("9", "/api/now/t"))
	want := []string{
		"1 400 bad",
		`2 424 not run, since item "1", which it depends on, failed`,
		`3 424 not run, since item "2", which it depends on, failed`,
		`4 400 the batch has no item "nobody"`,
		`5 400 the dependencies of item "5" form a cycle`,
		`6 400 the dependencies of item "6" form a cycle`,
		`7 424 not run, since item "6", which it depends on, failed`,
		`8 400 item "8" depends on itself`,
		`9 201 {"result":{"sys_id":"u0.0","number":"INC^1","n":5}}`,
	}
	if d := cmp.Diff(want, brief(parts)); d != "" {
		t.Error(d)
	}
}

func TestStages_EnforcedOrderHoldsAcrossThem(t *testing.T) {
	r := newRig()
	r.run(t, dialect.Options{Ordered: true}, post("1", "/api/now/a"), depend(post("2", "/api/now/b"), "1"), post("3", "/api/now/c"))
	var got []string
	for _, c := range r.paper.calls {
		got = append(got, c.Path)
	}
	if d := cmp.Diff([]string{"/api/now/a", "/api/now/b", "/api/now/c"}, got); d != "" {
		t.Error(d)
	}
	if len(r.exec.units) != 2 || len(r.exec.units[0].Ops) != 1 {
		t.Errorf("units %+v", r.exec.units)
	}
}

func TestStages_AChainHasABound(t *testing.T) {
	r := newRig()
	r.config.MaxChain = 2
	items := []dialect.Item{post("0", "/api/now/t")}
	for k := 1; k < 5; k++ {
		items = append(items, depend(post(fmt.Sprint(k), "/api/now/t"), fmt.Sprint(k-1)))
	}
	parts := r.run(t, dialect.Options{}, items...)
	if parts[2].Answer.Status != 201 || parts[3].Answer.Status != 413 || parts[4].Answer.Status != 413 {
		t.Error(brief(parts))
	}
}

// TestSubstitution_ChoosesNothingButAValue tries answers that want more than to be a value.
func TestSubstitution_ChoosesNothingButAValue(t *testing.T) {
	try := func(url, value string) (status int, query string) {
		r := newRig()
		r.exec.result = func(int, int, *record.Op) record.Outcome {
			b, _ := json.Marshal(map[string]any{"v": value})
			return record.Outcome{Result: b}
		}
		parts := r.run(t, dialect.Options{}, post("1", "/api/now/t"), post("2", url))
		if parts[1].Answer.Status != 201 {
			return parts[1].Answer.Status, ""
		}
		c := r.paper.calls[len(r.paper.calls)-1]
		return 201, c.Path + "?" + c.RawQuery
	}
	for _, c := range []struct{ url, value string }{
		{"/api/now/t/${1.v}", "a/b"},
		{"/api/now/t/${1.v}", ".."},
		{"/api/now/t/${1.v}", "a?b"},
		{"/api/now/t/${1.v}", ""},
		{"/api/now/t/${1.v}", "a%2fb"},
		{"${1.v}/api/now/t", "x"},
		{"https://${1.v}/api", "x"},
		{"/api/now/t?${1.v}=1", "x"},
		{"/api/now/t?sysparm_query=${1.v}", "active=true"},
		{"/api/now/t?sysparm_query=a${1.v}", "=1"},
		{"/api/now/t?sysparm_query=a>${1.v}", "=1"},
		{"/api/now/t?sysparm_query=aIN${1.v}", "STANCEOFtask"},
		{"/api/now/t?sysparm_query=a=${1.v}", "javascript:gs.now()"},
		{"/api/now/t?sysparm_fields=${1.v}", "a,b"},
		{"/api/now/t?sysparm_query=a=1^${1.v}", "b=1"},
		{"/api/now/t?sysparm_query=ORDERBY${1.v}", "b"},
	} {
		if status, got := try(c.url, c.value); status != 400 {
			t.Errorf("%s with %q: %d %s", c.url, c.value, status, got)
		}
	}
	for _, c := range []struct{ url, value, want string }{
		{"/api/now/t/${1.v}", "abc-1", "/api/now/t/abc-1?"},
		{"/api/now/t?sysparm_query=a=${1.v}", "x^ORb=1", "/api/now/t?sysparm_query=a=x%5E%5EORb%3D1"},
		{"/api/now/t?sysparm_query=a%3D1%5Eb%3D${1.v}", "x&y=1#", "/api/now/t?sysparm_query=a%3D1%5Eb%3Dx%26y%3D1%23"},
		{"/api/now/t?sysparm_query=nameLIKE${1.v}", "IN", "/api/now/t?sysparm_query=nameLIKEIN"},
		{"/api/now/t?name=${1.v}", "a&b", "/api/now/t?name=a%26b"},
		{"/api/now/t?name=${9.v}", "a", "/api/now/t?name=${9.v}"},
	} {
		if status, got := try(c.url, c.value); status != 201 || got != c.want {
			t.Errorf("%s with %q: %d %s, want %s", c.url, c.value, status, got, c.want)
		}
	}
}

func TestSubstitution_ABodyOfAnUnawareClientStaysAsItIs(t *testing.T) {
	r := newRig()
	it := post("2", "/api/now/t")
	it.Body = []byte(`{"text":"${1.result.sys_id} ${java.home}"}`)
	r.run(t, dialect.Options{}, post("1", "/api/now/t"), it)
	if d := cmp.Diff(string(it.Body), string(r.paper.calls[1].Body)); d != "" {
		t.Error(d)
	}
}

func TestSubstitution_XMLBodiesAreEscaped(t *testing.T) {
	r := newRig()
	r.exec.result = func(int, int, *record.Op) record.Outcome {
		return record.Outcome{Result: []byte(`{"v":"<a b='c'>&"}`)}
	}
	it := depend(post("2", "/api/now/t"), "1")
	it.Header = wire.Header{{Name: "Content-Type", Value: "application/xml"}}
	it.Body = []byte(`<request><entry><a>${1.v}</a></entry></request>`)
	tag := it
	tag.ID, tag.Body, tag.Header = "3", []byte(`<request a="${1.v}"/>`), wire.Header{it.Header[0]}
	parts := r.run(t, dialect.Options{}, post("1", "/api/now/t"), it, tag)
	want := `<request><entry><a>&lt;a b=&#39;c&#39;&gt;&amp;</a></entry></request>`
	if d := cmp.Diff(want, string(r.paper.calls[1].Body)); d != "" {
		t.Error(d)
	}
	if parts[2].Answer.Status != 400 {
		t.Error(brief(parts))
	}
}

func FuzzSubstitution(f *testing.F) {
	f.Add("/api/now/t/${1.result.sys_id}?sysparm_query=a=${1.result.number}", []byte(`{"a":"${1.result.n}"}`), "v^\"'<")
	f.Add("/api/now/t?x=$${1.a}", []byte(`<a>${1.v}</a>`), "x")
	f.Add("${", []byte(`${1.`), "")
	f.Fuzz(func(t *testing.T, url string, body []byte, value string) {
		if len(url)+len(body)+len(value) > 4096 {
			return
		}
		r := newRig()
		r.exec.result = func(int, int, *record.Op) record.Outcome {
			b, _ := json.Marshal(map[string]any{"v": value, "result": map[string]any{"n": 1, "number": value, "sys_id": "x"}})
			return record.Outcome{Result: b}
		}
		it := depend(post("2", url), "1")
		it.Body = body
		parts := r.run(t, dialect.Options{}, post("1", "/api/now/t"), it)
		if parts[1].Answer.Status == 0 || parts[1].Unserviced {
			t.Fatalf("%+v", parts[1])
		}
		// In a valid document a value stays a value.
		template := strings.NewReplacer("${1.v}", "x", "$${", "x").Replace(string(body))
		if parts[1].Answer.Status == 201 && len(r.paper.calls) == 2 && strings.Count(string(body), "${") == strings.Count(string(body), `"${1.v}"`) && json.Valid([]byte(template)) {
			if got := r.paper.calls[1].Body; !json.Valid(got) {
				t.Fatalf("%q became %q", body, got)
			}
		}
	})
}

// sleeper is an executor whose units take until their context ends.
type sleeper struct{ deadline bool }

func (s *sleeper) Execute(ctx context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	<-ctx.Done()
	s.deadline = ctx.Err() == context.DeadlineExceeded
	return []record.Outcome{{Err: record.Errorf(record.Timeout, "", "cut off")}}
}

func (*sleeper) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	panic("streamed")
}

func TestJoin_WhatIsUnderWayIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		mux := &dialect.Mux{}
		mux.Handle("/api/", &r.paper)
		s := &sleeper{}
		b := &dialect.BatchRun{Snapshot: &catalog.Snapshot{}, Exec: s, Mux: mux}
		j := dialect.Join{Config: r.config}
		items := []dialect.Item{post("1", "/api/now/t"), depend(post("2", "/api/now/t"), "1")}
		start := time.Now()
		parts, err := j.Run(context.Background(), b, &r.paper, &r.outer, items, dialect.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"1 503 cut off", "2 unserviced"}, brief(parts)); d != "" || !s.deadline {
			t.Error(d)
		}
		if took := time.Since(start); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("took %v, not 30s and a moment", took)
		}
	})
}
