package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// spelling is how PostgreSQL spells definitions. Text compares byte by byte, as on SQLite. Times are without zone and
// hold UTC, so that their parts do not depend on a session's zone and can be indexed.
var spelling = &store.Spelling{
	Types: map[record.Type]string{
		record.TypeString: text, record.TypeInteger: "bigint", record.TypeDecimal: "numeric", record.TypeFloat: "double precision",
		record.TypeBoolean: "boolean", record.TypeDateTime: "timestamp without time zone", record.TypeDate: "date",
		record.TypeDuration: "bigint", record.TypeReference: text, record.TypeList: text, record.TypeJournal: text,
		record.TypePassword: text, record.TypeJSON: text, record.TypeGUID: text, record.TypeBytes: "bytea",
	},
	Table:  tableName,
	Retype: retype,
}

const text = `text COLLATE "C"`

func tableName(schema, name string) string {
	if schema == "" {
		return store.Quote(name)
	}
	return store.Quote(schema) + "." + store.Quote(name)
}

func retype(r *store.Relation, c store.Column) []string {
	bare, _, _ := strings.Cut(c.Type, " COLLATE ")
	return []string{fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %[2]s::%s",
		tableName(r.Schema, r.Name), store.Quote(c.Name), c.Type, bare)}
}

// schemaLock is the key of the advisory lock that keeps two nodes from changing stored tables at once.
const schemaLock = 0x77656972 // "weir"

type schema struct{ s *Store }

// Schema inspects and changes stored tables.
func (s *Store) Schema() store.Schema { return schema{s} }

// Plan compares the tables that snap needs with what the database has.
func (sc schema) Plan(ctx context.Context, snap *catalog.Snapshot) (plan *store.Plan, err error) {
	err = sc.s.with(ctx, func(conn *pgx.Conn) error {
		plan, err = spelling.Plan(newInspector(ctx, conn), snap)
		return err
	})
	return plan, err
}

// Apply carries out changes in one transaction, one node at a time.
func (sc schema) Apply(ctx context.Context, changes []store.Change) error {
	return sc.s.with(ctx, func(conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			// Building an index may take longer than any request may.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1), set_config('statement_timeout', '0', true)", schemaLock); err != nil {
				return translate(ctx, err, nil)
			}
			for _, c := range changes {
				if len(c.SQL) == 0 {
					return record.Errorf(record.Invalid, c.Table, "%s: cannot be done by weir: %s", c.What, c.Reason)
				}
				for _, sql := range c.SQL {
					if _, err := tx.Exec(ctx, sql); err != nil {
						e := translate(ctx, fmt.Errorf("%s: %w", sql, err), nil)
						if e.Kind == record.Unavailable || e.Kind == record.Timeout || e.Kind == record.Canceled {
							return e
						}
						return record.Errorf(record.Invalid, c.Table, "%s: refused by the database", c.What).Because(e)
					}
				}
			}
			return nil
		})
	})
}

// Introspect describes the tables and views of a schema.
func (sc schema) Introspect(ctx context.Context, schema string) (defs []catalog.TableDef, err error) {
	if schema == catalog.SystemSchema {
		return nil, record.Errorf(record.Invalid, "schema", "%s holds weir's own tables", schema)
	}
	err = sc.s.with(ctx, func(conn *pgx.Conn) error {
		list, err := newInspector(ctx, conn).relations(schema, "")
		if err != nil {
			return err
		}
		defs = store.Describe(list, fieldType)
		return nil
	})
	return defs, err
}

// fieldTypes are the field types of base types.
var fieldTypes = map[string]record.Type{
	"text": record.TypeString, "character varying": record.TypeString, "character": record.TypeString, "name": record.TypeString,
	"citext": record.TypeString, "smallint": record.TypeInteger, "integer": record.TypeInteger, "bigint": record.TypeInteger,
	"numeric": record.TypeDecimal, "real": record.TypeFloat, "double precision": record.TypeFloat, "boolean": record.TypeBoolean,
	"timestamp without time zone": record.TypeDateTime, "timestamp with time zone": record.TypeDateTime, "date": record.TypeDate,
	"json": record.TypeJSON, "jsonb": record.TypeJSON, "uuid": record.TypeGUID, "bytea": record.TypeBytes,
}

// fieldType finds the field type of a column. Arrays are read as JSON; what is unknown is read as text.
func fieldType(c *store.Column) (record.Type, bool) {
	if c.Array {
		return record.TypeJSON, true
	}
	if len(c.Enum) > 0 {
		return record.TypeString, true
	}
	base, rest, _ := strings.Cut(c.Base, "(")
	if _, tail, ok := strings.Cut(rest, ")"); ok { // "timestamp(3) without time zone"
		base += tail
	}
	t, ok := fieldTypes[base]
	return t, ok
}

// inspector answers what planning asks, on one connection, for the time of one plan: it reads each schema once.
type inspector struct {
	ctx     context.Context
	conn    *pgx.Conn
	schemas map[string]map[string]*store.Relation
}

func newInspector(ctx context.Context, conn *pgx.Conn) *inspector {
	return &inspector{ctx, conn, map[string]map[string]*store.Relation{}}
}

// Holds reports whether a query returns a row.
func (in *inspector) Holds(query string) (bool, error) {
	var found bool
	if err := in.conn.QueryRow(in.ctx, "SELECT EXISTS ("+query+")").Scan(&found); err != nil {
		return false, translate(in.ctx, err, nil)
	}
	return found, nil
}

