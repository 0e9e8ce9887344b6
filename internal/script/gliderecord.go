package script

import (
	"slices"
	"strings"

	"github.com/dop251/goja"

	"weir/internal/catalog"
	"weir/internal/record"
)

// glideRecord is one GlideRecord: the conditions of a query, its rows, and the record at hand. Fields are members of the
// object, methods too; a method hides a field of the same name, which getValue still reads.
type glideRecord struct {
	query
	object *goja.Object
	made   map[string]goja.Value

	limit  int64
	offset int64

	fields  []string // that the caller may read, in the table's order
	rows    *record.Rows
	next    int
	row     []record.Value // the record as read; nil before the first and for a new one
	isNew   bool
	changed []record.Assign
	shown   map[string]string // display values of references, looked up
	last    *record.Error
}

// newGlideRecord is the constructor GlideRecord.
func (c *call) newGlideRecord(f goja.ConstructorCall) *goja.Object {
	t, err := c.snap.Table(f.Argument(0).String())
	if err != nil {
		c.throw(err)
	}
	return c.recordOf(t).object
}

// recordOf is a GlideRecord of table t.
func (c *call) recordOf(t *catalog.Table) *glideRecord {
	if !c.taught {
		c.taught = true
		c.teachStrings()
	}
	g := &glideRecord{query: query{c: c, table: t}, limit: -1}
	for _, field := range t.Fields {
		if readable(field, c.actor) {
			g.fields = append(g.fields, field.Name)
		}
	}
	g.object = c.vm.NewDynamicObject(g)
	return g
}

// readable reports whether the field may be asked for by the actor.
func readable(f *catalog.Field, actor *record.Actor) bool {
	if f.Type == record.TypePassword {
		return false
	}
	return len(f.Access.Read) == 0 || slices.ContainsFunc(f.Access.Read, actor.Has)
}

// Get is the method or the field's value named key.
func (g *glideRecord) Get(key string) goja.Value {
	if v, ok := g.made[key]; ok {
		return v
	}
	if m, ok := recordMethods[key]; ok {
		v := g.c.vm.ToValue(func(f goja.FunctionCall) goja.Value { return m(g, f) })
		if g.made == nil {
			g.made = map[string]goja.Value{}
		}
		g.made[key] = v
		return v
	}
	f := g.table.Field(key)
	if f == nil {
		return nil
	}
	return (&element{g: g, root: f, from: g.value(f.Name), f: f}).member()
}

// Set gives a field a value. What the table does not have is ignored, as on the platform.
func (g *glideRecord) Set(key string, v goja.Value) bool {
	if _, ok := recordMethods[key]; ok {
		return false
	}
	g.assign(key, v)
	return true
}

// Has reports whether there is a method or field named key.
func (g *glideRecord) Has(key string) bool {
	return recordMethods[key] != nil || g.table.Field(key) != nil
}

// Delete refuses.
func (g *glideRecord) Delete(string) bool { return false }

// Keys are the fields.
func (g *glideRecord) Keys() []string { return g.fields }

// value is the field's value in the record at hand, changes included.
func (g *glideRecord) value(name string) record.Value {
	for i := len(g.changed) - 1; i >= 0; i-- {
		if g.changed[i].Field == name {
			return g.changed[i].Value
		}
	}
	if g.row != nil {
		if i := slices.Index(g.fields, name); i >= 0 {
			return g.row[i]
		}
	}
	return record.Value{}
}

func (g *glideRecord) assign(name string, v goja.Value) {
	f := g.table.Field(name)
	if f == nil {
		return
	}
	var s string
	if v != nil && !goja.IsUndefined(v) && !goja.IsNull(v) {
		s = v.String()
	}
	value, err := record.Parse(f.Type, s)
	if err != nil {
		g.c.throw(record.AsError(err).At(name))
	}
	for i := range g.changed {
		if g.changed[i].Field == name {
			g.changed[i].Value = value
			return
		}
	}
	g.changed = append(g.changed, record.Assign{Field: name, Value: value})
}

// key is the key of the record at hand, nil if there is none.
func (g *glideRecord) key() []record.Value {
	if g.row == nil || len(g.table.Key) == 0 {
		return nil
	}
	key := make([]record.Value, len(g.table.Key))
	for i, name := range g.table.Key {
		k := slices.Index(g.fields, name)
		if k < 0 {
			return nil
		}
		key[i] = g.row[k]
	}
	return key
}

// recordMethods are the methods of GlideRecord.
var recordMethods map[string]func(*glideRecord, goja.FunctionCall) goja.Value

