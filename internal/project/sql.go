package project

import (
	"context"
	"errors"
	"slices"

	"weir/internal/catalog"
	"weir/internal/endpoint"
	"weir/internal/record"
)

// compile has the database describe the SQL endpoints of snap, whose tables it has by now, and returns a snapshot that holds what came
// of it. Definitions that are applied already get a new version when that is something else than before: a column has another type, or
// weir compiles better.
func (a *application) compile(ctx context.Context, snap *catalog.Snapshot) (*catalog.Snapshot, error) {
	list := snap.SQLEndpoints()
	if len(list) == 0 {
		return snap, nil
	}
	defs := a.project.Definitions
	defs.Endpoints = slices.Clone(defs.Endpoints)
	var faults []error
	for i := range defs.Endpoints {
		e := &defs.Endpoints[i]
		if e.SQL == nil {
			continue
		}
		sql := *e.SQL
		e.SQL = &sql
		if err := endpoint.Compile(ctx, a.st, snap, e); err != nil {
			if e := (*record.Error)(nil); errors.As(err, &e) {
				return nil, err // the database does not answer
			}
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, record.Errorf(record.Invalid, "", "%s", errors.Join(faults...).Error())
	}
	was := a.defs
	var err error
	if a.defs, err = encode(defs); err != nil {
		return nil, err
	}
	version := snap.Version
	if !a.report.Changed {
		same, err := a.applied(ctx, a.defs)
		if err != nil {
			return nil, err
		}
		if !same {
			a.report.Changed = true
			version++
		}
	}
	if a.defs.checksum != was.checksum {
		return nil, errors.New("the sum of definitions depends on what the database makes of them")
	}
	return catalog.Build(version, sorted(defs))
}

// applied reports whether the endpoints of defs are those that the database holds.
func (a *application) applied(ctx context.Context, defs stored) (bool, error) {
	rows, err := readAll(ctx, a.st, catalog.System(), system("definition"), []string{"kind", "name", "body"}, false)
	if err != nil {
		return false, err
	}
	bodies := map[string]string{}
	for i := range rows.Len() {
		if row := rows.At(i); row[0].S == kindEndpoint {
			bodies[row[1].S] = row[2].S
		}
	}
	for _, d := range defs.rows {
		if d[0] == kindEndpoint && bodies[d[1]] != d[2] {
			return false, nil
		}
	}
	return true, nil
}
