package endpoint

import (
	"slices"
	"strings"
)

// source is a piece of SQL of a file: its text, or its tag query.
type source struct {
	text     string
	line     int  // of the file where it begins
	exact    bool // its lines are those of the file, so columns can be told
	postgres bool
	tokens   []token
	code     []token // without blanks and comments
}

func newSource(text string, line int, exact, postgres bool) (*source, *syntaxError) {
	s := &source{text: text, line: line, exact: exact, postgres: postgres}
	tokens, err := lex(text, postgres)
	if err != nil {
		return s, err
	}
	s.tokens = tokens
	for _, t := range tokens {
		if t.kind != blank && t.kind != comment {
			s.code = append(s.code, t)
		}
	}
	return s, s.balanced()
}

func (s *source) str(t token) string { return s.text[t.from:t.to] }

// is reports whether code token i is a keyword, or the character that is given.
func (s *source) is(i int, words ...string) bool {
	if i < 0 || i >= len(s.code) {
		return false
	}
	t := s.code[i]
	if t.kind != word && t.kind != other {
		return false
	}
	for _, w := range words {
		if strings.EqualFold(s.str(t), w) {
			return true
		}
	}
	return false
}

// balanced is the fault of a bracket without its partner.
func (s *source) balanced() *syntaxError {
	var open []token
	for i, t := range s.code {
		switch {
		case s.is(i, "("):
			open = append(open, t)
		case s.is(i, ")") && len(open) == 0:
			return syntaxErrorf(t.from, "this ) closes nothing")
		case s.is(i, ")"):
			open = open[:len(open)-1]
		case t.kind == semicolon && len(open) > 0:
			return syntaxErrorf(open[len(open)-1].from, "this ( is not closed before the end of its statement")
		}
	}
	if len(open) > 0 {
		return syntaxErrorf(open[len(open)-1].from, "this ( is not closed")
	}
	return nil
}

