package now_test

import (
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/now"
	"weir/internal/record"
	"weir/internal/wire"
)

// fortyRows is a list as a database gives it.
func fortyRows(fields []string) (*record.Rows, *ring) {
	src := &ring{n: 40}
	for _, f := range fields {
		switch f {
		case "state", "priority", "reassignment_count":
			src.row = append(src.row, record.IntValue(2))
		case "active":
			src.row = append(src.row, record.BoolValue(true))
		case "opened_at", "sys_created_on", "sys_updated_on":
			src.row = append(src.row, record.TimeValue(noon))
		case "sys_class_name":
			src.row = append(src.row, record.TextValue("incident"))
		default:
			src.row = append(src.row, record.TextValue("62826bf03710200044e0bfc8bcbe5df1"))
		}
	}
	return record.StreamRows(fields, make([]record.Type, len(fields)), src), src
}

// ring gives one row n times; rewound by setting at to 0.
type ring struct {
	n, at int
	row   []record.Value
}

func (r *ring) Next() ([]record.Value, bool) {
	if r.at == r.n {
		return nil, false
	}
	r.at++
	return r.row, true
}
func (r *ring) Err() error   { return nil }
func (r *ring) Close() error { return nil }

func listCall(query string) *dialect.Call {
	c := &dialect.Call{Method: "GET", Path: "/api/now/table/incident", RawQuery: query, Base: "https://127.0.0.1:8080", Actor: record.Actor{Name: "admin", Roles: []string{"admin"}}}
	c.Header.Add("Accept", "application/json")
	return c
}

func BenchmarkDecode(b *testing.B) {
	snap, d := small(b), now.New(now.Options{})
	post := &dialect.Call{
		Method: "POST", Path: "/api/now/table/incident", RawQuery: "sysparm_fields=number,priority", Base: "https://h",
		Body: []byte(`{"short_description":"disk full","urgency":"1","state":"2","caller_id":"62826bf03710200044e0bfc8bcbe5df1","category":"software"}`),
	}
	post.Header.Add("Content-Type", "application/json")
	for name, call := range map[string]*dialect.Call{
		"get":    {Method: "GET", Path: "/api/now/table/incident/62826bf03710200044e0bfc8bcbe5df1", Base: "https://h"},
		"list":   listCall("sysparm_limit=25"),
		"query":  listCall("sysparm_query=active%3Dtrue%5Estate%3D1%5EORstate%3D2%5Ecaller_id.name%3DAbel%5EORDERBYDESCopened_at&sysparm_fields=number,state&sysparm_limit=25"),
		"insert": post,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(snap, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReply_List(b *testing.B) {
	snap, d := small(b), now.New(now.Options{})
	for name, query := range map[string]string{
		"value":   "sysparm_limit=40",
		"display": "sysparm_limit=40&sysparm_display_value=true",
		"all":     "sysparm_limit=40&sysparm_display_value=all",
	} {
		b.Run(name, func(b *testing.B) {
			x, err := d.Decode(snap, listCall(query))
			if err != nil {
				b.Fatal(err)
			}
			rows, src := fortyRows(x.Ops[0].Return)
			out := []record.Outcome{{Rows: rows, Total: 40}}
			a := &wire.Answer{}
			b.ReportAllocs()
			for b.Loop() {
				src.at = 0
				a.Header, a.Body = a.Header[:0], a.Body[:0]
				x.Reply(out, a)
			}
			b.SetBytes(int64(len(a.Body)))
			b.ReportMetric(float64(b.N)*40/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// The rows of a list cost no allocations: only what stands once in an answer does.
func TestReply_RowsAreWrittenWithoutAllocations(t *testing.T) {
	snap, d := small(t), now.New(now.Options{})
	for _, query := range []string{"", "sysparm_display_value=true", "sysparm_display_value=all&sysparm_exclude_reference_link=true"} {
		x, err := d.Decode(snap, listCall(query))
		if err != nil {
			t.Fatal(err)
		}
		rows, src := fortyRows(x.Ops[0].Return)
		out := []record.Outcome{{Rows: rows, Total: 40}}
		a := &wire.Answer{}
		count := func(n int) float64 {
			src.n = n
			return testing.AllocsPerRun(20, func() {
				src.at = 0
				a.Header, a.Body = a.Header[:0], a.Body[:0]
				x.Reply(out, a)
			})
		}
		count(400) // the buffer has grown
		if few, many := count(1), count(400); many > few {
			t.Errorf("%q: %v allocations for 1 row, %v for 400", query, few, many)
		}
	}
}
