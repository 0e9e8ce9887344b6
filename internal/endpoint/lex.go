package endpoint

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tokenKind is what a piece of SQL is.
type tokenKind uint8

const (
	blank   tokenKind = iota // spaces and line ends
	comment                  // -- to the end of the line, or /* … */, which nests
	word                     // a keyword or a name
	quoted                   // a quoted name: "x", on SQLite also `x` and [x]
	literal                  // a text: '…', E'…', $tag$…$tag$
	number
	bind  // :name
	other // one character, or ::
	semicolon
)

// token is src[from:to].
type token struct {
	kind     tokenKind
	from, to int
}

// syntaxError is a fault at a byte of the SQL.
type syntaxError struct {
	pos int
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

func syntaxErrorf(pos int, format string, args ...any) *syntaxError {
	return &syntaxError{pos, fmt.Sprintf(format, args...)}
}

// lexer takes SQL apart as far as it must: what is text, comment or quoted name, so that binds, CURSOR and semicolons are found where
// they are meant. What the words mean is for the database to say.
type lexer struct {
	src      string
	postgres bool
	tokens   []token
}

// lex splits SQL of a database into tokens that cover it without gaps.
func lex(src string, postgres bool) ([]token, *syntaxError) {
	l := lexer{src: src, postgres: postgres}
	for at := 0; at < len(src); {
		kind, to, err := l.next(at)
		if err != nil {
			return nil, err
		}
		l.tokens = append(l.tokens, token{kind, at, to})
		at = to
	}
	return l.tokens, nil
}

func (l *lexer) next(at int) (tokenKind, int, *syntaxError) {
	c := l.src[at]
	rest := l.src[at:]
	switch {
	case isBlank(c):
		to := at + 1
		for to < len(l.src) && isBlank(l.src[to]) {
			to++
		}
		return blank, to, nil
	case strings.HasPrefix(rest, "--"):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return comment, at + n, nil
		}
		return comment, len(l.src), nil
	case strings.HasPrefix(rest, "/*"):
		return l.block(at)
	case c == '\'':
		return l.enclosed(at, at, '\'', false, literal)
	case c == '"':
		return l.enclosed(at, at, '"', false, quoted)
	case c == '`' && !l.postgres:
		return l.enclosed(at, at, '`', false, quoted)
	case c == '[' && !l.postgres:
		if n := strings.IndexByte(rest, ']'); n >= 0 {
			return quoted, at + n + 1, nil
		}
		return 0, 0, syntaxErrorf(at, "the name that begins with [ does not end")
	case (c == 'E' || c == 'e') && l.postgres && strings.HasPrefix(rest[1:], "'"):
		return l.enclosed(at, at+1, '\'', true, literal)
	case isLetter(c):
		to := at + 1
		for to < len(l.src) && (isLetter(l.src[to]) || isDigit(l.src[to]) || l.src[to] == '$') {
			to++
		}
		return word, to, nil
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return number, l.numeral(at), nil
	case c == ':':
		return l.colon(at)
	case c == '$':
		return l.dollar(at)
	case !l.postgres && (c == '?' || c == '@'):
		return 0, 0, syntaxErrorf(at, "a parameter is written :name, not %c", c)
	case c == ';':
		return semicolon, at + 1, nil
	case c < utf8.RuneSelf && c < ' ' || c == 0x7f:
		return 0, 0, syntaxErrorf(at, "the character %q has no place in SQL", c)
	}
	return other, at + 1, nil
}

// block is a comment from /* to its end. On SQLite it ends at the first */; PostgreSQL nests them.
func (l *lexer) block(at int) (tokenKind, int, *syntaxError) {
	depth := 1
	for i := at + 2; i < len(l.src); i++ {
		switch {
		case strings.HasPrefix(l.src[i:], "*/"):
			i++
			if depth--; depth == 0 {
				return comment, i + 1, nil
			}
		case l.postgres && strings.HasPrefix(l.src[i:], "/*"):
			i++
			depth++
		}
	}
	return 0, 0, syntaxErrorf(at, "the comment that begins here does not end")
}

// enclosed is what stands between two of the same character, which is doubled inside, or with escapes follows a backslash. The
// token begins at at, its first quote is at open.
func (l *lexer) enclosed(at, open int, quote byte, escapes bool, kind tokenKind) (tokenKind, int, *syntaxError) {
	for i := open + 1; i < len(l.src); i++ {
		switch {
		case escapes && l.src[i] == '\\':
			i++
		case l.src[i] != quote:
		case i+1 < len(l.src) && l.src[i+1] == quote:
			i++
		default:
			return kind, i + 1, nil
		}
	}
	if kind == quoted {
		return 0, 0, syntaxErrorf(at, "the name that begins with %c does not end", quote)
	}
	return 0, 0, syntaxErrorf(at, "the text that begins here does not end")
}

func (l *lexer) numeral(at int) int {
	to := at
	for to < len(l.src) {
		c := l.src[to]
		exponent := (c == '+' || c == '-') && to > at && (l.src[to-1] == 'e' || l.src[to-1] == 'E') && !strings.HasPrefix(l.src[at:], "0x")
		if !isDigit(c) && !isLetter(c) && c != '.' && !exponent {
			break
		}
		if c == '.' && strings.HasPrefix(l.src[to:], "..") {
			break // a range: 1..10
		}
		to++
	}
	return to
}

// colon is a bind, a cast, an assignment or a colon. A colon before a digit or a space is no bind, so slices of arrays are written
// [1:2] or [a : b].
func (l *lexer) colon(at int) (tokenKind, int, *syntaxError) {
	rest := l.src[at+1:]
	switch {
	case strings.HasPrefix(rest, ":"), strings.HasPrefix(rest, "="):
		return other, at + 2, nil
	case rest != "" && isLetter(rest[0]):
		to := at + 2
		for to < len(l.src) && (isLetter(l.src[to]) || isDigit(l.src[to])) {
			to++
		}
		return bind, to, nil
	}
	return other, at + 1, nil
}

// dollar is a text between two equal tags, $$ or $tag$.
func (l *lexer) dollar(at int) (tokenKind, int, *syntaxError) {
	if !l.postgres {
		return 0, 0, syntaxErrorf(at, "a parameter is written :name, not $")
	}
	i := at + 1
	for i < len(l.src) && (isLetter(l.src[i]) || isDigit(l.src[i]) && i > at+1) {
		i++
	}
	if i >= len(l.src) || l.src[i] != '$' {
		return 0, 0, syntaxErrorf(at, "a parameter is written :name, not $")
	}
	tag := l.src[at : i+1]
	if n := strings.Index(l.src[i+1:], tag); n >= 0 {
		return literal, i + 1 + n + len(tag), nil
	}
	return 0, 0, syntaxErrorf(at, "the text that begins with %s does not end", tag)
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}
