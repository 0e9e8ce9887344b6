package odata

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/dialect"
	"weir/internal/record"
)

// ifExpr is the member if of a request of a JSON batch: a boolean expression over earlier answers (OData JSON format 4.01, section
// 19.1). It has and, or, not, eq, ne and brackets; literals; $id/$succeeded; and $id/Path for a value of an answer's body.
type ifExpr struct {
	op   ifOp
	args []*ifExpr
	id   string         // of the request whose answer is looked at, or of its group
	item int            // that request, or the last one of the group
	path []string       // into its body
	lit  jsontext.Value // a literal
}

type ifOp uint8

const (
	condLiteral ifOp = iota
	condSucceeded
	condBody
	condNot
	condAnd
	condOr
	condEq
	condNe
)

// maxIf bounds the text of a condition, and so its depth.
const maxIf = 4096

// parseIf reads a condition. The error is an Invalid.
func parseIf(s string) (*ifExpr, error) {
	if len(s) > maxIf {
		return nil, record.Errorf(record.TooLarge, "if", "the condition has more than %d bytes", maxIf)
	}
	p := &ifParser{rest: s}
	c := p.or()
	if p.blanks(); p.err == nil && p.rest != "" {
		p.fail()
	}
	return c, p.err
}

type ifParser struct {
	rest string
	err  error
}

func (p *ifParser) blanks() { p.rest = strings.TrimLeft(p.rest, " \t") }

func (p *ifParser) fail() *ifExpr {
	if p.err == nil {
		p.err = record.Errorf(record.Invalid, "if", "the condition cannot be read at %.80q", p.rest)
	}
	return &ifExpr{}
}

// word takes a word if it comes next.
func (p *ifParser) word(w string) bool {
	p.blanks()
	rest, ok := strings.CutPrefix(p.rest, w)
	if !ok || rest != "" && !strings.ContainsRune(" \t()", rune(rest[0])) {
		return false
	}
	p.rest = rest
	return true
}

func (p *ifParser) or() *ifExpr {
	c := p.and()
	for p.err == nil && p.word("or") {
		c = &ifExpr{op: condOr, args: []*ifExpr{c, p.and()}}
	}
	return c
}

func (p *ifParser) and() *ifExpr {
	c := p.compare()
	for p.err == nil && p.word("and") {
		c = &ifExpr{op: condAnd, args: []*ifExpr{c, p.compare()}}
	}
	return c
}

func (p *ifParser) compare() *ifExpr {
	c := p.unary()
	switch {
	case p.err != nil:
	case p.word("eq"):
		c = &ifExpr{op: condEq, args: []*ifExpr{c, p.unary()}}
	case p.word("ne"):
		c = &ifExpr{op: condNe, args: []*ifExpr{c, p.unary()}}
	}
	return c
}

func (p *ifParser) unary() *ifExpr {
	if p.word("not") {
		return &ifExpr{op: condNot, args: []*ifExpr{p.unary()}}
	}
	p.blanks()
	if strings.HasPrefix(p.rest, "(") {
		p.rest = p.rest[1:]
		c := p.or()
		if p.blanks(); !strings.HasPrefix(p.rest, ")") {
			return p.fail()
		}
		p.rest = p.rest[1:]
		return c
	}
	return p.primary()
}

func (p *ifParser) primary() *ifExpr {
	if strings.HasPrefix(p.rest, "'") {
		var text strings.Builder
		for rest := p.rest[1:]; ; {
			part, after, ok := strings.Cut(rest, "'")
			if !ok {
				return p.fail()
			}
			text.WriteString(part)
			if rest = after; !strings.HasPrefix(rest, "'") {
				p.rest = rest
				v, err := jsontext.AppendQuote(nil, text.String())
				if err != nil {
					return p.fail()
				}
				return &ifExpr{lit: v}
			}
			text.WriteByte('\'')
			rest = rest[1:]
		}
	}
	end := strings.IndexAny(p.rest, " \t()")
	if end < 0 {
		end = len(p.rest)
	}
	token := p.rest[:end]
	if strings.HasPrefix(token, "$") && len(token) > 1 {
		p.rest = p.rest[end:]
		path := strings.Split(token[1:], "/")
		if len(path) == 2 && path[1] == "$succeeded" {
			return &ifExpr{op: condSucceeded, id: path[0]}
		}
		return &ifExpr{op: condBody, id: path[0], path: path[1:]}
	}
	v := jsontext.Value(token)
	if v.Canonicalize() != nil || v.Kind() == '"' || v.Kind() == '{' || v.Kind() == '[' {
		return p.fail()
	}
	p.rest = p.rest[end:]
	return &ifExpr{lit: v}
}

