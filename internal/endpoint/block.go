package endpoint

import (
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/store"
)

// blockVerbs are the statements that a block may hold. What begins or ends transactions, changes settings or tables is no business of
// a request.
var blockVerbs = []string{"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE", "CALL"}

// block compiles the statements of a block. A column with the alias ":name" assigns the bind, which later statements see; all rows
// of a statement go to the parameter that a comment before it names: -- @into name.
func (c *compiler) block(s *source, list []*statement) {
	for i, q := range list {
		if !slices.Contains(blockVerbs, q.verb) {
			c.fault(s, s.code[q.lo].from, "a block holds %s, with or without WITH; this begins with %s", strings.Join(blockVerbs, ", "), s.str(s.code[q.lo]))
			continue
		}
		if !c.wellFormed(q) {
			continue
		}
		c.typing = untold()
		before := 0
		if i > 0 {
			before = s.code[list[i-1].hi-1].to
		}
		into, at := s.into(before, s.code[q.lo].from)
		if into != "" {
			c.resultSet(q, into, at)
			continue
		}
		if len(q.cursors) > 0 {
			c.fault(s, s.code[q.cursors[0].from].from, "CURSOR in a block needs -- @into name before its statement")
			continue
		}
		var w text
		if d := c.describe(s, &w, func(w *text) { c.copyCode(w, s, q.lo, q.hi, nil) }); d != nil {
			c.assigning(q, &w, d)
		}
	}
	c.procedure()
	for _, p := range c.def.SQL.Params {
		if p.Access == "OUT" && len(c.faults) == 0 && !c.assigned(p.Bind) {
			c.fault(s, s.code[list[0].lo].from, "@param %s: no statement assigns :%s, by a column AS \":%s\"", p.Name, p.Bind, p.Bind)
		}
	}
}

// into is the name in a comment -- @into name between bytes from and to, and where it stands.
func (s *source) into(from, to int) (name string, at int) {
	for _, t := range s.tokens {
		if t.kind != comment || t.from < from || t.to > to {
			continue
		}
		if words := strings.Fields(strings.TrimPrefix(s.str(t), "--")); len(words) == 2 && words[0] == "@into" {
			return words[1], t.from
		}
	}
	return "", 0
}

// resultSet compiles a SELECT whose rows are a parameter.
func (c *compiler) resultSet(q *statement, into string, at int) {
	s := q.src
	i := slices.IndexFunc(c.def.SQL.Params, func(p catalog.SQLParam) bool { return p.Bind == into })
	if i < 0 || c.def.SQL.Params[i].Type != "RESULTSET" {
		c.fault(s, at, "@into %s: there is no -- @param %s RESPONSE RESULTSET", into, into)
		return
	}
	if slices.ContainsFunc(c.out.Statements, func(st catalog.SQLStatement) bool { return len(st.Into) == 1 && st.Into[0] == into }) {
		c.fault(s, at, "@into %s: another statement gives its rows already", into)
		return
	}
	compiled, ok := c.query(q, into+".")
	if !ok {
		return
	}
	if !compiled.Reads {
		c.fault(s, at, "@into %s: the statement gives no rows", into)
		return
	}
	c.bind(into)
	compiled.Into = []string{into}
	c.out.Statements = append(c.out.Statements, compiled)
}

// assigning compiles a statement whose columns may assign binds.
func (c *compiler) assigning(q *statement, w *text, d *store.Described) {
	compiled := c.compiled(q, w, d)
	any := false
	for i := range d.Columns {
		col := column(d.Columns[i].Name, &d.Columns[i])
		name, ok := strings.CutPrefix(col.Name, ":")
		if !ok && q.verb == "CALL" {
			name, ok = c.outOf(col.Name)
		}
		if !ok {
			name = ""
		} else {
			c.assign(q, name)
		}
		any = any || ok
		compiled.Columns = append(compiled.Columns, col)
		compiled.Into = append(compiled.Into, name)
	}
	if !any {
		compiled.Into = nil
	}
	c.out.Statements = append(c.out.Statements, compiled)
}

// outOf is the bind of an OUT parameter that a procedure gives under its own name.
func (c *compiler) outOf(name string) (bind string, ok bool) {
	for _, p := range c.def.SQL.Params {
		if strings.EqualFold(p.Bind, name) && p.Access != "IN" {
			return p.Bind, true
		}
	}
	return "", false
}

// assign makes a bind one that the block assigns. What callers give is not overwritten, so that nobody takes one for the other.
func (c *compiler) assign(q *statement, name string) {
	known := slices.ContainsFunc(c.out.Binds, func(b catalog.SQLBind) bool { return b.Name == name })
	b := &c.out.Binds[c.bind(name)]
	switch at := q.src.code[q.main].from; {
	case b.Out:
	case isImplicit(name), c.isInput(name):
		c.fault(q.src, at, "the column \":%s\" assigns a parameter that is only read", name)
	case known:
		c.fault(q.src, at, "the column \":%s\" assigns a parameter that callers give, since it is read before; assign another one", name)
	default:
		b.Out = true
	}
}

// isInput reports whether callers give a bind: it is declared as IN, or stands in the pattern.
func (c *compiler) isInput(name string) bool {
	for _, p := range c.def.SQL.Params {
		if p.Bind == name {
			return p.Access == "IN"
		}
	}
	for seg := range strings.SplitSeq(c.def.SQL.Pattern, "/") {
		if strings.TrimRight(strings.TrimPrefix(seg, ":"), "?*") == name && strings.HasPrefix(seg, ":") {
			return true
		}
	}
	return false
}

func (c *compiler) assigned(bind string) bool {
	return slices.ContainsFunc(c.out.Statements, func(st catalog.SQLStatement) bool { return slices.Contains(st.Into, bind) })
}
