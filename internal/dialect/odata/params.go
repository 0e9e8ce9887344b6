package odata

// params are the name=value pairs of a query string, decoded, in the order given.
type params []param

type param struct{ name, value string }

// get is the value of the last parameter of that name, and whether it is there. Names are compared as they stand.
func (p params) get(name string) (string, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].name == name {
			return p[i].value, true
		}
	}
	return "", false
}

// parseParams reads a query string. The error names the parameter that has a bad escape.
func parseParams(raw string) (params, error) { return nil, nil }

// parsePath reads what follows the service root. Errors are NoPath for segments that name nothing and Invalid for malformed keys,
// with the segment.
func (q *request) parsePath() (*target, error) { return nil, noPath(q.rest) }

// parseQuery reads the system query options for entities of the set that the path ends in.
func (q *request) parseQuery(t *target) (*query, error) { return &query{top: -1, all: true}, nil }
