package odata

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/internal/record"
)

// scanner reads the value of one query option from left to right. Its errors name the option and the position, counted in
// characters from 1.
type scanner struct {
	q      *request
	option string // "$filter", or an alias "@p"
	s      string
	i      int
	depth  int
	spent  *spent // of the whole query
}

// spent is how much of the bounds of a query is used up.
type spent struct{ terms, expands int }

func (p *scanner) invalid(at int, format string, args ...any) error {
	return record.Errorf(record.Invalid, p.option, "%s "+format, append([]any{p.at(at)}, args...)...)
}

func (p *scanner) unsupported(at int, format string, args ...any) error {
	return unsupported(p.option, "%s "+format, append([]any{p.at(at)}, args...)...)
}

// at names a position.
func (p *scanner) at(at int) string {
	return p.option + ", position " + strconv.Itoa(utf8.RuneCountInString(p.s[:min(at, len(p.s))])+1) + ":"
}

// enter goes one level deeper, leave comes back.
func (p *scanner) enter(at int) error {
	p.depth++
	if p.depth > p.q.d.opt.MaxFilterDepth {
		return p.invalid(at, "nested deeper than %d; see odata.max_filter_depth", p.q.d.opt.MaxFilterDepth)
	}
	return nil
}

func (p *scanner) leave() { p.depth-- }

// term counts a comparison, call or operator.
func (p *scanner) term(at int) error {
	p.spent.terms++
	if p.spent.terms > p.q.d.opt.MaxTerms {
		return p.invalid(at, "more than %d comparisons, calls and operators; see odata.max_terms", p.q.d.opt.MaxTerms)
	}
	return nil
}

func (p *scanner) spaces() *scanner {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
	return p
}

// done reports whether nothing but blanks is left.
func (p *scanner) done() bool {
	p.spaces()
	return p.i >= len(p.s)
}

// peek is the next byte, 0 at the end.
func (p *scanner) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// take goes past c if it is next, blanks before it included.
func (p *scanner) take(c byte) bool {
	p.spaces()
	if p.peek() != c {
		return false
	}
	p.i++
	return true
}

// need is take, or an error.
func (p *scanner) need(c byte) error {
	if p.take(c) {
		return nil
	}
	return p.invalid(p.i, "'%c' expected, %s found", c, p.found())
}

// found is what stands at the present position, for errors.
func (p *scanner) found() string {
	if p.i >= len(p.s) {
		return "the end"
	}
	rest := p.s[p.i:]
	n := len(nameAt(rest))
	if n == 0 {
		_, n = utf8.DecodeRuneInString(rest)
	}
	return "'" + rest[:min(n, 40)] + "'"
}

// nameAt is the name that s begins with: letters, digits and underscores, with dots between them.
func nameAt(s string) string {
	for i, r := range s {
		if r < utf8.RuneSelf && (isNameByte(byte(r)) || r == '.' && i > 0) || r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			continue
		}
		return s[:i]
	}
	return s
}

// name reads a name, "" if there is none.
func (p *scanner) name() string {
	s := nameAt(p.s[p.i:])
	p.i += len(s)
	return s
}

// literalAt is the literal that the rest begins with, "" if it does not begin with one, and how long it is there. Names of
// properties, keywords aside, are none.
func (p *scanner) literalAt() (text string, n int) {
	s := p.s[p.i:]
	if s == "" {
		return "", 0
	}
	switch c := s[0]; {
	case c == '\'':
		n = quotedAt(s)
		return s[:n], n
	case c >= '0' && c <= '9', (c == '-' || c == '+') && len(s) > 1 && (s[1] >= '0' && s[1] <= '9' || s[1] == '.'), strings.HasPrefix(s, "-INF"):
		n = runAt(s)
		// A plus that was not encoded has become a blank: that of a zone cannot be anything else.
		if zone := s[n:]; p.q.ver == v4 && n >= 16 && s[4] == '-' && len(zone) >= 6 && zone[0] == ' ' && twoDigits(zone, 1) >= 0 && zone[3] == ':' && twoDigits(zone, 4) >= 0 {
			return s[:n] + "+" + zone[1:6], n + 6
		}
		return s[:n], n
	}
	if p.q.ver == v4 && len(s) >= 36 && s[8] == '-' && runAt(s) == 36 {
		if _, ok := readGUID(s[:36]); ok {
			return s[:36], 36
		}
	}
	word := nameAt(s)
	rest := s[len(word):]
	switch {
	case word == "":
		return "", 0
	case strings.HasPrefix(rest, "'"):
		n = len(word) + quotedAt(rest)
		return s[:n], n
	case strings.HasPrefix(rest, "/"), strings.HasPrefix(rest, "("):
		return "", 0
	}
	switch word {
	case "null", "true", "false", "INF", "NaN":
		return word, len(word)
	}
	return "", 0
}

// runAt is how many characters of numbers, times and GUIDs s begins with.
func runAt(s string) int {
	for i := range len(s) {
		if c := s[i]; !isNameByte(c) && c != '.' && c != ':' && c != '-' && c != '+' {
			return i
		}
	}
	return len(s)
}

// quotedAt is how long the quoted text is that s begins with; all of s if it is not closed.
func quotedAt(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] == '\'' {
			if i+1 < len(s) && s[i+1] == '\'' {
				i++
				continue
			}
			return i + 1
		}
	}
	return len(s)
}

// whole reads a number of digits that is not negative.
func (p *scanner) whole() (int64, error) {
	p.spaces()
	at := p.i
	s := p.s[p.i:]
	n := digitsAt(s)
	p.i += n
	var v int64
	for i := range n {
		if v > 1<<53 {
			return 0, p.invalid(at, "the number is too large")
		}
		v = v*10 + int64(s[i]-'0')
	}
	if n == 0 || p.i < len(p.s) && (isNameByte(p.peek()) || p.peek() == '.') {
		return 0, p.invalid(at, "a number that is whole and not negative expected, %s found", p.found())
	}
	return v, nil
}
