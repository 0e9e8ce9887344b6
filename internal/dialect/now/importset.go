package now

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

const (
	insertMultiple  = "insertMultiple"
	importSetTable  = "sys_import_set"
	importSetField  = "sys_import_set"
	importRowField  = "sys_import_row"
	maxImportErrors = 100 // told in an answer
)

// staging is a table whose rows become records of other tables as they are inserted: by its derive rules that write key and
// state of the record back into the row.
type staging struct {
	*request
	maps []transform
	sets *catalog.Table // the table of import sets, nil if the project has none
}

// transform is one derive rule.
type transform struct {
	name       string
	target     *catalog.Table
	key, state string // fields of the staging table
}

// decodeImport reads a call of the Import Set API: POST /import/{staging}, POST /import/{staging}/insertMultiple and GET
// /import/{staging}/{sys_id}.
func (d *Dialect) decodeImport(snap *catalog.Snapshot, c *dialect.Call, at address) (*dialect.Exchange, error) {
	if len(at.rest) > 2 {
		return nil, noPath()
	}
	q, err := d.begin(snap, c, at)
	if err != nil {
		return nil, err
	}
	s := &staging{request: q}
	for _, rule := range q.table.Rules {
		if rule.Derive == nil || rule.Derive.Result == nil || rule.Derive.Result.Key == "" {
			continue
		}
		target, err := snap.Table(rule.Derive.Table)
		if err != nil {
			return nil, err
		}
		s.maps = append(s.maps, transform{rule.Name, target, rule.Derive.Result.Key, rule.Derive.Result.State})
	}
	if len(s.maps) == 0 {
		return nil, record.Errorf(record.Invalid, "", "Table %s is no staging table: it has no derive rule with a result", q.table.Name)
	}
	if t, err := snap.Table(importSetTable); err == nil && q.table.Field(importSetField) != nil && t.Field("number") != nil {
		s.sets = t
	}
	switch {
	case len(at.rest) == 2 && at.rest[1] == insertMultiple && q.method == "POST":
		return s.insertMany()
	case len(at.rest) == 1 && q.method == "POST":
		return s.insertOne()
	case len(at.rest) == 2 && at.rest[1] != insertMultiple && (q.method == "GET" || q.method == "HEAD"):
		return s.read()
	}
	return nil, notAllowed()
}

// newSet is the op that makes the import set of a call.
func (s *staging) newSet() record.Op {
	op := record.Op{Verb: record.Insert, Table: importSetTable, Return: []string{"number"}}
	set := func(field, value string) {
		if f := s.sets.Field(field); f != nil {
			op.Set = append(op.Set, record.Assign{Field: field, Value: record.TextValue(value)})
		}
	}
	set("table_name", s.table.Name)
	set("state", "processed")
	return op
}

// rowFields are the fields of the staging table that an answer needs.
func (s *staging) rowFields() []string {
	var list []string
	for _, m := range s.maps {
		list = append(list, m.key)
		if m.state != "" {
			list = append(list, m.state)
		}
	}
	return list
}

// assign makes assignments of the fields of one row. Fields of the import's own bookkeeping, and such as the table does not have, are left
// out. byLabel finds fields by their labels first.
func (s *staging) assign(fields []given, byLabel bool) ([]record.Assign, error) {
	var set []record.Assign
	for i := range fields {
		f := s.table.Field(fields[i].name)
		if byLabel {
			for _, l := range s.table.Fields {
				if strings.EqualFold(l.Label, fields[i].name) {
					f = l
					break
				}
			}
		}
		if f == nil || f.Audit || f.ReadOnly || f.Generated || strings.HasPrefix(f.Name, "sys_") {
			continue
		}
		v, err := record.Parse(f.Type, fields[i].text)
		if err != nil {
			return nil, record.AsError(err).At(f.Name)
		}
		set = append(set, record.Assign{Field: f.Name, Value: v})
	}
	return set, nil
}

