package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/endpoint"
)

// File is one file of a project.
type File struct{ Name, Text string }

// Imported is what a script became.
type Imported struct {
	Files []File
	// Notes are what could not be carried over, or only with care: each begins with the line of the script.
	Notes []Note
}

// Note is something about a line of the script.
type Note struct {
	Line int
	Text string
}

// The order of parameters, for calls that do not name them (protocol notes, section 2).
var signatures = map[string][]string{
	"DEFINE_MODULE":    {"p_module_name", "p_base_path", "p_items_per_page", "p_status", "p_comments"},
	"DEFINE_TEMPLATE":  {"p_module_name", "p_pattern", "p_priority", "p_etag_type", "p_etag_query", "p_comments"},
	"DEFINE_HANDLER":   {"p_module_name", "p_pattern", "p_method", "p_source_type", "p_source", "p_items_per_page", "p_mimes_allowed", "p_comments"},
	"DEFINE_PARAMETER": {"p_module_name", "p_pattern", "p_method", "p_name", "p_bind_variable_name", "p_source_type", "p_param_type", "p_access_method", "p_comments"},
}

// constants are the package's names of source types.
var constants = map[string]string{
	"source_type_collection_feed": "json/collection", "source_type_collection_item": "json/item", "source_type_query": "json/query",
	"source_type_query_one_row": "json/query;type=single", "source_type_feed": "json/feed", "source_type_csv_query": "csv/query",
	"source_type_media": "resource/lob", "source_type_plsql": "plsql/block",
}

// value is one argument.
type value struct {
	text string
	null bool
	ref  string // a variable
	body int    // byte of the script where its text begins
}

// call is one call of the package.
type call struct {
	name string
	at   int
	args map[string]value
}

func (c *call) get(name string) string { return c.args[name].text }

type module struct {
	name, base, comment string
	page                string
	unpublished         bool
	origins             string
}

type template struct {
	priority, etag string
	query          value
}

type handler struct {
	call
	module, pattern, method string
}

type privilege struct {
	name                      string
	roles, patterns, moduleIn []string
}

// importer gathers the definitions of a script.
type importer struct {
	*script
	out        Imported
	schema     string
	modules    map[string]*module
	templates  map[string]*template
	handlers   []*handler
	params     map[string][]call
	privileges []privilege
	variables  map[string][]string
}

// ORDS imports a script of ORDS' definition calls. schema is the alias of the schema when the script enables none. The error is that of a
// script that cannot be read at all.
func ORDS(src, schema string) (*Imported, error) {
	s, err := read(src)
	if err != nil {
		return nil, err
	}
	m := &importer{
		script: s, schema: schema, modules: map[string]*module{}, templates: map[string]*template{}, params: map[string][]call{},
		variables: map[string][]string{},
	}
	m.statements()
	for _, h := range m.handlers {
		m.write(h)
	}
	slices.SortStableFunc(m.out.Notes, func(a, b Note) int { return a.Line - b.Line })
	return &m.out, nil
}

func (m *importer) note(at int, format string, args ...any) {
	m.out.Notes = append(m.out.Notes, Note{m.line(at), fmt.Sprintf(format, args...)})
}

// statements reads the statements of the script: calls, assignments of lists, and what only surrounds them.
func (m *importer) statements() {
	declaring := false
	for i := 0; i < len(m.tokens); {
		t := m.tokens[i]
		end := m.end(i)
		word := strings.ToUpper(t.value)
		switch {
		case t.kind == symbol: // ; and /
			end = i + 1
		case t.kind == name && word == "DECLARE":
			declaring, end = true, i+1
		case t.kind == name && word == "BEGIN":
			declaring, end = false, i+1
		case declaring:
		case t.kind == name && (word == "END" || word == "COMMIT" || word == "SET" || word == "PROMPT" || word == "EXIT" || word == "DEFINE" || word == "WHENEVER"):
		case t.kind == name && (word == "EXEC" || word == "EXECUTE"):
			end = i + 1
		case t.kind == name && strings.HasSuffix(word, ".DELETE"):
			delete(m.variables, strings.ToLower(strings.TrimSuffix(word, ".DELETE")))
		case t.kind == name && m.assigned(i, end):
		case t.kind == name && m.is(i+1, "(") && packaged(word):
			m.call(i)
		default:
			m.note(t.from, "not understood, left out: %s", m.excerpt(i, end))
		}
		i = end
	}
}

// end is the token behind the statement that begins at i.
func (m *importer) end(i int) int {
	depth := 0
	for ; i < len(m.tokens); i++ {
		switch {
		case m.is(i, "("):
			depth++
		case m.is(i, ")"):
			depth--
		case m.is(i, ";") && depth <= 0:
			return i + 1
		}
	}
	return i
}

func (s *script) is(i int, what string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].kind != text && strings.EqualFold(s.tokens[i].value, what)
}