func init() {
	recordMethods = map[string]func(*glideRecord, goja.FunctionCall) goja.Value{
		"addQuery": func(g *glideRecord, f goja.FunctionCall) goja.Value { return g.addQuery(f) },
		"addEncodedQuery": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			g.encoded = append(g.encoded, text(f, 0))
			return goja.Undefined()
		},
		"addNullQuery":    func(g *glideRecord, f goja.FunctionCall) goja.Value { return g.term(text(f, 0), "ISEMPTY", nil) },
		"addNotNullQuery": func(g *glideRecord, f goja.FunctionCall) goja.Value { return g.term(text(f, 0), "ISNOTEMPTY", nil) },
		"addActiveQuery": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			return g.term("active", "=", g.c.vm.ToValue("true"))
		},
		"addInactiveQuery": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			return g.term("active", "=", g.c.vm.ToValue("false"))
		},
		"orderBy": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			g.order(text(f, 0), false)
			return goja.Undefined()
		},
		"orderByDesc": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			g.order(text(f, 0), true)
			return goja.Undefined()
		},
		"setLimit":     (*glideRecord).setLimit,
		"chooseWindow": (*glideRecord).chooseWindow,
		"query":        func(g *glideRecord, _ goja.FunctionCall) goja.Value { g.find(); return goja.Undefined() },
		"_query":       func(g *glideRecord, _ goja.FunctionCall) goja.Value { g.find(); return goja.Undefined() },
		"next":         (*glideRecord).advance,
		"_next":        (*glideRecord).advance,
		"hasNext": func(g *glideRecord, _ goja.FunctionCall) goja.Value {
			return g.c.vm.ToValue(g.rows != nil && g.next < g.rows.Len())
		},
		"get": (*glideRecord).get,
		"getRowCount": func(g *glideRecord, _ goja.FunctionCall) goja.Value {
			if g.rows == nil {
				return g.c.vm.ToValue(0)
			}
			return g.c.vm.ToValue(g.rows.Len())
		},

		"getValue":   (*glideRecord).getValue,
		"getElement": func(g *glideRecord, f goja.FunctionCall) goja.Value { return g.Get(text(f, 0)) },
		"setValue": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			g.assign(text(f, 0), f.Argument(1))
			return goja.Undefined()
		},
		"getDisplayValue": (*glideRecord).getDisplayValue,
		"getUniqueValue":  func(g *glideRecord, _ goja.FunctionCall) goja.Value { return g.unique() },
		"getTableName":    func(g *glideRecord, _ goja.FunctionCall) goja.Value { return g.c.vm.ToValue(g.table.Name) },
		"getRecordClassName": func(g *glideRecord, _ goja.FunctionCall) goja.Value {
			if class := g.value(g.table.ClassField); class.Form == record.Text {
				return g.c.vm.ToValue(class.S)
			}
			return g.c.vm.ToValue(g.table.Name)
		},
		"isValid": func(g *glideRecord, _ goja.FunctionCall) goja.Value { return g.c.vm.ToValue(true) },
		"isValidField": func(g *glideRecord, f goja.FunctionCall) goja.Value {
			return g.c.vm.ToValue(g.table.Field(text(f, 0)) != nil)
		},
		"isValidRecord": func(g *glideRecord, _ goja.FunctionCall) goja.Value { return g.c.vm.ToValue(g.row != nil) },
		"isNewRecord":   func(g *glideRecord, _ goja.FunctionCall) goja.Value { return g.c.vm.ToValue(g.isNew) },
		"newRecord":     (*glideRecord).fresh,
		"initialize":    (*glideRecord).fresh,
		"getLastErrorMessage": func(g *glideRecord, _ goja.FunctionCall) goja.Value {
			if g.last == nil {
				return goja.Null()
			}
			return g.c.vm.ToValue(g.last.Msg)
		},

		"insert":         (*glideRecord).insert,
		"update":         (*glideRecord).update,
		"updateMultiple": (*glideRecord).updateMultiple,
		"deleteRecord":   (*glideRecord).deleteRecord,
		"deleteMultiple": (*glideRecord).deleteMultiple,
		"setWorkflow":    nothingOf, "autoSysFields": nothingOf,
		"toString": func(g *glideRecord, _ goja.FunctionCall) goja.Value { return g.unique() },
	}
}

func nothingOf(*glideRecord, goja.FunctionCall) goja.Value { return goja.Undefined() }

func (g *glideRecord) setLimit(f goja.FunctionCall) goja.Value {
	g.limit = max(f.Argument(0).ToInteger(), 0)
	return goja.Undefined()
}

