package now

import (
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// A project may keep the entries of journal fields in a table of its own, as instances do: one record for each entry, with
// the field (element), the key of the record (element_id) and the text (value). The value of a journal field is always "";
// its display value is the entries, latest first. A list does not show them: it would be a query for each record.
const journalTable = "sys_journal_field"

// maxEntries bounds the entries shown of one record.
const maxEntries = 500

var entryFields = []string{"element", "value", "sys_created_on", "sys_created_by"}

// bothJournals is the field of tasks that shows the entries of two others.
const bothJournals = "comments_and_work_notes"

// elements are the journal fields whose entries a field shows.
func elements(field string) []string {
	if field == bothJournals {
		return []string{"comments", "work_notes"}
	}
	return []string{field}
}

// entries is the op that reads the entries of a record for the journal fields that p shows, false if there is nothing to
// read. Whoever may read the record and the field may read its entries, so weir itself reads them; what the caller may not
// read of the record is not asked for.
func (q *request) entries(p *projection, key []record.Value) (record.Op, bool) {
	if len(p.journals) == 0 || len(key) != 1 {
		return record.Op{}, false
	}
	t, err := q.snap.Table(journalTable)
	if err != nil || t.Field("element_id") == nil {
		return record.Op{}, false
	}
	for _, f := range entryFields {
		if t.Field(f) == nil {
			return record.Op{}, false
		}
	}
	var names []record.Value
	for _, shown := range p.journals {
		for _, name := range elements(shown) {
			if v := record.TextValue(name); q.mayRead(name) && !slices.Contains(names, v) {
				names = append(names, v)
			}
		}
	}
	if len(names) == 0 {
		return record.Op{}, false
	}
	return record.Op{Verb: record.List, Table: journalTable, Actor: dialect.AsWeir, Return: entryFields, Query: &record.Query{
		Where: record.AllOf(
			record.Compare(record.Eq, record.F("element_id"), record.C(record.TextValue(key[0].Text()))),
			&record.Expr{Op: record.In, Args: []*record.Expr{record.F("element")}, Values: names},
		),
		Sort:  []record.Sort{{Path: "sys_created_on", Desc: true}, {Path: t.Key[0]}},
		Limit: maxEntries,
	}}, true
}

func (q *request) mayRead(field string) bool {
	f := q.table.Field(field)
	if f == nil {
		return false
	}
	return len(f.Access.Read) == 0 || slices.ContainsFunc(f.Access.Read, q.call.Actor.Has)
}

// history is the display values of journal fields, made of the outcome of the op that entries gave.
func (q *request) history(p *projection, o *record.Outcome) (map[string]string, error) {
	texts := make(map[string]string, len(p.journals))
	if o.Err != nil {
		return nil, o.Err
	}
	if o.Rows == nil {
		return texts, nil
	}
	built := make([]strings.Builder, len(p.journals))
	clock, made := &renderer{location: q.d.opt.Location}, &catalog.Field{Type: record.TypeDateTime}
	for row, ok := o.Rows.Next(); ok; row, ok = o.Rows.Next() {
		for i, shown := range p.journals {
			if !slices.Contains(elements(shown), row[0].S) || !q.mayRead(shown) {
				continue
			}
			label := row[0].S
			if f := q.table.Field(label); f != nil {
				label = f.Label
			}
			b := &built[i]
			b.Write(clock.text(nil, made, row[2], true))
			b.WriteString(" - " + row[3].Text() + " (" + label + ")\n" + row[1].Text() + "\n\n")
		}
	}
	for i, shown := range p.journals {
		texts[shown] = built[i].String()
	}
	return texts, o.Rows.Err()
}

// readEntries adds the journal of a record to the op that gets it.
func (q *request) readEntries(p *projection, key []record.Value, ops []record.Op) []record.Op {
	if op, ok := q.entries(p, key); ok {
		return append(ops, op)
	}
	return ops
}

// withHistory writes one record with the entries that the second outcome, if there is one, holds.
func (q *request) withHistory(a *wire.Answer, p *projection, out []record.Outcome) {
	if len(out) < 2 {
		q.single(a, 200, p, out[0].Rows)
		return
	}
	texts, err := q.history(p, &out[1])
	if err != nil {
		q.fail(a, err)
		return
	}
	shown := *p
	shown.history = texts
	q.single(a, 200, &shown, out[0].Rows)
}
