package endpoint

import (
	"fmt"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// RoutineName is the name of the endpoint by which a routine is called under the alias of a schema.
func RoutineName(schema, alias string) string { return "ords/" + schema + "/" + alias }

// Routine is the endpoint that calls a function or procedure: a block of one statement, whose parameters are the routine's and whose
// value is the parameter ~ret (protocol notes, section 8). It is not published: the dialect reaches it through the service that names it.
func Routine(r *store.Routine, schema, alias string, roles []string) (catalog.EndpointDef, error) {
	d := &catalog.SQLDef{
		Schema: schema, Pattern: alias + "/", Source: catalog.SourceBlock, ETag: catalog.ETagNone, Unpublished: true, Line: 1,
		Comment: fmt.Sprintf("Calls %s.%s", r.Schema, r.Name),
	}
	def := catalog.EndpointDef{
		Name: RoutineName(schema, alias), Path: "/ords/" + schema + "/" + alias + "/", Method: "POST", Roles: roles,
		File: "services/" + schema + ".yaml", SQL: d,
	}
	refuse := func(format string, args ...any) (catalog.EndpointDef, error) {
		return def, record.Errorf(record.Invalid, "", "%s.%s cannot be called: %s", r.Schema, r.Name, fmt.Sprintf(format, args...))
	}
	if r.Cursor {
		return refuse("it has to do with a cursor; SETOF and TABLE are answered as rows")
	}
	var args, outs, columns []string
	for i, a := range r.Args {
		if a.Name == "" || strings.HasPrefix(a.Name, "~") {
			return refuse("its argument %d has no name", i+1)
		}
		bind := fmt.Sprintf("in%d", i+1)
		switch {
		case a.In:
			d.Params = append(d.Params, catalog.SQLParam{Name: a.Name, Bind: bind, Source: "URI", Access: "IN"})
			value := fmt.Sprintf("CAST(:%s AS %s)", bind, a.Native)
			if a.Default != "" {
				value = fmt.Sprintf("COALESCE(%s, %s)", value, a.Default)
			}
			args = append(args, store.Quote(a.Name)+" => "+value)
		case r.Procedure:
			args = append(args, store.Quote(a.Name)+" => NULL")
		}
		if a.Out {
			out := fmt.Sprintf("out%d", i+1)
			d.Params = append(d.Params, catalog.SQLParam{Name: a.Name, Bind: out, Source: "RESPONSE", Access: "OUT"})
			column := fmt.Sprintf("c%d", i+1)
			outs, columns = append(outs, fmt.Sprintf(`f.%s AS ":%s"`, column, out)), append(columns, column)
		}
	}
	call := store.Quote(r.Schema) + "." + store.Quote(r.Name) + "(" + strings.Join(args, ", ") + ")"
	value := func(kind string) {
		d.Params = append(d.Params, catalog.SQLParam{Name: "~ret", Bind: "out0", Source: "RESPONSE", Type: kind, Access: "OUT"})
	}
	switch {
	case r.Procedure:
		d.Text = "CALL " + call
	case r.Rows:
		d.Text = "-- @into out0\nSELECT * FROM " + call
		value("RESULTSET")
		d.Params = append(d.Params[:0:0], without(d.Params, outs)...)
	case len(outs) > 0:
		d.Text = "SELECT " + strings.Join(outs, ", ") + " FROM " + call + " AS f(" + strings.Join(columns, ", ") + ")"
	case r.Nothing:
		d.Text = "SELECT " + call
	default:
		d.Text = "SELECT " + call + ` AS ":out0"`
		value("")
	}
	return def, nil
}

// without leaves out OUT parameters that are columns of the rows.
func without(list []catalog.SQLParam, outs []string) (kept []catalog.SQLParam) {
	for _, p := range list {
		if p.Access == "OUT" && len(outs) > 0 && p.Type != "RESULTSET" {
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// procedure makes the columns of a CALL, which the database names, assign the OUT parameters in their order.
func (c *compiler) procedure() {
	d := c.def.SQL
	if len(c.out.Statements) != 1 || !d.Unpublished || !strings.HasPrefix(d.Text, "CALL ") {
		return
	}
	st := &c.out.Statements[0]
	at := 0
	st.Into = make([]string, len(st.Columns))
	for _, p := range d.Params {
		if p.Access != "OUT" || at == len(st.Columns) {
			continue
		}
		st.Into[at] = p.Bind
		c.out.Binds[c.bind(p.Bind)].Out = true
		at++
	}
}
