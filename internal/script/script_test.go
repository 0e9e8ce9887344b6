package script

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/record"
)

// shelf is a Data that answers from a function and keeps what it was asked.
type shelf struct {
	mu     sync.Mutex
	units  []record.Unit
	answer func(op record.Op) record.Outcome
}

func (s *shelf) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units = append(s.units, *u)
	out := make([]record.Outcome, len(u.Ops))
	for i := range out {
		if s.answer != nil {
			out[i] = s.answer(u.Ops[i])
		}
	}
	return out
}

// brief is the ops so far, one in a line.
func (s *shelf) brief() []string {
	var list []string
	for _, u := range s.units {
		for _, op := range u.Ops {
			line := op.Verb.String() + " " + op.Table
			if len(op.Key) > 0 {
				line += " key " + op.Key[0].Text()
			}
			for _, a := range op.Set {
				line += " " + a.Field + "=" + a.Value.Text()
			}
			list = append(list, line)
		}
	}
	return list
}

func snapshot(t testing.TB, scripts ...string) *catalog.Snapshot {
	t.Helper()
	defs := catalog.Definitions{Tables: []catalog.TableDef{
		{Name: "person", Display: "name", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}, {Name: "secret", Type: "password"}}},
		{Name: "ticket", Fields: []catalog.FieldDef{
			{Name: "number", Type: "string"},
			{Name: "active", Type: "boolean"},
			{Name: "priority", Type: "integer", Choices: []catalog.Choice{{Value: "1", Label: "Critical"}}},
			{Name: "caller", Type: "reference", Reference: "person"},
			{Name: "due", Type: "datetime"},
		}},
		{Name: "sys_properties", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}, {Name: "value", Type: "string"}}},
	}}
	for i, s := range scripts {
		defs.Endpoints = append(defs.Endpoints, catalog.EndpointDef{Name: fmt.Sprint("e", i), Path: fmt.Sprint("/api/x/e", i), Method: "GET", Script: s})
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func newRunner(opt Options) *Runner {
	if opt.ParseQuery == nil {
		opt.ParseQuery = func(_ *catalog.Snapshot, _ *record.Actor, table, query string) (*record.Expr, []record.Sort, error) {
			return &record.Expr{Op: record.Const, Value: record.TextValue(query)}, nil, nil
		}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = func() time.Time { return time.Date(2026, 11, 30, 17, 2, 10, 0, time.UTC) }
	}
	return New(opt)
}

var abel = &record.Actor{Key: "62826bf03710200044e0bfc8bcbe5df1", Name: "abel.tuter", Roles: []string{"itil"}}

const noArgs = `{"method":"GET","url":"/api/x/e0","base":"https://h"}`

// invoke runs one script and returns its document.
func invoke(t testing.TB, opt Options, args, source string) string {
	t.Helper()
	doc, err := newRunner(opt).Invoke(context.Background(), snapshot(t, source), abel, &record.Invocation{Endpoint: "e0", Args: []byte(args)})
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return string(doc)
}

func TestScript_TheArticlesEndpointAnswersItsName(t *testing.T) {
	got := invoke(t, Options{}, noArgs, `(function process(request, response) {
  gs.sleep(1);
  response.setBody({response: "Test API 1"});
})(request, response);`)
	if want := `{"status":0,"headers":[],"body":{"response":"Test API 1"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestScript_RequestAndResponse(t *testing.T) {
	args := `{"method":"POST","url":"/api/x/e0/7?a=1&a=2&b=","base":"https://h","query":"a=1&a=2&b=","params":{"id":"7"},` +
		`"values":[["a","1"],["a","2"],["b",""]],"headers":[["Accept","text/csv"]],"body":"[{\"n\":1},{\"n\":2}]"}`
	f := func(source, want string) {
		t.Helper()
		if got := invoke(t, Options{}, args, source); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
	f(`request.pathParams.id + request.queryParams.a[1] + request.queryParams.b[0] + request.queryParams.a.length`, `{"status":0,"headers":[],"body":"722"}`)
	f(`[request.uri, request.url, request.queryString, request.headers.accept, request.getHeader("ACCEPT"), request.getHeader("x")]`,
		`{"status":0,"headers":[],"body":["/api/x/e0/7","https://h/api/x/e0/7?a=1&a=2&b=","a=1&a=2&b=","text/csv","text/csv",null]}`)
	f(`request.body.data[1].n + request.body.dataString.length`, `{"status":0,"headers":[],"body":19}`)
	f(`var n = 0; while (request.body.hasNext()) n += request.body.nextEntry().n; n`, `{"status":0,"headers":[],"body":3}`)
	f(`response.setStatus(202); response.setHeader("X-A", "b"); response.setLocation("/x"); response.setContentType("text/csv"); response.getStreamWriter().writeString("a,b"); 1`,
		`{"status":202,"headers":[["X-A","b"],["Location","/x"]],"type":"text/csv","stream":"a,b"}`)
	f(`undefined`, `{"status":0,"headers":[]}`)
	f(`({z: 1, a: [null, {}], n: gs.nil("")})`, `{"status":0,"headers":[],"body":{"z":1,"a":[null,{}],"n":true}}`)
}

func TestScript_ErrorsByKind(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		if got := invoke(t, Options{}, noArgs, source); got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
	for name, status := range faultStatus {
		f(`throw new sn_ws_err.`+name+`("m")`, fmt.Sprintf(`{"status":%d,"headers":[],"error":{"message":"m","detail":""}}`, status))
		f(`(function(){ return new sn_ws_err.`+name+`("m") })()`, fmt.Sprintf(`{"status":%d,"headers":[],"error":{"message":"m","detail":""}}`, status))
	}
	f(`var e = new sn_ws_err.ServiceError(); e.setStatus(418); e.setMessage("tea"); e.setDetail("pot"); response.setError(e); 5`,
		`{"status":418,"headers":[],"error":{"message":"tea","detail":"pot"}}`)
	f(`try { throw new sn_ws_err.NotFoundError("m") } catch (e) { e.message + e.status }`, `{"status":0,"headers":[],"body":"m404"}`)
	f(`response.setHeader("a", "b\r\nSet-Cookie: c")`, `{"status":400,"headers":[],"error":{"message":"the value of header a has a control character","detail":""}}`)
	if got := invoke(t, Options{}, noArgs, "var a = 1;\nnosuch()"); !strings.Contains(got, `"status":500`) || !strings.Contains(got, "nosuch is not defined") || !strings.Contains(got, "e0:2:") {
		t.Error(got)
	}
	if got := invoke(t, Options{}, noArgs, "var a = ;"); !strings.Contains(got, `"status":500`) || !strings.Contains(got, "cannot be compiled") {
		t.Error(got)
	}
}

func TestScript_NothingPassesFromOneCallToTheNext(t *testing.T) {
	r := newRunner(Options{})
	snap := snapshot(t, `leak = "secret"; Object.prototype.evil = 1; JSON.stringify = null; gs.mine = 1; 0`, `[typeof leak, typeof ({}).evil, typeof gs.mine]`)
	r.Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)})
	doc, err := r.Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e1", Args: []byte(noArgs)})
	if want := `{"status":0,"headers":[],"body":["undefined","undefined","undefined"]}`; err != nil || string(doc) != want {
		t.Errorf("%s %v", doc, err)
	}
}

func TestScript_HasNoWayOut(t *testing.T) {
	got := invoke(t, Options{}, noArgs, `[typeof require, typeof process, typeof setTimeout, typeof fetch, typeof java, typeof Packages, typeof console]`)
	if want := `{"status":0,"headers":[],"body":["undefined","undefined","undefined","undefined","undefined","undefined","undefined"]}`; got != want {
		t.Error(got)
	}
}

func TestScript_TimeEndsLoopsAndSleeps(t *testing.T) {
	for _, source := range []string{
		`while (true) {}`, `try { while (true) {} } catch (e) {} finally { while (true) {} }`, `gs.sleep(60000)`, `while (true) gs.sleep(60000)`,
		`response.setBody({toJSON: function() { while (true) {} }})`,
	} {
		r := newRunner(Options{Config: Config{Time: 20 * time.Millisecond, MaxSleep: time.Minute}})
		start := time.Now()
		_, err := r.Invoke(context.Background(), snapshot(t, source), abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)})
		if err == nil || err.Kind != record.Timeout || !strings.Contains(err.Msg, "script.time") || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %v", source, err, time.Since(start))
		}
	}
}

func TestScript_EndsWhenTheCallerGoesAway(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := newRunner(Options{}).Invoke(ctx, snapshot(t, `gs.sleep(10000)`), abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)})
	if err == nil || err.Kind != record.Canceled {
		t.Error(err)
	}
}

func TestScript_BoundsHold(t *testing.T) {
	deep := invoke(t, Options{Config: Config{MaxDepth: 50}}, noArgs, `function f() { f() } f()`)
	if !strings.Contains(deep, `"status":500`) || !strings.Contains(deep, "max_depth") {
		t.Error(deep)
	}
	small := Options{Config: Config{MaxResult: 100}}
	for _, source := range []string{`new Array(200).join("x")`} {
		_, err := newRunner(small).Invoke(context.Background(), snapshot(t, source), abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)})
		if err == nil || err.Kind != record.TooLarge || !strings.Contains(err.Msg, "max_result") {
			t.Errorf("%s: %v", source, err)
		}
	}
	if got := invoke(t, small, noArgs, `var w = response.getStreamWriter(); while (true) w.writeString("xxxxxxxxxx")`); !strings.Contains(got, "max_result") {
		t.Error(got)
	}
	var log bytes.Buffer
	invoke(t, Options{Config: Config{MaxLog: 3}, Log: slog.New(slog.NewTextHandler(&log, nil))}, noArgs, `for (var i = 0; i < 9; i++) gs.info("line {0}\nx", i)`)
	if n := strings.Count(log.String(), "\n"); n != 4 || !strings.Contains(log.String(), "max_log") || !strings.Contains(log.String(), `line 2\\nx`) && !strings.Contains(log.String(), `line 2\nx`) {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func TestScript_MemoryIsBounded(t *testing.T) {
	// What one call of a built-in function would take is refused before it is taken, as an error that the script may catch.
	small := Options{Config: Config{MaxMemory: 1 << 20}}
	for _, source := range []string{
		`"abc".repeat(1 << 28)`, `"a".padStart(1 << 30)`, `"a".padEnd(1 << 30, "xy")`, `new Array(4294967295).fill(1)`,
		`new Array(1 << 28).join("abcdefgh")`, `new Array(1 << 10).join("abcdefgh".repeat(1 << 10))`,
		`var n = "re"; "abc"[n + "peat"](1 << 28)`, `"abc"["repeat"](1 << 28)`, `"abc".\u0072epeat(1 << 28)`,
		`Array.prototype.map.call({length: 9007199254740991}, String)`, `new Array(1 << 28).toString()`, `new Array(1 << 30).sort()`,
	} {
		got := invoke(t, small, noArgs, `try { `+source+`; "done" } catch (e) { String(e.message || e) }`)
		if !strings.Contains(got, "script.max_memory") {
			t.Errorf("%s: %.200s", source, got)
		}
	}
	if got := invoke(t, small, noArgs, `[typeof ArrayBuffer, typeof Uint8Array, "ab".repeat(2), [3, 1, 2].sort().join("-"), "x".padStart(3, "."), [1, [2]].toString(), Object.keys([1]).length]`); got !=
		`{"status":0,"headers":[],"body":["undefined","undefined","abab","1-2-3","..x","1,2",1]}` {
		t.Error(got)
	}
	// What grows by and by is ended, and a script that sleeps meanwhile is not.
	r := newRunner(Options{Config: Config{MaxMemory: 32 << 20, Time: 20 * time.Second}})
	snap := snapshot(t, `var s = "x", all = []; while (true) { all.push(s + all.length); if (s.length < 100000) s += s }`, `gs.sleep(400); "slept"`)
	var wait sync.WaitGroup
	wait.Go(func() {
		if doc, err := r.Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e1", Args: []byte(noArgs)}); err != nil || !strings.Contains(string(doc), "slept") {
			t.Errorf("the one that sleeps: %s %v", doc, err)
		}
	})
	if _, err := r.Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)}); err == nil || err.Kind != record.TooLarge || !strings.Contains(err.Msg, "max_memory") {
		t.Errorf("the one that grows: %v", err)
	}
	wait.Wait()
}

func TestScript_RolesAreAsked(t *testing.T) {
	defs := catalog.Definitions{Endpoints: []catalog.EndpointDef{{Name: "e", Path: "/api/x/e", Roles: []string{"boss"}, Script: "1"}}}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newRunner(Options{}).Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e", Args: []byte(noArgs)}); err == nil || err.Kind != record.Forbidden {
		t.Error(err)
	}
	if _, err := newRunner(Options{}).Invoke(context.Background(), snap, &record.Actor{Roles: []string{"admin"}}, &record.Invocation{Endpoint: "e", Args: []byte(noArgs)}); err != nil {
		t.Error(err)
	}
}

func TestScript_PermitsAreTakenAndGivenBack(t *testing.T) {
	held := 0
	opt := Options{Permit: func(_ context.Context, session string) (func(), error) {
		if session != abel.Key {
			t.Errorf("session %q", session)
		}
		held++
		return func() { held-- }, nil
	}}
	invoke(t, opt, noArgs, `throw 1`)
	if held != 0 {
		t.Errorf("%d permits are held", held)
	}
	opt.Permit = func(context.Context, string) (func(), error) { return nil, record.Errorf(record.Busy, "", "full") }
	if _, err := newRunner(opt).Invoke(context.Background(), snapshot(t, "1"), abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)}); err == nil || err.Kind != record.Busy {
		t.Error(err)
	}
}

func TestGS_WhoAndWhen(t *testing.T) {
	got := invoke(t, Options{Data: &shelf{}}, noArgs, `[gs.getUserID(), gs.getUserName(), gs.getUser().getName(), gs.hasRole("a, itil"), gs.hasRole("boss"), gs.now(), gs.nowDateTime(),
		gs.daysAgo(1), gs.daysAgoStart(1), gs.daysAgoEnd(0), gs.nil(null), gs.nil(0), gs.generateGUID().length, gs.getProperty("a", "b"), gs.getProperty("a")]`)
	want := `{"status":0,"headers":[],"body":["62826bf03710200044e0bfc8bcbe5df1","abel.tuter","abel.tuter",true,false,"2026-11-30","2026-11-30 17:02:10",` +
		`"2026-11-29 17:02:10","2026-11-29 00:00:00","2026-11-30 23:59:59",true,false,32,"b",null]}`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// tickets answers lists of ticket and person as a small database would, whatever the query.
func tickets(op record.Op) record.Outcome {
	values := func(fields []string, row map[string]record.Value) []record.Value {
		list := make([]record.Value, len(fields))
		for i, f := range fields {
			list[i] = row[f]
		}
		return list
	}
	rows := record.NewRows(op.Return, make([]record.Type, len(op.Return)))
	switch op.Verb {
	case record.List, record.Get:
		if op.Table == "person" {
			rows.Append(values(op.Return, map[string]record.Value{"sys_id": record.TextValue("p1"), "name": record.TextValue("Abel Tuter")}))
			break
		}
		for i := range 2 {
			rows.Append(values(op.Return, map[string]record.Value{
				"sys_id": record.TextValue(fmt.Sprint("t", i)), "number": record.TextValue(fmt.Sprint("N", i)), "active": record.BoolValue(i == 0),
				"priority": record.IntValue(1), "caller": record.TextValue("p1"),
			}))
		}
	case record.Insert, record.Update:
		row := map[string]record.Value{"sys_id": record.TextValue("new")}
		for _, a := range op.Set {
			row[a.Field] = a.Value
		}
		rows.Append(values(op.Return, row))
	}
	return record.Outcome{Rows: rows}
}

func TestGlideRecord_ReadsAndWrites(t *testing.T) {
	f := func(source, want string, ops ...string) {
		t.Helper()
		s := &shelf{answer: tickets}
		got := invoke(t, Options{Data: s}, noArgs, source)
		if want = `{"status":0,"headers":[],"body":` + want + `}`; got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
		if d := cmp.Diff(ops, s.brief()); d != "" {
			t.Errorf("%s: ops %s", source, d)
		}
		for _, u := range s.units {
			if u.Actors[0].Name != abel.Name || u.Actors[0].System {
				t.Errorf("%s: actor %+v", source, u.Actors[0])
			}
		}
	}
	f(`var r = new GlideRecord("ticket"); r.addQuery("priority", "<", 3); r.orderByDesc("number"); r.setLimit(5); r.query(); var l = [r.getRowCount()];
		while (r.next()) { l.push(r.number, r.getValue("active"), r.active, r.priority, r.getUniqueValue(), r.hasNext()) } l`,
		`[2,"N0","1",true,"1","t0",true,"N1","0",false,"1","t1",false]`, "list ticket")
	f(`var r = new GlideRecord("ticket"); [r.get("t0"), r.getDisplayValue("priority"), r.getDisplayValue("caller"), r.caller.name, r.caller + "", r.caller.nil(), r.getValue("caller.name"), r.caller.getRefRecord().getValue("name"), r.isValidRecord()]`,
		`[true,"Critical","Abel Tuter","Abel Tuter","p1",false,"Abel Tuter","Abel Tuter",true]`, "list ticket", "get person key p1", "get person key p1", "get person key p1", "list person")
	f(`var r = new GlideRecord("ticket"); r.initialize(); r.number = "N9"; r.setValue("priority", 2); r.nosuch = 1; r.due = "2026-01-02 03:04:05"; [r.isNewRecord(), r.insert(), r.number, r.isNewRecord()]`,
		`[true,"new","N9",false]`, "insert ticket number=N9 priority=2 due=2026-01-02 03:04:05")
	f(`var r = new GlideRecord("ticket"); r.get("t0"); r.active = false; r.update()`, `"new"`, "list ticket", "update ticket key t0 active=false")
	f(`var r = new GlideRecord("ticket"); r.get("t0"); r.deleteRecord()`, `true`, "list ticket", "delete ticket key t0")
	f(`var r = new GlideRecord("ticket"); r.priority = 4; r.updateMultiple(); r.deleteMultiple(); 1`, `1`,
		"list ticket", "update ticket key t0 priority=4", "update ticket key t1 priority=4", "list ticket", "delete ticket key t0", "delete ticket key t1")
	f(`var r = new GlideRecord("ticket"); r.get("t0"); ({r: r.getTableName(), s: JSON.stringify(r).length > 10, secret: new GlideRecord("person").getValue("secret")})`,
		`{"r":"ticket","s":true,"secret":null}`, "list ticket")
}

func TestGlideRecord_FieldsAreAskedLikeElements(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		got := invoke(t, Options{Data: &shelf{answer: tickets}}, noArgs, `var r = new GlideRecord("ticket"); r.get("t0"); `+source)
		if want = `{"status":0,"headers":[],"body":` + want + `}`; got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
	f(`[r.priority.getDisplayValue(), r.priority.getValue(), r.priority == 1, r.priority < 2, r.priority + 1, r.number.getName(), r.number.nil()]`,
		`["Critical","1",true,true,"11","number",false]`)
	f(`[r.number.toLowerCase(), r.number.length, r.number.charAt(0), JSON.stringify({n: r.number}), r.caller.getDisplayValue(), r.caller.name.toUpperCase()]`,
		`["n0",2,"N","{\"n\":\"N0\"}","Abel Tuter","ABEL TUTER"]`)
	f(`[r.due.nil(), r.due.getDisplayValue(), r.due == "", r.due ? 1 : 2, "x".nil()]`, `[true,"",true,2,false]`)
	f(`var keys = []; for (var k in "ab") keys.push(k); keys`, `["0","1"]`)
}

func TestScript_EntriesOfXMLAreTheElementsOfItsRoot(t *testing.T) {
	for body, want := range map[string]string{
		`"body":"<r><entry><a>1</a></entry><entry><a>2</a></entry></r>","data":{"entry":[{"a":"1"},{"a":"2"}]}`: `[{"a":"1"},{"a":"2"}]`,
		`"body":"<r><entry><a>1</a></entry></r>","data":{"entry":{"a":"1"}}`:                                    `[{"a":"1"}]`,
		`"body":"<r><a>1</a></r>","data":{"a":"1"}`:                                                             `[{"a":"1"}]`,
		`"body":"{\"a\":{\"b\":1}}"`:                                                                            `[{"a":{"b":1}}]`,
	} {
		args := `{"method":"POST","url":"/api/x/e0","base":"https://h",` + body + `}`
		got := invoke(t, Options{}, args, `var l = []; while (request.body.hasNext()) l.push(request.body.nextEntry()); l`)
		if want = `{"status":0,"headers":[],"body":` + want + `}`; got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

func TestGlideRecord_ConditionsAreWordsOfTheWire(t *testing.T) {
	f := func(source, want string) {
		t.Helper()
		s := &shelf{answer: tickets}
		invoke(t, Options{Data: s}, noArgs, `var r = new GlideRecord("ticket"); `+source+`; r.query()`)
		where := s.units[len(s.units)-1].Ops[0].Query.Where
		var got []string
		if where != nil && where.Op == record.And {
			for _, a := range where.Args {
				got = append(got, a.Value.S)
			}
		} else if where != nil {
			got = append(got, where.Value.S)
		}
		if strings.Join(got, " & ") != want {
			t.Errorf("%s\n got %s\nwant %s", source, strings.Join(got, " & "), want)
		}
	}
	f(`r.addQuery("number", "a^b"); r.addQuery("priority", "IN", [1,2]).addOrCondition("priority", ">", 5).addOrCondition("active", true)`, `number=a^^b^priorityIN1,2^ORpriority>5^ORactive=true`)
	f(`r.addNullQuery("caller"); r.addNotNullQuery("due"); r.addEncodedQuery("a=1^NQb=2"); r.addQuery("caller.name", "CONTAINS", "x")`, `callerISEMPTY^dueISNOTEMPTY^caller.nameLIKEx & a=1^NQb=2`)
}

func TestGlideRecord_RefusesWhatItCannotMean(t *testing.T) {
	for _, source := range []string{
		`new GlideRecord("nosuch")`, `new GlideRecord("ticket").addQuery("nosuch", 1)`, `new GlideRecord("ticket").addQuery("number", "DROP", 1)`,
		`new GlideRecord("ticket").orderBy("nosuch")`, `var r = new GlideRecord("ticket"); r.priority = "much"`,
		`new GlideAggregate("ticket").addAggregate("MEDIAN", "priority")`, `new GlideDateTime("yesterday")`,
	} {
		if got := invoke(t, Options{Data: &shelf{}}, noArgs, source); !strings.Contains(got, `"status":400`) {
			t.Errorf("%s: %s", source, got)
		}
	}
}

func TestGlideRecord_AFailedWriteIsNullAndTold(t *testing.T) {
	s := &shelf{answer: func(record.Op) record.Outcome {
		return record.Outcome{Err: record.Errorf(record.Conflict, "number", "exists")}
	}}
	got := invoke(t, Options{Data: s}, noArgs, `var r = new GlideRecord("ticket"); r.initialize(); [r.insert(), r.getLastErrorMessage()]`)
	if want := `{"status":0,"headers":[],"body":[null,"exists"]}`; got != want {
		t.Error(got)
	}
}

func TestGlideRecord_TooManyRowsAreNotCutSilently(t *testing.T) {
	s := &shelf{answer: tickets}
	if got := invoke(t, Options{Data: s, Config: Config{MaxRows: 1}}, noArgs, `new GlideRecord("ticket").query()`); !strings.Contains(got, "max_rows") {
		t.Error(got)
	}
}

func TestGlideAggregate_CountsByGroup(t *testing.T) {
	s := &shelf{answer: func(op record.Op) record.Outcome {
		rows := record.NewRows([]string{"priority", "count"}, make([]record.Type, 2))
		rows.Append([]record.Value{record.IntValue(1), record.IntValue(7)})
		return record.Outcome{Rows: rows}
	}}
	got := invoke(t, Options{Data: s}, noArgs, `var a = new GlideAggregate("ticket"); a.addAggregate("COUNT"); a.groupBy("priority"); a.query(); a.next(); [a.getValue("priority"), a.getAggregate("COUNT"), a.next()]`)
	if want := `{"status":0,"headers":[],"body":["1","7",false]}`; got != want {
		t.Error(got)
	}
	q := s.units[0].Ops[0].Query
	if d := cmp.Diff([]string{"priority"}, q.Group); d != "" || len(q.Aggs) != 1 {
		t.Errorf("%+v", q)
	}
}

func TestGlideDateTime_Counts(t *testing.T) {
	got := invoke(t, Options{}, noArgs, `var d = new GlideDateTime("2026-01-31 10:00:00"), e = new GlideDateTime(d); e.addDays(1); e.addSeconds(-1);
		[d + "", e.getValue(), d.before(e), e.compareTo(d), e.getNumericValue() - d.getNumericValue(), new GlideDateTime().getDisplayValue(), e.getDate()]`)
	want := `{"status":0,"headers":[],"body":["2026-01-31 10:00:00","2026-02-01 09:59:59",true,1,86399000,"2026-11-30 17:02:10","2026-02-01"]}`
	if got != want {
		t.Error(got)
	}
}

func TestScript_ManyAtOnceShareCompiledCodeAlone(t *testing.T) {
	r := newRunner(Options{Data: &shelf{answer: tickets}})
	snap := snapshot(t, `var r = new GlideRecord("ticket"); r.query(); r.next(); mine = request.pathParams.id; gs.sleep(2); mine + r.number`)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"method":"GET","url":"/","base":"","params":{"id":"%d-"}}`, i)
			doc, err := r.Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e0", Args: []byte(args)})
			if want := fmt.Sprintf(`{"status":0,"headers":[],"body":"%d-N0"}`, i); err != nil || string(doc) != want {
				t.Errorf("%s %v, want %s", doc, err, want)
			}
		})
	}
	wg.Wait()
}

func BenchmarkInvoke_SleepOnly(b *testing.B) {
	r := newRunner(Options{})
	snap := snapshot(b, `(function process(request, response) { gs.sleep(0); response.setBody({response: "Test API 1"}); })(request, response);`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Invoke(context.Background(), snap, abel, &record.Invocation{Endpoint: "e0", Args: []byte(noArgs)}); err != nil {
			b.Fatal(err)
		}
	}
}
