package importer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// What neither database understands, and what to write instead.
var foreign = map[string]string{
	"SYSDATE": "CURRENT_TIMESTAMP", "SYSTIMESTAMP": "CURRENT_TIMESTAMP", "DECODE": "CASE", "NVL2": "CASE", "ROWNUM": "LIMIT", "ROWID": "the key",
	"CONNECT": "WITH RECURSIVE", "LISTAGG": "string_agg or group_concat", "PIVOT": "CASE within aggregates", "UNPIVOT": "UNION ALL",
	"MONTHS_BETWEEN": "arithmetic of the database", "ADD_MONTHS": "arithmetic of the database", "LAST_DAY": "arithmetic of the database",
	"SYS_CONTEXT": ":current_user", "USERENV": ":current_user", "SYS_GUID": "a key of the table", "XMLELEMENT": "CURSOR", "XMLAGG": "CURSOR",
	"XMLFOREST": "CURSOR", "JSON_ARRAYAGG": "CURSOR", "JSON_OBJECT": "CURSOR, or the database's own", "JSON_TABLE": "the database's own",
	"EMPTY_BLOB": "NULL", "EMPTY_CLOB": "NULL", "SQL": "RETURNING", "RAISE_APPLICATION_ERROR": "SELECT 400 AS \":status_code\"", "MODEL": "WITH RECURSIVE",
}

