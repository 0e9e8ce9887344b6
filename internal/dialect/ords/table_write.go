package ords

import (
	"slices"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// insert makes a row (protocol notes, section 8).
func (q *tableCall) insert() (*dialect.Exchange, error) {
	set, err := q.readBody()
	if err != nil {
		return nil, err
	}
	op := record.Op{Verb: record.Insert, Table: q.Table.Name, Set: set, Return: q.Paths()}
	return &dialect.Exchange{Ops: []record.Op{op}, Reply: q.written}, nil
}

// written answers a write with the row as it is now: 201 if it is new.
func (q *tableCall) written(out []record.Outcome, a *wire.Answer) {
	row, err := only(&out[0])
	if err != nil {
		q.refuse(a, err)
		return
	}
	status := 200
	if out[0].Inserted || q.method == "POST" {
		status = 201
	}
	q.document(a, status)
	if address, ok := q.address(row); ok {
		if status == 201 {
			a.Header.Set("Location", address)
		}
		a.Header.Set("Content-Location", address)
	}
	a.Header.Set("ETag", q.tag(row))
	a.Body = q.appendItem(a.Body, row)
}

// put updates a row or makes it. Members that are left out become null, or what a new row would get where a literal says it
// (protocol notes, section 8).
func (q *tableCall) put(key []record.Value) (*dialect.Exchange, error) {
	given, err := q.readBody()
	if err != nil {
		return nil, err
	}
	if given, err = q.keyed(given, key); err != nil {
		return nil, err
	}
	if tags := tagsOf(q.call.Header, "If-None-Match"); slices.Contains(tags, anyTag) {
		op := record.Op{Verb: record.Insert, Table: q.Table.Name, Set: given, Return: q.Paths()}
		return &dialect.Exchange{Ops: []record.Op{op}, Reply: func(out []record.Outcome, a *wire.Answer) {
			if e := out[0].Err; e != nil && e.Kind == record.Conflict {
				out[0].Err = record.Errorf(record.Precondition, e.Field, "the row exists already: %s", e.Msg)
			}
			q.written(out, a)
		}}, nil
	}
	whole := slices.Clone(given)
	for _, col := range q.Columns {
		f := col.Field
		if kept(f) || slices.ContainsFunc(given, func(a record.Assign) bool { return a.Field == f.Name }) {
			continue
		}
		whole = append(whole, record.Assign{Field: f.Name, Value: defaultOf(f)})
	}
	op := record.Op{Verb: record.Upsert, Table: q.Table.Name, Match: q.Table.Key, Set: whole, New: given, Return: q.Paths()}
	return q.conditional(op, key, q.written)
}

// keyed is what a body gives with the key of the address, which it must not contradict.
func (q *tableCall) keyed(given []record.Assign, key []record.Value) ([]record.Assign, error) {
	for i, col := range q.Key {
		at := slices.IndexFunc(given, func(a record.Assign) bool { return a.Field == col.Field.Name })
		if at < 0 {
			given = append(given, record.Assign{Field: col.Field.Name, Value: key[i]})
		} else if given[at].Value != key[i] {
			return nil, record.Errorf(record.Invalid, col.Name, "%.60q is not what the address says, %.60q", given[at].Value.Text(), key[i].Text())
		}
	}
	return given, nil
}

// kept reports whether a put leaves a field alone that it does not name: it is not the client's to give.
func kept(f *catalog.Field) bool {
	return f.ReadOnly || f.Generated || f.Identity || f.Audit || f.Compute != "" || f.Sequence != nil
}

// defaultOf is the literal that a field gets in new rows, null if there is none.
func defaultOf(f *catalog.Field) record.Value {
	if f.Default == "" || f.Default[0] == '=' {
		return record.Value{}
	}
	v, _ := record.Parse(f.Type, f.Default) // the catalog has checked it
	return v
}

// patch changes the columns that the body names.
func (q *tableCall) patch(key []record.Value) (*dialect.Exchange, error) {
	set, err := q.readBody()
	if err != nil {
		return nil, err
	}
	if set, err = q.keyed(set, key); err != nil {
		return nil, err
	}
	op := record.Op{Verb: record.Update, Table: q.Table.Name, Key: key, Set: set, Return: q.Paths()}
	return q.conditional(op, key, q.written)
}

// deleteOne removes a row.
func (q *tableCall) deleteOne(key []record.Value) (*dialect.Exchange, error) {
	return q.conditional(record.Op{Verb: record.Delete, Table: q.Table.Name, Key: key}, key, func(out []record.Outcome, a *wire.Answer) {
		if out[0].Err != nil {
			q.refuse(a, out[0].Err)
			return
		}
		q.deleted(a, 1)
	})
}

// conditional ties a write to what If-Match says (protocol notes, section 13). A tag that is a version is a condition of the op; for one
// made from all values the row is read first, and the write is then tied to all that was read.
func (q *tableCall) conditional(op record.Op, key []record.Value, reply func([]record.Outcome, *wire.Answer)) (*dialect.Exchange, error) {
	tags := tagsOf(q.call.Header, "If-Match")
	write := func() *dialect.Exchange { return &dialect.Exchange{Ops: []record.Op{op}, Reply: reply} }
	switch {
	case len(tags) == 0:
		return write(), nil
	case slices.Contains(tags, anyTag):
		// That it is there is all that is asked.
		op.If = []record.Condition{{Field: q.Key[0].Field.Name, Values: key[:1]}}
		return write(), nil
	case len(q.Version) > 0 && len(tags) == 1:
		cond, ok := q.conditions(tags)
		if !ok {
			return nil, changed()
		}
		op.If = cond
		return write(), nil
	}
	ex := &dialect.Exchange{Ops: []record.Op{{Verb: record.Get, Table: q.Table.Name, Key: key, Return: q.Paths()}}}
	ex.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		row, err := only(&out[0])
		if err != nil {
			if record.KindOf(err) == record.NotFound {
				return nil, changed()
			}
			return nil, err
		}
		if !hasTag(tags, q.tag(row)) {
			return nil, changed()
		}
		op.If = q.unchanged(row)
		return write(), nil
	}
	ex.Reply = func(out []record.Outcome, a *wire.Answer) { q.refuse(a, out[0].Err) }
	return ex, nil
}

