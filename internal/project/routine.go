package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/autorest"
	"weir/internal/endpoint"
	"weir/internal/record"
	"weir/internal/store"
)

// withRoutines is p with an endpoint for each routine that its services for ORDS name. The database says what they take and give. On a
// database that has no routines there is none.
func withRoutines(ctx context.Context, st store.Store, p *Project) (*Project, error) {
	known := map[string][]store.Routine{} // by schema
	var faults []error
	whole := *p
	for i := range p.Definitions.Services {
		svc := &p.Definitions.Services[i]
		if svc.Protocol != autorest.Protocol || st.Name() != "postgres" {
			continue
		}
		for _, f := range svc.Functions {
			fault := func(err error) {
				at := fmt.Sprintf("service %s: function %s", svc.Name, f.Name)
				if p.folder != nil {
					at = p.placeIn("services/"+svc.Name+".yaml", "functions", f.Name) + ": " + at
				}
				faults = append(faults, fmt.Errorf("%s: %w", at, err))
			}
			name := f.Routine
			if name == "" {
				name = f.Name
			}
			schema, name, ok := strings.Cut(name, ".")
			if !ok {
				schema, name = "", schema
			}
			if _, ok := known[schema]; !ok {
				list, err := st.Schema().Routines(ctx, schema)
				if err != nil && record.KindOf(err) != record.Invalid {
					return nil, err
				}
				known[schema] = list
			}
			found := slices.DeleteFunc(slices.Clone(known[schema]), func(r store.Routine) bool { return r.Name != name })
			switch len(found) {
			case 0:
				fault(fmt.Errorf("the database has no function or procedure %q", strings.TrimPrefix(schema+"."+name, ".")))
				continue
			case 1:
			default:
				fault(fmt.Errorf("the database has %d functions %s, which take other arguments; one alone can be called", len(found), name))
				continue
			}
			def, err := endpoint.Routine(&found[0], svc.Name, f.Name, svc.Roles)
			if err != nil {
				fault(err)
				continue
			}
			whole.Definitions.Endpoints = append(slices.Clip(whole.Definitions.Endpoints), def)
		}
	}
	if len(faults) > 0 {
		return nil, record.Errorf(record.Invalid, "", "%s", errors.Join(faults...).Error())
	}
	return &whole, nil
}
