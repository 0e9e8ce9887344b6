package endpoint

import (
	"fmt"
	"strings"

	"weir/internal/catalog"
)

// Collisions are the faults of SQL endpoints that do not fit together: one that no request can reach, since another one has its method
// and pattern with the same priority, and modules of one name with different base paths. Each begins with file:1.
func Collisions(defs []catalog.EndpointDef) []error {
	var faults []error
	routes, modules := map[string]string{}, map[string]*catalog.EndpointDef{}
	for i := range defs {
		e := &defs[i]
		if e.SQL == nil {
			continue
		}
		for _, store := range []string{"sqlite", "postgres"} {
			if e.SQL.Store != "" && e.SQL.Store != store {
				continue
			}
			route := fmt.Sprintf("%s %s %s/%s%s %d", store, e.Method, e.SQL.Schema, e.SQL.Base, shape(e.SQL.Pattern), e.SQL.Priority)
			if other, ok := routes[route]; ok {
				faults = append(faults, fmt.Errorf("%s:1: %s %s is the route of %s already, with the same priority", e.File, e.Method, e.Path, other))
				break
			}
			routes[route] = e.File
		}
		if e.SQL.Module == "" {
			continue
		}
		module := e.SQL.Schema + " " + e.SQL.Module
		if other := modules[module]; other == nil {
			modules[module] = e
		} else if other.SQL.Base != e.SQL.Base {
			faults = append(faults, fmt.Errorf("%s:1: the module %s has the base path %q here, and %q in %s", e.File, e.SQL.Module, e.SQL.Base, other.SQL.Base, other.File))
		}
	}
	return faults
}

// shape is a pattern without the names of its parameters.
func shape(pattern string) string {
	segments := strings.Split(strings.TrimSuffix(pattern, "/"), "/")
	for i, s := range segments {
		switch {
		case !strings.HasPrefix(s, ":"):
		case strings.HasSuffix(s, "?"), strings.HasSuffix(s, "*"):
			segments[i] = ":" + s[len(s)-1:]
		default:
			segments[i] = ":"
		}
	}
	return strings.Join(segments, "/")
}
