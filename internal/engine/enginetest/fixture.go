// Package enginetest is what the engine is tested against: a set of tables that uses everything the engine does by
// itself, and a model of them in memory that is slow and meant to be obviously right.
package enginetest

import (
	"weir/internal/catalog"
	"weir/internal/record"
)

// Definitions are the tables of the tests:
//
//	dept      name (unique), grp
//	ci        name (unique), number CI…, seen
//	task      number TSK…, title (mandatory, 20 characters), state, prio, dept (cleared), owner, code (unique), grp (looked
//	          up in dept), score (computed), note (journal), pin (password)
//	incident  a task with severity, ci_name and ci (derived by name)
//	step      task (cascades), blocker (restricts), after, text (looked up in the step that it comes after)
//	item      id (integer key, no audit), amount, dept (a foreign key)
//	bill      number (drawn, its key, no audit), label, total (of its lines)
//	line      bill (cascades), pos (within the bill), amount, mark (looked up in the bill)
func Definitions() catalog.Definitions {
	plain := false
	return catalog.Definitions{Tables: []catalog.TableDef{
		{Name: "dept", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string", MaxLength: 40, Unique: true},
			{Name: "grp", Type: "string"},
		}},
		{Name: "ledger", ReadOnly: true, Fields: []catalog.FieldDef{{Name: "text", Type: "string"}}},
		{Name: "ci", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string", MaxLength: 40, Unique: true},
			{Name: "number", Type: "string", ReadOnly: true, Sequence: &catalog.Sequence{Name: "ci", Prefix: "CI", Digits: 4}},
			{Name: "seen", Type: "string"},
		}},
		{
			Name: "task", Display: "number",
			Fields: []catalog.FieldDef{
				{Name: "number", Type: "string", Sequence: &catalog.Sequence{Name: "task", Prefix: "TSK", Digits: 5}},
				{Name: "title", Type: "string", MaxLength: 20, Mandatory: true},
				{Name: "state", Type: "integer", Default: 1},
				{Name: "prio", Type: "integer"},
				{Name: "dept", Type: "reference", Reference: "dept", OnDelete: "clear"},
				{Name: "owner", Type: "string", MaxLength: 40},
				{Name: "code", Type: "string", MaxLength: 20, Unique: true},
				{Name: "grp", Type: "string", ReadOnly: true},
				{Name: "score", Type: "integer", Compute: "state * 10 + prio"},
				{Name: "hidden", Type: "string", Access: catalog.FieldAccessDef{Read: []string{"boss"}, Write: []string{"boss"}}},
				{Name: "note", Type: "journal"},
				{Name: "pin", Type: "password"},
			},
			Rules: []catalog.RuleDef{
				{Name: "prio", Check: "prio <= 5", Message: "prio goes to 5", Field: "prio"},
				{Name: "reopen", Transition: &catalog.TransitionDef{Field: "state", From: map[string][]string{"3": {"4"}}}},
				{Name: "grp", Lookup: &catalog.LookupDef{Table: "dept", Match: map[string]string{"sys_id": "dept"}, Set: map[string]string{"grp": "grp"}}},
				{Name: "kept", On: []string{"delete"}, Check: "state != 4", Message: "what is closed is kept", Field: "state"},
			},
			Access: catalog.AccessDef{
				Read:   []catalog.GrantDef{{Roles: []string{"itil"}}, {Where: "owner == user.name"}},
				Create: []catalog.GrantDef{{Roles: []string{"itil"}}, {Where: "owner == user.name"}},
				Update: []catalog.GrantDef{{Roles: []string{"itil"}, Where: "state != 4"}, {Where: "owner == user.name && state < 3"}},
				Delete: []catalog.GrantDef{{Roles: []string{"itil"}}},
			},
		},
		{
			Name: "incident", Extends: "task",
			Fields: []catalog.FieldDef{
				{Name: "severity", Type: "integer", Default: 3},
				{Name: "ci_name", Type: "string", MaxLength: 40},
				{Name: "ci", Type: "reference", Reference: "ci", ReadOnly: true},
				{Name: "ci_state", Type: "string", ReadOnly: true},
			},
			Rules: []catalog.RuleDef{
				{
					Name: "ci", When: `ci_name != nil && changed("ci_name")`,
					Derive: &catalog.DeriveDef{
						Table: "ci", Match: "name", Values: map[string]string{"name": "ci_name", "seen": "title"},
						Result: &catalog.DeriveResult{Key: "ci", State: "ci_state"},
					},
				},
			},
		},
		{
			Name: "step",
			Fields: []catalog.FieldDef{
				{Name: "task", Type: "reference", Reference: "task", OnDelete: "cascade"},
				{Name: "blocker", Type: "reference", Reference: "task", OnDelete: "restrict"},
				{Name: "after", Type: "reference", Reference: "step"},
				{Name: "text", Type: "string"},
			},
			Rules: []catalog.RuleDef{
				// It reads the table that it writes, so that no two steps can share a set.
				{Name: "follow", Lookup: &catalog.LookupDef{Table: "step", Match: map[string]string{"sys_id": "after"}, Set: map[string]string{"text": "text"}}},
			},
			Access: catalog.AccessDef{
				Create: []catalog.GrantDef{{Roles: []string{"itil"}}}, Update: []catalog.GrantDef{{Roles: []string{"itil"}}},
				Delete: []catalog.GrantDef{{Roles: []string{"itil"}}},
			},
		},
		{
			Name: "item", Audit: &plain, Key: []string{"id"},
			Fields: []catalog.FieldDef{
				{Name: "id", Type: "integer"},
				{Name: "amount", Type: "decimal"},
				{Name: "dept", Type: "reference", Reference: "dept", ForeignKey: true},
			},
			Access: catalog.AccessDef{
				Create: []catalog.GrantDef{{}}, Update: []catalog.GrantDef{{}}, Delete: []catalog.GrantDef{{}},
			},
		},
		{
			Name: "bill", Audit: &plain, Key: []string{"number"},
			Fields: []catalog.FieldDef{
				{Name: "number", Type: "string", ReadOnly: true, Sequence: &catalog.Sequence{Name: "bill", Digits: 6}},
				{Name: "label", Type: "string"},
				{Name: "total", Type: "integer", ReadOnly: true, Default: 0},
			},
			Access: catalog.AccessDef{
				Create: []catalog.GrantDef{{Roles: []string{"itil"}}}, Update: []catalog.GrantDef{{Roles: []string{"itil"}}},
				Delete: []catalog.GrantDef{{Roles: []string{"itil"}}},
			},
		},
		{
			Name: "line",
			Fields: []catalog.FieldDef{
				{Name: "bill", Type: "reference", Reference: "bill", OnDelete: "cascade"},
				{Name: "pos", Type: "integer", ReadOnly: true},
				{Name: "amount", Type: "integer"},
				{Name: "mark", Type: "string", ReadOnly: true},
			},
			Uniques: [][]string{{"bill", "pos"}},
			Rules: []catalog.RuleDef{
				{Name: "mark", Lookup: &catalog.LookupDef{Table: "bill", Match: map[string]string{"number": "bill"}, Set: map[string]string{"mark": "label"}}},
				{Name: "amount", Check: "amount < 9", Message: "the amount must be less than 9", Field: "amount"},
				{Name: "pos", Position: &catalog.PositionDef{Field: "pos", Within: "bill", Step: 10}},
				{Name: "total", Total: &catalog.TotalDef{In: "bill", Set: map[string]string{"total": "amount"}}},
			},
			Access: catalog.AccessDef{
				Create: []catalog.GrantDef{{Roles: []string{"itil"}}}, Update: []catalog.GrantDef{{Roles: []string{"itil"}}},
				Delete: []catalog.GrantDef{{Roles: []string{"itil"}}},
			},
		},
		{Name: "sys_journal_field", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string"},
			{Name: "element", Type: "string"},
			{Name: "element_id", Type: "string"},
			{Name: "value", Type: "string"},
		}},
	}}
}

// Snapshot compiles the definitions.
func Snapshot() *catalog.Snapshot {
	s, err := catalog.Build(1, Definitions())
	if err != nil {
		panic(err)
	}
	return s
}

// The actors of the tests.
var (
	Admin = record.Actor{Key: "00000000000000000000000000000001", Name: "admin", Roles: []string{"admin"}}
	Agent = record.Actor{Key: "00000000000000000000000000000002", Name: "agent", Roles: []string{"itil"}}
	Beth  = record.Actor{Key: "00000000000000000000000000000003", Name: "beth"}
	Boss  = record.Actor{Key: "00000000000000000000000000000004", Name: "boss", Roles: []string{"itil", "boss"}}
)