// insertOne reads POST /import/{staging}: one row, transformed at once.
func (s *staging) insertOne() (*dialect.Exchange, error) {
	fields, err := readBody(s.call.Header.Get("Content-Type"), s.call.Body)
	if err != nil {
		return nil, err
	}
	row := record.Op{Verb: record.Insert, Table: s.table.Name, Return: s.rowFields()}
	if row.Set, err = s.assign(fields, false); err != nil {
		return nil, err
	}
	x := s.exchange()
	if s.sets != nil {
		x.Ops = append(x.Ops, s.newSet())
		row.Set = append(row.Set, record.Assign{Field: importSetField, Value: record.RefTo(0, s.sets.Key[0])})
	}
	x.Ops = append(x.Ops, row)
	x.Token = s.call.Header.Get("Idempotency-Key")
	s.answer(x, 201, func(out []record.Outcome) (string, *record.Outcome) {
		number := ""
		if s.sets != nil {
			number = cell(&out[0], "number")
			if out[0].Err != nil {
				return "", &out[0]
			}
		}
		return number, &out[len(out)-1]
	})
	return x, nil
}

// read reads GET /import/{staging}/{sys_id}: what became of a row.
func (s *staging) read() (*dialect.Exchange, error) {
	key, err := parseKey(s.table, s.at.rest[1])
	if err != nil {
		return nil, err
	}
	fields := s.rowFields()
	number := importSetField + ".number"
	if s.sets != nil {
		fields = append(fields, number)
	}
	x := s.exchange(record.Op{Verb: record.Get, Table: s.table.Name, Key: key, Return: fields})
	s.answer(x, 200, func(out []record.Outcome) (string, *record.Outcome) { return cell(&out[0], number), &out[0] })
	return x, nil
}

// cell is the text of a field in the first row of an outcome.
func cell(o *record.Outcome, field string) string {
	if o.Err != nil || o.Rows == nil || o.Rows.Len() == 0 {
		return ""
	}
	if i := o.Rows.Col(field); i >= 0 {
		return strings.Clone(o.Rows.At(0)[i].Text())
	}
	return ""
}

// imported is what became of a row by one transform.
type imported struct {
	*transform
	id, state, shown string
}

// answer lets x find how the records made are shown, and answer with them. pick tells the number of the import set and the row's outcome.
func (s *staging) answer(x *dialect.Exchange, status int, pick func([]record.Outcome) (string, *record.Outcome)) {
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		number, row := pick(out)
		switch {
		case row.Err == nil:
			s.reply(a, status, number, s.results(row))
		case status == 201 && transformFault(row.Err):
			s.replyFault(a, number, row.Err)
		default:
			s.fail(a, row.Err)
		}
	}
	x.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		number, row := pick(out)
		if row.Err != nil {
			return nil, nil
		}
		list := s.results(row)
		next := s.exchange()
		at := make([]int, len(list))
		for i := range list {
			at[i] = -1
			t := list[i].target
			if list[i].id == "" || t.Display == "" || t.SingleKey() == nil {
				continue
			}
			if key, err := parseKey(t, list[i].id); err == nil {
				at[i] = len(next.Ops)
				next.Ops = append(next.Ops, record.Op{Verb: record.Get, Table: t.Name, Key: key, Return: []string{t.Display}})
			}
		}
		if len(next.Ops) == 0 {
			return nil, nil
		}
		next.Reply = func(out []record.Outcome, a *wire.Answer) {
			for i := range list {
				if at[i] >= 0 {
					// A record that its importer may not see is imported all the same.
					list[i].shown = cell(&out[at[i]], list[i].target.Display)
				}
			}
			s.reply(a, status, number, list)
		}
		return next, nil
	}
}

// transformFault reports whether the error is about the row's data: such a row is answered by state error, as instances do.
func transformFault(err *record.Error) bool {
	switch err.Kind {
	case record.Invalid, record.Conflict, record.Restricted, record.Rejected:
		return true
	}
	return false
}

