package store

import (
	"fmt"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// compilation is the making of one statement.
type compilation struct {
	*Flavor
	snap    *catalog.Snapshot
	guard   func(*catalog.Table) *record.Expr // nil: none
	touched []*catalog.Table                  // tables other than weir's idea of constants, whose guards count
	params  []Param
	sources []source
	aliases int
}

// param is the placeholder of a source. One source in several places is one parameter.
func (c *compilation) arg(s source, p Param) string {
	for i := range c.sources {
		if c.sources[i] == s && c.params[i] == p {
			return c.param(i+1, p)
		}
	}
	c.sources = append(c.sources, s)
	c.params = append(c.params, p)
	return c.param(len(c.params), p)
}

// guardOf is the guard of t, numbered, nil if it has none.
func (c *compilation) guardOf(t *catalog.Table) *numbered {
	if c.guard == nil {
		return nil
	}
	found := false
	for _, x := range c.touched {
		found = found || x == t
	}
	if !found {
		c.touched = append(c.touched, t)
	}
	e := c.guard(t)
	if e == nil || e.Op == record.Always {
		return nil
	}
	n := numbering{guard: t}
	return n.number(e)
}

// scope is one occurrence of a table in a statement, with the joins that walks from it need.
type scope struct {
	c     *compilation
	table *catalog.Table
	alias string
	from  *strings.Builder  // where joins are written
	joins map[string]string // walked path -> alias
	// guard says that this is the condition of a guard: the operator's own, so that its walks see all records. They are
	// written as subqueries, since a condition of a join has no place for joins.
	guard bool
}

func (c *compilation) scope(t *catalog.Table) *scope {
	s := &scope{c: c, table: t, alias: fmt.Sprintf("t%d", c.aliases), from: &strings.Builder{}, joins: map[string]string{}}
	c.aliases++
	fmt.Fprintf(s.from, "%s AS %s", c.tableName(t), s.alias)
	return s
}

func (c *compilation) tableName(t *catalog.Table) string { return c.table(t.Schema, t.Stored) }

// own is the condition that limits an occurrence of a table to its class and its guard, "" for none.
func (s *scope) own() (string, error) {
	var list []string
	if t := s.table; t.ClassField != "" && len(t.Parents) > 0 {
		list = append(list, s.classes(t))
	}
	if g := s.c.guardOf(s.table); g != nil {
		inner := *s
		inner.guard = true
		cond, err := inner.cond(g)
		if err != nil {
			return "", fmt.Errorf("access rule of %s: %w", s.table.Name, err)
		}
		list = append(list, "("+cond+")")
	}
	return strings.Join(list, " AND "), nil
}

// classes is the condition that a record is of t or below. Class names come from the catalog and are written as literals:
// that keeps them out of the parameters of every statement on a hierarchy, and lets the planner see them.
func (s *scope) classes(t *catalog.Table) string {
	col := s.alias + "." + quoteName(s.table.Field(s.table.ClassField).Column)
	if len(t.Classes) == 1 {
		return col + " = " + quoteText(t.Classes[0])
	}
	list := make([]string, len(t.Classes))
	for i, name := range t.Classes {
		list[i] = quoteText(name)
	}
	return col + " IN (" + strings.Join(list, ", ") + ")"
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// node is a compiled value.
type node struct {
	sql    string
	typ    record.Type
	native string
	field  *catalog.Field // of a bare column
	null   bool           // known to be null
	value  bool           // a constant, never null unless null
}

// walk compiles a path.
func (s *scope) walk(path string) (node, error) {
	steps, err := s.c.snap.Resolve(s.table, path)
	if err != nil {
		return node{}, err
	}
	last := steps[len(steps)-1].Field
	n := node{typ: last.Type, native: last.Native, field: last}
	if len(steps) == 1 {
		n.sql = s.alias + "." + quoteName(last.Column)
		return n, nil
	}
	if s.guard {
		n.sql, err = s.subwalk(steps)
		return n, err
	}
	alias, prefix := s.alias, ""
	for i, step := range steps[:len(steps)-1] {
		prefix += step.Field.Name + "."
		next := s.joins[prefix]
		if next == "" && len(s.joins) >= maxJoins {
			n.sql, err = s.subwalk(steps)
			return n, err
		}
		if next == "" {
			next = fmt.Sprintf("t%d", s.c.aliases)
			s.c.aliases++
			target := scope{c: s.c, table: steps[i+1].Table, alias: next}
			if target.table, err = s.c.snap.Table(step.Field.Reference); err != nil {
				return node{}, err
			}
			on := s.c.link(step.Field, alias, target.table, next)
			own, err := target.own()
			if err != nil {
				return node{}, err
			}
			if own != "" {
				on += " AND " + own
			}
			fmt.Fprintf(s.from, " LEFT JOIN %s AS %s ON %s", s.c.tableName(target.table), next, on)
			s.joins[prefix] = next
		}
		alias = next
	}
	n.sql = alias + "." + quoteName(last.Column)
	return n, nil
}

// link is the condition that a reference and the key of the table it refers to are equal.
func (c *compilation) link(f *catalog.Field, alias string, to *catalog.Table, next string) string {
	key := to.SingleKey()
	a, b := alias+"."+quoteName(f.Column), next+"."+quoteName(key.Column)
	if f.Native != key.Native {
		a, b = c.plain(a, f.Type, f.Native), c.plain(b, key.Type, key.Native)
	}
	return b + " = " + a
}

// comparable is n as the database can compare and group it beside its like: what is text to us and a type of the database's
// own, which may know no order (json, xml, point) and no collation (time, inet), becomes text.
func (c *compilation) comparable(n node) node {
	if n.native == "" || !textual(n.typ) {
		return n
	}
	if x := c.plain(n.sql, n.typ, n.native); x != n.sql {
		n.sql, n.native = x, ""
	}
	return n
}

// subwalk is a walk as a subquery.
func (s *scope) subwalk(steps []catalog.Step) (string, error) {
	var from strings.Builder
	var where string
	alias := s.alias
	for i, step := range steps[:len(steps)-1] {
		to, err := s.c.snap.Table(step.Field.Reference)
		if err != nil {
			return "", err
		}
		next := fmt.Sprintf("t%d", s.c.aliases)
		s.c.aliases++
		on := s.c.link(step.Field, alias, to, next)
		target := &scope{c: s.c, table: to, alias: next}
		if !s.guard {
			own, err := target.own()
			if err != nil {
				return "", err
			}
			if own != "" {
				on += " AND " + own
			}
		} else if to.ClassField != "" && len(to.Parents) > 0 {
			on += " AND " + target.classes(to)
		}
		if i == 0 {
			fmt.Fprintf(&from, "%s AS %s", s.c.tableName(to), next)
			where = on
		} else {
			fmt.Fprintf(&from, " JOIN %s AS %s ON %s", s.c.tableName(to), next, on)
		}
		alias = next
	}
	last := steps[len(steps)-1].Field
	return fmt.Sprintf("(SELECT %s.%s FROM %s WHERE %s)", alias, quoteName(last.Column), from.String(), where), nil
}
