package store

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Insert compiles s. With arrays, rows that meet an existing key or unique value are left out, and the statement returns
// the key of each row written before what s.Return asks for; without, it writes one row and returns just that.
func (c *Compiler) Insert(s *InsertSet) (*Statement, error) {
	return c.write('I', s.Table, s.Fields, s.Return, func(w *writing) error { return w.insert() })
}

// Update compiles s. With arrays, it returns the ordinal of each row that it found before what s.Return asks for.
func (c *Compiler) Update(s *UpdateSet) (*Statement, error) {
	return c.write('U', s.Table, s.Fields, s.Return, func(w *writing) error { return w.update() })
}

// Delete compiles s. With arrays, it returns the ordinal of each row that it found.
func (c *Compiler) Delete(s *DeleteSet) (*Statement, error) {
	return c.write('D', s.Table, nil, nil, func(w *writing) error { return w.delete() })
}

// Bind appends the arguments of a set's statement, one array for each parameter.
func (st *Statement) Bind(keys, rows [][]record.Value, args []Arg) []Arg {
	for i := range st.args {
		a := Arg{Rows: rows, Col: st.args[i].n}
		if st.args[i].kind == fromSetKeys {
			a.Rows = keys
		}
		args = append(args, a)
	}
	return args
}

// Row is the value of parameter i for one row of a set, when the statement writes one at a time.
func (st *Statement) Row(i int, key, row []record.Value) record.Value {
	if s := &st.args[i]; s.kind == fromSetKeys {
		return key[s.n]
	} else {
		return row[s.n]
	}
}

// Field is the index among the set's fields of parameter i, -1 if it is part of the key.
func (st *Statement) Field(i int) int {
	if st.args[i].kind == fromSetKeys {
		return -1
	}
	return st.args[i].n
}

// writing is the making of a set's statement.
type writing struct {
	compilation
	table  *catalog.Table
	fields []*catalog.Field
	back   []*catalog.Field
	st     *Statement
}

func (c *Compiler) write(verb byte, t *catalog.Table, fields, back []string, compile func(*writing) error) (*Statement, error) {
	r := newRequest()
	defer r.done()
	r.shape = append(r.shape, verb)
	for _, f := range fields {
		r.text(f)
	}
	r.shape = append(r.shape, 0)
	for _, f := range back {
		r.text(f)
	}
	if e := c.find(t, r.shape); e != nil {
		return e.main, nil
	}
	w := &writing{compilation: compilation{Flavor: c.Flavor}, table: t, st: &Statement{}}
	var err error
	if w.fields, err = fieldsOf(t, fields); err != nil {
		return nil, err
	}
	if w.back, err = fieldsOf(t, back); err != nil {
		return nil, err
	}
	if err := compile(w); err != nil {
		return nil, err
	}
	w.st.Params, w.st.args = w.params, w.sources
	c.keep(t, append([]byte(nil), r.shape...), &compiled{main: w.st})
	return w.st, nil
}

func fieldsOf(t *catalog.Table, names []string) ([]*catalog.Field, error) {
	list := make([]*catalog.Field, len(names))
	for i, name := range names {
		if list[i] = t.Field(name); list[i] == nil {
			return nil, record.Errorf(record.Invalid, name, "table %s has no field %.80s", t.Name, name)
		}
	}
	return list, nil
}

// place is the parameter of a column of the set: an array of its values, or the value of one row.
func (w *writing) place(kind sourceKind, n int, f *catalog.Field) string {
	return w.arg(source{kind: kind, n: n}, Param{Type: f.Type, Native: f.Native, Array: w.Arrays})
}

func columns(list []*catalog.Field, prefix string) []string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = prefix + quoteName(f.Column)
	}
	return names
}

// returning is the RETURNING clause for columns of the table.
func (w *writing) returning(first, prefix string, list ...*catalog.Field) string {
	names := columns(list, prefix)
	for i, f := range list {
		names[i] = w.shown(names[i], f.Type, f.Native)
		w.st.Out = append(w.st.Out, Output{Type: f.Type, Native: f.Native})
	}
	if first != "" {
		names = append([]string{first}, names...)
	}
	if len(names) == 0 {
		return ""
	}
	return " RETURNING " + strings.Join(names, ", ")
}

