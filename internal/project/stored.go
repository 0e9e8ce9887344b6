package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// The kinds of rows in the system table "definition".
const (
	kindTable    = "table"
	kindEndpoint = "endpoint"
	kindService  = "service"
)

// format is part of the checksum of definitions. It moves when the same definitions need other stored tables than before,
// so that an apply by a newer weir looks at them again.
const format = "1"

// stored is definitions as rows of the system table "definition": kind, name, body. They are JSON, which is read some
// ten times faster than YAML; empty keys are left out.
type stored struct {
	rows     [][3]string
	checksum string // of the sources: what a database made of SQL endpoints is no part of it
}

// form is how definitions are JSON: times are nanoseconds.
var form = json.JoinOptions(json.OmitZeroStructFields(true), json.Deterministic(true), jsonv1.FormatDurationAsNano(true))

func encode(d catalog.Definitions) (stored, error) {
	var s stored
	sum := sha256.New()
	fmt.Fprintln(sum, format)
	add := func(kind, name string, def any) error {
		body, err := json.Marshal(def, form)
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind, name, err)
		}
		s.rows = append(s.rows, [3]string{kind, name, string(body)})
		if e, ok := def.(*catalog.EndpointDef); ok && e.SQL != nil && e.SQL.Compiled != nil {
			source, sql := *e, *e.SQL
			source.SQL, sql.Compiled = &sql, nil
			if body, err = json.Marshal(&source, form); err != nil {
				return fmt.Errorf("%s %s: %w", kind, name, err)
			}
		}
		fmt.Fprintf(sum, "%s %q %d\n", kind, name, len(body))
		sum.Write(body)
		return nil
	}
	d = sorted(d)
	for i := range d.Tables {
		if err := add(kindTable, d.Tables[i].Name, &d.Tables[i]); err != nil {
			return s, err
		}
	}
	for i := range d.Endpoints {
		if err := add(kindEndpoint, d.Endpoints[i].Name, &d.Endpoints[i]); err != nil {
			return s, err
		}
	}
	for i := range d.Services {
		if err := add(kindService, d.Services[i].Name, &d.Services[i]); err != nil {
			return s, err
		}
	}
	s.checksum = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// decode adds one row to d.
func decode(d *catalog.Definitions, kind, name, body string) error {
	switch kind {
	case kindTable:
		var t catalog.TableDef
		if err := json.Unmarshal([]byte(body), &t); err != nil {
			return fmt.Errorf("definition of table %s: %w", name, err)
		}
		for i := range t.Fields {
			t.Fields[i].Default, _ = plain(t.Fields[i].Default)
		}
		for _, rows := range t.Matrices {
			for _, row := range rows {
				for i := range row {
					row[i], _ = plain(row[i])
				}
			}
		}
		d.Tables = append(d.Tables, t)
	case kindEndpoint:
		var e catalog.EndpointDef
		if err := json.Unmarshal([]byte(body), &e, form); err != nil {
			return fmt.Errorf("definition of endpoint %s: %w", name, err)
		}
		d.Endpoints = append(d.Endpoints, e)
	case kindService:
		var svc catalog.ServiceDef
		if err := json.Unmarshal([]byte(body), &svc); err != nil {
			return fmt.Errorf("definition of service %s: %w", name, err)
		}
		d.Services = append(d.Services, svc)
	default:
		return fmt.Errorf("definition %s: kind %q is unknown to this version of weir", name, kind)
	}
	return nil
}

// system is one of weir's own tables.
func system(name string) *catalog.Table {
	t, err := catalog.System().Table(name)
	if err != nil {
		panic("project: system table " + name + ": " + err.Error())
	}
	return t
}

// querier is a store or a transaction.
type querier interface {
	Query(ctx context.Context, q *store.Read) (*store.Result, error)
}

// readAll reads the records of t into memory, all of them or those with keys.
func readAll(ctx context.Context, from querier, snap *catalog.Snapshot, t *catalog.Table, fields []string, lock bool, keys ...[]record.Value) (*record.Rows, error) {
	res, err := from.Query(ctx, &store.Read{Snapshot: snap, Table: t, Fields: fields, Keys: keys, Lock: lock})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Name, err)
	}
	if err := res.Materialise(0); err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Name, err)
	}
	return res.Rows, nil
}

// state is the one row of the system table "project": what is applied. Version 0 is nothing.
type state struct {
	version  uint64
	checksum string
	applied  int64 // microseconds since 1970
}

var theProject = []record.Value{record.IntValue(1)}

func readState(ctx context.Context, from querier, lock bool) (state, error) {
	rows, err := readAll(ctx, from, catalog.System(), system("project"), []string{"version", "checksum", "applied"}, lock, theProject)
	if err != nil || rows.Len() == 0 {
		return state{}, err
	}
	row := rows.At(0)
	return state{version: uint64(row[0].N), checksum: row[1].S, applied: row[2].N}, nil
}

// Version is the version of the definitions that are applied, 0 if none are. It is one read of one row.
func Version(ctx context.Context, st store.Store) (uint64, error) {
	s, err := readState(ctx, st, false)
	return s.version, err
}

// Load compiles the definitions that are applied, in one read and, where there are services, a second one of when they were
// applied. When none are, the error is NotFound.
func Load(ctx context.Context, st store.Store) (*catalog.Snapshot, error) {
	res, err := st.Query(ctx, &store.Read{
		Snapshot: catalog.System(), Table: system("definition"), Fields: []string{"kind", "name", "body", "version"},
	})
	if err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	defer res.Close()
	var (
		defs    catalog.Definitions
		version uint64
	)
	for row, ok := res.Next(); ok; row, ok = res.Next() {
		if err := decode(&defs, row[0].S, row[1].S, row[2].S); err != nil {
			return nil, err
		}
		version = uint64(row[3].N) // every row bears it, so one read is one state
	}
	if err := res.Err(); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	if version == 0 {
		// A project may be empty.
		if version, err = Version(ctx, st); err != nil {
			return nil, err
		}
		if version == 0 {
			return nil, record.Errorf(record.NotFound, "", "no project has been applied to this database; see weir apply")
		}
	}
	snap, err := catalog.Build(version, sorted(defs))
	if err != nil || len(defs.Services) == 0 {
		return snap, err
	}
	now, err := readState(ctx, st, false)
	if err != nil {
		return nil, err
	}
	if now.version == version {
		snap.Applied = now.when()
	}
	return snap, nil
}

func (s state) when() time.Time { return time.UnixMicro(s.applied).UTC() }

// Uncached is how requests get their snapshot when cache.metadata is off: each loads its own. It is there to be measured
// against a [catalog.Catalog].
func Uncached(st store.Store) func(context.Context) (*catalog.Snapshot, error) {
	return func(ctx context.Context) (*catalog.Snapshot, error) { return Load(ctx, st) }
}
