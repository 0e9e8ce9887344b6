package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/record"
	"weir/internal/store"
)

// Explain is the server's plan for a SELECT with these values, as text and as JSON. With analyze it is run for each of them. Without
// args, for a statement that takes some, it is the plan for any values, which tells none.
func (s *Store) Explain(ctx context.Context, st *store.Statement, args []record.Value, analyze bool, o store.SQLOptions) (*store.Explained, error) {
	if err := store.CheckSelect(st.SQL); err != nil {
		return nil, rejected(err)
	}
	begun, err := s.BeginPlain(ctx, o)
	if err != nil {
		return nil, err
	}
	t := begun.(*tx)
	defer t.Rollback()
	t.pending[0] = begin + " READ ONLY"
	if args == nil && len(st.Params) > 0 {
		return t.explainAny(ctx, st)
	}
	options := ""
	if analyze {
		options = ", ANALYZE, BUFFERS"
	}
	run := func(format string) (string, error) {
		rows, _, err := t.runPlain(ctx, &store.Statement{SQL: "EXPLAIN (FORMAT " + format + options + ") " + st.SQL}, args)
		var pg *pgconn.PgError
		if err != nil && asPgError(err, &pg) && pg.Code == "25006" {
			return "", rejected(sqlError(st.SQL, pg)) // it would have written
		}
		if err != nil {
			return "", err
		}
		lines := make([]string, rows.Len())
		for i := range lines {
			lines[i] = rows.At(i)[0].Text()
		}
		return strings.Join(lines, "\n"), nil
	}
	e := &store.Explained{SQL: st.SQL}
	if e.Text, err = run("TEXT"); err != nil {
		return nil, err
	}
	plan, err := run("JSON")
	if err != nil {
		return nil, err
	}
	e.JSON = []byte(plan)
	return e, nil
}

// explaining is the statement whose plan for any values is asked for.
const explaining = "weir_explain"

// explainAny is the server's plan for any values.
func (t *tx) explainAny(ctx context.Context, st *store.Statement) (*store.Explained, error) {
	if err := t.flush(ctx); err != nil {
		return nil, t.conn.fault(ctx, err, st.SQL)
	}
	types := make([]string, len(st.Params))
	for i, p := range st.Params {
		if types[i] = p.Native; types[i] == "" {
			types[i] = "unknown"
		}
	}
	pg := t.session.pg
	prepare := "SET LOCAL plan_cache_mode = force_generic_plan; PREPARE " + explaining + " (" + strings.Join(types, ", ") + ") AS " + st.SQL
	if err := pg.Exec(ctx, prepare).Close(); err != nil {
		return nil, t.conn.fault(ctx, err, st.SQL)
	}
	defer func() { _ = pg.Exec(context.WithoutCancel(ctx), "ROLLBACK; DEALLOCATE "+explaining).Close() }() // a broken connection is dropped
	run := func(format string) (string, error) {
		results, err := pg.Exec(ctx, "EXPLAIN (FORMAT "+format+") EXECUTE "+explaining+"(NULL"+strings.Repeat(", NULL", len(types)-1)+")").ReadAll()
		if err != nil {
			return "", t.conn.fault(ctx, err, st.SQL)
		}
		var lines []string
		for _, row := range results[0].Rows {
			lines = append(lines, string(row[0]))
		}
		return strings.Join(lines, "\n"), nil
	}
	text, err := run("TEXT")
	if err != nil {
		return nil, err
	}
	plan, err := run("JSON")
	if err != nil {
		return nil, err
	}
	return &store.Explained{SQL: st.SQL, Text: text, JSON: []byte(plan)}, nil
}
