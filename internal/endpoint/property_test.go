package endpoint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/record"
	"weir/internal/store"
)

// TestNested_AllFormsAnswerTheSame compares, over random data: columns answered flat, in a CURSOR as one statement, and in a CURSOR by
// rows. All have the same JSON values, on both databases.
func TestNested_AllFormsAnswerTheSame(t *testing.T) {
	const columns = "e.id, e.name, e.salary, e.rate, e.active, e.hired, e.born, e.photo, e.info, e.name AS \"{}raw\", e.salary + 0 AS more, e.dept_id + 0.5 AS half, e.id AS \"Id\""
	onEach(t, func(t *testing.T, w *world) {
		nested := "\nSELECT d.id, CURSOR(SELECT " + strings.Replace(columns, "e.name AS \"{}raw\"", "e.info AS \"{}raw\"", 1) +
			", CURSOR(SELECT x.hired, d.name FROM emp x WHERE x.id = e.id) AS self FROM emp e WHERE e.dept_id = d.id ORDER BY e.id) AS emps FROM dept d ORDER BY d.id"
		w.mustApply(map[string]string{
			"flat": "-- @method GET flat\nSELECT " + strings.Replace(columns, "e.name AS \"{}raw\"", "e.info AS \"{}raw\"", 1) + " FROM emp e WHERE e.dept_id = :dept ORDER BY e.id",
			"one":  "-- @method GET one" + nested,
			"slow": "-- @method GET slow\n-- @nested rows" + nested,
		})
		table, err := w.snap.Table("emp")
		if err != nil {
			t.Fatal(err)
		}
		next := int64(1000)
		rapid.Check(t, func(rt *rapid.T) {
			rows := make([][]record.Value, rapid.IntRange(0, 5).Draw(rt, "n"))
			fields := []string{"id", "name", "dept_id", "salary", "rate", "active", "hired", "born", "photo", "info"}
			for i := range rows {
				next++
				rows[i] = append([]record.Value{record.IntValue(next)}, values(rt)...)
			}
			tx, err := w.st.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			written, err := tx.Insert(t.Context(), &store.InsertSet{Table: table, Fields: fields, Rows: rows})
			if err == nil && len(written.Errs) > 0 {
				err = fmt.Errorf("%v", written.Errs)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			one, slow := parse(t, w.rows(w.call("one", nil))), parse(t, w.rows(w.call("slow", nil)))
			if diff := cmp.Diff(one, slow); diff != "" {
				rt.Fatalf("one statement and rows: %s", diff)
			}
			for _, d := range one.([]any) {
				d := d.(map[string]any)
				var emps []any
				for _, e := range d["emps"].([]any) {
					e := e.(map[string]any)
					self := e["self"].([]any)[0].(map[string]any)
					if self["hired"] != e["hired"] {
						rt.Fatalf("%v and %v", self, e)
					}
					delete(e, "self")
					emps = append(emps, e)
				}
				id, err := strconv.Atoi(d["id"].(string))
				if err != nil {
					t.Fatal(err)
				}
				flat, _ := parse(t, w.rows(w.call("flat", map[string]any{"dept": id}))).([]any)
				if diff := cmp.Diff(emps, flat); diff != "" && len(emps)+len(flat) > 0 {
					rt.Fatalf("nested and flat: %s", diff)
				}
			}
			tx, _ = w.st.Begin(t.Context())
			for _, r := range rows {
				if _, err := tx.Delete(t.Context(), &store.DeleteSet{Table: table, Keys: [][]record.Value{r[:1]}}); err != nil {
					t.Fatal(err)
				}
			}
			tx.Commit(t.Context())
		})
	})
}

// values draws a record of emp but its key.
func values(rt *rapid.T) []record.Value {
	maybe := func(name string, v func() record.Value) record.Value {
		if rapid.IntRange(0, 4).Draw(rt, name+" is null") == 0 {
			return record.Value{}
		}
		return v()
	}
	return []record.Value{
		maybe("name", func() record.Value {
			return record.TextValue(rapid.SampledFrom([]string{"a", `q"\`, "line\nend\t", "ä€𝄞", "1", "null", "</x>", "[1]", "\u2028", "\x7f\x01"}).Draw(rt, "name"))
		}),
		record.IntValue(int64(rapid.IntRange(1, 2).Draw(rt, "dept"))),
		maybe("salary", func() record.Value {
			return record.TextValue(rapid.SampledFrom([]string{"0", "1.50", "-0.10", "100", "12345678901234567890.123456789", "0.000001", "7.0"}).Draw(rt, "salary"))
		}),
		maybe("rate", func() record.Value {
			return record.NumValue(rapid.OneOf(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64), rapid.SampledFrom([]float64{0, 0.1, 1e21, 1e-7, 1e6, 0.30000000000000004, 5e-324})).Draw(rt, "rate"))
		}),
		maybe("active", func() record.Value { return record.BoolValue(rapid.Bool().Draw(rt, "active")) }),
		maybe("hired", func() record.Value {
			at := time.Date(rapid.IntRange(1, 9999).Draw(rt, "year"), 2, 28, 23, 59, 58, 0, time.UTC)
			return record.TimeValue(at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 120000, 999999, 500000}).Draw(rt, "µs")) * time.Microsecond))
		}),
		maybe("born", func() record.Value {
			return record.TextValue(rapid.SampledFrom([]string{"0001-01-01", "1980-12-17", "9999-12-31"}).Draw(rt, "born"))
		}),
		maybe("photo", func() record.Value {
			return record.TextValue(string(rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(rt, "photo")))
		}),
		maybe("info", func() record.Value {
			return record.TextValue(rapid.SampledFrom([]string{"null", "1.5", `{"a":[1,{"b":null}]}`, `"x"`, "[]", "true"}).Draw(rt, "info"))
		}),
	}
}

// parse reads JSON; numbers are fractions, so that 1e3 is 1000 and no digit is lost.
func parse(t *testing.T, s string) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return canonical(v)
}

func canonical(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Rat).SetString(v.String()); ok {
			return n.RatString()
		}
	case []any:
		for i := range v {
			v[i] = canonical(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = canonical(v[k])
		}
	}
	return v
}
