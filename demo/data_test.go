package demo

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestData_IsSomeThreeThousandRecords(t *testing.T) {
	p := read(t)
	count := 0
	for name, records := range p.data {
		if name != "sys_db_object" && name != "sys_dictionary" && name != "sys_choice" { // these repeat the tables
			count += len(records)
		}
	}
	if count < 2000 || count > 3500 {
		t.Fatalf("%d records, want some 3,000", count)
	}
}

func TestData_KeysAndUniquesAreUnique(t *testing.T) {
	p := read(t)
	hex := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := make(map[string]string) // root, fields and values → the table that has them
	once := func(table string, row map[string]string, fields ...string) {
		var given []string
		for _, f := range fields {
			if row[f] == "" {
				return
			}
			given = append(given, f+"="+row[f])
		}
		key := p.tables[table].Root + " " + strings.Join(given, " ")
		if other, ok := seen[key]; ok {
			t.Errorf("%s in %s and in %s", key, other, table)
		}
		seen[key] = table
	}
	for _, name := range sorted(p.data) {
		table := p.tables[name]
		for i, row := range p.data[name] {
			for _, f := range table.KeyFields() {
				switch {
				case row[f.Name] == "":
					t.Errorf("%s line %d: the key field %s is empty", name, i+2, f.Name)
				case f.Type == record.TypeGUID && !hex.MatchString(row[f.Name]):
					t.Errorf("%s line %d: %s %q is not 32 lower-case hex digits", name, i+2, f.Name, row[f.Name])
				}
			}
			once(name, row, table.Key...)
			for _, fields := range p.tables[name].Uniques {
				once(name, row, fields...)
			}
		}
	}
}

func TestData_ReferencesPointAtRecordsOfTheirTable(t *testing.T) {
	p := read(t)
	class := make(map[string]string) // root and key → class
	for name, records := range p.data {
		for _, record := range records {
			class[p.tables[name].Root+" "+record[p.tables[name].Key[0]]] = name
		}
	}
	followed := 0
	for name, records := range p.data {
		for _, f := range p.tables[name].Fields {
			if f.Reference == "" {
				continue
			}
			for i, record := range records {
				for _, value := range strings.FieldsFunc(record[f.Name], func(r rune) bool { return r == ',' }) {
					followed++
					if got := p.tables[class[p.tables[f.Reference].Root+" "+value]]; got == nil || !got.Is(f.Reference) {
						t.Errorf("%s line %d: %s is %s, which is no %s", name, i+2, f.Name, value, f.Reference)
					}
				}
			}
		}
	}
	if followed < 5000 {
		t.Fatalf("followed %d references only", followed)
	}
}

func TestData_ValuesFitTheirFields(t *testing.T) {
	p := read(t)
	for name, records := range p.data {
		for _, f := range p.tables[name].Fields {
			for i, record := range records {
				value := record[f.Name]
				if value == "" {
					if f.Mandatory {
						t.Errorf("%s line %d: %s is mandatory and empty", name, i+2, f.Name)
					}
					continue
				}
				if err := fits(f, value, record); err != nil {
					t.Errorf("%s line %d: %s: %v", name, i+2, f.Name, err)
				}
			}
		}
	}
}

func fits(f *catalog.Field, value string, given map[string]string) error {
	if _, err := record.Parse(f.Type, value); err != nil {
		return err
	}
	switch {
	case f.MaxLength > 0 && utf8.RuneCountInString(value) > f.MaxLength:
		return fmt.Errorf("%q is longer than %d", value, f.MaxLength)
	case len(f.Choices) == 0:
		return nil
	}
	if !slices.ContainsFunc(f.Choices, func(c catalog.Choice) bool {
		return c.Value == value && (c.Dependent == "" || c.Dependent == given[f.DependsOn])
	}) {
		return fmt.Errorf("%q is no choice", value)
	}
	return nil
}

// What the rules would have made of an incident, its record in the file must already be.
func TestData_IncidentsObeyTheirRules(t *testing.T) {
	p := read(t)
	matrix := make(map[string]string)
	for _, cell := range p.tables["incident"].Matrices["priority"] {
		matrix[fmt.Sprint(cell[0], " ", cell[1])] = fmt.Sprint(cell[2])
	}
	states := make(map[string]int)
	for _, r := range p.data["incident"] {
		f := func(ok bool, what string) {
			if !ok {
				t.Errorf("%s (state %s): %s", r["number"], r["state"], what)
			}
		}
		states[r["state"]]++
		closed := r["state"] == "7" || r["state"] == "8"
		resolved := r["state"] == "6" || r["state"] == "7"
		f(r["number"] < "INC0010001", "the number belongs to new records")
		f(r["incident_state"] == r["state"], "incident_state differs")
		f(r["priority"] == matrix[r["impact"]+" "+r["urgency"]], "the priority is not the matrix's")
		f(r["active"] == strconv.FormatBool(!closed), "active does not fit")
		f(closed == (r["closed_at"] != "") && (!closed || r["closed_by"] != ""), "closed_at or closed_by does not fit")
		f(resolved == (r["close_code"] != "" && r["close_notes"] != ""), "close_code or close_notes does not fit")
		f(resolved == (r["resolved_at"] != "" && r["resolved_by"] != ""), "resolved_at or resolved_by does not fit")
		f((r["state"] == "3") == (r["hold_reason"] != ""), "hold_reason does not fit")
		f(r["resolved_at"] == "" || r["opened_at"] < r["resolved_at"], "resolved before it was opened")
		f(r["closed_at"] == "" || r["opened_at"] < r["closed_at"], "closed before it was opened")
	}
	if len(p.data["incident"]) < 500 || len(states) != 6 {
		t.Fatalf("%d incidents in states %v", len(p.data["incident"]), states)
	}
}

func TestData_HoldsTheRecordsThatClientsKnow(t *testing.T) {
	p := read(t)
	find := func(table, field, value string) map[string]string {
		for _, r := range p.data[table] {
			if r[field] == value {
				return r
			}
		}
		t.Fatalf("no %s with %s %s", table, field, value)
		return nil
	}
	f := func(table, sysID, field, want string) {
		if got := find(table, "sys_id", sysID)[field]; got != want {
			t.Errorf("%s %s has %s %q, want %q", table, sysID, field, got, want)
		}
	}
	f("sys_user", "6816f79cc0a8016401c5a33be04be441", "user_name", "admin")
	f("sys_user", "6816f79cc0a8016401c5a33be04be441", "user_password", "admin")
	f("sys_user", "62826bf03710200044e0bfc8bcbe5df1", "name", "Abel Tuter")
	f("sys_user_role", "2831a114c611228501d4ea6c309d626d", "name", "admin")
	f("cmdb_ci_computer", "b4fd7c8437201000deeabfc8bcbe5dc1", "name", "FINANCE-MBP-15")

	granted := make(map[string]bool)
	for _, g := range p.data["sys_user_has_role"] {
		granted[find("sys_user", "sys_id", g["user"])["user_name"]+" "+find("sys_user_role", "sys_id", g["role"])["name"]] = true
	}
	for _, want := range []string{"admin admin", "abel.tuter ess", "beth.anglin itil"} {
		if !granted[want] {
			t.Errorf("not granted: %s", want)
		}
	}
	abels := 0
	for _, r := range p.data["incident"] {
		if r["caller_id"] == "62826bf03710200044e0bfc8bcbe5df1" {
			abels++
		}
	}
	if abels < 5 || abels > 50 {
		t.Errorf("Abel has %d incidents, want a handful", abels)
	}
}
