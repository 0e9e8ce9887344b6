package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Routines describes the functions and procedures of a schema that callers can give arguments by name: no aggregates, no triggers, none
// of an extension.
func (sc schema) Routines(ctx context.Context, schema string) (list []store.Routine, err error) {
	if schema == catalog.SystemSchema {
		return nil, record.Errorf(record.Invalid, "schema", "%s holds weir's own tables", schema)
	}
	err = sc.s.with(ctx, func(conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, `
			SELECT n.nspname::text, p.proname::text, p.prokind = 'p', format_type(p.prorettype, NULL), p.prorettype = 'void'::regtype,
				p.proretset OR (t.typtype IN ('c') OR p.prorettype = 'record'::regtype) AND coalesce(NOT 'o' = ANY (p.proargmodes::text[]) AND NOT 'b' = ANY (p.proargmodes::text[]), true),
				p.prorettype = 'refcursor'::regtype OR 'refcursor'::regtype::oid = ANY (coalesce(p.proallargtypes, p.proargtypes::oid[])),
				coalesce(p.proargnames, '{}'),
				coalesce(p.proargmodes::text[], array_fill('i'::text, ARRAY[p.pronargs::int])),
				ARRAY(SELECT format_type(a.t, NULL) FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY a(t, n) ORDER BY a.n),
				ARRAY(SELECT coalesce(pg_get_function_arg_default(p.oid, i), '') FROM generate_series(1, cardinality(coalesce(p.proallargtypes, p.proargtypes::oid[]))) i ORDER BY i)
			FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_type t ON t.oid = p.prorettype
			WHERE n.nspname = coalesce(nullif($1, ''), current_schema()) AND p.prokind IN ('f', 'p')
				AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
				AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
			ORDER BY p.proname::text COLLATE "C", p.oid`, schema)
		var r store.Routine
		var names, modes, types, defaults []string
		_, err := pgx.ForEachRow(rows, []any{&r.Schema, &r.Name, &r.Procedure, &r.Returns, &r.Nothing, &r.Rows, &r.Cursor, &names, &modes, &types, &defaults}, func() error {
			one := r
			for i, native := range types {
				a := store.RoutineArg{Native: native, In: modes[i] != "o" && modes[i] != "t", Out: modes[i] == "o" || modes[i] == "b", Default: defaults[i]}
				if i < len(names) {
					a.Name = names[i]
				}
				if modes[i] != "t" { // columns of a TABLE are its rows
					one.Args = append(one.Args, a)
				}
			}
			if one.Procedure {
				one.Returns, one.Rows = "", false
			}
			list = append(list, one)
			return nil
		})
		if err != nil {
			return translate(ctx, err, nil)
		}
		return nil
	})
	return list, err
}
