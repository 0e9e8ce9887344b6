package endpoint

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"

	"weir/internal/store"
)

// typing is what is found of the types of binds in a statement. PostgreSQL tells the type of a parameter from what stands beside it, and gives up at
// the first place that tells nothing (:id IS NULL OR id = :id). Such a place is left out, the other ones tell the type, and it is cast
// to that.
type typing struct {
	loose map[int]int    // bytes of the source where a bind stands that tells nothing, and the bind
	told  map[int]string // the casts of such binds, once they are known: "::bigint"
	casts map[int]string // of binds that no place tells anything of: their casts everywhere
}

// natives are the types of PostgreSQL by the type of a declared parameter.
var natives = map[string]string{
	"integer": "bigint", "float": "float8", "boolean": "boolean", "datetime": "timestamp", "bytes": "bytea", "string": "text",
}

func untold() typing {
	return typing{casts: map[int]string{}, loose: map[int]int{}, told: map[int]string{}}
}

// numbered finds the parameter in a message, which may be in any language.
var numbered = regexp.MustCompile(`\$(\d+)`)

// The codes of parameters whose type cannot be told, or is told to be several.
const (
	indeterminate = "42P18"
	ambiguous     = "42P08"
)

// describe has the database describe what write makes. It is nil after a fault.
func (c *compiler) describe(s *source, w *text, write func(*text)) *store.Described {
	d, bad := c.try(w, write)
	if bad != nil {
		c.database(s, w, bad)
	}
	return d
}

// database notes what the database says of a text.
func (c *compiler) database(s *source, w *text, bad *store.SQLError) {
	at := 0
	if len(s.code) > 0 {
		at = s.code[0].from
	}
	if bad.Pos >= 0 {
		at = w.origin(bad.Pos)
	} else if len(w.pieces) > 0 {
		at = w.pieces[0].at
	}
	c.fault(s, at, "%s", bad.Msg)
}

// try is describe, but what is wrong with the statement is returned. Both are nil when the database does not answer.
func (c *compiler) try(w *text, write func(*text)) (*store.Described, *store.SQLError) {
	for c.failed == nil {
		*w = text{}
		write(w)
		d, err := c.st.Describe(c.ctx, string(w.sql), make([]string, len(w.params)))
		if err == nil {
			if c.tell(w, d) {
				continue
			}
			return d, nil
		}
		var bad *store.SQLError
		if !errors.As(err, &bad) {
			c.failed = err
			return nil, nil
		}
		if !c.loosen(w, bad) {
			return nil, bad
		}
	}
	return nil, nil
}

// loosen notes a parameter whose type cannot be told, and reports whether it is worth another try.
func (c *compiler) loosen(w *text, bad *store.SQLError) bool {
	m := numbered.FindStringSubmatch(bad.Msg)
	if bad.Code != indeterminate && bad.Code != ambiguous || m == nil {
		return false
	}
	n, err := strconv.Atoi(m[1])
	if err != nil || n < 1 || n > len(w.params) {
		return false
	}
	b := w.params[n-1]
	if bad.Pos >= 0 {
		at := w.origin(bad.Pos)
		if _, again := c.loose[at]; !again {
			c.loose[at] = b
			return true
		}
	}
	if c.casts[b] != "" {
		return false
	}
	c.casts[b] = c.fallback(b)
	return true
}

// tell takes the types of loose binds from a description without them, and reports whether there are such.
func (c *compiler) tell(w *text, d *store.Described) bool {
	any := false
	for _, b := range c.loose {
		if c.told[b] != "" || c.casts[b] != "" {
			continue
		}
		any = true
		for i, p := range w.params {
			if p == b && i < len(d.Params) {
				c.told[b] = "::" + d.Params[i].Native
			}
		}
		if c.told[b] == "" {
			c.casts[b] = c.fallback(b)
		}
	}
	return any
}

// fallback is the cast of a bind of which only its declaration tells something.
func (c *compiler) fallback(b int) string { return "::" + cmp.Or(natives[c.out.Binds[b].Type], "text") }
