package endpoint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuery_FlatColumnsHaveTheTypesOfTheCatalog(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{"emps": `
-- @method GET emps/
-- @timeout 5s
SELECT e.id, e.Name, salary, rate, active, hired, born, photo, info, e.salary * 2 AS "Twice" -- no :bind
FROM emp e WHERE e.dept_id = :dept ORDER BY e.id`})
		got := w.rows(w.call("emps", map[string]any{"dept": "1"}))
		want := `[{"id":10,"name":"Ann","salary":1000.5,"rate":0.1,"active":true,"hired":"2020-01-02T03:04:05Z","born":"1990-05-06T00:00:00Z","photo":null,"info":{"a":[1,2]},"Twice":2001},` +
			`{"id":11,"name":"Bob","salary":20,"rate":1000000,"active":false,"hired":"2020-01-02T03:04:05.25Z","born":null,"photo":null,"info":null,"Twice":40}]`
		if diff := cmp.Diff(want, strings.ReplaceAll(strings.ReplaceAll(got, "2001.0", "2001"), `{"a": [1, 2]}`, `{"a":[1,2]}`)); diff != "" {
			t.Fatal(diff)
		}
	})
}