func (m *importer) excerpt(i, end int) string {
	s := strings.Join(strings.Fields(m.text[m.tokens[i].from:m.tokens[end-1].to]), " ")
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// packaged reports whether a name is that of a procedure of the packages that define services.
func packaged(word string) bool {
	parts := strings.Split(word, ".")
	return len(parts) >= 2 && slices.ContainsFunc(parts[:len(parts)-1], func(p string) bool {
		return p == "ORDS" || p == "ORDS_ADMIN" || p == "ORDS_SERVICES" || p == "OAUTH" || p == "ORDS_SECURITY" || p == "OAUTH_ADMIN"
	})
}

// assigned reads list(n) := 'text'.
func (m *importer) assigned(i, end int) bool {
	if !m.is(i+1, "(") || !m.is(i+3, ")") || !m.is(i+4, ":=") || i+5 >= end || m.tokens[i+5].kind != text {
		return false
	}
	list := strings.ToLower(m.tokens[i].value)
	m.variables[list] = append(m.variables[list], m.tokens[i+5].value)
	return true
}

// call reads a call and takes it into the definitions.
func (m *importer) call(i int) {
	full := strings.ToUpper(m.tokens[i].value)
	c := call{name: full[strings.LastIndexByte(full, '.')+1:], at: m.tokens[i].from, args: map[string]value{}}
	order := signatures[c.name]
	for i += 2; i < len(m.tokens) && !m.is(i, ")"); {
		to := m.argument(i)
		key := ""
		if m.is(i+1, "=>") {
			key = strings.ToLower(m.tokens[i].value)
			i += 2
		} else if n := len(c.args); n < len(order) {
			key = order[n]
		}
		v, ok := m.value(i, to)
		switch {
		case key == "":
			m.note(m.tokens[i].from, "%s: an argument without a name is left out", c.name)
		case !ok:
			m.note(m.tokens[i].from, "%s: %s is an expression that only the database can read; it is left out", c.name, key)
		default:
			c.args[key] = v
		}
		if i = to; m.is(i, ",") {
			i++
		}
	}
	m.define(c)
}

// argument is the token behind the argument that begins at i.
func (m *importer) argument(i int) int {
	depth := 0
	for ; i < len(m.tokens); i++ {
		switch {
		case m.is(i, "("):
			depth++
		case m.is(i, ")") && depth == 0, m.is(i, ",") && depth == 0:
			return i
		case m.is(i, ")"):
			depth--
		}
	}
	return i
}

// value evaluates texts, numbers, constants, and what || joins of them.
func (m *importer) value(i, to int) (value, bool) {
	if i >= to {
		return value{}, false
	}
	out := value{body: m.tokens[i].from}
	if m.tokens[i].kind == text {
		out.body = m.tokens[i].body
	}
	for first := true; i < to; first = false {
		if !first {
			if !m.is(i, "||") {
				return out, false
			}
			i++
		}
		if i >= to {
			return out, false
		}
		t := m.tokens[i]
		switch {
		case t.kind == text, t.kind == number:
			out.text += t.value
		case m.is(i, "-") && i+1 < to && m.tokens[i+1].kind == number:
			out.text += "-" + m.tokens[i+1].value
			i++
		case m.is(i, "NULL"):
			out.null = true
		case m.is(i, "TRUE"), m.is(i, "FALSE"):
			out.text += strings.ToUpper(t.value)
		case m.is(i, "CHR") && m.is(i+1, "(") && m.is(i+3, ")"):
			n, _ := strconv.Atoi(m.tokens[i+2].value)
			out.text += string(rune(n))
			i += 3
		case t.kind == name:
			lower := strings.ToLower(t.value)
			if c, ok := constants[lower[strings.LastIndexByte(lower, '.')+1:]]; ok {
				out.text += c
				break
			}
			out.ref = lower
		default:
			return out, false
		}
		i++
	}
	return out, true
}

// define takes a call into the definitions.
func (m *importer) define(c call) {
	key := c.get("p_module_name")
	switch c.name {
	case "ENABLE_SCHEMA":
		if alias := c.get("p_url_mapping_pattern"); alias != "" {
			m.schema = strings.Trim(alias, "/")
		} else if s := c.get("p_schema"); s != "" {
			m.schema = strings.ToLower(s)
		}
		if c.get("p_enabled") == "FALSE" {
			m.note(c.at, "the schema is not enabled in the script; its endpoints are written all the same")
		}
	case "DEFINE_MODULE":
		m.module(c)
	case "SET_MODULE_ORIGINS_ALLOWED":
		if mod := m.modules[key]; mod != nil {
			mod.origins = c.get("p_origins_allowed")
		}
	case "DEFINE_TEMPLATE":
		m.templates[key+"\x00"+c.get("p_pattern")] = &template{priority: c.get("p_priority"), etag: c.get("p_etag_type"), query: c.args["p_etag_query"]}
	case "DEFINE_HANDLER":
		m.handler(c)
	case "DEFINE_PARAMETER":
		k := key + "\x00" + c.get("p_pattern") + "\x00" + strings.ToUpper(c.get("p_method"))
		m.params[k] = append(m.params[k], c)
	case "DEFINE_SERVICE", "CREATE_SERVICE":
		if key == "" {
			key = strings.Trim(c.get("p_base_path"), "/")
			c.args["p_module_name"] = value{text: key}
		}
		if c.get("p_pattern") == "" {
			c.args["p_pattern"] = value{text: "."}
		}
		m.module(c)
		m.templates[key+"\x00"+c.get("p_pattern")] = &template{etag: c.get("p_etag_type"), query: c.args["p_etag_query"]}
		m.handler(c)
	case "DEFINE_PRIVILEGE":
		m.privileges = append(m.privileges, privilege{
			name: c.get("p_privilege_name"), roles: m.list(c.args["p_roles"]), patterns: m.list(c.args["p_patterns"]), moduleIn: m.list(c.args["p_modules"]),
		})
	case "CREATE_PRIVILEGE":
		m.privileges = append(m.privileges, privilege{name: c.get("p_name"), roles: append(m.list(c.args["p_role_name"]), m.list(c.args["p_roles"])...)})
	case "CREATE_PRIVILEGE_MAPPING":
		for i := range m.privileges {
			if p := &m.privileges[i]; p.name == c.get("p_privilege_name") {
				p.patterns = append(p.patterns, append(m.list(c.args["p_pattern"]), m.list(c.args["p_patterns"])...)...)
			}
		}
	case "CREATE_ROLE":
		m.note(c.at, "role %q: give it to users of weir that are to have it", c.get("p_role_name"))
	case "ENABLE_OBJECT":
		m.note(c.at, "AutoREST of %s %q: a table of the project, or weir serve --expose, answers for it", strings.ToLower(c.get("p_object_type")), c.get("p_object"))
	case "DELETE_MODULE", "DROP_REST_FOR_SCHEMA":
		// What is there before does not matter to files.
	default:
		m.note(c.at, "the call %s is not carried over", c.name)
	}
}

func (m *importer) module(c call) {
	key := c.get("p_module_name")
	m.modules[key] = &module{
		name: key, base: strings.Trim(c.get("p_base_path"), "/"), page: c.get("p_items_per_page"), comment: c.get("p_comments"),
		unpublished: strings.EqualFold(c.get("p_status"), "NOT_PUBLISHED"),
	}
}

func (m *importer) handler(c call) {
	method := strings.ToUpper(c.get("p_method"))
	if method == "" {
		method = "GET"
	}
	m.handlers = append(m.handlers, &handler{call: c, module: c.get("p_module_name"), pattern: c.get("p_pattern"), method: method})
}

// list is the values of a list variable, or one text.
func (m *importer) list(v value) []string {
	if v.ref != "" {
		return slices.Clone(m.variables[v.ref])
	}
	if v.text == "" {
		return nil
	}
	return []string{v.text}
}

// access is the roles that a handler needs, and whether it is protected at all: what no privilege covers is open to everybody.
func (m *importer) access(h *handler, base string) (roles []string, protected bool) {
	path := "/" + strings.Trim(base+"/"+strings.TrimPrefix(h.pattern, "."), "/")
	for _, p := range m.privileges {
		covers := slices.Contains(p.moduleIn, h.module) || slices.ContainsFunc(p.patterns, func(pattern string) bool { return covers(pattern, path) })
		if !covers {
			continue
		}
		protected = true
		for _, r := range p.roles {
			if !slices.Contains(roles, r) {
				roles = append(roles, r)
			}
		}
	}
	return roles, protected
}

// covers reports whether a pattern of a privilege, /hr/* or /hr/:id, is that of a path.
func covers(pattern, path string) bool {
	quoted := regexp.QuoteMeta("/" + strings.Trim(pattern, "/"))
	quoted = strings.ReplaceAll(quoted, `/\*`, `(/.*)?`)
	quoted = strings.ReplaceAll(quoted, `\*`, `.*`)
	ok, err := regexp.MatchString("^"+quoted+"$", path)
	return err == nil && ok
}

// names of the sources as annotations have them.
func (m *importer) source(h *handler) string {
	s := h.get("p_source_type")
	switch s {
	case "":
		return "json/collection"
	case "json/collection;type=feed", "collection/feed":
		return "json/collection"
	case "plsql/block":
		return "block"
	}
	return s
}

// check is the faults of a file that was written.
func check(f File) []error {
	_, faults := endpoint.Parse(f.Name, f.Text)
	return faults
}