// after is the code token behind the bracket that closes the one at i.
func (s *source) after(i int) int {
	depth := 0
	for ; i < len(s.code); i++ {
		switch {
		case s.is(i, "("):
			depth++
		case s.is(i, ")"):
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// statements are the statements between semicolons; empty ones are none.
func (s *source) statements() []*statement {
	var list []*statement
	lo := 0
	for i := 0; i <= len(s.code); i++ {
		if i == len(s.code) || s.code[i].kind == semicolon {
			if i > lo {
				list = append(list, s.statement(lo, i))
			}
			lo = i + 1
		}
	}
	return list
}

// statement is one statement, or the query within a CURSOR: code tokens lo up to hi, and what is to be known of them.
type statement struct {
	src     *source
	lo, hi  int
	verb    string // SELECT, VALUES, INSERT …; the one after WITH
	main    int    // the code token of verb
	arms    []arm  // of a SELECT: one, or several between UNION and the like
	cursors []*cursor
	bounded bool // it has a LIMIT, OFFSET, FETCH or FOR of its own
	faults  []*syntaxError
}

// arm is one SELECT: its list, and what stands between FROM and the next clause, both as code tokens.
type arm struct {
	list, from [2]int
}

// cursor is CURSOR(SELECT …) in the list of an arm.
type cursor struct {
	within   *statement
	arm      int
	from, to int // code tokens, CURSOR and behind its closing bracket
	inner    *statement
	name     string // its alias, as the database spells it
}

var clauses = []string{"WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "INTERSECT", "EXCEPT"}

// statement reads code tokens lo up to hi.
func (s *source) statement(lo, hi int) *statement {
	q := &statement{src: s, lo: lo, hi: hi}
	q.main = q.findMain()
	if q.main < hi {
		q.verb = strings.ToUpper(s.str(s.code[q.main]))
	}
	if q.verb == "(" {
		q.verb = "SELECT" // (SELECT …) UNION …
	}
	q.clauses()
	q.findCursors()
	return q
}

// findMain is the code token of the verb: behind WITH name (columns) AS MATERIALIZED (…), … .
func (q *statement) findMain() int {
	s, i := q.src, q.lo
	if !s.is(i, "WITH") {
		return i
	}
	for i++; i < q.hi; i++ {
		switch {
		case s.is(i, "("):
			i = s.after(i) - 1
		case s.is(i, "SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE") && !s.is(i-1, "AS", ","):
			return i
		}
	}
	return q.hi
}

// clauses finds the arms and the bounds.
func (q *statement) clauses() {
	if q.verb != "SELECT" && q.verb != "VALUES" {
		return
	}
	s := q.src
	const (
		outside = iota
		inList
		inFrom
	)
	state := outside
	end := func(i int) {
		switch state {
		case inList:
			q.arms[len(q.arms)-1].list[1] = i
		case inFrom:
			q.arms[len(q.arms)-1].from[1] = i
		}
		state = outside
	}
	for i := q.main; i < q.hi; i++ {
		switch {
		case s.is(i, "("):
			i = s.after(i) - 1
		case s.is(i-1, "."): // a name
		case s.is(i, "SELECT") && state == outside:
			from := i + 1
			if s.is(from, "DISTINCT", "ALL") {
				if from++; s.is(from, "ON") && s.is(from+1, "(") {
					from = s.after(from + 1)
				}
			}
			q.arms = append(q.arms, arm{list: [2]int{from, q.hi}})
			state = inList
			i = from - 1
		case s.is(i, "FROM") && state == inList && !s.is(i-1, "DISTINCT"):
			end(i)
			q.arms[len(q.arms)-1].from = [2]int{i + 1, q.hi}
			state = inFrom
		case s.is(i, clauses...) && !s.is(i-1, "AS"):
			end(i)
			q.bounded = q.bounded || s.is(i, "LIMIT", "OFFSET", "FETCH", "FOR")
		}
	}
	end(q.hi)
}

// findCursors finds CURSOR(SELECT …) in the lists of the arms. Elsewhere it has no meaning.
func (q *statement) findCursors() {
	s := q.src
	for i := q.lo; i < q.hi; i++ {
		if !s.is(i, "CURSOR") || !s.is(i+1, "(") || !s.is(i+2, "SELECT", "WITH", "VALUES") {
			continue
		}
		to := s.after(i + 1)
		at := slices.IndexFunc(q.arms, func(a arm) bool { return a.list[0] <= i && to <= a.list[1] && s.depth(a.list[0], i) == 0 })
		item := at >= 0 && (i == q.arms[at].list[0] || s.is(i-1, ","))
		if !item {
			q.faults = append(q.faults, syntaxErrorf(s.code[i].from, "CURSOR stands only as a column of a SELECT, or of the SELECT of another CURSOR"))
			i = to - 1
			continue
		}
		c := &cursor{within: q, arm: at, from: i, to: to, inner: s.statement(i+2, to-1)}
		q.faults = append(q.faults, c.inner.faults...)
		c.name = s.alias(to, q.arms[at].list[1])
		if c.name == "" {
			q.faults = append(q.faults, syntaxErrorf(s.code[i].from, "this CURSOR wants a name: CURSOR(…) AS name"))
		}
		q.cursors = append(q.cursors, c)
		i = to - 1
	}
}

// depth is how many brackets are open at code token i, counted from lo.
func (s *source) depth(lo, i int) int {
	depth := 0
	for ; lo < i; lo++ {
		switch {
		case s.is(lo, "("):
			depth++
		case s.is(lo, ")"):
			depth--
		}
	}
	return depth
}

// alias is the name at code token i, behind AS or without it, up to a comma or hi; "" if there is none.
func (s *source) alias(i, hi int) string {
	if s.is(i, "AS") {
		i++
	}
	if i >= hi || i+1 < hi && !s.is(i+1, ",") {
		return ""
	}
	switch t := s.code[i]; t.kind {
	case word, quoted:
		return s.name(t)
	}
	return ""
}

// name is an identifier as the database spells it.
func (s *source) name(t token) string {
	text := s.str(t)
	switch {
	case t.kind == quoted && text[0] == '[':
		return text[1 : len(text)-1]
	case t.kind == quoted:
		quote := text[:1]
		return strings.ReplaceAll(text[1:len(text)-1], quote+quote, quote)
	case s.postgres:
		return lowerASCII(text)
	}
	return text
}

// names are the quoted names that end items of the statement's lists or of what it returns: aliases whose case counts.
func (q *statement) quotedNames() map[string]bool {
	names := map[string]bool{}
	s := q.src
	for i := q.lo; i < q.hi; i++ {
		if s.code[i].kind == quoted && (i+1 == q.hi || s.is(i+1, ",", ")", "FROM", "WHERE", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT")) {
			names[s.name(s.code[i])] = true
		}
	}
	return names
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
