package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTrace_PrintsLayersStatementsAndTheItemsThatSharedThem(t *testing.T) {
	root := txEntry{
		"method": "POST", "url": "/sap/opu/odata/IWBEP/GWSAMPLE_BASIC/$batch", "http_status": "202", "response_time": "40", "link": "3f2a9c1b77d0",
		"sys_created_on": "2026-05-02 12:00:00.5", "sys_created_by": "admin", "type": "batch_rest", "transaction_pattern": "odata/GWSAMPLE_BASIC/$batch",
		"input_length": "900", "output_length": "1800", "rows": "6", "format": "multipart", "hub_time": "10", "queue_time": "0", "network_time": "2",
		"be_time": "8", "app_time": "20", "sql_time": "19.5", "sql_count": "2",
		"statements": `[{"n":1,"verb":"insert","table":"product","ops":4,"rows":4,"start":12,"ms":15},{"n":2,"verb":"list","table":"product","ops":1,"rows":2,"start":28,"ms":4.5},{"more":3}]`,
	}
	item := func(id, method, status, statement, sql string) txEntry {
		return txEntry{"sys_id": id, "item_id": id, "method": method, "url": "ProductSet", "http_status": status, "response_time": "15", "statement": statement, "sql_time": sql}
	}
	items := []txEntry{
		item("1", "POST", "201", "1", "3.75"), item("2", "POST", "201", "1,2", "3.75"), item("3", "POST", "201", "1", "3.75"), item("4", "POST", "201", "1", "3.75"),
		item("5", "GET", "200", "2", "4.5"), item("6", "GET", "404", "", ""), item("7", "GET", "200", "5", "1"),
	}
	var b strings.Builder
	if err := printTree(&b, root, items, 2); err != nil {
		t.Fatal(err)
	}
	want := `POST /sap/opu/odata/IWBEP/GWSAMPLE_BASIC/$batch  202  40.000 ms
  3f2a9c1b77d0  2026-05-02 12:00:00.500  admin  batch_rest  odata/GWSAMPLE_BASIC/$batch
  900 bytes in, 1800 bytes out, 6 rows, multipart, 7 items
|- hub       10.000 ms  25.0 %
|- queue      0.000 ms   0.0 %
|- wire       2.000 ms   5.0 %
|- be         8.000 ms  20.0 %
|- app       20.000 ms  50.0 %  (sql 19.500 ms, 2 statements)
|  |- #1 insert product: 4 ops, 4 rows, at 12.000 ms, 15.000 ms
|  |  |- item 1: POST ProductSet  201  15.000 ms, its share of sql 3.750 ms
|  |  |- item 2: POST ProductSet  201  15.000 ms, its share of sql 3.750 ms, also in #2
|  |  ` + "`" + `- and 2 more, sql 7.500 ms together
|  |- #2 list product: 1 ops, 2 rows, at 28.000 ms, 4.500 ms
|  |  ` + "`" + `- item 5: GET ProductSet  200  15.000 ms, its share of sql 4.500 ms
|  ` + "`" + `- and 3 more
` + "`" + `- items without a statement here
   |- item 6: GET ProductSet  404  15.000 ms
   ` + "`" + `- item 7: GET ProductSet  200  15.000 ms, its share of sql 1.000 ms
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
