package now_test

import (
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
)

// noon is the moment that golden files run at: a Monday.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// newDialect turns settings by the words of a golden file.
func newDialect(words []string) dialect.Dialect {
	opt := now.Options{Clock: func() time.Time { return noon }}
	for _, w := range words {
		switch w {
		case "strict":
			opt.InvalidQueryReturnsNoRows = true
		case "case sensitive":
			opt.CaseSensitive = true
		case "at most 100":
			opt.MaxLimit = 100
		case "few":
			opt.MaxConditions, opt.MaxFields, opt.MaxWalks, opt.MaxQuery = 3, 3, 1, 100
		case "in Tokyo":
			opt.Location = time.FixedZone("JST", 9*3600)
		default:
			panic("unknown word " + w)
		}
	}
	return now.New(opt)
}

func TestGolden_Table(t *testing.T) {
	dialecttest.Unit(t, "testdata/table/*.txtar", small(t), newDialect)
}

func TestGolden_Query(t *testing.T) {
	dialecttest.Unit(t, "testdata/query/*.txtar", small(t), newDialect)
}

func TestGolden_Stats(t *testing.T) {
	dialecttest.Unit(t, "testdata/stats/*.txtar", small(t), newDialect)
}

func TestGolden_Errors(t *testing.T) {
	dialecttest.Unit(t, "testdata/errors/*.txtar", small(t), newDialect)
}

// small is a corner of the demo: enough to say every rule of the wire with short answers.
func small(t testing.TB) *catalog.Snapshot {
	t.Helper()
	plain := false
	choices := func(pairs ...string) (list []catalog.Choice) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, catalog.Choice{Value: pairs[i], Label: pairs[i+1]})
		}
		return list
	}
	snap, err := catalog.Build(1, catalog.Definitions{Tables: []catalog.TableDef{
		{Name: "core_company", Label: "Company", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string"},
			{Name: "parent", Type: "reference", Reference: "core_company"},
		}},
		{Name: "sys_user", Label: "User", Display: "name", Fields: []catalog.FieldDef{
			{Name: "user_name", Type: "string", Unique: true},
			{Name: "name", Type: "string"},
			{Name: "email", Type: "string"},
			{Name: "active", Type: "boolean"},
			{Name: "manager", Type: "reference", Reference: "sys_user"},
			{Name: "company", Type: "reference", Reference: "core_company"},
			{Name: "user_password", Type: "password"},
		}},
		{Name: "sys_user_group", Label: "Group", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}}},
		{Name: "sys_user_grmember", Label: "Group Member", Display: "user", Fields: []catalog.FieldDef{
			{Name: "user", Type: "reference", Reference: "sys_user"},
			{Name: "group", Type: "reference", Reference: "sys_user_group"},
			{Name: "scrum", Type: "boolean"},
		}},
		{Name: "sys_journal_field", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string"},
			{Name: "element", Type: "string"},
			{Name: "element_id", Type: "string"},
			{Name: "value", Type: "string"},
		}},
		{Name: "badge", Fields: []catalog.FieldDef{{Name: "member", Type: "reference", Reference: "sys_user_grmember"}}},
		{Name: "task", Label: "Task", Display: "number", Fields: []catalog.FieldDef{
			{Name: "number", Type: "string", ReadOnly: true, Unique: true, Sequence: &catalog.Sequence{Prefix: "TASK", Digits: 7}},
			{Name: "state", Type: "integer", Choices: choices("1", "Open", "3", "Closed")},
			{Name: "active", Type: "boolean", Default: true},
			{Name: "short_description", Type: "string"},
			{Name: "opened_at", Type: "datetime"},
			{Name: "opened_by", Type: "reference", Reference: "sys_user"},
			{Name: "assigned_to", Type: "reference", Reference: "sys_user"},
			{Name: "sys_domain", Type: "reference", Reference: "sys_user_group", Default: "global"},
			{Name: "watch_list", Type: "list", Reference: "sys_user"},
			{Name: "comments", Label: "Additional comments", Type: "journal"},
			{Name: "work_notes", Label: "Work notes", Type: "journal", Access: catalog.FieldAccessDef{Read: []string{"itil"}}},
			{Name: "comments_and_work_notes", Type: "journal"},
		}},
		{Name: "incident", Label: "Incident", Extends: "task", Fields: []catalog.FieldDef{
			{Name: "state", Type: "integer", Choices: choices("1", "New", "2", "In Progress", "12", "Waiting")},
			{Name: "category", Type: "string", Choices: choices("software", "Software", "db2", "DB2", "sql server", "SQL Server")},
			{Name: "priority", Type: "integer", ReadOnly: true, Choices: choices("1", "1 - Critical", "3", "3 - Moderate")},
			{Name: "caller_id", Type: "reference", Reference: "sys_user"},
			{Name: "resolved_at", Type: "datetime"},
			{Name: "due_date", Type: "date"},
			{Name: "reassignment_count", Type: "integer"},
			{Name: "reopen_count", Type: "integer"},
			{Name: "business_duration", Type: "duration"},
			{Name: "cost", Type: "decimal"},
		}},
		{Name: "Orders", Audit: &plain, External: true, Key: []string{"ORDER_ID"}, Fields: []catalog.FieldDef{
			{Name: "ORDER_ID", Type: "integer", Identity: true},
			{Name: "ORIGIN", Type: "string"},
			{Name: "detail", Type: "json"},
		}},
		{Name: "order_line", Audit: &plain, External: true, Key: []string{"order", "line"}, Display: "item", Fields: []catalog.FieldDef{
			{Name: "order", Type: "integer"}, {Name: "line", Type: "integer"}, {Name: "item", Type: "string"},
		}},
		{Name: "old_log", Audit: &plain, External: true, Display: "text", Fields: []catalog.FieldDef{{Name: "text", Type: "string"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}
