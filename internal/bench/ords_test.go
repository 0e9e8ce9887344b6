package bench

import (
	"strings"
	"testing"
	"time"
)

func TestDiffer_ComparesValuesAndNotTheirForm(t *testing.T) {
	run := func(name, body string) *leverRun {
		return &leverRun{pulled: pulled{name: name}, body: []byte(body)}
	}
	rows := run("rows", `{"items":[{"name":"A","people":[{"pay":1}]},{"name":"B","people":[]}],"count":2}`)
	hand := run("hand", `{"items":[{"list":[{"people":[{"pay":1.0}],"name":"A"},{"name":"B","people":[]}]}]}`)
	if why := differ([]*leverRun{rows, hand}); why != "" {
		t.Error(why)
	}
	for _, other := range []string{`{"items":[{"name":"A","people":[{"pay":2}]},{"name":"B","people":[]}]}`, `{"items":[]}`, `{`} {
		if why := differ([]*leverRun{rows, run("other", other)}); !strings.HasPrefix(why, "other") {
			t.Errorf("%s: %q", other, why)
		}
	}
}

func TestOrdsLevers_RefusesWhatCannotBeMeasured(t *testing.T) {
	good := OrdsLevers{Access: Access{Targets: []string{"http://127.0.0.1:1"}}}
	for want, change := range map[string]func(*OrdsLevers){
		"":           func(*OrdsLevers) {},
		"users":      func(o *OrdsLevers) { o.Users = -1 },
		"requests":   func(o *OrdsLevers) { o.Requests = -1 },
		"rounds":     func(o *OrdsLevers) { o.Rounds = -1 },
		"one target": func(o *OrdsLevers) { o.Targets = append(o.Targets, o.Targets[0]) },
		"no store":   func(o *OrdsLevers) { o.Targets = nil },
		"no lever":   func(o *OrdsLevers) { o.Only = []string{"auth", "x"} },
	} {
		o := good
		change(&o)
		err := o.withDefaults().validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestOrdsPool_KnowsWhenAPoolIsTooSmall(t *testing.T) {
	o := OrdsPool{Users: 50, Hold: 200 * time.Millisecond, Wait: 600 * time.Millisecond}
	for pool, want := range map[int]bool{10: true, 12: true, 13: false, 50: false, 100: false} {
		if got := o.tooSmall(pool); got != want {
			t.Errorf("pool of %d: too small is %t", pool, got)
		}
	}
	r := &OrdsPoolResult{}
	o.judge(r, PoolCase{Gate: gateShipped, Pool: 10, LoadResult: LoadResult{Rejected: 5}})
	o.judge(r, PoolCase{Gate: gateFitted, Pool: 10})
	if len(r.Problems) != 0 {
		t.Errorf("as expected, but %q", r.Problems)
	}
	o.judge(r, PoolCase{Gate: gateShipped, Pool: 10})
	o.judge(r, PoolCase{Gate: gateShipped, Pool: 50, LoadResult: LoadResult{Rejected: 1}})
	o.judge(r, PoolCase{Gate: gateFitted, Pool: 10, LoadResult: LoadResult{Rejected: 1}})
	if len(r.Problems) != 3 {
		t.Errorf("three problems, got %q", r.Problems)
	}
}
