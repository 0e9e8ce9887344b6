package server

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
	"weir/internal/telemetry"
)

func TestNoteSets_NumbersTheSetsOfARequest(t *testing.T) {
	rec := telemetry.New()
	ms := time.Millisecond
	ops := []record.Op{{Verb: record.Insert, Table: "a"}, {Verb: record.Insert, Table: "a"}, {Verb: record.Get, Table: "b"}, {Verb: record.Delete, Table: "c"}}
	out := []record.Outcome{
		// 2 was halved into 3 and 4, so nobody names it.
		{Stat: record.Stat{Set: 3, SetOps: 2, Rows: 1, End: 5 * ms, SetTime: 3 * ms}},
		{Stat: record.Stat{Set: 3, SetOps: 2, Rows: 1, End: 5 * ms, SetTime: 3 * ms}},
		{Stat: record.Stat{Set: 1, SetOps: 1, End: 2 * ms, SetTime: ms}},
		{Err: record.Errorf(record.Forbidden, "", "no")},
	}
	noteSets(rec, 10*ms, ops, out)
	again := []record.Outcome{{Stat: record.Stat{Set: 1, SetOps: 7, Rows: 1, End: ms, SetTime: ms}}}
	noteSets(rec, 20*ms, []record.Op{{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: "e"}}}, again)
	want := []telemetry.Set{
		{Verb: "insert", Table: "a", Ops: 2, Rows: 2, Start: 12 * ms, Time: 3 * ms},
		{Verb: "get", Table: "b", Ops: 1, Start: 11 * ms, Time: ms},
		{Verb: "invoke", Table: "e", Ops: 7, Rows: 1, Start: 20 * ms, Time: ms},
	}
	if diff := cmp.Diff(want, rec.Sets()); diff != "" {
		t.Error(diff)
	}
	var numbers []int
	for _, o := range append(out, again...) {
		numbers = append(numbers, o.Stat.Set)
	}
	if diff := cmp.Diff([]int{1, 1, 2, 0, 3}, numbers); diff != "" {
		t.Error(diff)
	}
	text := statements(rec.Sets())
	if text != `[{"n":1,"verb":"insert","table":"a","ops":2,"rows":2,"start":12,"ms":3},{"n":2,"verb":"get","table":"b","ops":1,"rows":0,"start":11,"ms":1},`+
		`{"n":3,"verb":"invoke","table":"e","ops":7,"rows":1,"start":20,"ms":1}]` {
		t.Error(text)
	}
	row := txRow{}
	row.rode(rec.Sets(), 1)
	row.rode(rec.Sets(), 3)
	row.rode(rec.Sets(), 9)
	if row.sets != "1,3" || row.setOps != 7 || row.setRows != 2 || row.setTime != 4*ms {
		t.Errorf("%+v", row)
	}
	noteSets(nil, 0, ops, out)
}

func TestStatements_AreCutToTheirRoom(t *testing.T) {
	sets := make([]telemetry.Set, 1000)
	for i := range sets {
		sets[i] = telemetry.Set{Verb: "insert", Table: strings.Repeat("t", 30), Ops: i}
	}
	text := statements(sets)
	if len(text) > maxStatements || !strings.HasSuffix(text, "}]") || !strings.Contains(text, `,{"more":9`) {
		t.Errorf("%d bytes, ends %q", len(text), text[len(text)-40:])
	}
}
