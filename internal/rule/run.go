package rule

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/expr-lang/expr/vm"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Env is what rules run with: the time of the write and how to read other tables.
type Env struct {
	Now  time.Time
	Data Data
}

// Run applies the rules to rows, records of the program's table: defaults and computed fields first, then the rules in
// order, then computed fields again if a rule changed what they read. Faults of single rows are in Row.Err; an error
// means that a read failed and nothing may be written.
func (p *Program) Run(ctx context.Context, env Env, rows []*Row) error {
	r := &run{p: p, env: env, values: map[string]any{}, previous: map[string]any{}}
	for i, row := range rows {
		if i%64 == 63 {
			runtime.Gosched() // a large set lets waiting requests go first
		}
		if row.Err != nil || row.Event == Delete {
			continue
		}
		if row.Event == Insert {
			r.defaults(row)
		}
		r.assign(row, p.computed)
	}
	for _, s := range p.steps {
		if err := r.step(ctx, s, rows); err != nil {
			return err
		}
	}
	if p.again {
		for _, row := range rows {
			if row.Err == nil && row.Event != Delete {
				r.assign(row, p.computed)
			}
		}
	}
	return nil
}

// run is one execution; it belongs to one goroutine.
type run struct {
	p        *Program
	env      Env
	vm       vm.VM
	values   map[string]any
	previous map[string]any
	actor    *record.Actor
	user     map[string]any
	same     map[*expression]any // results of expressions that look at nothing but the time
}

// eval evaluates e for a row.
func (r *run) eval(e *expression, row *Row) (any, error) {
	if !e.constant {
		return r.evaluate(e, row)
	}
	if x, ok := r.same[e]; ok {
		return x, nil
	}
	x, err := r.evaluate(e, row)
	if err == nil {
		if r.same == nil {
			r.same = map[*expression]any{}
		}
		r.same[e] = x
	}
	return x, err
}

func (r *run) evaluate(e *expression, row *Row) (any, error) {
	current := row.New
	if current == nil {
		current = row.Old
	}
	for _, f := range e.fields {
		r.values[f.Name] = goValue(f, current[f.Index])
	}
	if len(e.previous) > 0 {
		clear(r.previous)
		if row.Old != nil {
			for _, f := range e.previous {
				r.previous[f.Name] = goValue(f, row.Old[f.Index])
			}
		}
	}
	r.values[envPrev] = r.previous
	for _, f := range e.changed {
		r.values[envChanged+f.Name] = changed(row, f)
	}
	if e.now {
		r.values[envNow], r.values[envInstant] = r.env.Now.Truncate(time.Second), r.env.Now.Truncate(time.Millisecond)
	}
	if e.user {
		if r.user == nil || !sameActor(r.actor, row.Actor) {
			r.actor, r.user = row.Actor, userValue(row.Actor)
		}
		r.values[envUser] = r.user
	}
	return r.vm.Run(e.program, r.values)
}

// changed reports whether a write changes a field; in an insert, whether it has a value.
func changed(row *Row, f *catalog.Field) bool {
	switch {
	case row.New == nil:
		return false
	case row.Old == nil:
		return !row.New[f.Index].Empty()
	}
	return row.New[f.Index] != row.Old[f.Index]
}

// sameActor reports whether two actors, often copies of one, look alike to expressions.
func sameActor(a, b *record.Actor) bool {
	return a == b || a.Name == b.Name && a.Key == b.Key && slices.Equal(a.Roles, b.Roles)
}

func userValue(a *record.Actor) map[string]any {
	roles := make([]any, len(a.Roles))
	for i, role := range a.Roles {
		roles[i] = role
	}
	u := map[string]any{"name": a.Name, "roles": roles, "sys_id": nil}
	if a.Key != "" {
		u["sys_id"] = a.Key
	}
	return u
}

// truth evaluates a condition. An expression that cannot be computed for this row rejects it.
func (r *run) truth(e *expression, row *Row, rule string) bool {
	x, err := r.eval(e, row)
	if err != nil {
		row.Err = r.failed(e, rule, err)
		return false
	}
	b, ok := x.(bool)
	return ok && b
}

