package engine

import (
	"reflect"
	"slices"
	"sync"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
)

// who is an actor with what the access rules of one snapshot allow.
type who struct {
	m     *model
	snap  *catalog.Snapshot
	actor *record.Actor
	all   bool // admin or the system: no rules apply
	known bool // authenticated

	mu   sync.Mutex
	read map[*catalog.Table]*record.Expr // guards worked out so far; nil: all records, Never: none
}

func newWho(m *model, a *record.Actor) *who {
	w := &who{}
	w.init(m, a)
	return w
}

func (w *who) init(m *model, a *record.Actor) {
	w.m, w.snap, w.actor, w.all = m, m.snap, a, a.Admin()
	w.known = a.Name != "" || a.Key != "" || len(a.Roles) > 0
}

var never = &record.Expr{Op: record.Never}

// allowed is the condition that a list of grants sets: nil for all records, Never for none. open says what an absent
// list means to somebody authenticated.
func (w *who) allowed(t *catalog.Table, grants []catalog.GrantDef, open bool) *record.Expr {
	if w.all {
		return nil
	}
	if grants == nil {
		if open && w.known {
			return nil
		}
		return never
	}
	var any []*record.Expr
	for _, g := range grants {
		if !w.hasAny(g.Roles) {
			continue
		}
		if g.Where == "" {
			return nil
		}
		cond, err := rule.Condition(w.snap, t, g.Where, w.actor)
		if err != nil {
			continue // a grant that cannot be read grants nothing; weir apply reports it
		}
		if cond == nil || cond.Op == record.Always {
			return nil
		}
		any = append(any, cond)
	}
	return record.AnyOf(any...)
}

func (w *who) hasAny(roles []string) bool {
	if len(roles) == 0 {
		return w.known
	}
	return slices.ContainsFunc(roles, w.actor.Has)
}

// guard is the condition for reading records of t. In a hierarchy each class brings its own rules, so that a record is
// no more visible through its parent's table than through its own.
func (w *who) guard(t *catalog.Table) *record.Expr {
	if w.all || t.System {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.read[t]; ok {
		return g
	}
	g := w.allowed(t, t.Access.Read, true)
	if w.m.table(t).mixed {
		g = w.guardClasses(t, g)
	}
	if g == nil || g == never {
		return g // quickly found again
	}
	if w.read == nil {
		w.read = map[*catalog.Table]*record.Expr{}
	}
	w.read[t] = g
	return g
}

func (w *who) guardClasses(t *catalog.Table, own *record.Expr) *record.Expr {
	same := []record.Value{}
	var parts []*record.Expr
	for _, name := range t.Classes {
		c, err := w.snap.Table(name)
		if err != nil || reflect.DeepEqual(c.Access.Read, t.Access.Read) {
			same = append(same, record.TextValue(name))
			continue
		}
		cond := w.allowed(c, c.Access.Read, true)
		if len(w.onlyIn(c, cond)) > 0 {
			// The condition names fields that only the class has; through the parent they cannot be asked, so such
			// records stay out of sight there.
			cond = never
		}
		parts = append(parts, record.AllOf(isClass(t, []record.Value{record.TextValue(name)}), orAlways(cond)))
	}
	parts = append(parts, record.AllOf(isClass(t, same), orAlways(own)))
	return record.AnyOf(parts...)
}

// onlyIn are the paths of cond that the root of c's hierarchy does not have.
func (w *who) onlyIn(c *catalog.Table, cond *record.Expr) (list []string) {
	parent, err := w.snap.Table(c.Root)
	if err != nil {
		return nil
	}
	cond.Walk("", func(table string, e *record.Expr) bool {
		if table == "" && e.Op == record.Field {
			if _, err := w.snap.Resolve(parent, e.Path); err != nil {
				list = append(list, e.Path)
			}
		}
		return true
	})
	return list
}

func isClass(t *catalog.Table, classes []record.Value) *record.Expr {
	return &record.Expr{Op: record.In, Args: []*record.Expr{record.F(t.ClassField)}, Values: classes}
}

func orAlways(e *record.Expr) *record.Expr {
	if e == nil {
		return &record.Expr{Op: record.Always}
	}
	return e
}

// guardFunc is guard for the store, nil if nothing is limited.
func (w *who) guardFunc() func(*catalog.Table) *record.Expr {
	if w.all {
		return nil
	}
	return w.guard
}

// may is the condition for writing records of t by verb v.
func (w *who) may(t *catalog.Table, v record.Verb) *record.Expr {
	switch v {
	case record.Insert:
		return w.allowed(t, t.Access.Create, false)
	case record.Update:
		return w.allowed(t, t.Access.Update, false)
	case record.Delete:
		return w.allowed(t, t.Access.Delete, false)
	}
	return w.guard(t)
}

func isNever(e *record.Expr) bool { return e != nil && e.Op == record.Never }

// sees reports whether the actor may read the field.
func (w *who) sees(f *catalog.Field) bool {
	return f.Type != record.TypePassword && (w.all || len(f.Access.Read) == 0 || w.hasAny(f.Access.Read))
}

// sets reports whether the actor may give the field a value.
func (w *who) sets(f *catalog.Field) bool {
	return w.all || len(f.Access.Write) == 0 || w.hasAny(f.Access.Write)
}

// ask refuses a path that a condition, a sort or an aggregate names although the actor may not read it.
func (w *who) ask(t *catalog.Table, path string) ([]catalog.Step, *record.Error) {
	steps, err := w.snap.Resolve(t, path)
	if err != nil {
		return nil, record.AsError(err)
	}
	for _, s := range steps {
		if !w.sees(s.Field) {
			return nil, record.Errorf(record.Forbidden, path, "you may not read %s.%s", s.Table.Name, s.Field.Name)
		}
	}
	return steps, nil
}

func forbidden(verb record.Verb, t *catalog.Table) *record.Error {
	what := "read"
	switch verb {
	case record.Insert:
		what = "create"
	case record.Update, record.Upsert:
		what = "update"
	case record.Delete:
		what = "delete"
	}
	return record.Errorf(record.Forbidden, "", "you may not %s records of %s", what, t.Name)
}
