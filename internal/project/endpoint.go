package project

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/endpoint"
)

var endpointMethods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// readEndpoint reads an endpoint: a SQL endpoint, or a scripted one. The comment at the top of a script says where it is found:
//
//	// @path   /api/snc/orders/{id}   required
//	// @method GET                    GET, POST, PUT, PATCH or DELETE; defaults to GET
//	// @name   Read an order          defaults to the path of the file
//	// @roles  itil, admin            who may call it: any of these; defaults to anybody authenticated
//	// @public                        no authentication is needed
func (p *Project) readEndpoint(file string) []error {
	text, err := fs.ReadFile(p.folder, file)
	if err != nil {
		return []error{err}
	}
	parse := parseEndpoint
	if path.Ext(file) == ".sql" {
		parse = endpoint.Parse
	}
	def, faults := parse(file, string(text))
	if len(faults) == 0 {
		p.Definitions.Endpoints = append(p.Definitions.Endpoints, def)
	}
	return faults
}

func parseEndpoint(file, text string) (catalog.EndpointDef, []error) {
	def := catalog.EndpointDef{
		Name: strings.TrimSuffix(strings.TrimPrefix(file, "endpoints/"), ".js"), Method: "GET", File: file, Script: text,
	}
	var faults []error
	seen := map[string]bool{}
	line := 0
	for s := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line++
		s = strings.TrimSpace(s)
		comment, ok := strings.CutPrefix(s, "//")
		if s != "" && !ok {
			break
		}
		annotation, ok := strings.CutPrefix(strings.TrimSpace(comment), "@")
		if !ok {
			continue
		}
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...)))
		}
		key, value := annotation, ""
		if i := strings.IndexAny(annotation, " \t"); i >= 0 {
			key, value = annotation[:i], strings.TrimSpace(annotation[i:])
		}
		if seen[key] {
			fault("@%s is given twice", key)
		}
		seen[key] = true
		if value == "" && key != "public" && slices.Contains([]string{"path", "method", "name", "roles"}, key) {
			fault("@%s needs a value", key)
			continue
		}
		switch key {
		case "path":
			def.Path = value
			if !strings.HasPrefix(value, "/") || strings.ContainsAny(value, " \t?#") {
				fault("@path %q is not a path that begins with /", value)
			}
		case "method":
			def.Method = strings.ToUpper(value)
			if !slices.Contains(endpointMethods, def.Method) {
				fault("@method %q is not one of %s", value, strings.Join(endpointMethods, ", "))
			}
		case "name":
			def.Name = value
		case "roles":
			for r := range strings.SplitSeq(value, ",") {
				if r = strings.TrimSpace(r); r != "" {
					def.Roles = append(def.Roles, r)
				}
			}
		case "public":
			def.Public = true
			if value != "" {
				fault("@public takes no value")
			}
		default:
			fault("unknown annotation @%s; there are @path, @method, @name, @roles and @public", key)
		}
	}
	if def.Public && len(def.Roles) > 0 {
		faults = append(faults, fmt.Errorf("%s:1: an endpoint is @public or has @roles, not both", file))
	}
	if !seen["path"] {
		faults = append(faults, fmt.Errorf("%s:1: the comment at the top needs an @path", file))
	}
	return def, faults
}
