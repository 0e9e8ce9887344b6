package endpoint

import (
	"regexp"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// fields are the catalog's fields by stored table and column.
type fields map[[2]string]*catalog.Field

func fieldsOf(snap *catalog.Snapshot) fields {
	all := fields{}
	for _, name := range snap.Tables() {
		t, err := snap.Table(name)
		if err != nil {
			continue
		}
		for _, f := range t.Fields {
			all[[2]string{lowerASCII(t.Stored), lowerASCII(f.Column)}] = f
		}
	}
	return all
}

// queryColumn is a column of a query.
type queryColumn struct {
	catalog.SQLColumn
	db  string // its name in the database
	typ record.Type
}

// plainName is what a column without an alias is called when it is a column: everything else is an expression's text.
var plainName = regexp.MustCompile(`^[\pL_][\pL\pN_$#]*$`)

// columns names and types the columns of a query. path is the names of the CURSORs around it, with a point after each.
func (c *compiler) columns(q *statement, d *store.Described, path string) ([]queryColumn, bool) {
	s := q.src
	quoted := q.quotedNames()
	at := s.code[q.main].from
	list := make([]queryColumn, len(d.Columns))
	taken := map[string]bool{}
	ok := true
	for i := range d.Columns {
		col := queryColumn{SQLColumn: column(d.Columns[i].Name, &d.Columns[i]), db: d.Columns[i].Name, typ: d.Columns[i].Type}
		known := quoted[col.Name]
		switch {
		case !known && !plainName.MatchString(col.Name):
			c.fault(s, at, "column %d wants a name: %s AS name", i+1, shorten(col.Name))
			ok = false
		case !known && !c.postgres:
			col.Name = lowerASCII(col.Name)
		}
		if f := c.fields[[2]string{lowerASCII(d.Columns[i].Table), lowerASCII(d.Columns[i].Column)}]; f != nil {
			col.typ = f.Type
		}
		if name, raw := strings.CutPrefix(col.Name, "{}"); raw {
			col.Name, col.JSON = name, true
		} else if rel, link := strings.CutPrefix(col.Name, "$"); link {
			col.Rel = strings.TrimPrefix(rel, ".")
			if strings.Contains(path, ".") {
				c.fault(s, at, "column %q is a link, which rows of a CURSOR or a RESULTSET have none of", col.Name)
				ok = false
			}
			if rel == ".id" { // protocol notes, section 5.1
				col.Rel = "self"
			}
		}
		for _, cur := range q.cursors {
			if cur.name == d.Columns[i].Name {
				col.JSON, col.Made = true, true
			}
		}
		for _, x := range c.def.SQL.Columns {
			if x.Name == path+col.Name {
				c.declared[x.Name] = true
				col.typ, _ = record.ParseType(x.Type)
			}
		}
		if col.Type = ""; col.typ != store.Untyped {
			col.Type = col.typ.String()
		}
		if col.Name == "" || taken[col.Name] {
			c.fault(s, at, "column %d wants a name of its own: there is a column %q already", i+1, col.Name)
			ok = false
		}
		taken[col.Name] = true
		list[i] = col
	}
	return list, ok
}

// column is a described column under a name.
func column(name string, d *store.DescribedColumn) catalog.SQLColumn {
	c := catalog.SQLColumn{Name: name, Native: d.Native}
	if d.Type != store.Untyped {
		c.Type = d.Type.String()
	}
	return c
}

func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
