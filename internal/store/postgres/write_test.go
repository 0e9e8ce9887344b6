package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
	"weir/internal/store"
)

func TestKeyed_FindsRowsInAnyOrder(t *testing.T) {
	snap := things(t)
	set := &store.InsertSet{Table: mustTable(t, snap, "thing"), Fields: []string{"n", "id"}}
	for _, id := range []string{"a", "b", "b", "c", "d", "e"} {
		set.Rows = append(set.Rows, row(1, id))
	}
	f := func(keys string, want ...int) {
		t.Helper()
		k := newKeyed(set, 1)
		var got []int
		for _, id := range keys {
			got = append(got, k.take([]record.Value{record.TextValue(string(id))}))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", keys, d)
		}
	}
	f("abcde", 0, 1, 3, 4, 5)
	f("ae", 0, 5)
	f("edcba", 5, 4, 3, 1, 0)
	f("dabeb", 4, 0, 1, 5, 2)
	f("axb", 0, -1, 1)
}
