package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"weir/internal/record"
	"weir/internal/store"
)

// step is one step of a plan, with those that are part of it.
type step struct {
	Detail string  `json:"detail"`
	Steps  []*step `json:"steps,omitempty"`
}

// plan is a plan as JSON. SQLite tells how it will go about a query, but not how long each step takes: with analyze the
// whole query is timed.
type plan struct {
	Steps  []*step  `json:"plan"`
	Rows   *int64   `json:"rows,omitempty"`
	Millis *float64 `json:"execution_time_ms,omitempty"`
}

// Explain is SQLite's plan for a SELECT. With analyze it is run, on a connection that cannot write.
func (s *Store) Explain(ctx context.Context, st *store.Statement, args []record.Value, analyze bool, o store.SQLOptions) (*store.Explained, error) {
	if err := store.CheckSelect(st.SQL); err != nil {
		return nil, rejected(err)
	}
	if args == nil {
		args = make([]record.Value, len(st.Params)) // a plan of SQLite's tells no values
	}
	rows, err := s.selectPlain(ctx, &store.Statement{SQL: "EXPLAIN QUERY PLAN " + st.SQL, Params: st.Params}, args, o)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var p plan
	known := map[int64]*step{}
	for row, ok := rows.Next(); ok; row, ok = rows.Next() { // id, parent, unused, detail; a parent comes before its parts
		x := &step{Detail: strings.Clone(row[3].Text())}
		known[row[0].N] = x
		if parent := known[row[1].N]; parent != nil {
			parent.Steps = append(parent.Steps, x)
		} else {
			p.Steps = append(p.Steps, x)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if analyze {
		began := time.Now()
		n, err := s.countRows(ctx, st, args, o)
		if err != nil {
			return nil, err
		}
		ms := float64(time.Since(began).Microseconds()) / 1000
		p.Rows, p.Millis = &n, &ms
	}
	return p.explained(st.SQL)
}

// countRows runs a query to its end.
func (s *Store) countRows(ctx context.Context, st *store.Statement, args []record.Value, o store.SQLOptions) (n int64, err error) {
	rows, err := s.Select(ctx, st, args, o)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for _, ok := rows.Next(); ok; _, ok = rows.Next() {
		n++
	}
	return n, rows.Err()
}

// explained writes the plan as text, as SQLite's own shell draws it, and as JSON.
func (p *plan) explained(sql string) (*store.Explained, error) {
	var b strings.Builder
	b.WriteString("QUERY PLAN\n")
	var draw func(steps []*step, indent string)
	draw = func(steps []*step, indent string) {
		for i, x := range steps {
			mark, next := "|--", "|  "
			if i == len(steps)-1 {
				mark, next = "`--", "   "
			}
			b.WriteString(indent + mark + x.Detail + "\n")
			draw(x.Steps, indent+next)
		}
	}
	draw(p.Steps, "")
	if p.Rows != nil {
		fmt.Fprintf(&b, "Rows: %d\nExecution Time: %.3f ms\n", *p.Rows, *p.Millis)
	}
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return &store.Explained{Text: strings.TrimSuffix(b.String(), "\n"), JSON: data, SQL: sql}, nil
}
