package importer

import (
	"fmt"
	"strings"
)

// kind is what a piece of a script is.
type kind uint8

const (
	name   kind = iota // a word, also with points: ORDS.DEFINE_MODULE
	text               // '…' or q'[…]'
	number             //
	bound              // :name
	symbol             // anything else: => := || ( ) , ;
)

// token is one piece. Its value is that of a text, or the piece as it stands; names keep their case.
type token struct {
	kind     kind
	value    string
	from, to int // bytes of the script
	body     int // of a text: where its content begins
}

// script is a script and its tokens, comments left out.
type script struct {
	text   string
	tokens []token
}

// line is the line of a byte, from 1.
func (s *script) line(at int) int { return strings.Count(s.text[:min(at, len(s.text))], "\n") + 1 }

// read takes a script apart.
func read(src string) (*script, error) {
	s := &script{text: src}
	for at := 0; at < len(src); {
		rest := src[at:]
		c := src[at]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			at++
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			at += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return nil, fmt.Errorf("%d: the comment does not end", s.line(at))
			}
			at += n + 4
		default:
			t, err := s.next(at)
			if err != nil {
				return nil, err
			}
			s.tokens = append(s.tokens, t)
			at = t.to
		}
	}
	return s, nil
}

func (s *script) next(at int) (token, error) {
	src := s.text
	c := src[at]
	switch {
	case c == '\'':
		return s.plain(at, at)
	case (c == 'n' || c == 'N') && strings.HasPrefix(src[at+1:], "'"):
		return s.plain(at, at+1)
	case quotes(src[at:]) > 0:
		return s.quoted(at, at+quotes(src[at:]))
	case letter(c):
		to := at
		for to < len(src) && (letter(src[to]) || digit(src[to]) || src[to] == '$' || src[to] == '#' || src[to] == '.' && to+1 < len(src) && letter(src[to+1])) {
			to++
		}
		return token{kind: name, value: src[at:to], from: at, to: to}, nil
	case digit(c):
		to := at
		for to < len(src) && (digit(src[to]) || src[to] == '.') {
			to++
		}
		return token{kind: number, value: src[at:to], from: at, to: to}, nil
	case c == ':' && at+1 < len(src) && letter(src[at+1]):
		to := at + 1
		for to < len(src) && (letter(src[to]) || digit(src[to])) {
			to++
		}
		return token{kind: bound, value: src[at:to], from: at, to: to}, nil
	case c == '"':
		n := strings.IndexByte(src[at+1:], '"')
		if n < 0 {
			return token{}, fmt.Errorf("%d: the name does not end", s.line(at))
		}
		return token{kind: name, value: src[at : at+n+2], from: at, to: at + n + 2}, nil
	}
	for _, two := range []string{"=>", ":=", "||", "<>", "<=", ">=", "!=", ".."} {
		if strings.HasPrefix(src[at:], two) {
			return token{kind: symbol, value: two, from: at, to: at + 2}, nil
		}
	}
	return token{kind: symbol, value: src[at : at+1], from: at, to: at + 1}, nil
}

// plain is a text in simple quotes, which are doubled within. Its token begins at from.
func (s *script) plain(from, open int) (token, error) {
	for i := open + 1; i < len(s.text); i++ {
		if s.text[i] != '\'' {
			continue
		}
		if strings.HasPrefix(s.text[i+1:], "'") {
			i++
			continue
		}
		return token{text, strings.ReplaceAll(s.text[open+1:i], "''", "'"), from, i + 1, open + 1}, nil
	}
	return token{}, fmt.Errorf("%d: the text does not end", s.line(from))
}

// quotes is the length of what begins a text with a delimiter of its own, q'[ or nq'[; 0 if s does not begin so.
func quotes(s string) int {
	n := 0
	if n < len(s) && (s[n] == 'n' || s[n] == 'N') {
		n++
	}
	if n+2 < len(s) && (s[n] == 'q' || s[n] == 'Q') && s[n+1] == '\'' {
		return n + 3
	}
	return 0
}

// quoted is a text with a delimiter of its own, whose content begins at begin.
func (s *script) quoted(from, begin int) (token, error) {
	end := s.text[begin-1 : begin]
	if i := strings.Index("[({<", end); i >= 0 {
		end = "])}>"[i : i+1]
	}
	n := strings.Index(s.text[begin:], end+"'")
	if n < 0 {
		return token{}, fmt.Errorf("%d: the text does not end", s.line(from))
	}
	return token{text, s.text[begin : begin+n], from, begin + n + 2, begin}, nil
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}
func digit(c byte) bool { return c >= '0' && c <= '9' }