// each calls f for the condition and all below it.
func (c *ifExpr) each(f func(c *ifExpr)) {
	f(c)
	for _, a := range c.args {
		a.each(f)
	}
}

// looks reports whether bodies of answers are needed.
func (c *ifExpr) looks() bool {
	looks := false
	c.each(func(c *ifExpr) { looks = looks || c.op == condBody })
	return looks
}

// bind finds the requests that are looked at, which must be among those that the item depends on.
func (c *ifExpr) bind(r *jsonBatchReader, it *dialect.Item) error {
	var err error
	c.each(func(c *ifExpr) {
		if c.op != condSucceeded && c.op != condBody {
			return
		}
		p, ok := r.byID[c.id]
		if !ok {
			p, ok = r.groups[c.id]
		}
		if !ok || !slices.Contains(it.After, p) {
			err = record.Errorf(record.Invalid, "if", "$%.80s is not among the requests that dependsOn names", c.id)
		}
		c.item = p
	})
	return err
}

// holds reports whether the condition holds, given the answers so far.
func (c *ifExpr) holds(b *batch, parts []dialect.Part) (bool, error) {
	v, err := c.value(b, parts)
	if err != nil {
		return false, err
	}
	if v.Kind() != 't' && v.Kind() != 'f' {
		return false, record.Errorf(record.Invalid, "if", "the condition is neither true nor false")
	}
	return v.Kind() == 't', nil
}

func truth(v bool) jsontext.Value {
	if v {
		return jsontext.Value("true")
	}
	return jsontext.Value("false")
}

func (c *ifExpr) value(b *batch, parts []dialect.Part) (jsontext.Value, error) {
	var args [2]jsontext.Value
	for k, a := range c.args {
		v, err := a.value(b, parts)
		if err != nil {
			return nil, err
		}
		if c.op <= condOr && v.Kind() != 't' && v.Kind() != 'f' {
			return nil, record.Errorf(record.Invalid, "if", "the condition compares what is neither true nor false")
		}
		args[k] = v
	}
	switch c.op {
	case condSucceeded:
		return truth(!unsuccessful(&parts[c.item])), nil
	case condBody:
		body := parts[c.item].Body
		if body == nil {
			body = b.links.bodies[c.item]
		}
		return lookUp(body, c.path), nil
	case condNot:
		return truth(args[0].Kind() == 'f'), nil
	case condAnd:
		return truth(args[0].Kind() == 't' && args[1].Kind() == 't'), nil
	case condOr:
		return truth(args[0].Kind() == 't' || args[1].Kind() == 't'), nil
	case condEq:
		return truth(bytes.Equal(args[0], args[1])), nil
	case condNe:
		return truth(!bytes.Equal(args[0], args[1])), nil
	}
	return c.lit, nil
}

// lookUp is the value at path of a JSON document, null if there is none.
func lookUp(doc jsontext.Value, path []string) jsontext.Value {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for _, step := range path {
		if dec.PeekKind() != '{' {
			return jsontext.Value("null")
		}
		dec.ReadToken()
		for {
			name, err := dec.ReadToken()
			if err != nil || name.Kind() != '"' {
				return jsontext.Value("null")
			}
			if name.String() == step {
				break
			}
			if dec.SkipValue() != nil {
				return jsontext.Value("null")
			}
		}
	}
	v, err := dec.ReadValue()
	if err != nil || v.Canonicalize() != nil {
		return jsontext.Value("null")
	}
	return v
}
