package engine

import (
	"strconv"

	"weir/internal/record"
)

// resolve replaces the Refs of a task by the values that they stand for.
func (x *unit) resolve(t *task) *record.Error {
	op := t.op
	fields := t.t.KeyFields()
	if op.Verb == record.Get || op.Verb == record.Update || op.Verb == record.Delete {
		t.key = make([]record.Value, len(op.Key))
		for i, v := range op.Key {
			v, err := x.value(t, v)
			if err == nil {
				err = checkForm(fields[i], v)
			}
			if err != nil {
				return err
			}
			t.key[i] = v
		}
	}
	var err *record.Error
	if t.final, err = x.resolveSet(t, t.set); err != nil {
		return err
	}
	if t.added, err = x.resolveSet(t, t.fresh); err != nil {
		return err
	}
	t.ifs = make([]record.Condition, len(op.If))
	for i, c := range op.If {
		values := make([]record.Value, len(c.Values))
		for j, v := range c.Values {
			v, err := x.value(t, v)
			if err != nil {
				return err
			}
			values[j] = v
		}
		c.Values = values
		t.ifs[i] = c
	}
	if op.Query != nil {
		q := *op.Query
		where, err := x.resolveExpr(t, q.Where)
		if err != nil {
			return err
		}
		q.Where = where
		t.asked = &q
	}
	return nil
}

// resolveSet is list with its Refs replaced. It starts from what the caller wrote: after a rolled back run the value may be another.
func (x *unit) resolveSet(t *task, list []assign) ([]assign, *record.Error) {
	if len(list) == 0 {
		return list, nil
	}
	set := make([]assign, len(list))
	for i, a := range list {
		v, err := x.value(t, a.v)
		if err == nil && a.v.Form == record.Ref {
			err = checkForm(a.f, v)
		}
		if err != nil {
			return nil, err
		}
		set[i] = assign{a.f, v}
	}
	return set, nil
}

// values are what the task gives its record, Refs resolved.
func (t *task) values() []assign {
	if t.refs {
		return t.final
	}
	return t.set
}

// newValues are what the task gives a new record, Refs resolved.
func (t *task) newValues() []assign {
	switch {
	case t.fresh == nil:
		return t.values()
	case t.refs:
		return t.added
	}
	return t.fresh
}

func (t *task) conditions() []record.Condition {
	if t.refs {
		return t.ifs
	}
	return t.op.If
}

func (t *task) query() *record.Query {
	if t.asked != nil {
		return t.asked
	}
	return t.op.Query
}

func (x *unit) value(t *task, v record.Value) (record.Value, *record.Error) {
	if v.Form != record.Ref {
		return v, nil
	}
	src := &x.tasks[v.N]
	if src.out.Err != nil || !src.done {
		return v, record.Errorf(record.Dependency, strconv.Itoa(src.i), "not run, since operation %d failed", src.i)
	}
	if v.S == "" || src.row == nil {
		if len(src.out.Key) == 1 && (v.S == "" || src.t != nil && src.t.Key[0] == v.S) {
			return src.out.Key[0], nil
		}
		if rows := src.out.Rows; src.op.Verb.Writes() && rows != nil && rows.Len() == 1 && rows.Col(v.S) >= 0 {
			return rows.At(0)[rows.Col(v.S)], nil // an outcome from an idempotency token
		}
	} else if f := src.rowOf.Field(v.S); f != nil {
		if !src.who.sees(f) {
			return v, record.Errorf(record.Forbidden, v.S, "you may not read %s.%s", src.rowOf.Name, f.Name)
		}
		return src.row[f.Index], nil
	}
	return v, record.Errorf(record.Invalid, v.S, "operation %d has no value %.80q to refer to", src.i, v.S)
}

func (x *unit) resolveExpr(t *task, e *record.Expr) (*record.Expr, *record.Error) {
	if e == nil {
		return nil, nil
	}
	c := *e
	var err *record.Error
	if c.Value, err = x.value(t, e.Value); err != nil {
		return nil, err
	}
	c.Values = nil
	for _, v := range e.Values {
		if v, err = x.value(t, v); err != nil {
			return nil, err
		}
		c.Values = append(c.Values, v)
	}
	c.Args = make([]*record.Expr, len(e.Args))
	for i, a := range e.Args {
		if c.Args[i], err = x.resolveExpr(t, a); err != nil {
			return nil, err
		}
	}
	if e.Rel != nil {
		rel := *e.Rel
		if rel.Where, err = x.resolveExpr(t, rel.Where); err != nil {
			return nil, err
		}
		if rel.Value, err = x.resolveExpr(t, rel.Value); err != nil {
			return nil, err
		}
		c.Rel = &rel
	}
	return &c, nil
}
