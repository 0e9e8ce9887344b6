package endpoint_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDocs_ExamplesCompile applies the endpoints of docs/ords.md.
func TestDocs_ExamplesCompile(t *testing.T) {
	text, err := os.ReadFile("../../docs/ords.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for i, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "@method") {
			files[fmt.Sprintf("example%d", i+1)] = m[1]
		}
	}
	if len(files) < 2 {
		t.Fatalf("%d examples", len(files))
	}
	onEach(t, func(t *testing.T, w *world) {
		w.files = fstest.MapFS{
			"tables/department.yaml": {Data: []byte("name: department\naudit: false\nkey: [id]\nfields:\n  - {name: id, type: integer}\n  - {name: name, type: string}\n  - {name: changed, type: datetime}\n")},
			"tables/employee.yaml":   {Data: []byte("name: employee\naudit: false\nkey: [id]\nfields:\n  - {name: id, type: integer}\n  - {name: name, type: string}\n  - {name: salary, type: decimal}\n  - {name: department, type: integer}\n")},
			"data/department.csv":    {Data: []byte("id,name\n1,Sales\n")},
			"data/employee.csv":      {Data: []byte("id,name,department\n7,Ann,1\n8,Bob,1\n")},
		}
		w.mustApply(files)
		if got, want := squeeze(w.rows(w.call("example1", map[string]any{"id": 1}))), `[{"id":1,"name":"Sales","people":[{"name":"Ann","salary":null},{"name":"Bob","salary":null}]}]`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for id, status := range map[int]int{7: 200, 9: 404} {
			out, err := w.block(w.call("example2", map[string]any{"id": id, "salary": "100"}))
			if err != nil || out.Status != status || status == 200 && (out.Sets[0].Rows.Len() != 2 || out.Forward != "./7") {
				t.Errorf("%d: %+v %v", id, out, err)
			}
		}
	})
}
