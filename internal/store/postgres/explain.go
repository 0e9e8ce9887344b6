package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/record"
	"weir/internal/store"
)

// Explain is the server's plan for a SELECT with these values, as text and as JSON. With analyze it is run for each of them.
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