func (w *writing) insert() error {
	var b strings.Builder
	b.WriteString("INSERT INTO " + w.tableName(w.table))
	values := make([]string, len(w.fields))
	for i, f := range w.fields {
		values[i] = w.place(fromRows, i, f)
	}
	switch {
	case len(w.fields) == 0 && w.Arrays:
		return record.Errorf(record.Invalid, "", "a record of %s without any value", w.table.Name)
	case len(w.fields) == 0:
		b.WriteString(" DEFAULT VALUES")
	case w.Arrays:
		names := aliases("c", len(values))
		list := strings.Join(names, ", ")
		b.WriteString(" (" + strings.Join(columns(w.fields, ""), ", ") + ") SELECT " + list +
			" FROM unnest(" + strings.Join(values, ", ") + ") WITH ORDINALITY AS u(" + list + ", ord) ORDER BY ord ON CONFLICT DO NOTHING")
	default:
		b.WriteString(" (" + strings.Join(columns(w.fields, ""), ", ") + ") VALUES (" + strings.Join(values, ", ") + ")")
	}
	back := w.back
	if w.Arrays {
		w.st.Keys = len(w.table.KeyFields())
		back = append(append([]*catalog.Field(nil), w.table.KeyFields()...), back...)
	}
	b.WriteString(w.returning("", "", back...))
	w.st.SQL = b.String()
	return nil
}

func aliases(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + string(appendInt(nil, i))
	}
	return names
}

func (w *writing) keys() ([]*catalog.Field, error) {
	keys := w.table.KeyFields()
	if len(keys) == 0 {
		return nil, record.Errorf(record.Invalid, "", "table %s has no key: its records cannot be changed", w.table.Name)
	}
	return keys, nil
}

func (w *writing) update() error {
	keys, err := w.keys()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("UPDATE " + w.tableName(w.table) + " AS t SET ")
	names := aliases("c", len(w.fields))
	var values []string
	for i, f := range w.fields {
		if i > 0 {
			b.WriteString(", ")
		}
		p := w.place(fromRows, i, f)
		values = append(values, p)
		if w.Arrays {
			p = "u." + names[i]
		}
		b.WriteString(quoteName(f.Column) + " = " + p)
	}
	if len(w.fields) == 0 {
		k := quoteName(keys[0].Column)
		b.WriteString(k + " = t." + k)
	}
	b.WriteString(w.match(keys, names, values, " FROM "))
	prefix := "" // SQLite knows no alias in RETURNING, PostgreSQL must tell the table from the arrays
	if w.Arrays {
		prefix = "t."
	}
	w.st.SQL = b.String() + w.returning(w.ordinal(), prefix, w.back...)
	return nil
}

func (w *writing) delete() error {
	keys, err := w.keys()
	if err != nil {
		return err
	}
	sql := "DELETE FROM " + w.tableName(w.table) + " AS t" + w.match(keys, nil, nil, " USING ")
	w.st.SQL = sql + w.returning(w.ordinal(), "")
	return nil
}

func (w *writing) ordinal() string {
	if !w.Arrays {
		return ""
	}
	w.st.Ordinal = true
	return "u.ord"
}

// match is the clauses that find the records by key.
func (w *writing) match(keys []*catalog.Field, names, values []string, from string) string {
	cond := make([]string, len(keys))
	names = append([]string(nil), names...)
	for i, f := range keys {
		p := w.place(fromSetKeys, i, f)
		values = append(values, p)
		if w.Arrays {
			names = append(names, "k"+string(appendInt(nil, i)))
			p = "u." + names[len(names)-1]
		}
		cond[i] = "t." + quoteName(f.Column) + " = " + p
	}
	where := " WHERE " + strings.Join(cond, " AND ")
	if !w.Arrays {
		return where
	}
	return from + "unnest(" + strings.Join(values, ", ") + ") WITH ORDINALITY AS u(" + strings.Join(names, ", ") + ", ord)" + where
}