func (s *staging) results(row *record.Outcome) []imported {
	list := make([]imported, len(s.maps))
	for i := range s.maps {
		m := &s.maps[i]
		list[i] = imported{transform: m, id: cell(row, m.key)}
		if m.state != "" {
			list[i].state = cell(row, m.state)
		}
		if list[i].id == "" && list[i].state == "" {
			list[i].state = "ignored"
		}
	}
	return list
}

// member is a name and a text of an answer.
type member struct{ name, value string }

func (s *staging) reply(a *wire.Answer, status int, number string, list []imported) {
	rows := make([][]member, len(list))
	for i, m := range list {
		rows[i] = []member{
			{"transform_map", m.name}, {"table", m.target.Name}, {"display_name", m.target.Display}, {"display_value", m.shown},
		}
		if m.id != "" {
			rows[i] = append(rows[i], member{"record_link", s.base() + "/table/" + m.target.Name + "/" + string(appendSegment(nil, record.TextValue(m.id)))})
		}
		rows[i] = append(rows[i], member{"status", m.state})
		if m.id != "" {
			rows[i] = append(rows[i], member{"sys_id", m.id})
		}
	}
	s.write(a, status, []member{{"import_set", number}, {"staging_table", s.table.Name}}, "result", rows)
}

// replyFault answers a row that could not be transformed; it is not stored.
func (s *staging) replyFault(a *wire.Answer, number string, err *record.Error) {
	rows := make([][]member, len(s.maps))
	for i := range s.maps {
		m := &s.maps[i]
		rows[i] = []member{{"transform_map", m.name}, {"table", m.target.Name}, {"status", "error"}, {"error_message", says(err, where{})}}
	}
	s.write(a, 201, []member{{"import_set", number}, {"staging_table", s.table.Name}}, "result", rows)
}

// write writes an object of texts with one list of such objects, in the format asked for.
func (s *staging) write(a *wire.Answer, status int, top []member, name string, rows [][]member) {
	head(a, status, s.format)
	if s.method == "HEAD" {
		return
	}
	if s.format.xml() {
		a.Body = append(a.Body, xmlHead+"<response>"...)
		a.Body = appendXMLMembers(a.Body, top)
		for _, r := range rows {
			a.Body = appendElement(a.Body, name, func(b []byte) []byte { return appendXMLMembers(b, r) })
		}
		a.Body = append(a.Body, "</response>"...)
		return
	}
	a.Body = appendMembers(append(a.Body, '{'), top)
	if rows != nil {
		a.Body = append(a.Body, `,"`+name+`":[`...)
		for i, r := range rows {
			if i > 0 {
				a.Body = append(a.Body, ',')
			}
			a.Body = append(appendMembers(append(a.Body, '{'), r), '}')
		}
		a.Body = append(a.Body, ']')
	}
	a.Body = append(a.Body, '}')
}

func appendMembers(dst []byte, list []member) []byte {
	for i, m := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendQuote(dst, m.name), ':')
		dst = wire.AppendQuote(dst, m.value)
	}
	return dst
}

func appendXMLMembers(dst []byte, list []member) []byte {
	for _, m := range list {
		dst = appendElement(dst, m.name, func(b []byte) []byte { return wire.AppendXMLText(b, m.value) })
	}
	return dst
}

