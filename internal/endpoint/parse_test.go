package endpoint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
)

func TestParse_Everything(t *testing.T) {
	page := 10
	got, faults := Parse("endpoints/hr/departments.sql", `
-- Departments with their people.
-- @module api v1/
-- @method get departments/{id}/people/:nr?
-- @source json/collection
-- @page 10
-- @priority 3
-- @etag QUERY SELECT max(changed)
--    FROM hr_department
--    WHERE id = :id
-- @param id INT
-- @param X-Since as since HEADER TIMESTAMP
-- @column hired date
-- @roles hr, admin
-- @auth basic, oauth
-- @nested rows
-- @timeout 5s
-- @unpublished
-- @origins https://a.example, https://b.example
-- @comment All of them.

SELECT 1
`)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := catalog.EndpointDef{
		Name: "hr/departments", Path: "/ords/hr/v1/departments/:id/people/:nr?", Method: "GET", Roles: []string{"hr", "admin"},
		File: "endpoints/hr/departments.sql",
		SQL: &catalog.SQLDef{
			Schema: "hr", Module: "api", Base: "v1/", Pattern: "departments/:id/people/:nr?", Priority: 3, Source: "json/collection",
			PageSize: &page, ETag: "QUERY", TagQuery: "SELECT max(changed)\n    FROM hr_department\n    WHERE id = :id", TagLine: 8,
			Params: []catalog.SQLParam{
				{Name: "id", Bind: "id", Source: "URI", Type: "INT", Access: "IN"},
				{Name: "X-Since", Bind: "since", Source: "HEADER", Type: "TIMESTAMP", Access: "IN"},
			},
			Columns: []catalog.SQLColumn{{Name: "hired", Type: "date"}}, Auth: []string{"basic", "oauth"}, Nested: "rows",
			Timeout: 5 * time.Second, Unpublished: true, Origins: []string{"https://a.example", "https://b.example"},
			Comment: "All of them.", Text: "SELECT 1\n", Line: 22,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestParse_Defaults(t *testing.T) {
	got, faults := Parse("endpoints/x.sql", "-- @schema hr\n-- @method DELETE .\nDELETE FROM a")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := catalog.EndpointDef{Name: "x", Path: "/ords/hr/", Method: "DELETE", File: "endpoints/x.sql", SQL: &catalog.SQLDef{
		Schema: "hr", Pattern: ".", Source: "block", ETag: "NONE", Text: "DELETE FROM a", Line: 3,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestParse_FaultsNameTheirLine(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		_, faults := Parse("endpoints/hr/a.sql", text)
		var got []string
		for _, err := range faults {
			got = append(got, strings.TrimPrefix(err.Error(), "endpoints/hr/a.sql:"))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	f("SELECT 1", "1: the comments at the top need an @method METHOD PATTERN, like -- @method GET departments/")
	f("-- @method GET a\n", "2: the file holds no SQL")
	f("-- @method GET a\n-- @metod b\nx", "2: unknown annotation @metod; there are @"+strings.Join(annotations, ", @"))
	f("-- @method GET a\n-- @page\n-- @page 5\nx", "2: @page needs a value", "3: @page is given twice")
	f("-- @method FETCH a\nx", "1: @method \"FETCH\" is not one of GET, POST, PUT, PATCH, DELETE")
	f("-- @method GET\nx", `1: @method "GET" is not METHOD PATTERN, like GET departments/:id?`)
	f("-- @method GET a/:b?/c\nx", `1: @method: only the last segment of a pattern can be optional or the rest: ":b?"`)
	f("-- @method GET :limit\nx", `1: @method: "limit" is reserved (page, offset, limit, q) and cannot be a parameter`)
	f("-- @method GET :body\nx", `1: @method: "body" is an implicit parameter and cannot be one of the pattern`)
	f("-- @method GET a\n-- @param q\nx", `2: @param q: page, offset, limit, q are reserved and cannot be parameters`)
	f("-- @method GET a\n-- @param a OUT\nx", `2: @param a: a URI parameter is IN`, "2: @param a: only a block has OUT parameters")
	f("-- @method GET a\n-- @param a FLOAT\nx", `2: @param a: "a FLOAT" is not NAME [as BIND] [URI|HEADER|RESPONSE] [STRING|INT|LONG|DOUBLE|BOOLEAN|TIMESTAMP|RESULTSET] [IN|OUT|INOUT]`)
	f("-- @method POST a\n-- @source json/item\nx", "2: @source json/item answers GET; POST takes a block")
	f("-- @method GET a\n-- @etag QUERY\nx", "2: @etag QUERY needs the query, on the same line or on indented ones that follow")
	f("-- @method GET a\n-- @public\n-- @roles x\nx", "2: an endpoint is @public or has @roles and @auth, not both")
	f("-- @method GET a\n-- @priority 10\n-- @timeout soon\nx", `2: @priority "10" is not a number from 0 to 9`, `3: @timeout "soon" is not a time like 5s`)
	f("-- @method PUT a\n-- @column a date\n-- @nested rows\nx", "2: @column a: a column of a block is that of a RESULTSET, NAME.a", "3: @nested rows is of queries")
	f("-- @method GET a\n-- @column a float8\nx", `2: @column a: there is no type "float8"; types are those of fields: string, integer, decimal, datetime …`)
}

func FuzzParse(f *testing.F) {
	f.Add("-- @method GET a/:b?\n-- @etag QUERY select\n--    1\nSELECT 1")
	f.Fuzz(func(t *testing.T, text string) {
		def, faults := Parse("endpoints/hr/a.sql", text)
		if len(faults) == 0 && !strings.HasSuffix(text, def.SQL.Text) {
			t.Fatalf("the SQL %q is not the end of the file", def.SQL.Text)
		}
	})
}

func TestParse_OneRouteForEachDatabase(t *testing.T) {
	var defs []catalog.EndpointDef
	for _, store := range []string{"sqlite", "postgres", "sqlite"} {
		def, faults := Parse(fmt.Sprintf("endpoints/hr/%s%d.sql", store, len(defs)), "-- @method GET a\n-- @store "+store+"\nSELECT 1 AS a")
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		defs = append(defs, def)
	}
	if faults := Collisions(defs[:2]); len(faults) > 0 {
		t.Errorf("endpoints for different databases: %v", faults)
	}
	if faults := Collisions(defs); len(faults) != 1 {
		t.Errorf("two for one database: %v, want one fault", faults)
	}
	if _, faults := Parse("endpoints/hr/x.sql", "-- @method GET a\n-- @store oracle\nSELECT 1 AS a"); len(faults) != 1 {
		t.Errorf("@store oracle: %v, want one fault", faults)
	}
}