// chooseWindow takes the rows from the first argument on and before the second.
func (g *glideRecord) chooseWindow(f goja.FunctionCall) goja.Value {
	from, to := max(f.Argument(0).ToInteger(), 0), f.Argument(1).ToInteger()
	g.offset, g.limit = from, max(to-from, 0)
	return goja.Undefined()
}

// find runs the query.
func (g *glideRecord) find() {
	where, sort := g.where()
	most := int64(g.c.r.opt.Config.MaxRows)
	limit := g.limit
	if limit < 0 || limit > most {
		limit = most + 1 // one more tells that there are more
	}
	out := g.c.alone(record.Op{
		Verb: record.List, Table: g.table.Name, Return: g.fields,
		Query: &record.Query{Where: where, Sort: sort, Offset: g.offset, Limit: limit},
	})
	g.take(out)
	if int64(g.rows.Len()) > most {
		g.rows = nil
		g.c.throw(record.Errorf(record.TooLarge, "", "the query finds more than %d records; give it a limit or see script.max_rows", most))
	}
}

// take makes the rows of out those of the query; an error throws.
func (g *glideRecord) take(out record.Outcome) {
	g.row, g.rows, g.next, g.changed, g.shown, g.isNew = nil, nil, 0, nil, nil, false
	if out.Err != nil {
		g.c.throw(out.Err)
	}
	if g.rows = out.Rows; g.rows == nil {
		g.rows = record.NewRows(g.fields, make([]record.Type, len(g.fields)))
	}
	if err := g.rows.Materialise(0); err != nil {
		g.c.throw(err)
	}
}

func (g *glideRecord) advance(goja.FunctionCall) goja.Value {
	if g.rows == nil || g.next >= g.rows.Len() {
		return g.c.vm.ToValue(false)
	}
	g.row, g.changed, g.shown, g.isNew = g.rows.At(g.next), nil, nil, false
	g.next++
	return g.c.vm.ToValue(true)
}

// get finds one record by key, or by the value of a field.
func (g *glideRecord) get(f goja.FunctionCall) goja.Value {
	field, value := "", text(f, 0)
	if k := g.table.SingleKey(); k != nil {
		field = k.Name
	}
	if len(f.Arguments) > 1 {
		field, value = text(f, 0), text(f, 1)
	}
	def := g.table.Field(field)
	if def == nil {
		g.c.throw(record.Errorf(record.Invalid, field, "table %s has no such field", g.table.Name))
	}
	return g.fetch(def, value)
}

// fetch finds the first record whose field f has the value; false if there is none.
func (g *glideRecord) fetch(f *catalog.Field, value string) goja.Value {
	v, err := record.Parse(f.Type, value)
	if err != nil || v.IsNull() {
		g.row, g.rows, g.changed = nil, nil, nil
		return g.c.vm.ToValue(false)
	}
	g.take(g.c.alone(record.Op{
		Verb: record.List, Table: g.table.Name, Return: g.fields,
		Query: &record.Query{Where: record.Compare(record.Eq, record.F(f.Name), record.C(v)), Limit: 1},
	}))
	return g.advance(goja.FunctionCall{})
}

// getValue is a value as text, booleans as "1" and "0"; null if it is empty. A path walks through references.
func (g *glideRecord) getValue(f goja.FunctionCall) goja.Value {
	name := text(f, 0)
	var def *catalog.Field
	var v record.Value
	if head, rest, walks := strings.Cut(name, "."); !walks {
		if def = g.table.Field(name); def != nil {
			v = g.value(name)
		}
	} else if ref := g.table.Field(head); ref != nil && ref.Type == record.TypeReference {
		e := &element{g: g, root: ref, from: g.value(head), f: ref}
		if def = e.target(rest); def != nil {
			v = e.walked(rest)
		}
	}
	if def == nil {
		return goja.Null()
	}
	switch {
	case v.Empty():
		return goja.Null()
	case def.Type == record.TypeBoolean && v.Truth():
		return g.c.vm.ToValue("1")
	case def.Type == record.TypeBoolean:
		return g.c.vm.ToValue("0")
	}
	return g.c.vm.ToValue(v.Text())
}

func (g *glideRecord) getDisplayValue(f goja.FunctionCall) goja.Value {
	name := text(f, 0)
	if name == "" {
		name = g.table.Display
	}
	def := g.table.Field(name)
	if def == nil {
		return goja.Null()
	}
	return g.c.vm.ToValue(g.display(def))
}

