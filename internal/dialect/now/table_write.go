package now

import (
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// insert reads POST /table/{table}. No body is a record of defaults.
func (q *request) insert() (*dialect.Exchange, error) {
	return q.write(record.Op{Verb: record.Insert, Table: q.table.Name})
}

// update reads PUT and PATCH /table/{table}/{sys_id}.
func (q *request) update() (*dialect.Exchange, error) {
	key, err := parseKey(q.table, q.at.rest[1])
	if err != nil {
		return nil, err
	}
	return q.write(record.Op{Verb: record.Update, Table: q.table.Name, Key: key})
}

// remove reads DELETE /table/{table}/{sys_id}.
func (q *request) remove() (*dialect.Exchange, error) {
	key, err := parseKey(q.table, q.at.rest[1])
	if err != nil {
		return nil, err
	}
	if err := q.writable(); err != nil {
		return nil, err
	}
	x := q.exchange(record.Op{Verb: record.Delete, Table: q.table.Name, Key: key})
	x.Token = q.call.Header.Get("Idempotency-Key")
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		if out[0].Err != nil {
			q.fail(a, out[0].Err)
			return
		}
		head(a, 204, q.format)
	}
	return x, nil
}

func (q *request) writable() error {
	if !q.table.Writable() {
		return record.Errorf(record.Forbidden, "", "table %s is read-only", q.table.Name)
	}
	return nil
}

// write is an insert or update with the fields of the body. References given by display value are looked up first.
func (q *request) write(op record.Op) (*dialect.Exchange, error) {
	if err := q.writable(); err != nil {
		return nil, err
	}
	fields, err := readBody(q.call.Header.Get("Content-Type"), q.call.Body)
	if err != nil {
		return nil, err
	}
	w := &writing{request: q, op: &op, display: q.params.truth("sysparm_input_display_value")}
	// Keeping audit fields is an admin's right; from others the parameter means nothing.
	op.Keep = q.params.truth("sysparm_suppress_auto_sys_field") && q.call.Actor.Admin()
	for i := range fields {
		if err := w.assign(&fields[i]); err != nil {
			return nil, err
		}
	}
	bare := isTrue(q.call.Header.Get("X-no-response-body"))
	var p *projection
	if !bare {
		if p, err = q.projection(); err != nil {
			return nil, err
		}
		op.Return = p.paths
	}
	x := q.exchange(op)
	x.Token = q.call.Header.Get("Idempotency-Key")
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		o := &out[0]
		if o.Err != nil {
			q.fail(a, o.Err)
			return
		}
		status := 200
		if op.Verb == record.Insert {
			status = 201
		}
		if bare {
			head(a, status, q.format)
		} else {
			q.single(a, status, p, o.Rows)
		}
		if op.Verb == record.Insert && len(o.Key) > 0 {
			a.Header.Add("Location", q.recordURL(o.Key))
		}
	}
	if len(w.lookups) == 0 {
		return x, nil
	}
	return w.after(x), nil
}

// writing is a write whose fields are being read.
type writing struct {
	*request
	op      *record.Op
	display bool // all values are display values
	lookups []lookup
}

// lookup is a reference given by display value: assignment At waits for the key of the record of Table that shows Name.
type lookup struct {
	at    int
	table *catalog.Table
	name  string
}

// assign adds one field of the body to the op. Unknown fields and those that callers may not set are left out: clients send
// whole records back.
func (w *writing) assign(g *given) error {
	f := w.table.Field(g.name)
	if f == nil || f.Generated {
		return nil
	}
	key := f == w.table.SingleKey()
	switch {
	case key && f.Type == record.TypeGUID:
		id := strings.ToLower(g.text)
		if w.op.Verb == record.Insert && isGUID(id) {
			w.op.Set = append(w.op.Set, record.Assign{Field: f.Name, Value: record.TextValue(id)})
		}
		return nil
	case isKey(w.table, f):
		if w.op.Verb != record.Insert || f.Identity && g.text == "" {
			return nil
		}
	case f.Audit:
		if !w.op.Keep {
			return nil
		}
	case f.ReadOnly:
		return nil
	}
	display := w.display || g.display
	if g.text == "" && len(f.Choices) > 0 {
		return nil // documented: a choice cannot be cleared by an empty text
	}
	if display && f.Type == record.TypeReference && g.text != "" && !isGUID(g.text) {
		other, err := w.snap.Table(f.Reference)
		if err != nil {
			return err
		}
		w.lookups = append(w.lookups, lookup{len(w.op.Set), other, g.text})
		w.op.Set = append(w.op.Set, record.Assign{Field: f.Name})
		return nil
	}
	v, err := w.value(f, g.text, display)
	if err != nil {
		return record.AsError(err).At(f.Name)
	}
	w.op.Set = append(w.op.Set, record.Assign{Field: f.Name, Value: v})
	return nil
}

