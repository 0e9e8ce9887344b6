package endpoint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
)

// annotations are those of a file, for the fault that lists them.
var annotations = []string{
	"schema", "module", "method", "source", "page", "priority", "etag", "param", "column", "roles", "public", "auth", "mimes", "nested",
	"timeout", "store", "unpublished", "origins", "comment", "name",
}

var (
	methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	sources = []string{
		catalog.SourceCollection, catalog.SourceItem, catalog.SourceQuery, catalog.SourceSingle, catalog.SourceFeed, catalog.SourceCSV,
		catalog.SourceMedia, catalog.SourceBlock,
	}
	authKinds  = []string{"basic", "oauth", "database", "header"}
	paramKinds = []string{"STRING", "INT", "LONG", "DOUBLE", "BOOLEAN", "TIMESTAMP", "RESULTSET"}
)

// Reserved are the names of the query string that are no binds (protocol notes, section 3).
var Reserved = []string{"page", "offset", "limit", "q"}

// Paging are the implicit parameters of who pages by himself (protocol notes, section 6).
var Paging = []string{"fetch_offset", "fetch_size", "row_offset", "row_count", "page_offset", "page_size"}

// implicit are all implicit parameters and their types. Those of the second kind are assigned by a block.
var implicit = map[string]record.Type{
	"body": record.TypeBytes, "body_text": record.TypeString, "body_json": record.TypeString, "content_type": record.TypeString,
	"current_user": record.TypeString,
	"fetch_offset": record.TypeInteger, "fetch_size": record.TypeInteger, "row_offset": record.TypeInteger, "row_count": record.TypeInteger,
	"page_offset": record.TypeInteger, "page_size": record.TypeInteger,
	bindStatus: record.TypeInteger, bindForward: record.TypeString,
}