// What only PostgreSQL understands, or understands a little differently.
var postgresOnly = []string{"TO_CHAR", "TO_DATE", "TO_NUMBER", "TO_TIMESTAMP", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR", "INITCAP", "TRUNC", "EXTRACT", "LPAD", "RPAD", "GREATEST", "LEAST"}

var foreignName = regexp.MustCompile(`(?i)^(DBMS|UTL|APEX|OWA|HTP|ORDS)(_\w+)?\.|\.(NEXTVAL|CURRVAL)$`)

// portable is a piece of SQL on its way.
type portable struct {
	*importer
	*script     // the SQL alone
	body    int // where it stands in the script
	ok      bool
}

// port rewrites what is only spelled otherwise, and notes what the databases do not understand. It is false when something is left
// that they refuse.
func (m *importer) port(v value, block bool) (string, bool) {
	s, err := read(v.text)
	if err != nil {
		m.note(v.body, "the SQL cannot be read: %v", err)
		return v.text, false
	}
	p := &portable{m, s, v.body, true}
	if !block {
		return p.sql(0, len(s.tokens)), p.ok
	}
	out := p.block()
	if !p.ok {
		return v.text, false
	}
	return out, true
}

// note is about a byte of the SQL.
func (p *portable) note(at int, format string, args ...any) {
	p.importer.note(p.body+at, format, args...)
}

func (p *portable) refuse(at int, format string, args ...any) {
	p.ok = false
	p.note(at, format, args...)
}

// sql is tokens i up to end with what is spelled otherwise.
func (p *portable) sql(i, end int) string {
	var b strings.Builder
	s := p.script
	from := 0
	if i < end {
		from = s.tokens[i].from
	}
	put := func(to int, instead string, next int) {
		b.WriteString(s.text[from:to])
		b.WriteString(instead)
		from = next
	}
	for ; i < end; i++ {
		t := s.tokens[i]
		word := strings.ToUpper(t.value)
		switch {
		case s.is(i, "(") && s.is(i+1, "+") && s.is(i+2, ")"):
			p.refuse(t.from, "(+) is an outer join of old: write LEFT JOIN")
		case t.kind != name:
		case word == "NVL" && s.is(i+1, "("):
			put(t.from, "coalesce", t.to)
		case word == "MINUS":
			put(t.from, "EXCEPT", t.to)
		case word == "FROM" && (s.is(i+1, "DUAL") || s.is(i+1, "SYS.DUAL")):
			put(t.from, "", s.tokens[i+1].to)
			i++
		case foreignName.MatchString(t.value):
			p.refuse(t.from, "%s is a package or a sequence of Oracle's", t.value)
		case foreign[word] != "" && !(word == "SQL" && !s.is(i+1, "%")) && !(word == "CONNECT" && !s.is(i+1, "BY")):
			p.refuse(t.from, "%s is Oracle's: write %s", t.value, foreign[word])
		case slices.Contains(postgresOnly, word) && s.is(i+1, "("):
			p.note(t.from, "%s works on PostgreSQL only, and perhaps a little differently", t.value)
		}
	}
	if end > 0 {
		b.WriteString(s.text[from:s.tokens[end-1].to])
	}
	return b.String()
}

// block is a block of PL/SQL as a list of statements, where it is no more than that.
func (p *portable) block() string {
	s := p.script
	i, end := 0, len(s.tokens)
	for end > i && (s.is(end-1, ";") || s.is(end-1, "/")) {
		end--
	}
	if s.is(i, "BEGIN") {
		if i++; !s.is(end-1, "END") {
			p.refuse(s.tokens[end-1].from, "the block does not end with END")
			return ""
		}
		end--
	}
	var list []string
	for i < end && p.ok { // the first fault tells that it has to be written anew
		to := i
		for depth := 0; to < end && (depth > 0 || !s.is(to, ";")); to++ {
			switch {
			case s.is(to, "("):
				depth++
			case s.is(to, ")"):
				depth--
			}
		}
		if to > i {
			if sql := p.statement(i, to); sql != "" {
				list = append(list, sql)
			}
		}
		i = to + 1
	}
	return strings.Join(list, ";\n")
}

// statement is one statement of a block as SQL, "" if it is none that is needed.
func (p *portable) statement(i, end int) string {
	s := p.script
	t := s.tokens[i]
	switch {
	case s.is(i, "COMMIT"), s.is(i, "NULL") && end == i+1:
		return "" // a block is one transaction
	case t.kind == bound && s.is(i+1, ":="):
		return "SELECT " + p.sql(i+2, end) + " AS \"" + t.value + "\""
	case s.is(i, "SELECT"):
		return p.into(i, end, "FROM")
	case s.is(i, "INSERT"), s.is(i, "UPDATE"), s.is(i, "DELETE"), s.is(i, "MERGE"), s.is(i, "WITH"):
		for j := i; j < end; j++ {
			if s.is(j, "RETURNING") || s.is(j, "RETURN") {
				return p.sql(i, j) + " RETURNING" + strings.TrimPrefix(p.into(j, end, ""), s.tokens[j].value)
			}
		}
		return p.sql(i, end)
	}
	p.refuse(t.from, "a statement of PL/SQL that is no SQL: %s", cmp.Or(p.first(i, end), t.value))
	return ""
}

func (p *portable) first(i, end int) string {
	line, _, _ := strings.Cut(p.script.text[p.script.tokens[i].from:p.script.tokens[end-1].to], "\n")
	if len(line) > 60 {
		line = strings.ToValidUTF8(line[:60], "") + "…"
	}
	return strings.TrimSpace(line)
}

// into is WORD a, b INTO :x, :y [rest] as WORD a AS ":x", b AS ":y" [rest]. What is selected without INTO stays.
func (p *portable) into(i, end int, rest string) string {
	s := p.script
	at := i
	for depth := 0; at < end && (depth > 0 || !s.is(at, "INTO")); at++ {
		switch {
		case s.is(at, "("):
			depth++
		case s.is(at, ")"):
			depth--
		}
	}
	if at == end {
		return p.sql(i, end)
	}
	stop := end
	for j := at; j < end && rest != ""; j++ {
		if s.is(j, rest) {
			stop = j
			break
		}
	}
	from, to := p.split(i+1, at), p.split(at+1, stop)
	if len(from) != len(to) {
		p.refuse(s.tokens[at].from, "INTO has %d targets for %d values", len(to), len(from))
		return ""
	}
	items := make([]string, len(from))
	for k := range from {
		if to[k][1] != to[k][0]+1 || s.tokens[to[k][0]].kind != bound {
			p.refuse(s.tokens[to[k][0]].from, "INTO a variable of PL/SQL: only parameters can be assigned")
			return ""
		}
		items[k] = p.sql(from[k][0], from[k][1]) + " AS \"" + s.tokens[to[k][0]].value + "\""
	}
	out := s.tokens[i].value + " " + strings.Join(items, ", ")
	if stop < end {
		out += " " + p.sql(stop, end)
	}
	return out
}

// split is the ranges between commas.
func (p *portable) split(i, end int) [][2]int {
	s := p.script
	var list [][2]int
	from := i
	for depth := 0; i <= end; i++ {
		switch {
		case i == end, s.is(i, ",") && depth == 0:
			if i > from {
				list = append(list, [2]int{from, i})
			}
			from = i + 1
		case s.is(i, "("):
			depth++
		case s.is(i, ")"):
			depth--
		}
	}
	return list
}
