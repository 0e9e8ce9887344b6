package importer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// aside is the folder for what the database would refuse. A project does not read it.
const aside = "unported/"

// write makes the file of a handler.
func (m *importer) write(h *handler) {
	mod := m.modules[h.module]
	if mod == nil {
		m.note(h.at, "handler %s %s: its module %q is not defined in the script", h.method, h.pattern, h.module)
		mod = &module{name: h.module, base: h.module}
	}
	source := m.source(h)
	if source == "mle/javascript" {
		m.note(h.at, "handler %s %s/%s is JavaScript: write it as a script of the project", h.method, mod.base, h.pattern)
		return
	}
	var b strings.Builder
	say := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "-- @%s", key)
		if format != "" {
			fmt.Fprintf(&b, " "+format, args...)
		}
		b.WriteByte('\n')
	}
	if mod.name != "" {
		say("module", "%s %s", strings.Join(strings.Fields(mod.name), "_"), cmp.Or(mod.base, "/"))
	}
	say("method", "%s %s", h.method, cmp.Or(strings.TrimPrefix(h.pattern, "/"), "."))
	if plain := source == "json/collection" && h.method == "GET" || source == "block" && h.method != "GET"; !plain {
		say("source", "%s", source)
	}
	if page := cmp.Or(h.get("p_items_per_page"), mod.page); page != "" && page != "25" && slices.Contains([]string{"json/collection", "json/query", "json/feed", "csv/query"}, source) {
		say("page", "%s", page)
	}
	ported := m.template(h, say)
	for _, p := range m.params[h.module+"\x00"+h.pattern+"\x00"+h.method] {
		m.param(p, say)
	}
	if roles, protected := m.access(h, mod.base); !protected {
		say("public", "")
	} else if len(roles) > 0 {
		say("roles", "%s", strings.Join(roles, ", "))
	}
	if mimes := h.get("p_mimes_allowed"); mimes != "" && h.method != "GET" {
		say("mimes", "%s", mimes)
	}
	if mod.origins != "" {
		say("origins", "%s", mod.origins)
	}
	if mod.unpublished {
		say("unpublished", "")
	}
	if c := strings.Join(strings.Fields(cmp.Or(h.get("p_comments"), mod.comment)), " "); c != "" {
		say("comment", "%s", c)
	}
	sql, ok := m.port(h.args["p_source"], source == "block")
	f := File{Name: m.fileName(h, mod, ported && ok), Text: b.String() + strings.TrimRight(sql, " \t\r\n;") + "\n"}
	for _, fault := range check(f) {
		m.note(h.at, "%s", fault)
	}
	m.out.Files = append(m.out.Files, f)
}

// template writes what the template says.
func (m *importer) template(h *handler, say func(key, format string, args ...any)) bool {
	t := m.templates[h.module+"\x00"+h.pattern]
	if t == nil {
		return true
	}
	if t.priority != "" && t.priority != "0" {
		say("priority", "%s", t.priority)
	}
	switch strings.ToUpper(t.etag) {
	case "NONE":
		if h.method == "GET" {
			say("etag", "NONE")
		}
	case "QUERY":
		sql, ok := m.port(t.query, false)
		lines := strings.Split(strings.Trim(sql, " \t\r\n;"), "\n")
		for i := range lines[1:] {
			lines[i+1] = "--   " + strings.TrimSpace(lines[i+1])
		}
		say("etag", "QUERY %s", strings.Join(lines, "\n"))
		return ok
	}
	return true
}

func (m *importer) param(p call, say func(key, format string, args ...any)) {
	words := []string{p.get("p_name")}
	if bind := p.get("p_bind_variable_name"); bind != "" && bind != p.get("p_name") {
		words = append(words, "as", bind)
	}
	words = append(words, cmp.Or(strings.ToUpper(p.get("p_source_type")), "HEADER"), cmp.Or(strings.ToUpper(p.get("p_param_type")), "STRING"),
		cmp.Or(strings.ToUpper(p.get("p_access_method")), "IN"))
	say("param", "%s", strings.Join(words, " "))
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileName is a name that no other file has: endpoints/SCHEMA/MODULE/PATTERN_METHOD.sql.
func (m *importer) fileName(h *handler, mod *module, ported bool) string {
	pattern := strings.Trim(unnamed.ReplaceAllString(strings.Trim(h.pattern, "/"), "-"), "-.")
	module := strings.Trim(unnamed.ReplaceAllString(mod.name, "-"), "-.")
	at := "endpoints/"
	if !ported {
		at = aside + at
	}
	at += m.schema + "/"
	if module != "" && module != m.schema {
		at += module + "/"
	}
	base := at + cmp.Or(pattern, "root") + "_" + strings.ToLower(h.method)
	name := base + ".sql"
	for n := 2; slices.ContainsFunc(m.out.Files, func(f File) bool { return f.Name == name }); n++ {
		name = fmt.Sprintf("%s_%d.sql", base, n)
	}
	return name
}