// display is what people see of a field: the label of a choice, the name of a record referred to.
func (g *glideRecord) display(f *catalog.Field) string {
	v := g.value(f.Name)
	if v.Empty() {
		return ""
	}
	if f.Type == record.TypeReference {
		if s, ok := g.shown[f.Name]; ok {
			return s
		}
		s := v.Text()
		if t, err := g.c.snap.Table(f.Reference); err == nil && t.Display != "" {
			if row := g.referred(f, v, []string{t.Display}); row != nil {
				s = row[0].Text()
			}
		}
		if g.shown == nil {
			g.shown = map[string]string{}
		}
		g.shown[f.Name] = s
		return s
	}
	s := v.Text()
	if label := f.ChoiceLabel(s); label != "" {
		return label
	}
	return s
}

// referred is the paths of the record that field f refers to with v; nil if there is none to see.
func (g *glideRecord) referred(f *catalog.Field, v record.Value, paths []string) []record.Value {
	t, err := g.c.snap.Table(f.Reference)
	if err != nil || v.Empty() || len(t.Key) != 1 {
		return nil
	}
	out := g.c.alone(record.Op{Verb: record.Get, Table: t.Name, Key: []record.Value{v}, Return: paths})
	switch {
	case out.Err != nil && out.Err.Kind != record.NotFound:
		g.c.throw(out.Err)
	case out.Err != nil || out.Rows == nil || out.Rows.Len() == 0:
		return nil
	}
	return out.Rows.At(0)
}

func (g *glideRecord) unique() goja.Value {
	key := g.key()
	if key == nil {
		return goja.Null()
	}
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = v.Text()
	}
	return g.c.vm.ToValue(strings.Join(parts, ","))
}

func (g *glideRecord) fresh(goja.FunctionCall) goja.Value {
	g.row, g.rows, g.changed, g.shown, g.isNew = nil, nil, nil, nil, true
	return goja.Undefined()
}

// wrote makes the written record the one at hand and returns its key; null after an error, which getLastErrorMessage tells.
func (g *glideRecord) wrote(out record.Outcome) goja.Value {
	g.last = out.Err
	if out.Err != nil {
		if k := out.Err.Kind; k == record.Timeout || k == record.Canceled || k == record.Internal || k == record.Unavailable {
			g.c.throw(out.Err)
		}
		return goja.Null()
	}
	g.changed, g.shown, g.isNew = nil, nil, false
	if out.Rows != nil && out.Rows.Len() > 0 {
		g.row = out.Rows.At(0)
	}
	return g.unique()
}

func (g *glideRecord) insert(goja.FunctionCall) goja.Value {
	return g.wrote(g.c.alone(record.Op{Verb: record.Insert, Table: g.table.Name, Set: g.changed, Return: g.fields}))
}

func (g *glideRecord) update(f goja.FunctionCall) goja.Value {
	key := g.key()
	if key == nil {
		if g.isNew {
			return g.insert(f)
		}
		return goja.Null()
	}
	return g.wrote(g.c.alone(record.Op{Verb: record.Update, Table: g.table.Name, Key: key, Set: g.changed, Return: g.fields}))
}

func (g *glideRecord) deleteRecord(goja.FunctionCall) goja.Value {
	key := g.key()
	if key == nil {
		return g.c.vm.ToValue(false)
	}
	out := g.c.alone(record.Op{Verb: record.Delete, Table: g.table.Name, Key: key})
	g.wrote(out)
	return g.c.vm.ToValue(out.Err == nil)
}

// updateMultiple gives all records of the query the values set since.
func (g *glideRecord) updateMultiple(goja.FunctionCall) goja.Value {
	set := slices.Clone(g.changed)
	g.all(func(key []record.Value) record.Op {
		return record.Op{Verb: record.Update, Table: g.table.Name, Key: key, Set: slices.Clone(set)}
	})
	return goja.Undefined()
}

// deleteMultiple removes all records of the query.
func (g *glideRecord) deleteMultiple(goja.FunctionCall) goja.Value {
	g.all(func(key []record.Value) record.Op {
		return record.Op{Verb: record.Delete, Table: g.table.Name, Key: key}
	})
	return goja.Undefined()
}

// all runs one op for each record of the query, all in one unit.
func (g *glideRecord) all(op func(key []record.Value) record.Op) {
	g.find()
	u := &record.Unit{Version: g.c.snap.Version, Actors: []record.Actor{*g.c.actor}}
	for i := range g.rows.Len() {
		g.row = g.rows.At(i)
		if key := g.key(); key != nil {
			u.Ops = append(u.Ops, op(key))
		}
	}
	g.row = nil
	if len(u.Ops) == 0 {
		return
	}
	for _, out := range g.c.execute(u) {
		if out.Err != nil && g.last == nil {
			g.last = out.Err
		}
	}
}