// insertMany reads POST /import/{staging}/insertMultiple: many rows, one import set. The rows are transformed at once, so run_after holds by
// itself. Rows that fail are told in the answer; the others stay.
func (s *staging) insertMany() (*dialect.Exchange, error) {
	if f, err := bodyFormat(s.call.Header.Get("Content-Type"), s.call.Body); err != nil || f.xml() {
		return nil, record.Errorf(record.Unsupported, "Content-Type", "insertMultiple reads application/json alone")
	}
	rows, err := readRecords(s.call.Body, s.d.opt.Batch.MaxItems)
	if err != nil && bytes.IndexByte(s.call.Body, '\'') >= 0 {
		if again, errAgain := readRecords(requote(s.call.Body), s.d.opt.Batch.MaxItems); errAgain == nil {
			rows, err = again, nil
		}
	}
	if err != nil {
		if record.KindOf(err) == record.TooLarge {
			return nil, err
		}
		return nil, record.Errorf(record.Invalid, "", "%.200s", err.Error()).Because(dialect.ErrBody)
	}
	x := s.exchange()
	if s.sets != nil {
		x.Ops = append(x.Ops, s.newSet())
	}
	first := len(x.Ops)
	at := make([]int, 0, len(rows))   // row of each op
	faults := map[int]*record.Error{} // by row
	for i, fields := range rows {
		set, err := s.assign(fields, true)
		if err != nil {
			faults[i] = record.AsError(err)
			continue
		}
		if s.sets != nil {
			set = append(set, record.Assign{Field: importSetField, Value: record.RefTo(0, s.sets.Key[0])})
		}
		if f := s.table.Field(importRowField); f != nil {
			set = append(set, record.Assign{Field: importRowField, Value: record.IntValue(int64(i))})
		}
		x.Ops = append(x.Ops, record.Op{Verb: record.Insert, Table: s.table.Name, Set: set})
		at = append(at, i)
	}
	multi := s.params.get("multi_import_set_id")
	if multi == "" {
		var b [16]byte
		rand.Read(b[:])
		multi = hex.EncodeToString(b[:])
	}
	x.Token = s.call.Header.Get("Idempotency-Key")
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		number := ""
		if s.sets != nil {
			if out[0].Err != nil {
				s.fail(a, out[0].Err)
				return
			}
			number = cell(&out[0], "number")
		}
		for i := range out[first:] {
			if err := out[first+i].Err; err != nil {
				if !transformFault(err) {
					s.fail(a, err)
					return
				}
				faults[at[i]] = err
			}
		}
		var told [][]member
		for _, row := range slices.Sorted(maps.Keys(faults))[:min(len(faults), maxImportErrors)] {
			told = append(told, []member{{"row", strconv.Itoa(row)}, {"message", says(faults[row], where{})}})
		}
		s.write(a, 201, []member{{"import_set_id", number}, {"multi_import_set_id", multi}}, "errors", told)
		if len(faults) > 0 {
			a.Header.Add("X-Weir-Import-Errors", strconv.Itoa(len(faults)))
		}
	}
	return x, nil
}

// readRecords reads {"records":[{…},…]}, at most most of them.
func readRecords(body []byte, most int) ([][]given, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return nil, record.Errorf(record.Invalid, "records", "the body is no JSON object")
	}
	var rows [][]given
	found := false
	err := dialect.EachMember(dec, func(name string) error {
		if name != "records" {
			return dec.SkipValue()
		}
		if dec.PeekKind() != '[' {
			return record.Errorf(record.Invalid, "records", "records is no array")
		}
		found = true
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		for dec.PeekKind() == '{' {
			if len(rows) == most {
				return record.Errorf(record.TooLarge, "records", "there are more than %d records; see now.batch.max_items", most)
			}
			var row []given
			if err := dialect.EachMember(dec, func(name string) error {
				g := given{name: name}
				err := readJSONValue(dec, &g)
				row = append(row, g)
				return err
			}); err != nil {
				return err
			}
			rows = append(rows, lastWins(row))
		}
		if dec.PeekKind() != ']' {
			if _, err := dec.ReadToken(); err != nil {
				return err
			}
			return record.Errorf(record.Invalid, "records", "a record is no JSON object")
		}
		_, err := dec.ReadToken()
		return err
	})
	if err == nil && !found {
		err = record.Errorf(record.Invalid, "records", "records is missing")
	}
	return rows, err
}