func changed() error {
	return record.Errorf(record.Precondition, "If-Match", "the row has changed, or is gone")
}

// deleteMany removes all rows that q selects: their keys are read, then they are deleted together or not at all. At most MaxRows go at
// once, so that a call has a bound.
func (q *tableCall) deleteMany() (*dialect.Exchange, error) {
	if text, _ := q.query.get("q"); text == "" {
		return nil, record.Errorf(record.Invalid, "q", "what to delete is said by q; a condition that holds for all rows deletes all")
	}
	where, _, err := q.filter()
	if err != nil {
		return nil, err
	}
	most := q.opt.MaxRows
	ex := &dialect.Exchange{Ops: []record.Op{{
		Verb: record.List, Table: q.Table.Name, Return: q.Table.Key, Query: &record.Query{Where: where, Sort: q.total(nil), Limit: int64(most) + 1},
	}}}
	ex.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		if out[0].Err != nil {
			return nil, out[0].Err
		}
		n := out[0].Rows.Len()
		if n > most {
			return nil, record.Errorf(record.TooLarge, "q", "it selects more than %d rows, which is the most that go at once; see ords.max_rows", most)
		}
		if n == 0 {
			return nil, nil
		}
		ops := make([]record.Op, n)
		for i := range ops {
			ops[i] = record.Op{Verb: record.Delete, Table: q.Table.Name, Key: slices.Clone(out[0].Rows.At(i)), Group: 1}
		}
		return &dialect.Exchange{Ops: ops, Reply: func(out []record.Outcome, a *wire.Answer) {
			for i := range out {
				if e := out[i].Err; e != nil && e.Kind != record.Dependency {
					q.refuse(a, e)
					return
				}
			}
			q.deleted(a, int64(len(out)))
		}}, nil
	}
	ex.Reply = func(_ []record.Outcome, a *wire.Answer) { q.deleted(a, 0) }
	return ex, nil
}