func (r *run) failed(e *expression, rule string, err error) *record.Error {
	return &record.Error{
		Kind: record.Rejected, Rule: rule, Msg: "the rule cannot be evaluated for these values: " + firstLine(err).Error(),
		Err: err,
	}
}

func (r *run) defaults(row *Row) {
	for i := range r.p.defaults {
		a := &r.p.defaults[i]
		if row.Given[a.field.Index] || !row.New[a.field.Index].IsNull() {
			continue
		}
		r.assignOne(row, a, "default")
	}
}

func (r *run) assign(row *Row, list []assignment) {
	for i := range list {
		r.assignOne(row, &list[i], "compute")
	}
}

func (r *run) assignOne(row *Row, a *assignment, rule string) {
	if a.expr == nil {
		row.New[a.field.Index] = a.value
		return
	}
	x, err := r.eval(a.expr, row)
	if err == nil {
		var v record.Value
		if v, err = fieldValue(a.field, x); err == nil {
			row.New[a.field.Index] = v
			return
		}
	}
	row.Err = r.failed(a.expr, rule, err).At(a.field.Name)
}

func (r *run) step(ctx context.Context, s *step, rows []*Row) error {
	var applies []*Row
	for _, row := range rows {
		if row.Err != nil || !s.on[row.Event] {
			continue
		}
		if s.when != nil && !r.truth(s.when, row, s.name) {
			continue
		}
		applies = append(applies, row)
	}
	if len(applies) == 0 {
		return nil
	}
	if s.lookup != nil {
		if err := r.lookup(ctx, s, applies); err != nil {
			return err
		}
	}
	if s.choose != nil {
		if err := r.choose(ctx, s, applies); err != nil {
			return err
		}
	}
	for _, row := range applies {
		r.apply(s, row)
	}
	return nil
}

func (r *run) apply(s *step, row *Row) {
	current := row.New
	if current == nil {
		current = row.Old
	}
	for _, f := range s.require {
		if current[f.Index].Empty() {
			reject(row, s, f.Name, "%s must be filled in", f.Label)
			return
		}
	}
	if row.New != nil {
		// All expressions of one rule see the record as it was before the rule.
		var fresh [8]record.Value
		values := fresh[:0]
		for i := range s.set {
			a := &s.set[i]
			x, err := r.eval(a.expr, row)
			var v record.Value
			if err == nil {
				v, err = fieldValue(a.field, x)
			}
			if err != nil {
				row.Err = r.failed(a.expr, s.name, err).At(a.field.Name)
				return
			}
			values = append(values, v)
		}
		for i := range s.set {
			row.New[s.set[i].field.Index] = values[i]
		}
	}
	if s.check != nil && !r.holds(s.check, row, s.name) && row.Err == nil {
		message := s.message
		if message == "" {
			message = "the check " + s.check.text + " does not hold"
		}
		reject(row, s, s.field, "%s", message)
	}
	if s.transition != nil && row.Event == Update {
		f := s.transition.field
		from, to := row.Old[f.Index].Text(), row.New[f.Index].Text()
		if allowed, ok := s.transition.from[from]; ok && from != to && !slices.Contains(allowed, to) {
			reject(row, s, f.Name, "%s cannot change from %s to %s", f.Label, valueLabel(f, from), valueLabel(f, to))
		}
	}
	if s.derive != nil && row.Err == nil {
		r.derive(s, row)
	}
}

// holds evaluates a check. As with a CHECK constraint, a comparison by order that meets an empty field holds.
func (r *run) holds(e *expression, row *Row, rule string) bool {
	if r.truth(e, row, rule) {
		return true
	}
	current := row.New
	if current == nil {
		current = row.Old
	}
	for _, f := range e.ordered {
		if current[f.Index].Empty() {
			return row.Err == nil
		}
	}
	return false
}

func reject(row *Row, s *step, field, format string, args ...any) {
	row.Err = record.Errorf(record.Rejected, field, format, args...)
	row.Err.Rule = s.name
}

func valueLabel(f *catalog.Field, value string) string {
	switch label := f.ChoiceLabel(value); {
	case label != "":
		return label
	case value == "":
		return "(empty)"
	}
	return value
}
