package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// conflicts finds out which unique value each of the rows at missing met, by one query for all of them, and notes it in
// errs. A unique constraint that the definitions do not know stays unnamed, and so does a trigger that leaves records out.
func (t *tx) conflicts(ctx context.Context, set *store.InsertSet, missing []int, errs []*record.Error) error {
	uniques := slices.DeleteFunc(uniquesOf(set.Table), func(u []string) bool {
		return slices.ContainsFunc(u, func(name string) bool { return !slices.Contains(set.Fields, name) })
	})
	met := make([]int64, len(missing))
	if len(uniques) > 0 {
		err := t.run(ctx, set.Table, finder(set, uniques, missing), func(row []record.Value) error {
			met[row[0].N-1] = row[1].N
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, at := range missing {
		if met[i] == 0 && set.Table.External {
			errs[at] = record.Errorf(record.Conflict, "", "the database took no record: one with an equal unique value exists already, or a trigger left it out")
			continue
		}
		if met[i] == 0 {
			errs[at] = record.Errorf(record.Conflict, "", "a record with an equal unique value exists already")
			continue
		}
		u := uniques[met[i]-1]
		values := make([]string, len(u))
		for j, name := range u {
			values[j] = set.Rows[at][slices.Index(set.Fields, name)].Text()
		}
		errs[at] = record.Errorf(record.Conflict, strings.Join(u, ", "), "%.200s exists already", strings.Join(values, ", "))
	}
	return nil
}

// finder is the query: for each row its number and the first of the uniques that an existing record meets, from 1.
func finder(set *store.InsertSet, uniques [][]string, missing []int) step {
	st := &store.Statement{Out: []store.Output{{Type: record.TypeInteger}, {Type: record.TypeInteger}}}
	var (
		s               = step{st: st}
		params, columns []string
		cases           strings.Builder
		numbered        = map[string]int{}
		column          = func(f *catalog.Field) string {
			n, ok := numbered[f.Name]
			if !ok {
				n = len(numbered) + 1
				numbered[f.Name] = n
				typ := f.Native
				if typ == "" {
					typ, _, _ = strings.Cut(spelling.Types[f.Type], " COLLATE ")
				}
				params = append(params, fmt.Sprintf("$%d::%s[]", n, typ))
				columns = append(columns, fmt.Sprintf("c%d", n))
				st.Params = append(st.Params, store.Param{Type: f.Type, Native: f.Native, Array: true})
				at := slices.Index(set.Fields, f.Name)
				list := make([]record.Value, len(missing))
				for i, row := range missing {
					list[i] = set.Rows[row][at]
				}
				s.args = append(s.args, store.Arg{List: list})
			}
			return fmt.Sprintf("f.c%d", n)
		}
	)
	for i, u := range uniques {
		fmt.Fprintf(&cases, " WHEN EXISTS (SELECT 1 FROM %s x WHERE ", tableName(set.Table.Schema, set.Table.Stored))
		for j, name := range u {
			if j > 0 {
				cases.WriteString(" AND ")
			}
			f := set.Table.Field(name)
			fmt.Fprintf(&cases, "x.%s = %s", store.Quote(f.Column), column(f))
		}
		fmt.Fprintf(&cases, ") THEN %d", i+1)
	}
	st.SQL = fmt.Sprintf("SELECT f.ord::bigint, (CASE%s ELSE 0 END)::bigint FROM unnest(%s) WITH ORDINALITY AS f (%s, ord)",
		cases.String(), strings.Join(params, ", "), strings.Join(columns, ", "))
	return s
}
