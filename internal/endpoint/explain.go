package endpoint

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Plan is what to explain of an endpoint.
type Plan struct {
	Endpoint string
	Binds    map[string]string // by parameter or bind; those not named are null
	Tag      bool              // the tag query instead of the main one
	Analyze  bool              // run it, in a transaction that can write nothing
	Offset   int64             // of the page
	Limit    int64             // of the page; 0: as many rows as a call without a limit looks for
}

// Explain is the database's plan for the statement that a call of a query endpoint runs.
func (r *Runner) Explain(ctx context.Context, snap *catalog.Snapshot, plan Plan) (*store.Explained, error) {
	e := snap.Endpoint(plan.Endpoint)
	switch {
	case e == nil || e.SQL == nil:
		return nil, record.Errorf(record.NotFound, "", "there is no SQL endpoint %.80q", plan.Endpoint)
	case e.SQL.Compiled == nil || e.SQL.Compiled.Store != r.st.Name():
		return nil, record.Errorf(record.Unavailable, "", "the endpoint %s was not compiled for this database; apply the project again", e.Name)
	case plan.Tag && e.SQL.Compiled.Tag == nil:
		return nil, record.Errorf(record.Invalid, "tag", "the endpoint %s has no tag query", e.Name)
	case !plan.Tag && e.SQL.Source == catalog.SourceBlock:
		return nil, record.Errorf(record.NotAllowed, "", "the endpoint %s is a block: plans are made of queries", e.Name)
	}
	call := &record.SQLCall{Offset: plan.Offset, Limit: plan.Limit}
	if call.Limit == 0 {
		call.Limit = pageLimit(e.SQL)
	}
	var err error
	if call.Binds, err = bindsOf(e, plan.Binds); err != nil {
		return nil, err
	}
	x := &run{r: r, ctx: ctx, def: &e.EndpointDef, compiled: e.SQL.Compiled, call: call}
	return x.explain(plan.Tag, plan.Analyze, false)
}

// explain has the database explain the main statement, or the tag query. A generic plan is one for any binds, so it tells none.
func (x *run) explain(tag, analyze, generic bool) (*store.Explained, error) {
	options := store.SQLOptions{Timeout: x.def.SQL.Timeout}
	if tag {
		p := x.r.statement(x.def.Name, -1, x.compiled.Tag, "", nil)
		return x.r.st.Explain(x.ctx, p.st, x.args(p, x.call.Binds, nil), analyze, options)
	}
	st := &x.compiled.Statements[0]
	w, err := x.wrap(st)
	if err != nil {
		return nil, err
	}
	p := x.r.statement(x.def.Name, 0, st, w.key(), w)
	var args []record.Value
	if !generic {
		args = x.args(p, x.call.Binds, w.args)
	}
	return x.r.st.Explain(x.ctx, p.st, args, analyze, options)
}

// pageLimit is how many rows a call looks for that names no limit: one more than it shows, to know whether there are more.
func pageLimit(def *catalog.SQLDef) int64 {
	switch def.Source {
	case catalog.SourceItem, catalog.SourceSingle, catalog.SourceMedia:
		return 1
	}
	if def.PageSize == nil {
		return 26
	}
	if *def.PageSize == 0 {
		return -1
	}
	return int64(*def.PageSize) + 1
}

// bindsOf are an endpoint's binds with the values given for them, by the names of its parameters or of the binds themselves.
func bindsOf(e *catalog.Endpoint, values map[string]string) ([]record.Value, error) {
	binds := make([]record.Value, len(e.SQL.Compiled.Binds))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		bind := name
		for _, p := range e.SQL.Params {
			if p.Name == name && p.Bind != "" {
				bind = p.Bind
			}
		}
		i := slices.IndexFunc(e.SQL.Compiled.Binds, func(b catalog.SQLBind) bool { return strings.EqualFold(b.Name, bind) })
		if i < 0 {
			var known []string
			for _, b := range e.SQL.Compiled.Binds {
				known = append(known, b.Name)
			}
			if known == nil {
				known = []string{"none"}
			}
			return nil, record.Errorf(record.Invalid, name, "the endpoint %s has no such bind; it has %s", e.Name, strings.Join(known, ", "))
		}
		v := record.TextValue(values[name])
		if t := typeNamed(e.SQL.Compiled.Binds[i].Type); t != store.Untyped {
			fit, err := store.Fit(t, v)
			if err != nil {
				return nil, record.AsError(err).At(name)
			}
			v = fit
		}
		binds[i] = v
	}
	return binds, nil
}

// Slow is a call whose statement took long.
type Slow struct {
	Endpoint string
	File     string
	SQL      string // as it stands in the file: it holds no values
	Took     time.Duration
	ID       string // of the request
	Plan     string // for any binds; "" for none this time
	NoPlan   string // why there is none
}

// planEvery is how often a plan is made of the same endpoint.
const planEvery = time.Minute

// Took is told how long the database worked on a call. What took longer than [Options.SlowAfter] says is told on, with the plan if there
// was none lately. Nothing of the call's statement is under way any more.
func (r *Runner) Took(ctx context.Context, snap *catalog.Snapshot, call *record.Invocation, took time.Duration) {
	after := time.Duration(r.slowAfter.Load())
	if r.opt.Slow == nil || after <= 0 || took < after {
		return
	}
	e := snap.Endpoint(call.Endpoint)
	if e == nil || e.SQL == nil || e.SQL.Compiled == nil || call.SQL == nil {
		return
	}
	r.count.slow.Add(1)
	s := Slow{Endpoint: e.Name, File: e.File, SQL: e.SQL.Text, Took: took, ID: call.SQL.ID}
	switch {
	case e.SQL.Source == catalog.SourceBlock:
		s.NoPlan = "a block"
	case call.SQL.Login != nil:
		s.NoPlan = "run as a database user"
	case !r.planDue(e.Name, time.Now()):
		s.NoPlan = "made less than a minute ago"
	default:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		x := &run{r: r, ctx: ctx, def: &e.EndpointDef, compiled: e.SQL.Compiled, call: call.SQL}
		if plan, err := x.explain(false, false, true); err != nil {
			s.NoPlan = err.Error()
		} else {
			s.Plan = plan.Text
		}
	}
	r.opt.Slow(s)
}

// planDue reports whether a plan of an endpoint is wanted, and notes that it is made.
func (r *Runner) planDue(endpoint string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.planned[endpoint]; ok && now.Sub(last) < planEvery {
		return false
	}
	r.planned[endpoint] = now
	return true
}

// SlowAfter changes from how long on calls are told of that took long; 0: none are.
func (r *Runner) SlowAfter(d time.Duration) { r.slowAfter.Store(int64(d)) }
