package project

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// The tables through which clients ask what tables, fields and choices there are. A project that defines them gets them
// kept: at every change of definitions their records are brought to what the definitions say.
const (
	objectTable     = "sys_db_object"
	dictionaryTable = "sys_dictionary"
	choiceTable     = "sys_choice"
)

// mirrored is what one of these tables must hold. The records are identified by the first columns.
type mirrored struct {
	table    string
	columns  []string
	identity int
	rows     [][]string
	keys     map[string]string // keys that new records get, by their first column; others get any
}

// mirror brings the tables that describe the definitions to snap, as far as the project has them: what is missing is
// inserted, what differs is updated, what no longer exists is removed. Records that stay keep their keys. It returns how
// many records it wrote or removed.
func (a *application) mirror(ctx context.Context, tx store.Tx, snap *catalog.Snapshot) (int, error) {
	objects, dictionary, choices := a.describe(snap)
	if err := a.superClasses(ctx, tx, snap, objects); err != nil {
		return 0, err
	}
	n := 0
	for _, m := range []*mirrored{objects, dictionary, choices} {
		k, err := a.reflect(ctx, tx, snap, m)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// internalTypes are the names that clients know types by, where they differ from ours.
var internalTypes = map[record.Type]string{
	record.TypeDateTime: "glide_date_time", record.TypeDate: "glide_date", record.TypeDuration: "glide_duration",
	record.TypeList: "glide_list", record.TypeJournal: "journal_input", record.TypeGUID: "GUID",
}

// clientDefaults are the spellings of defaults that clients know.
var clientDefaults = map[string]string{"=now()": "javascript:gs.nowDateTime()", "=user.sys_id": "javascript:gs.getUserID()"}

// describe is what the tables must hold. A table is described with the fields that its own file defines, inherited ones
// that it changes included.
func (a *application) describe(snap *catalog.Snapshot) (objects, dictionary, choices *mirrored) {
	objects = &mirrored{table: objectTable, identity: 1, columns: []string{"name", "label", "number_ref"}}
	dictionary = &mirrored{table: dictionaryTable, identity: 2, columns: []string{
		"name", "element", "column_label", "internal_type", "reference", "max_length", "mandatory", "read_only", "choice", "default_value", "display", "unique",
	}}
	choices = &mirrored{table: choiceTable, identity: 4, columns: []string{"name", "element", "value", "dependent_value", "label", "language", "sequence"}}
	for _, def := range sorted(a.project.Definitions).Tables {
		t, err := snap.Table(def.Name)
		if err != nil {
			continue
		}
		prefix := ""
		for i := range def.Fields {
			d := &def.Fields[i]
			f := t.Field(d.Name)
			if d.Sequence != nil {
				prefix = d.Sequence.Prefix
			}
			kind, length, choice, standard := f.Type.String(), "", "0", ""
			if known := internalTypes[f.Type]; known != "" {
				kind = known
			}
			if f.MaxLength > 0 {
				length = strconv.Itoa(f.MaxLength)
			}
			if d.Default != nil {
				if standard = fmt.Sprint(d.Default); strings.HasPrefix(standard, "=") {
					standard = clientDefaults[standard]
				}
			}
			if len(d.Choices) > 0 {
				choice = "1"
				if d.Default != nil {
					choice = "3"
				}
			}
			dictionary.rows = append(dictionary.rows, []string{
				t.Name, f.Name, f.Label, kind, f.Reference, length, strconv.FormatBool(f.Mandatory), strconv.FormatBool(f.ReadOnly), choice,
				standard, strconv.FormatBool(f.Name == def.Display), strconv.FormatBool(d.Unique),
			})
			for i, c := range d.Choices {
				choices.rows = append(choices.rows, []string{t.Name, f.Name, c.Value, c.Dependent, c.Label, "en", strconv.Itoa(i)})
			}
		}
		objects.rows = append(objects.rows, []string{t.Name, t.Label, prefix})
	}
	return objects, dictionary, choices
}

// superClasses adds the column that refers to the parent's own record, which may be as new as the one that refers to it.
func (a *application) superClasses(ctx context.Context, tx store.Tx, snap *catalog.Snapshot, objects *mirrored) error {
	t, err := snap.Table(objectTable)
	if err != nil || t.Field("super_class") == nil || t.Field("name") == nil || t.SingleKey() == nil {
		return nil
	}
	rows, err := readAll(ctx, tx, snap, t, []string{"name", t.Key[0]}, false)
	if err != nil {
		return err
	}
	objects.keys = map[string]string{}
	for i := range rows.Len() {
		if name := rows.At(i)[0].S; objects.keys[name] == "" { // reflect keeps the first of several, too
			objects.keys[name] = rows.At(i)[1].Text()
		}
	}
	objects.columns = append(objects.columns, "super_class")
	for _, row := range objects.rows {
		if objects.keys[row[0]] == "" {
			objects.keys[row[0]] = a.NewID()
		}
	}
	for i, row := range objects.rows {
		parent := ""
		if of, err := snap.Table(row[0]); err == nil && of.Extends != "" {
			parent = objects.keys[of.Extends]
		}
		objects.rows[i] = append(row, parent)
	}
	return nil
}

// reflect brings one table to m. A table that the project lacks, did not let weir create or that lacks a column that
// identifies records is left alone; other columns that it lacks are left out.
func (a *application) reflect(ctx context.Context, tx store.Tx, snap *catalog.Snapshot, m *mirrored) (int, error) {
	t, err := snap.Table(m.table)
	if err != nil || t.External || !t.Audit || t.SingleKey() == nil {
		return 0, nil
	}
	var (
		fields []*catalog.Field
		names  []string
		from   []int // column of m
	)
	for i, c := range m.columns {
		if f := t.Field(c); f != nil {
			fields, names, from = append(fields, f), append(names, c), append(from, i)
		} else if i < m.identity {
			return 0, nil
		}
	}
	const own = 2 // columns before those of m
	rows, err := readAll(ctx, tx, snap, t, append([]string{t.Key[0], "sys_mod_count"}, names...), false)
	if err != nil {
		return 0, err
	}
	identity := func(row []record.Value) string {
		var b strings.Builder
		for _, v := range row[:m.identity] {
			fmt.Fprintf(&b, "%q ", v.Text())
		}
		return b.String()
	}
	old := map[string][]record.Value{}
	gone := store.DeleteSet{Table: t}
	for i := range rows.Len() {
		row := rows.At(i)
		id := identity(row[own:])
		if old[id] != nil { // one is enough
			gone.Keys = append(gone.Keys, row[:1])
			continue
		}
		old[id] = row
	}
	var (
		fresh [][]record.Value
		now   = record.TimeValue(a.Now())
		by    = text(loadedBy)
		moved = store.UpdateSet{Table: t, Fields: append(slices.Clone(names), "sys_updated_on", "sys_updated_by", "sys_mod_count")}
	)
	for _, want := range m.rows {
		row := make([]record.Value, len(fields))
		for i, f := range fields {
			if row[i], err = record.Parse(f.Type, want[from[i]]); err != nil {
				return 0, fmt.Errorf("%s: %s of %s: %w", m.table, f.Name, want[0], err)
			}
		}
		id := identity(row)
		have := old[id]
		delete(old, id)
		switch {
		case have == nil:
			key := m.keys[want[0]]
			if key == "" {
				key = a.NewID()
			}
			fresh = append(fresh, append(row, text(key), now, by, now, by, record.IntValue(0)))
		case !slices.Equal(have[own:], row):
			moved.Keys, moved.Rows = append(moved.Keys, have[:1]), append(moved.Rows, append(row, now, by, record.IntValue(have[1].N+1)))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		gone.Keys = append(gone.Keys, old[id][:1])
	}
	if len(gone.Keys) > 0 {
		w, err := tx.Delete(ctx, &gone)
		if err == nil {
			err = cause(firstFault(w), nil)
		}
		if err != nil {
			return 0, fmt.Errorf("delete from %s: %w", m.table, err)
		}
	}
	if len(moved.Keys) > 0 {
		if err := cause(update(ctx, tx, &moved)); err != nil {
			return 0, err
		}
	}
	audit := []string{"sys_id", "sys_created_on", "sys_created_by", "sys_updated_on", "sys_updated_by", "sys_mod_count"}
	if err := a.describeNew(ctx, tx, t, append(names, audit...), fresh); err != nil {
		return 0, err
	}
	return len(gone.Keys) + len(moved.Keys) + len(fresh), nil
}

// describeNew inserts new records, with the literal defaults of what the mirror does not say.
func (a *application) describeNew(ctx context.Context, tx store.Tx, t *catalog.Table, names []string, rows [][]record.Value) error {
	if len(rows) == 0 {
		return nil
	}
	for _, f := range t.Fields {
		v := record.Value{}
		switch {
		case slices.Contains(names, f.Name):
		case f.Name == t.ClassField:
			v = text(t.Name)
		case f.Default != "" && !strings.HasPrefix(f.Default, "="):
			v, _ = record.Parse(f.Type, f.Default)
		}
		if v.IsNull() {
			continue
		}
		names = append(names, f.Name)
		for i := range rows {
			rows[i] = append(rows[i], v)
		}
	}
	return insert(ctx, tx, t, names, rows)
}
