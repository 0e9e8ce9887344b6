package catalog

import "weir/internal/record"

// System is weir's own tables. They live in a schema of their own (a name prefix on SQLite) and are not in any snapshot
// that a dialect sees; auth, project and the engine read and write them through the same store.
func System() *Snapshot { return systemSnapshot }

// SystemSchema is the database schema of weir's own tables on PostgreSQL; on SQLite their names begin with it and "_".
const SystemSchema = "weir"

var systemSnapshot = func() *Snapshot {
	text := func(name string) FieldDef { return FieldDef{Name: name, Type: record.TypeString.String()} }
	num := func(name string) FieldDef { return FieldDef{Name: name, Type: record.TypeInteger.String()} }
	when := func(name string) FieldDef { return FieldDef{Name: name, Type: record.TypeDateTime.String()} }
	flag := func(name string) FieldDef { return FieldDef{Name: name, Type: record.TypeBoolean.String()} }
	blob := func(name string) FieldDef { return FieldDef{Name: name, Type: record.TypeBytes.String()} }
	plain := false
	defs := []TableDef{
		// One row: what is applied. version moves with every apply; checksum is that of the definitions.
		{Name: "project", Key: []string{"id"}, Fields: []FieldDef{num("id"), num("version"), text("name"), when("applied"), text("checksum")}},
		// The definitions of the current version, one row for each file (kind "table", "endpoint", "service"), all with that version.
		{Name: "definition", Key: []string{"kind", "name"}, Fields: []FieldDef{text("kind"), text("name"), text("body"), num("version")}},
		// Data files that were loaded, so that they are loaded once.
		{Name: "loaded", Key: []string{"name"}, Fields: []FieldDef{text("name"), text("checksum"), when("at")}},
		// The next number of each sequence.
		{Name: "sequence", Key: []string{"name"}, Fields: []FieldDef{text("name"), num("next")}},
		// Hashed secrets: values of password fields, client secrets. owner is "table.field" or "client".
		{Name: "secret", Key: []string{"owner", "key"}, Fields: []FieldDef{text("owner"), text("key"), text("hash"), num("version"), when("changed")}},
		// Idempotency tokens with their stored outcome.
		{Name: "token", Key: []string{"token"}, Fields: []FieldDef{text("token"), text("request"), text("outcome"), when("at")}, Indexes: [][]string{{"at"}}},
		// OAuth access and refresh tokens, hashed.
		{Name: "grant", Key: []string{"hash"}, Fields: []FieldDef{text("hash"), text("kind"), text("client"), text("user"), text("pair"), when("expires")}, Indexes: [][]string{{"expires"}}},
		// OAuth clients.
		{Name: "client", Key: []string{"id"}, Fields: []FieldDef{text("id"), text("name"), text("user"), text("grants")}},
		// Calls that are answered later, with their answers: see package job. lease is when whoever finds it may take it.
		{Name: "job", Key: []string{"id"}, Fields: []FieldDef{
			text("id"), text("user"), blob("head"), blob("body"), num("state"), num("attempts"), flag("canceled"), text("node"), when("created"), when("lease"),
			when("finished"), blob("answer"), blob("result"),
		}, Indexes: [][]string{{"state", "lease"}}},
	}
	for i := range defs {
		defs[i].Audit = &plain
	}
	s, err := Build(0, Definitions{Tables: defs})
	if err != nil {
		panic("catalog: system tables: " + err.Error())
	}
	for _, t := range s.tables {
		t.System, t.Schema = true, SystemSchema
	}
	return s
}()
