package project

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"weir/internal/store"
)

// described is the shop with the tables that describe it, which are empty at first.
func described() fstest.MapFS {
	files := shop()
	files["tables/sys_db_object.yaml"] = file(`name: sys_db_object
fields:
  - {name: name, type: string, unique: true}
  - {name: label, type: string}
  - {name: super_class, type: reference, reference: sys_db_object}
  - {name: number_ref, type: string}
`)
	files["tables/sys_dictionary.yaml"] = file(`name: sys_dictionary
fields:
  - {name: name, type: string}
  - {name: element, type: string}
  - {name: column_label, type: string}
  - {name: internal_type, type: string}
  - {name: active, type: boolean, default: true}
`)
	files["tables/sys_choice.yaml"] = file(`name: sys_choice
fields:
  - {name: name, type: string}
  - {name: element, type: string}
  - {name: value, type: string}
  - {name: dependent_value, type: string}
  - {name: label, type: string}
`)
	files["tables/rush.yaml"] = file(`name: rush
label: Rush order
extends: a_order
fields:
  - name: speed
    label: Speed
    type: integer
    choices: [{value: 1, label: Fast}, {value: 2, label: Faster}]
`)
	return files
}

func TestMirror_SaysWhatTheDefinitionsSay(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		st, files := open(), described()
		r := mustApply(t, st, mustRead(t, files), options(t))
		keys := map[string]string{}
		objects := map[string][]string{}
		for _, o := range texts(t, st, r.Snapshot, objectTable, "name", "sys_id", "label", "super_class.name", "number_ref") {
			keys[o[0]], objects[o[0]] = o[1], o[2:]
		}
		f := func(got any, want any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		f(objects["rush"], []string{"Rush order", "a_order", ""})
		f(objects["a_order"], []string{"Order", "", "ORD"})
		f(len(objects), 6)
		speed := func() (list [][]string) {
			for _, d := range texts(t, st, r.Snapshot, choiceTable, "element", "value", "label") {
				if d[0] == "speed" {
					list = append(list, d[1:])
				}
			}
			return list
		}
		f(len(speed()), 2)
		placed := func() []string {
			for _, d := range texts(t, st, r.Snapshot, dictionaryTable, "element", "column_label", "internal_type", "active") {
				if d[0] == "placed" {
					return d[1:]
				}
			}
			return nil
		}
		f(placed(), []string{"placed", "glide_date_time", "true"})

		// A label changes, a choice goes, another comes, a table comes.
		files["tables/rush.yaml"] = file(`name: rush
label: Express order
extends: a_order
fields:
  - name: speed
    label: Speed
    type: integer
    choices: [{value: 2, label: Faster}, {value: 3, label: Fastest}]
`)
		files["tables/more.yaml"] = file("name: more\nfields: []\n")
		r = mustApply(t, st, mustRead(t, files), options(t))
		if r.Mirrored != 4 {
			t.Errorf("%d records changed, want 4", r.Mirrored)
		}
		for _, o := range texts(t, st, r.Snapshot, objectTable, "name", "sys_id", "label", "sys_mod_count") {
			switch {
			case o[0] == "rush":
				f(o[1:], []string{keys["rush"], "Express order", "1"})
			case o[0] == "more":
				f(o[2], "more")
			case o[1] != keys[o[0]]:
				t.Errorf("%s has another sys_id", o[0])
			}
		}
		got := map[string]string{}
		for _, c := range speed() {
			got[c[0]] = c[1]
		}
		f(got, map[string]string{"2": "Faster", "3": "Fastest"})
	})
}