// Relation describes a stored table or view, nil if there is none.
func (in *inspector) Relation(schema, name string) (*store.Relation, error) {
	known := in.schemas[schema]
	if known == nil {
		list, err := in.relations(schema, "")
		if err != nil {
			return nil, err
		}
		known = make(map[string]*store.Relation, len(list))
		for _, r := range list {
			known[r.Name] = r
		}
		in.schemas[schema] = known
	}
	if r := known[name]; r != nil {
		return r, nil
	}
	list, err := in.relations(schema, name) // a part of a partitioned table or of an extension
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// relations reads one relation, or with name "" all of a schema that are not parts of a partitioned table or of an
// extension.
func (in *inspector) relations(schema, name string) ([]*store.Relation, error) {
	var list []*store.Relation
	byOID := map[uint32]*store.Relation{}
	oids := []uint32{}
	rows, _ := in.conn.Query(in.ctx, `
		SELECT c.oid, c.relname::text, c.relkind::text IN ('v', 'm'),
			(SELECT count(*) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('c', 'x'))::int
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = coalesce(nullif($1, ''), current_schema()) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
			AND CASE WHEN $2 = '' THEN NOT c.relispartition
				AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
				ELSE c.relname = $2 END
		ORDER BY c.relname::text COLLATE "C"`, schema, name)
	var oid uint32
	var relname string
	var view bool
	var checks int
	_, err := pgx.ForEachRow(rows, []any{&oid, &relname, &view, &checks}, func() error {
		r := &store.Relation{Schema: schema, Name: relname, View: view, Checks: checks}
		list, byOID[oid], oids = append(list, r), r, append(oids, oid)
		return nil
	})
	if err != nil {
		return nil, translate(in.ctx, err, nil)
	}
	if len(list) == 0 {
		return nil, nil
	}
	for _, read := range []func([]uint32, map[uint32]*store.Relation) error{in.columns, in.indexes, in.foreign} {
		if err := read(oids, byOID); err != nil {
			return nil, translate(in.ctx, err, nil)
		}
	}
	return list, nil
}

func (in *inspector) columns(oids []uint32, byOID map[uint32]*store.Relation) error {
	rows, _ := in.conn.Query(in.ctx, `
		WITH RECURSIVE base AS (
			SELECT oid AS type, oid AS under, typtype, -1 AS mod FROM pg_type WHERE typtype <> 'd'
			UNION ALL
			SELECT d.oid, b.under, b.typtype, CASE WHEN d.typtypmod >= 0 THEN d.typtypmod ELSE b.mod END
			FROM pg_type d JOIN base b ON b.type = d.typbasetype WHERE d.typtype = 'd'
		)
		SELECT a.attrelid, a.attname::text, format_type(a.atttypid, a.atttypmod),
			format_type(b.under, CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE b.mod END),
			a.attnotnull OR t.typnotnull,
			a.atthasdef OR t.typdefault IS NOT NULL,
			a.attgenerated <> '',
			a.attidentity <> '' OR coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false),
			u.typcategory = 'A' AND u.typelem <> 0,
			coalesce((SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = b.under), '{}'),
			CASE WHEN u.typname IN ('varchar', 'bpchar') THEN greatest(CASE WHEN a.atttypmod >= 0 THEN a.atttypmod ELSE b.mod END - 4, 0) ELSE 0 END
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN base b ON b.type = a.atttypid JOIN pg_type u ON u.oid = b.under
			LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		WHERE a.attrelid = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY a.attrelid, a.attnum`, oids)
	var oid uint32
	var c store.Column
	_, err := pgx.ForEachRow(rows, []any{&oid, &c.Name, &c.Type, &c.Base, &c.NotNull, &c.Default, &c.Generated, &c.Identity, &c.Array, &c.Enum, &c.Length}, func() error {
		r := byOID[oid]
		r.Columns = append(r.Columns, c)
		c = store.Column{}
		return nil
	})
	return err
}

func (in *inspector) indexes(oids []uint32, byOID map[uint32]*store.Relation) error {
	rows, _ := in.conn.Query(in.ctx, `
		SELECT i.indrelid, x.relname::text, i.indisprimary, i.indisunique,
			array(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k(num, at)
				JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num WHERE k.at <= i.indnkeyatts ORDER BY k.at)
		FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
		WHERE i.indrelid = ANY($1) AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
		ORDER BY i.indrelid, x.relname::text COLLATE "C"`, oids)
	var oid uint32
	var name string
	var primary, unique bool
	var columns []string
	_, err := pgx.ForEachRow(rows, []any{&oid, &name, &primary, &unique, &columns}, func() error {
		r, x := byOID[oid], store.Index{Name: name, Columns: columns}
		switch {
		case primary:
			r.Key = columns
		case unique:
			r.Uniques = append(r.Uniques, x)
		default:
			r.Indexes = append(r.Indexes, x)
		}
		columns = nil
		return nil
	})
	return err
}

func (in *inspector) foreign(oids []uint32, byOID map[uint32]*store.Relation) error {
	rows, _ := in.conn.Query(in.ctx, `
		SELECT k.conrelid, k.conname::text, a.attname::text, n.nspname::text, n.nspname = current_schema(), c.relname::text, b.attname::text
		FROM pg_constraint k
			JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
			JOIN pg_class c ON c.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1]
		WHERE k.conrelid = ANY($1) AND k.contype = 'f' AND cardinality(k.conkey) = 1 AND k.conparentid = 0
		ORDER BY k.conrelid, k.conname::text COLLATE "C"`, oids)
	var oid uint32
	var fk store.ForeignKey
	var current bool
	_, err := pgx.ForEachRow(rows, []any{&oid, &fk.Name, &fk.Column, &fk.Schema, &current, &fk.Table, &fk.Key}, func() error {
		r := byOID[oid]
		if current && r.Schema == "" {
			fk.Schema = ""
		}
		r.Foreign = append(r.Foreign, fk)
		return nil
	})
	return err
}