const (
	bindStatus  = "status_code"
	bindForward = "forward_location"
)

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	aliasForm   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._~-]*$`)
	segmentForm = regexp.MustCompile(`^[A-Za-z0-9._~@$+,;=!-]+$`)
	bindSegment = regexp.MustCompile(`^:[A-Za-z_][A-Za-z0-9_]*[?*]?$`)
)

// parser reads the annotations of one file.
type parser struct {
	file   string
	def    catalog.EndpointDef
	sql    *catalog.SQLDef
	faults []error
	seen   map[string]int // line of an annotation
	line   int
	tag    []string // lines of the tag query
}

// Parse reads a SQL endpoint file: annotations in the comments at its top, then SQL. Each fault begins with file:line.
func Parse(file, text string) (catalog.EndpointDef, []error) {
	p := &parser{file: file, seen: map[string]int{}, sql: &catalog.SQLDef{}}
	p.def = catalog.EndpointDef{Name: strings.TrimSuffix(strings.TrimPrefix(file, "endpoints/"), ".sql"), File: file, SQL: p.sql}
	p.sql.Schema, _, _ = strings.Cut(p.def.Name, "/")
	text = strings.TrimPrefix(text, "\ufeff")
	at, continued := 0, false
	for s := range strings.Lines(text) {
		p.line++
		said, ok := strings.CutPrefix(strings.TrimSpace(s), "--")
		if !ok && strings.TrimSpace(s) != "" {
			break
		}
		trimmed := strings.TrimSpace(said)
		if strings.HasPrefix(trimmed, "@into ") {
			break // it belongs to the first statement
		}
		at += len(s)
		switch {
		case strings.HasPrefix(trimmed, "@"):
			continued = p.annotation(trimmed[1:])
		case continued && trimmed != "" && (strings.HasPrefix(said, "  ") || strings.HasPrefix(said, "\t")):
			p.tag = append(p.tag, said)
		default:
			continued = false
		}
	}
	p.sql.Text = text[at:]
	p.sql.Line = strings.Count(text[:at], "\n") + 1
	p.finish()
	return p.def, p.faults
}

func (p *parser) fault(format string, args ...any) { p.faultAt(p.line, format, args...) }

func (p *parser) faultAt(line int, format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("%s:%d: %s", p.file, max(line, 1), fmt.Sprintf(format, args...)))
}

// annotation reads one, and reports whether lines that follow may continue it.
func (p *parser) annotation(text string) (continued bool) {
	key, value := text, ""
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		key, value = text[:i], strings.TrimSpace(text[i:])
	}
	if !slices.Contains(annotations, key) {
		p.fault("unknown annotation @%s; there are @%s", key, strings.Join(annotations, ", @"))
		return false
	}
	if _, twice := p.seen[key]; twice && key != "param" && key != "column" {
		p.fault("@%s is given twice", key)
		return false
	}
	p.seen[key] = p.line
	switch flag := key == "public" || key == "unpublished"; {
	case flag && value != "":
		p.fault("@%s takes no value", key)
		return false
	case !flag && value == "":
		p.fault("@%s needs a value", key)
		return false
	}
	d := p.sql
	switch key {
	case "schema":
		d.Schema = value
	case "module":
		p.module(value)
	case "method":
		p.method(value)
	case "source":
		d.Source = value
		if value == "plsql/block" { // what exports call it
			d.Source = catalog.SourceBlock
		}
		if !slices.Contains(sources, d.Source) {
			p.fault("@source %q is not one of %s", value, strings.Join(sources, ", "))
		}
	case "page":
		n := p.number(key, value, 0, 1_000_000)
		d.PageSize = &n
	case "priority":
		d.Priority = p.number(key, value, 0, 9)
	case "etag":
		return p.etag(value)
	case "param":
		p.param(strings.Fields(value))
	case "column":
		p.column(strings.Fields(value))
	case "roles":
		p.def.Roles = list(value)
	case "public":
		p.def.Public = true
	case "auth":
		d.Auth = list(value)
		for _, a := range d.Auth {
			if !slices.Contains(authKinds, a) {
				p.fault("@auth %q is not one of %s", a, strings.Join(authKinds, ", "))
			}
		}
	case "mimes":
		d.Mimes = list(value)
		for _, m := range d.Mimes {
			if strings.Count(m, "/") != 1 || strings.ContainsAny(m, " ;") {
				p.fault("@mimes %q is not a media type", m)
			}
		}
	case "nested":
		d.Nested = value
		if value != "json" && value != "rows" {
			p.fault("@nested %q is not one of json, rows", value)
		}
	case "timeout":
		t, err := time.ParseDuration(value)
		if err != nil || t <= 0 {
			p.fault("@timeout %q is not a time like 5s", value)
		}
		d.Timeout = t
	case "store":
		d.Store = value
		if value != "sqlite" && value != "postgres" {
			p.fault("@store %q is not one of sqlite, postgres", value)
		}
	case "unpublished":
		d.Unpublished = true
	case "origins":
		d.Origins = list(value)
	case "comment":
		d.Comment = value
	case "name":
		p.def.Name = value
	}
	return false
}

func (p *parser) number(key, value string, least, most int) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		p.fault("@%s %q is not a number from %d to %d", key, value, least, most)
	}
	return n
}

// module reads NAME [BASE].
func (p *parser) module(value string) {
	words := strings.Fields(value)
	p.sql.Module, p.sql.Base = words[0], words[0]+"/"
	switch {
	case len(words) > 2:
		p.fault("@module %q is not NAME [BASE]", value)
		return
	case len(words) == 2:
		p.sql.Base = words[1]
	}
	base := strings.Trim(p.sql.Base, "/")
	if base == "" {
		p.sql.Base = ""
		return
	}
	for s := range strings.SplitSeq(base, "/") {
		if !segmentForm.MatchString(s) {
			p.fault("@module: the base path %q has a segment %q that is no plain name", p.sql.Base, s)
		}
	}
	p.sql.Base = base + "/"
}

// method reads METHOD PATTERN.
func (p *parser) method(value string) {
	words := strings.Fields(value)
	p.def.Method = strings.ToUpper(words[0])
	if !slices.Contains(methods, p.def.Method) {
		p.fault("@method %q is not one of %s", words[0], strings.Join(methods, ", "))
	}
	if len(words) != 2 {
		p.fault("@method %q is not METHOD PATTERN, like GET departments/:id?", value)
		return
	}
	p.sql.Pattern = p.pattern(words[1])
}

// pattern checks a route pattern (protocol notes, section 3). The older {name} becomes :name.
func (p *parser) pattern(s string) string {
	s = strings.TrimPrefix(s, "/")
	if s == "." || s == "" {
		return "."
	}
	segments := strings.Split(s, "/")
	names := map[string]bool{}
	for i, seg := range segments {
		last := i == len(segments)-1 || i == len(segments)-2 && segments[i+1] == ""
		if seg == "" && i == len(segments)-1 {
			continue // of a collection
		}
		if name, ok := strings.CutPrefix(seg, "{"); ok && strings.HasSuffix(name, "}") {
			seg = ":" + strings.TrimSuffix(name, "}")
			segments[i] = seg
		}
		if !strings.HasPrefix(seg, ":") {
			if !segmentForm.MatchString(seg) {
				p.fault("@method: the segment %q of the pattern is neither a plain name nor :name", seg)
			}
			continue
		}
		name := strings.TrimRight(seg[1:], "?*")
		switch {
		case !bindSegment.MatchString(seg):
			p.fault("@method: the segment %q of the pattern is neither a plain name nor :name", seg)
		case strings.ContainsAny(seg, "?*") && !last:
			p.fault("@method: only the last segment of a pattern can be optional or the rest: %q", seg)
		case names[name]:
			p.fault("@method: the pattern has %q twice", name)
		case slices.Contains(Reserved, name):
			p.fault("@method: %q is reserved (%s) and cannot be a parameter", name, strings.Join(Reserved, ", "))
		case isImplicit(name):
			p.fault("@method: %q is an implicit parameter and cannot be one of the pattern", name)
		}
		names[name] = true
	}
	return strings.Join(segments, "/")
}

func isImplicit(name string) bool {
	_, ok := implicit[name]
	return ok
}

// etag reads HASH, NONE, or QUERY and the tag query.
func (p *parser) etag(value string) (continued bool) {
	kind, query := value, ""
	if i := strings.IndexAny(value, " \t"); i >= 0 {
		kind, query = value[:i], strings.TrimSpace(value[i:])
	}
	p.sql.ETag = strings.ToUpper(kind)
	switch p.sql.ETag {
	case catalog.ETagQuery:
		p.sql.TagLine = p.line
		p.tag = append(p.tag, query)
		return true
	case catalog.ETagHash, catalog.ETagNone:
		if query != "" {
			p.fault("@etag %s takes no query", p.sql.ETag)
		}
	default:
		p.fault("@etag %q is not one of HASH, QUERY, NONE", kind)
	}
	return false
}

// param reads NAME [as BIND] [URI|HEADER|RESPONSE] [TYPE] [IN|OUT|INOUT].
func (p *parser) param(words []string) {
	q := catalog.SQLParam{Name: words[0], Source: "URI", Type: "STRING"}
	rest := words[1:]
	if len(rest) >= 2 && strings.EqualFold(rest[0], "as") {
		q.Bind, rest = rest[1], rest[2:]
	}
	next := func(of ...string) string {
		if len(rest) > 0 {
			if w := strings.ToUpper(rest[0]); slices.Contains(of, w) {
				rest = rest[1:]
				return w
			}
		}
		return ""
	}
	if s := next("URI", "HEADER", "RESPONSE"); s != "" {
		q.Source = s
	}
	if t := next(paramKinds...); t != "" {
		q.Type = t
	}
	q.Access = next("IN", "OUT", "INOUT")
	if q.Access == "" {
		if q.Access = "IN"; q.Source == "RESPONSE" {
			q.Access = "OUT"
		}
	}
	if len(rest) > 0 {
		p.fault("@param %s: %q is not NAME [as BIND] [URI|HEADER|RESPONSE] [%s] [IN|OUT|INOUT]", q.Name, strings.Join(words, " "), strings.Join(paramKinds, "|"))
		return
	}
	if q.Bind == "" {
		q.Bind = strings.ReplaceAll(q.Name, "-", "_")
	}
	switch {
	case !nameForm.MatchString(q.Bind):
		p.fault("@param %s: %q is not a name of letters, digits and underscores; give the bind one by: %s as NAME", q.Name, q.Bind, q.Name)
	case slices.Contains(Reserved, q.Bind), q.Source == "URI" && slices.Contains(Reserved, q.Name):
		p.fault("@param %s: %s are reserved and cannot be parameters", q.Name, strings.Join(Reserved, ", "))
	case isImplicit(q.Bind) && q.Bind != bindStatus && q.Bind != bindForward:
		p.fault("@param %s: %q is an implicit parameter and cannot be declared", q.Name, q.Bind)
	case q.Source == "RESPONSE" && q.Access != "OUT":
		p.fault("@param %s: a RESPONSE parameter is OUT", q.Name)
	case q.Source == "URI" && q.Access != "IN":
		p.fault("@param %s: a URI parameter is IN", q.Name)
	case q.Type == "RESULTSET" && q.Source != "RESPONSE":
		p.fault("@param %s: a RESULTSET is a RESPONSE parameter", q.Name)
	}
	for _, o := range p.sql.Params {
		if o.Bind == q.Bind {
			p.fault("@param %s: the bind :%s has a parameter already", q.Name, q.Bind)
		} else if o.Name == q.Name && o.Source == q.Source {
			p.fault("@param %s is declared twice", q.Name)
		}
	}
	p.sql.Params = append(p.sql.Params, q)
}

// column reads NAME TYPE.
func (p *parser) column(words []string) {
	if len(words) != 2 {
		p.fault("@column %q is not NAME TYPE", strings.Join(words, " "))
		return
	}
	if _, ok := record.ParseType(words[1]); !ok {
		p.fault("@column %s: there is no type %q; types are those of fields: string, integer, decimal, datetime …", words[0], words[1])
	}
	for _, c := range p.sql.Columns {
		if c.Name == words[0] {
			p.fault("@column %s is declared twice", words[0])
		}
	}
	p.sql.Columns = append(p.sql.Columns, catalog.SQLColumn{Name: words[0], Type: words[1]})
}

// finish fills what was left out and finds what does not fit together.
func (p *parser) finish() {
	d := p.sql
	p.line = 1
	at := func(key string) int { return p.seen[key] }
	if _, ok := p.seen["method"]; !ok {
		p.fault("the comments at the top need an @method METHOD PATTERN, like -- @method GET departments/")
	}
	if _, ok := p.seen["schema"]; !ok && !strings.Contains(strings.TrimPrefix(p.file, "endpoints/"), "/") {
		p.fault("the file stands in no folder of endpoints/ that names its schema: give it an @schema")
	} else if !aliasForm.MatchString(d.Schema) {
		p.faultAt(at("schema"), "the schema %q is not a plain name", d.Schema)
	}
	if d.Source == "" {
		if d.Source = catalog.SourceBlock; p.def.Method == "GET" || p.def.Method == "" {
			d.Source = catalog.SourceCollection
		}
	}
	query := d.Source != catalog.SourceBlock
	if query && p.def.Method != "" && p.def.Method != "GET" {
		p.faultAt(at("source"), "@source %s answers GET; %s takes a block", d.Source, p.def.Method)
	}
	if d.ETag == "" {
		if d.ETag = catalog.ETagNone; p.def.Method == "GET" {
			d.ETag = catalog.ETagHash
		}
	}
	d.TagQuery = strings.Join(p.tag, "\n")
	switch {
	case d.ETag == catalog.ETagQuery && strings.TrimSpace(d.TagQuery) == "":
		p.faultAt(at("etag"), "@etag QUERY needs the query, on the same line or on indented ones that follow")
	case d.ETag == catalog.ETagHash && p.def.Method != "GET":
		p.faultAt(at("etag"), "@etag HASH is of answers to GET; %s has QUERY or NONE", p.def.Method)
	}
	if d.PageSize != nil && d.Source != catalog.SourceCollection && d.Source != catalog.SourceQuery && d.Source != catalog.SourceFeed && d.Source != catalog.SourceCSV {
		p.faultAt(at("page"), "@page: %s has no pages", d.Source)
	}
	if len(d.Mimes) > 0 && p.def.Method == "GET" {
		p.faultAt(at("mimes"), "@mimes is of bodies, which GET has none of")
	}
	if p.def.Public && (len(p.def.Roles) > 0 || len(d.Auth) > 0) {
		p.faultAt(at("public"), "an endpoint is @public or has @roles and @auth, not both")
	}
	for _, q := range d.Params {
		if query && q.Access != "IN" {
			p.faultAt(at("param"), "@param %s: only a block has OUT parameters", q.Name)
		}
	}
	for _, c := range d.Columns {
		if !query && !strings.Contains(c.Name, ".") {
			p.faultAt(at("column"), "@column %s: a column of a block is that of a RESULTSET, NAME.%s", c.Name, c.Name)
		}
	}
	if !query && d.Nested == "rows" {
		p.faultAt(at("nested"), "@nested rows is of queries")
	}
	if strings.TrimSpace(d.Text) == "" {
		p.faultAt(d.Line, "the file holds no SQL")
	}
	p.def.Path = path.Join("/ords", d.Schema, d.Base) + "/"
	if d.Pattern != "." {
		p.def.Path += d.Pattern
	}
}

// list is the parts between commas.
func list(value string) []string {
	var parts []string
	for s := range strings.SplitSeq(value, ",") {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	return parts
}
