package odata

import (
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
)

// search reads a search over the texts of a set: what a word or phrase stands in, without regard to the case of ASCII letters. Several
// words must all be there.
//
// V4 has phrases in quotes, NOT, AND and OR in this order of precedence, and parentheses (OData 4.01, part 2, section 5.1.7). The option
// search of V2 is what somebody typed: words, and phrases in quotes.
func (p *scanner) search(set *edm.Set) (*record.Expr, error) {
	if len(set.Search) == 0 {
		return nil, p.invalid(0, "%s cannot be searched", set.Name)
	}
	s := &searchParser{p, set}
	if p.q.ver == v2 {
		return s.typed()
	}
	return s.or()
}

type searchParser struct {
	*scanner
	set *edm.Set
}

// typed reads words and phrases.
func (s *searchParser) typed() (*record.Expr, error) {
	var all []*record.Expr
	for !s.done() {
		at := s.i
		text, ok := s.phrase()
		if !ok {
			n := strings.IndexAny(s.s[s.i:], " \t")
			if n < 0 {
				n = len(s.s) - s.i
			}
			text = s.s[s.i : s.i+n]
			s.i += n
		}
		e, err := s.holds(at, text)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return record.AllOf(all...), nil
}

// phrase reads a text in double quotes, in which V4 may escape a quote or backslash. It is false if there is none that is closed.
func (s *searchParser) phrase() (string, bool) {
	if s.peek() != '"' {
		return "", false
	}
	var b strings.Builder
	for i := s.i + 1; i < len(s.s); i++ {
		switch c := s.s[i]; {
		case c == '"':
			s.i = i + 1
			return b.String(), true
		case c == '\\' && s.q.ver == v4 && i+1 < len(s.s) && (s.s[i+1] == '"' || s.s[i+1] == '\\'):
			i++
			b.WriteByte(s.s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// holds is the condition that one of the set's texts holds text.
func (s *searchParser) holds(at int, text string) (*record.Expr, error) {
	var any []*record.Expr
	for _, prop := range s.set.Search {
		if err := s.term(at); err != nil {
			return nil, err
		}
		any = append(any, &record.Expr{Op: record.Contains, Fold: true, Args: []*record.Expr{record.F(prop.Path), record.C(record.TextValue(text))}})
	}
	return record.AnyOf(any...), nil
}

// keyword goes past a word in capitals, if it comes next.
func (s *searchParser) keyword(word string) bool {
	s.spaces()
	rest := s.s[s.i:]
	if !strings.HasPrefix(rest, word) || len(rest) > len(word) && !strings.ContainsRune(" \t(\"", rune(rest[len(word)])) {
		return false
	}
	s.i += len(word)
	return true
}

func (s *searchParser) or() (*record.Expr, error) {
	var any []*record.Expr
	for {
		e, err := s.and()
		if err != nil {
			return nil, err
		}
		any = append(any, e)
		if !s.keyword("OR") {
			return record.AnyOf(any...), nil
		}
	}
}

// over reports whether what comes next ends a junction.
func (s *searchParser) over() bool {
	s.spaces()
	c := s.peek()
	return c == 0 || c == ')' || c == ';' || c == '&'
}

func (s *searchParser) and() (*record.Expr, error) {
	var all []*record.Expr
	for {
		e, err := s.not()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		if s.keyword("AND") {
			continue
		}
		from := s.i
		if s.over() || s.keyword("OR") {
			s.i = from
			return record.AllOf(all...), nil
		}
	}
}

func (s *searchParser) not() (*record.Expr, error) {
	s.spaces()
	at := s.i
	if !s.keyword("NOT") {
		return s.item()
	}
	if err := s.enter(at); err != nil {
		return nil, err
	}
	defer s.leave()
	e, err := s.not()
	if err != nil {
		return nil, err
	}
	return negate(e), nil
}

func (s *searchParser) item() (*record.Expr, error) {
	s.spaces()
	at := s.i
	switch s.peek() {
	case '(':
		s.i++
		if err := s.enter(at); err != nil {
			return nil, err
		}
		defer s.leave()
		e, err := s.or()
		if err != nil {
			return nil, err
		}
		return e, s.need(')')
	case '"':
		text, ok := s.phrase()
		if !ok {
			return nil, s.invalid(at, "the phrase is not closed")
		}
		return s.holds(at, text)
	}
	n := strings.IndexAny(s.s[s.i:], " \t()\";")
	if n < 0 {
		n = len(s.s) - s.i
	}
	word := s.s[s.i : s.i+n]
	switch word {
	case "":
		return nil, s.invalid(at, "a word or a phrase in quotes expected, %s found", s.found())
	case "AND", "OR":
		return nil, s.invalid(at, "a word expected before %s", word)
	}
	s.i += n
	return s.holds(at, word)
}
