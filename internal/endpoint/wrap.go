package endpoint

import (
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// wrapping is what a call asks of a query beside its binds: SELECT * FROM (the query) WHERE … ORDER BY … LIMIT … OFFSET …. Values are
// parameters, names are those of the compiled columns.
type wrapping struct {
	postgres bool
	columns  []catalog.SQLColumn
	bounded  bool // the query has bounds of its own
	first    int  // number of the first parameter
	where    string
	order    string
	page     string
	params   []store.Param
	args     []record.Value
	terms    int
}

// Bounds on conditions, so that no caller can make a text of any size.
const (
	maxTerms = 500
	maxDepth = 50
)

// wrap makes what the call asks for around a statement. Who uses a paging parameter pages by himself (protocol notes, section 6).
func (x *run) wrap(st *catalog.SQLStatement) (*wrapping, error) {
	w := &wrapping{
		postgres: x.compiled.Store == "postgres", columns: st.Columns, bounded: st.Bounded, first: len(st.Params) + 1,
	}
	if e := x.call.Where; e != nil && e.Op != record.Always {
		cond, err := w.cond(e, 0)
		if err != nil {
			return nil, err
		}
		w.where = cond
	}
	if err := w.sort(x.call.Sort); err != nil {
		return nil, err
	}
	if x.call.Limit < 0 && x.call.Offset == 0 || pages(x.compiled) {
		return w, nil
	}
	if x.call.Limit >= 0 {
		w.page += " LIMIT " + w.param(record.TypeInteger, record.IntValue(x.call.Limit))
	} else if !w.postgres {
		w.page += " LIMIT -1" // SQLite has no OFFSET alone
	}
	if x.call.Offset > 0 {
		w.page += " OFFSET " + w.param(record.TypeInteger, record.IntValue(x.call.Offset))
	}
	return w, nil
}

// pages reports whether an endpoint pages by itself.
func pages(c *catalog.SQLCompiled) bool {
	return slices.ContainsFunc(c.Binds, func(b catalog.SQLBind) bool { return slices.Contains(Paging, b.Name) })
}

func (w *wrapping) empty() bool { return w.where == "" && w.order == "" && w.page == "" }

// key is all of the wrapping but its values.
func (w *wrapping) key() string {
	if w.empty() {
		return ""
	}
	return w.where + "\x00" + w.order + "\x00" + w.page
}

// around is the text of a query with the wrapping.
func (w *wrapping) around(sql string) string {
	if w.where == "" && w.order == "" && !w.bounded {
		return sql + "\n" + w.page
	}
	var b strings.Builder
	b.WriteString("SELECT * FROM (")
	b.WriteString(sql)
	b.WriteString("\n) AS w_")
	if w.where != "" {
		b.WriteString(" WHERE " + w.where)
	}
	b.WriteString(w.order)
	b.WriteString(w.page)
	return b.String()
}

// param is the placeholder of a further value.
func (w *wrapping) param(t record.Type, v record.Value) string {
	w.params = append(w.params, store.Param{Type: t})
	w.args = append(w.args, v)
	n := strconv.Itoa(w.first + len(w.params) - 1)
	if !w.postgres {
		return "?" + n
	}
	return "$" + n + "::" + postgresTypes[t]
}

var postgresTypes = map[record.Type]string{
	record.TypeString: "text", record.TypeInteger: "bigint", record.TypeDecimal: "numeric", record.TypeFloat: "float8",
	record.TypeBoolean: "boolean", record.TypeDateTime: "timestamp", record.TypeDate: "date", record.TypeDuration: "bigint",
	record.TypeReference: "text", record.TypeList: "text", record.TypeJournal: "text", record.TypeGUID: "text", record.TypePassword: "text",
	store.Untyped: "text",
}

// operand is a column as conditions see it.
type operand struct {
	sql  string
	name string
	typ  record.Type
}

func (o operand) textual() bool {
	return o.typ == store.Untyped || o.typ.Textual() && o.typ != record.TypeDate
}

func (o operand) numeric() bool {
	return o.typ == record.TypeInteger || o.typ == record.TypeDuration || o.typ == record.TypeFloat || o.typ == record.TypeDecimal
}

// column finds a column by the name that answers have it by.
func (w *wrapping) column(name string) (operand, error) {
	i := slices.IndexFunc(w.columns, func(c catalog.SQLColumn) bool { return c.Name == name && c.Rel == "" })
	if i < 0 {
		return operand{}, record.Errorf(record.Invalid, name, "there is no column %.80s", name)
	}
	c := &w.columns[i]
	o := operand{sql: "w_." + store.Quote(name), name: name, typ: typeNamed(c.Type)}
	if c.JSON || o.typ == record.TypeJSON || o.typ == record.TypeBytes {
		return o, record.Errorf(record.Invalid, name, "the column %s cannot be compared or sorted by", name)
	}
	if w.postgres && o.textual() && !postgresText(c.Native) {
		o.sql += "::text"
	}
	return o, nil
}

// postgresText reports whether a type compares as text.
func postgresText(native string) bool {
	base, _, _ := strings.Cut(native, "(")
	return slices.Contains([]string{"", "text", "character varying", "character"}, base)
}

// ordered is a column as both databases order it: texts by their bytes, decimals as numbers.
func (w *wrapping) ordered(o operand) string {
	switch {
	case w.postgres && o.textual():
		return o.sql + ` COLLATE "C"`
	case !w.postgres && o.typ == record.TypeDecimal:
		return o.sql + " COLLATE " + store.DecimalCollation
	}
	return o.sql
}

// sort makes the ORDER BY. Nulls are the smallest, as everywhere in weir.
func (w *wrapping) sort(list []record.Sort) error {
	for i, s := range list {
		o, err := w.column(s.Path)
		if err != nil {
			return err
		}
		term := w.ordered(o)
		switch {
		case s.Desc && w.postgres:
			term += " DESC NULLS LAST"
		case s.Desc:
			term += " DESC"
		case w.postgres:
			term += " NULLS FIRST"
		}
		if i == 0 {
			w.order = " ORDER BY " + term
		} else {
			w.order += ", " + term
		}
	}
	return nil
}

var comparisons = map[record.ExprOp]string{
	record.Eq: "=", record.Ne: "=", record.Lt: "<", record.Le: "<=", record.Gt: ">", record.Ge: ">=",
}

// cond compiles a condition, with the two-valued logic of record.Expr. Its text may be null where it is false.
func (w *wrapping) cond(e *record.Expr, depth int) (string, error) {
	if w.terms++; w.terms > maxTerms || depth > maxDepth {
		return "", record.Errorf(record.Invalid, "", "the condition has more than %d terms or is nested deeper than %d", maxTerms, maxDepth)
	}
	switch e.Op {
	case record.Always:
		return "1 = 1", nil
	case record.Never:
		return "1 = 0", nil
	case record.And, record.Or:
		list := make([]string, len(e.Args))
		for i, a := range e.Args {
			var err error
			if list[i], err = w.cond(a, depth+1); err != nil {
				return "", err
			}
		}
		switch {
		case len(list) == 0 && e.Op == record.And:
			return "1 = 1", nil
		case len(list) == 0:
			return "1 = 0", nil
		case e.Op == record.And:
			return "(" + strings.Join(list, " AND ") + ")", nil
		}
		return "(" + strings.Join(list, " OR ") + ")", nil
	}
	if len(e.Args) < 1 {
		return "", record.Errorf(record.Invalid, "", "a condition lacks its operand")
	}
	if e.Op == record.Not {
		x, err := w.cond(e.Args[0], depth+1)
		return "((" + x + ") IS NOT TRUE)", err
	}
	if e.Args[0].Op != record.Field {
		return "", record.Errorf(record.Invalid, "", "a condition of a SQL endpoint begins with a column")
	}
	o, err := w.column(e.Args[0].Path)
	if err != nil {
		return "", err
	}
	switch e.Op {
	case record.IsEmpty:
		if o.textual() {
			return "(" + o.sql + " IS NULL OR " + o.sql + " = '')", nil
		}
		return o.sql + " IS NULL", nil
	case record.In:
		return w.in(o, e)
	}
	if len(e.Args) < 2 || e.Args[1].Op != record.Const {
		return "", record.Errorf(record.Invalid, o.name, "a column of a SQL endpoint is compared with a value")
	}
	v := e.Args[1].Value
	switch e.Op {
	case record.Eq, record.Ne, record.Lt, record.Le, record.Gt, record.Ge:
		return w.compare(o, e.Op, v, e.Fold)
	case record.Contains, record.StartsWith, record.EndsWith, record.Like:
		return w.search(o, e.Op, v, e.Fold)
	}
	return "", record.Errorf(record.Invalid, o.name, "this operator is not known to SQL endpoints")
}

// value is the placeholder of a value beside a column.
func (w *wrapping) value(o *operand, v record.Value, fold bool) (string, error) {
	t := o.typ
	if t == store.Untyped || o.numeric() && t != record.TypeDecimal && (v.Form == record.Int || v.Form == record.Num) || t == record.TypeDate && v.Form == record.Time {
		t = map[record.Form]record.Type{
			record.Int: record.TypeInteger, record.Num: record.TypeFloat, record.Bool: record.TypeBoolean, record.Time: record.TypeDateTime,
			record.Text: record.TypeString,
		}[v.Form]
	}
	fit, err := store.Fit(t, v)
	if err != nil {
		return "", record.AsError(err).At(o.name)
	}
	if t == record.TypeDateTime && o.typ == record.TypeDate && !w.postgres {
		o.sql = "(" + o.sql + " || ' 00:00:00')" // dates are texts there
	}
	if fold && o.textual() && fit.Form == record.Text {
		fit.S = store.FoldText(fit.S)
		o.sql = w.lower(o.sql)
	}
	return w.param(t, fit), nil
}

func (w *wrapping) lower(x string) string {
	if w.postgres {
		return `lower(` + x + ` COLLATE "C")`
	}
	return "lower(" + x + ")"
}

func (w *wrapping) compare(o operand, op record.ExprOp, v record.Value, fold bool) (string, error) {
	if v.IsNull() {
		switch op {
		case record.Eq:
			return o.sql + " IS NULL", nil
		case record.Ne:
			return o.sql + " IS NOT NULL", nil
		}
		return "1 = 0", nil
	}
	p, err := w.value(&o, v, fold)
	if err != nil {
		return "", err
	}
	x := o.sql
	if op != record.Eq && op != record.Ne || o.typ == record.TypeDecimal {
		x = w.ordered(o)
	}
	cond := x + " " + comparisons[op] + " " + p
	if op == record.Ne {
		return "((" + cond + ") IS NOT TRUE)", nil
	}
	return cond, nil
}

func (w *wrapping) in(o operand, e *record.Expr) (string, error) {
	if w.terms += len(e.Values); w.terms > maxTerms {
		return "", record.Errorf(record.Invalid, o.name, "the condition has more than %d terms", maxTerms)
	}
	var list []string
	for _, v := range e.Values {
		cond, err := w.compare(o, record.Eq, v, e.Fold)
		if err != nil {
			return "", err
		}
		list = append(list, cond)
	}
	if len(list) == 0 {
		return "1 = 0", nil
	}
	return "(" + strings.Join(list, " OR ") + ")", nil
}

// search compiles what looks into a text.
func (w *wrapping) search(o operand, op record.ExprOp, v record.Value, fold bool) (string, error) {
	if v.IsNull() {
		return "1 = 0", nil
	}
	if !o.textual() {
		if w.postgres {
			o.sql = "(" + o.sql + ")::text"
		} else {
			o.sql = "CAST(" + o.sql + " AS TEXT)"
		}
		o.typ = record.TypeString
	}
	if o.typ == store.Untyped {
		o.typ = record.TypeString
	}
	p, err := w.value(&o, v, fold)
	if err != nil {
		return "", err
	}
	switch {
	case op == record.Like && w.postgres:
		return o.sql + " LIKE " + p + " ESCAPE ''", nil
	case op == record.Like:
		return o.sql + " GLOB " + store.GlobOf(p), nil
	case op == record.Contains && w.postgres:
		return "strpos(" + o.sql + ", " + p + ") > 0", nil
	case op == record.Contains:
		return "instr(" + o.sql + ", " + p + ") > 0", nil
	case op == record.StartsWith:
		return "substr(" + o.sql + ", 1, length(" + p + ")) = " + p, nil
	}
	if w.postgres {
		return "right(" + o.sql + ", length(" + p + ")) = " + p, nil
	}
	return "substr(" + o.sql + ", length(" + o.sql + ") - length(" + p + ") + 1) = " + p, nil
}
