package endpoint_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/internal/endpoint"
	"weir/internal/record"
)

func TestExplain_QueriesWithTheirBindsAndPages(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"emps": `
-- @method GET emps/:dept
-- @param X-Who as who HEADER STRING
-- @param dept INT
-- @etag QUERY SELECT max(hired) FROM emp WHERE dept_id = :dept
SELECT id, name FROM emp WHERE dept_id = :dept AND name <> coalesce(:who, '') ORDER BY id`,
			"add": "-- @method POST emps/\nINSERT INTO dept (id, name) VALUES (77, 'x')",
		})
		for _, plan := range []endpoint.Plan{
			{Binds: map[string]string{"dept": "1"}},
			{Binds: map[string]string{"DEPT": "1", "X-Who": "Ann"}, Analyze: true, Offset: 1, Limit: 2},
			{Binds: map[string]string{"dept": "1"}, Tag: true},
			{}, // all null
		} {
			plan.Endpoint = "hr/emps"
			x, err := w.r.Explain(t.Context(), w.snap, plan)
			if err != nil {
				t.Fatalf("%+v: %v", plan, err)
			}
			if !json.Valid(x.JSON) || x.Text == "" || plan.Tag == strings.Contains(x.SQL, "LIMIT") || !strings.Contains(x.SQL, "emp") {
				t.Errorf("%+v: %s\n%s\n%s", plan, x.SQL, x.Text, x.JSON)
			}
			if plan.Analyze != strings.Contains(x.Text, "Execution Time") {
				t.Errorf("%+v: %s", plan, x.Text)
			}
		}
		for _, f := range []struct {
			plan endpoint.Plan
			kind record.Kind
			want string
		}{
			{endpoint.Plan{Endpoint: "hr/nosuch"}, record.NotFound, "no SQL endpoint"},
			{endpoint.Plan{Endpoint: "hr/add"}, record.NotAllowed, "a block"},
			{endpoint.Plan{Endpoint: "hr/emps", Binds: map[string]string{"nosuch": "1"}}, record.Invalid, "no such bind"},
			{endpoint.Plan{Endpoint: "hr/emps", Binds: map[string]string{"dept": "many"}}, record.Invalid, ""},
		} {
			if _, err := w.r.Explain(t.Context(), w.snap, f.plan); record.KindOf(err) != f.kind || !strings.Contains(err.Error(), f.want) {
				t.Errorf("%+v: %v", f.plan, err)
			}
		}
	})
}

func TestTook_SlowCallsAreToldWithOnePlanAMinuteAndNoValues(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"emps": "-- @method GET emps/\nSELECT id, name FROM emp WHERE name = :secret",
			"add":  "-- @method POST emps/\nINSERT INTO dept (id, name) VALUES (77, :secret)",
		})
		var told []endpoint.Slow
		w.r = endpoint.NewWith(w.st, endpoint.Options{Slow: func(s endpoint.Slow) { told = append(told, s) }})
		call := w.call("emps", map[string]any{"secret": "hush"})
		call.SQL.ID = "4711"
		w.r.Took(t.Context(), w.snap, call, time.Hour)
		if len(told) != 0 {
			t.Errorf("told, though nobody wants to know: %+v", told)
		}
		w.r.SlowAfter(time.Second)
		w.r.Took(t.Context(), w.snap, call, time.Second-1)
		w.r.Took(t.Context(), w.snap, call, 2*time.Second)
		w.r.Took(t.Context(), w.snap, call, 3*time.Second)
		w.r.Took(t.Context(), w.snap, w.call("add", map[string]any{"secret": "hush"}), 3*time.Second)
		if len(told) != 3 || w.r.Stats().Slow != 3 {
			t.Fatalf("%d told: %+v", len(told), told)
		}
		if s := told[0]; s.Endpoint != "hr/emps" || s.ID != "4711" || s.Took != 2*time.Second || s.File != "endpoints/hr/emps.sql" || !strings.Contains(s.SQL, ":secret") || s.Plan == "" || s.NoPlan != "" {
			t.Errorf("%+v", s)
		}
		if told[1].Plan != "" || !strings.Contains(told[1].NoPlan, "less than a minute") || !strings.Contains(told[2].NoPlan, "block") {
			t.Errorf("%+v", told[1:])
		}
		for _, s := range told {
			if strings.Contains(s.Plan+s.SQL+s.NoPlan, "hush") {
				t.Errorf("it tells a value: %+v", s)
			}
		}
	})
}

func TestRun_DatabaseEndpointsNeedALoginWhateverTheDoorSays(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		if w.st.Name() != "postgres" {
			return // the only one that has users
		}
		w.mustApply(map[string]string{"mine": "-- @method GET mine/\n-- @auth database\nSELECT current_user AS me"})
		if _, _, err := w.r.RunSQL(t.Context(), w.snap, &record.Actor{Name: "admin", Roles: []string{"admin"}}, w.call("mine", nil), false, 1<<20); err == nil || err.Kind != record.Unauthenticated {
			t.Errorf("without a login: %v", err)
		}
	})
}
