package server

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/wire"
)

// EndpointsPath lists the endpoints of the project; below it is the plan of each: /weir/endpoints/NAME/plan?BIND=VALUE&analyze=1.
const EndpointsPath = "/weir/endpoints"

const planSuffix = "/plan"

// PlanAsked is what a page wants to have explained.
type PlanAsked struct {
	Endpoint      string
	Binds         map[string]string
	Tag, Analyze  bool
	Offset, Limit int64
}

// endpointRow is one endpoint as the list shows it.
type endpointRow struct {
	Name        string   `json:"name"`
	Method      string   `json:"method"`
	Path        string   `json:"path"`
	Kind        string   `json:"kind"` // sql, script
	Source      string   `json:"source,omitempty"`
	Binds       []string `json:"binds,omitempty"`
	ETag        string   `json:"etag,omitempty"`
	Public      bool     `json:"public,omitempty"`
	Roles       []string `json:"roles,omitempty"`
	Auth        []string `json:"auth,omitempty"`
	Unpublished bool     `json:"unpublished,omitempty"`
	File        string   `json:"file"`
	Plan        string   `json:"plan,omitempty"` // where to ask for it
}

// endpoints serves [EndpointsPath].
func (v *Visit) endpoints(_ context.Context, snap *catalog.Snapshot, a *wire.Answer) error {
	if v.Method != http.MethodGet && v.Method != http.MethodHead {
		return record.Errorf(record.NotAllowed, "", "%s takes GET", EndpointsPath)
	}
	rows := []endpointRow{}
	for _, list := range [][]*catalog.Endpoint{snap.SQLEndpoints(), snap.Endpoints()} {
		for _, e := range list {
			r := endpointRow{Name: e.Name, Method: e.Method, Path: e.Path, Kind: "script", Public: e.Public, Roles: e.Roles, File: e.File}
			if d := e.SQL; d != nil {
				r.Kind, r.Source, r.ETag, r.Auth, r.Unpublished = "sql", d.Source, d.ETag, d.Auth, d.Unpublished
				if d.Compiled != nil {
					for _, b := range d.Compiled.Binds {
						r.Binds = append(r.Binds, b.Name)
					}
				}
				if d.Source != catalog.SourceBlock && v.s.o.Plan != nil {
					r.Plan = EndpointsPath + "/" + (&url.URL{Path: e.Name}).EscapedPath() + planSuffix
				}
			}
			rows = append(rows, r)
		}
	}
	return answerJSON(map[string]any{"endpoints": rows}, a)
}

// plan serves the plan of an endpoint, as text or as the database's own JSON.
func (v *Visit) plan(ctx context.Context, snap *catalog.Snapshot, a *wire.Answer) error {
	if v.Method != http.MethodGet && v.Method != http.MethodHead {
		return record.Errorf(record.NotAllowed, "", "a plan takes GET")
	}
	if v.s.o.Plan == nil {
		return record.Errorf(record.NotFound, "", "this node has no database; weir explain asks one")
	}
	name := strings.TrimSuffix(strings.TrimPrefix(v.Path, EndpointsPath+"/"), planSuffix)
	asked, format, err := planAsked(name, v.r.URL.RawQuery)
	if err != nil {
		return err
	}
	if format == "" && strings.Contains(v.r.Header.Get("Accept"), "json") {
		format = "json"
	}
	plan, err := v.s.o.Plan(ctx, snap, asked)
	if err != nil {
		return err
	}
	if format == "json" {
		return answerJSON(PlanDocument(asked.Endpoint, plan), a)
	}
	a.Header.Set("Content-Type", "text/plain; charset=utf-8")
	a.Body = append(append(a.Body, strings.TrimRight(plan.Text, "\n")...), '\n')
	return nil
}

// PlanDocument is a plan as JSON.
func PlanDocument(endpoint string, plan *store.Explained) any {
	doc := struct {
		Endpoint string  `json:"endpoint"`
		SQL      string  `json:"sql"`
		Text     string  `json:"text"`
		Plan     rawJSON `json:"plan,omitempty"`
	}{endpoint, plan.SQL, plan.Text, plan.JSON}
	return doc
}

// rawJSON is JSON as it stands; nothing is null.
type rawJSON []byte

// MarshalJSON is the text itself.
func (j rawJSON) MarshalJSON() ([]byte, error) {
	if len(j) == 0 {
		return []byte("null"), nil
	}
	return j, nil
}

// planAsked reads the query of a plan's address. Binds stand there under their names; bind.NAME is for those that mean something else
// there.
func planAsked(name, query string) (asked PlanAsked, format string, err error) {
	asked = PlanAsked{Endpoint: name, Binds: map[string]string{}}
	values, err := url.ParseQuery(query)
	if err != nil {
		return asked, "", record.Errorf(record.Invalid, "", "the query cannot be read")
	}
	for key, list := range values {
		value := list[0]
		if len(list) > 1 {
			return asked, "", record.Errorf(record.Invalid, key, "stands there more than once")
		}
		number := func(to *int64) {
			n, bad := strconv.ParseInt(value, 10, 64)
			if bad != nil || n < 0 {
				err = record.Errorf(record.Invalid, key, "%.40q is not a whole number", value)
			}
			*to = n
		}
		flag := func(to *bool) {
			on, bad := strconv.ParseBool(value)
			if bad != nil && value != "" {
				err = record.Errorf(record.Invalid, key, "%.40q is neither 1 nor 0", value)
			}
			*to = on || value == ""
		}
		switch key {
		case "analyze":
			flag(&asked.Analyze)
		case "tag":
			flag(&asked.Tag)
		case "offset":
			number(&asked.Offset)
		case "limit":
			number(&asked.Limit)
		case "format":
			if format = strings.ToLower(value); format != "text" && format != "json" {
				err = record.Errorf(record.Invalid, key, "%.40q is neither text nor json", value)
			}
		default:
			asked.Binds[strings.TrimPrefix(key, "bind.")] = value
		}
		if err != nil {
			return asked, "", err
		}
	}
	return asked, format, nil
}