func isKey(t *catalog.Table, f *catalog.Field) bool {
	for _, k := range t.KeyFields() {
		if k == f {
			return true
		}
	}
	return false
}

func isGUID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// spellID is an id as it is stored: in small letters, whatever the client made of them. Other texts stay as they are.
func spellID(typ record.Type, text string) string {
	if typ != record.TypeGUID {
		return text
	}
	return strings.ToLower(text)
}

// spellReference is the same for the key of the record that a field refers to.
func spellReference(snap *catalog.Snapshot, f *catalog.Field, text string) string {
	if len(text) != 32 || !strings.ContainsAny(text, "ABCDEF") || !isGUID(strings.ToLower(text)) {
		return text
	}
	t, err := snap.Table(f.Reference)
	if err != nil || t.SingleKey() == nil {
		return text
	}
	return spellID(t.SingleKey().Type, text)
}

// value reads a value of a field, or its display value.
func (w *writing) value(f *catalog.Field, text string, display bool) (record.Value, error) {
	if display {
		switch {
		case len(f.Choices) > 0:
			text = choiceValue(f, text)
		case f.Type == record.TypeDateTime:
			// Display values are in the zone of the settings.
			if t, err := time.ParseInLocation(record.TimeLayout, strings.TrimSpace(text), w.d.opt.Location); err == nil {
				return record.TimeValue(t), nil
			}
		case f.Type == record.TypeDuration:
			if n, ok := parseDurationWords(text); ok {
				return record.IntValue(n), nil
			}
		}
	}
	if f.Type == record.TypeReference {
		text = spellReference(w.snap, f, text)
	}
	v, err := record.Parse(f.Type, text)
	if err != nil && f.Type == record.TypeInteger {
		// Clients whose numbers are all floating-point write 3.0.
		if whole, frac, ok := strings.Cut(strings.TrimSpace(text), "."); ok && frac != "" && strings.Trim(frac, "0") == "" {
			if n, wrong := strconv.ParseInt(whole, 10, 64); wrong == nil {
				return record.IntValue(n), nil
			}
		}
	}
	return v, err
}

// parseDurationWords reads what appendDurationWords writes.
func parseDurationWords(text string) (int64, bool) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, false
	}
	var sum int64
next:
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 32)
		if err != nil {
			return 0, false
		}
		for _, u := range durationUnits {
			if strings.EqualFold(strings.TrimSuffix(strings.ToLower(words[i+1]), "s"), u.name[1:]) {
				sum += n * u.seconds
				continue next
			}
		}
		return 0, false
	}
	return sum, true
}

// after is an exchange that finds the records named by display value, whose next exchange is the write x with their keys.
// Of several records with one name the first by key is taken.
func (w *writing) after(x *dialect.Exchange) *dialect.Exchange {
	type name struct{ table, text string }
	ops := map[name]int{}
	found := make([]int, len(w.lookups)) // op of each lookup
	first := &dialect.Exchange{}
	for i, l := range w.lookups {
		n := name{l.table.Name, l.name}
		at, known := ops[n]
		if !known {
			at = len(first.Ops)
			ops[n] = at
			first.Ops = append(first.Ops, w.find(l))
		}
		found[i] = at
	}
	first.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		set := x.Ops[0].Set
		for i, l := range w.lookups {
			o := &out[found[i]]
			if o.Err != nil {
				return nil, o.Err
			}
			if o.Rows == nil || o.Rows.Len() == 0 {
				return nil, record.Errorf(record.Invalid, set[l.at].Field, "no record of %s is shown as %.80q", l.table.Name, l.name)
			}
			v := o.Rows.At(0)[0]
			if v.Form == record.Text {
				v.S = strings.Clone(v.S)
			}
			set[l.at].Value = v
		}
		return x, nil
	}
	first.Reply = func(out []record.Outcome, a *wire.Answer) {
		// Only when the second exchange could not be had: an outcome tells why.
		err := error(record.Errorf(record.Internal, "", "the write was not run"))
		for i := range out {
			if out[i].Err != nil {
				err = out[i].Err
				break
			}
		}
		w.fail(a, err)
	}
	return first
}

// find reads the key of the record that a lookup names.
func (w *writing) find(l lookup) record.Op {
	path, shown := l.table.Display, l.table.Field(l.table.Display)
	if deeper, f := shownPath(w.snap, l.table, path, shown); f != nil {
		path, shown = deeper, f
	}
	where := &record.Expr{Op: record.Never}
	if v, err := record.Parse(shown.Type, l.name); err == nil {
		where = &record.Expr{
			Op: record.Eq, Fold: !w.d.opt.CaseSensitive && shown.Type == record.TypeString,
			Args: []*record.Expr{record.F(path), record.C(v)},
		}
	}
	key := l.table.Key[0]
	return record.Op{Verb: record.List, Table: l.table.Name, Return: []string{key}, Query: &record.Query{
		Where: where, Sort: []record.Sort{{Path: key}}, Limit: 1,
	}}
}
