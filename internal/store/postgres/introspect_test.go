package postgres

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// nasty is a schema of the kind that grows over years.
const nasty = `
CREATE TYPE mood AS ENUM ('sad', 'so-so', 'it''s "fine"');
CREATE TYPE point2 AS (x int, y int);
CREATE DOMAIN email AS varchar(40) NOT NULL CHECK (VALUE LIKE '%@%');
CREATE DOMAIN money2 AS numeric(10,2) DEFAULT 1.5;
CREATE SCHEMA "Sales.EU";
CREATE TABLE customer (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	mail email,
	feeling mood DEFAULT 'so-so',
	tags text[],
	nums int[],
	doc jsonb,
	token uuid DEFAULT gen_random_uuid() UNIQUE,
	born timestamptz,
	small smallint NOT NULL DEFAULT 7,
	credit money2 CHECK (credit >= 0),
	doubled bigint GENERATED ALWAYS AS (small * 2) STORED,
	spot point2,
	span tsrange,
	code char(3),
	xdoc xml,
	daily time,
	pair point,
	plain json
);
CREATE TABLE "Order Details" (
	"order" int,
	"Line No." int,
	"select" text COLLATE "und-x-icu",
	"Select" varchar(5) NOT NULL,
	customer bigint REFERENCES customer,
	PRIMARY KEY ("Line No.", "order"),
	UNIQUE ("select", "Select")
);
CREATE TABLE log (at timestamp DEFAULT now(), line text);
CREATE TABLE "user" (id serial PRIMARY KEY, name text UNIQUE, boss int REFERENCES "user" (id), mood mood);
CREATE UNIQUE INDEX partial ON "user" (mood) WHERE mood IS NOT NULL;
CREATE VIEW happy AS SELECT id, mail FROM customer WHERE feeling = 'it''s "fine"';
CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (100);
CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF NEW.name = 'bad' THEN RAISE EXCEPTION 'no bad names here'; END IF;
	NEW.name = upper(NEW.name); RETURN NEW; END $$;
CREATE TRIGGER shout BEFORE INSERT OR UPDATE ON "user" FOR EACH ROW EXECUTE FUNCTION shout();
CREATE TABLE "Sales.EU"."a.b" (k text PRIMARY KEY);
`

func openNasty(t *testing.T) (*Store, *catalog.Snapshot, []catalog.TableDef) {
	t.Helper()
	s := open(t, Options{})
	if s == nil {
		return nil, nil, nil
	}
	ctx := context.Background()
	err := s.with(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, nasty)
		return err
	})
	if err != nil {
		t.Fatal(record.AsError(err).Err)
	}
	defs, err := s.Schema().Introspect(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	return s, mustBuild(t, defs...), defs
}

func TestIntrospect_DescribesANastySchema(t *testing.T) {
	s, snap, defs := openNasty(t)
	if s == nil {
		return
	}
	choices := []catalog.Choice{{Value: "sad", Label: "sad"}, {Value: "so-so", Label: "so-so"}, {Value: `it's "fine"`, Label: `it's "fine"`}}
	want := []catalog.TableDef{
		{Name: "Order_Details", Label: "Order Details", Stored: "Order Details", Key: []string{"Line_No", "order"}, Uniques: [][]string{{"select", "Select_2"}}, Fields: []catalog.FieldDef{
			{Name: "order", Type: "integer", Native: "integer", Mandatory: true},
			{Name: "Line_No", Label: "Line No.", Column: "Line No.", Type: "integer", Native: "integer", Mandatory: true},
			{Name: "select", Type: "string", Native: "text"},
			{Name: "Select_2", Label: "Select", Column: "Select", Type: "string", Native: "character varying(5)", MaxLength: 5, Mandatory: true},
			{Name: "customer", Type: "reference", Native: "bigint", Reference: "customer", ForeignKey: true},
		}},
		{Name: "customer", Key: []string{"id"}, Uniques: [][]string{{"token"}}, Fields: []catalog.FieldDef{
			{Name: "id", Type: "integer", Native: "bigint", Identity: true},
			{Name: "mail", Type: "string", Native: "email", MaxLength: 40, Mandatory: true},
			{Name: "feeling", Type: "string", Native: "mood", Choices: choices},
			{Name: "tags", Type: "json", Native: "text[]", ReadOnly: true},
			{Name: "nums", Type: "json", Native: "integer[]", ReadOnly: true},
			{Name: "doc", Type: "json", Native: "jsonb"},
			{Name: "token", Type: "guid", Native: "uuid"},
			{Name: "born", Type: "datetime", Native: "timestamp with time zone"},
			{Name: "small", Type: "integer", Native: "smallint"},
			{Name: "credit", Type: "decimal", Native: "money2"},
			{Name: "doubled", Type: "integer", Native: "bigint", Generated: true},
			{Name: "spot", Type: "string", Native: "point2", ReadOnly: true},
			{Name: "span", Type: "string", Native: "tsrange", ReadOnly: true},
			{Name: "code", Type: "string", Native: "character(3)", MaxLength: 3},
			{Name: "xdoc", Type: "string", Native: "xml", ReadOnly: true},
			{Name: "daily", Type: "string", Native: "time without time zone", ReadOnly: true},
			{Name: "pair", Type: "string", Native: "point", ReadOnly: true},
			{Name: "plain", Type: "json", Native: "json"},
		}},
		{Name: "happy", ReadOnly: true, Fields: []catalog.FieldDef{
			{Name: "id", Type: "integer", Native: "bigint"}, {Name: "mail", Type: "string", Native: "email", MaxLength: 40, Mandatory: true},
		}},
		{Name: "log", ReadOnly: true, Fields: []catalog.FieldDef{
			{Name: "at", Type: "datetime", Native: "timestamp without time zone"}, {Name: "line", Type: "string", Native: "text"},
		}},
		{Name: "part", Key: []string{"id"}, Fields: []catalog.FieldDef{{Name: "id", Type: "integer", Native: "integer"}, {Name: "v", Type: "string", Native: "text"}}},
		{Name: "user", Key: []string{"id"}, Uniques: [][]string{{"name"}}, Fields: []catalog.FieldDef{
			{Name: "id", Type: "integer", Native: "integer", Identity: true},
			{Name: "name", Type: "string", Native: "text"},
			{Name: "boss", Type: "reference", Native: "integer", Reference: "user", ForeignKey: true},
			{Name: "mood", Type: "string", Native: "mood", Choices: choices},
		}},
	}
	for i := range want {
		want[i].External, want[i].Audit = true, &plain
	}
	if d := cmp.Diff(want, defs); d != "" {
		t.Fatal(d)
	}
	plan, err := s.Schema().Plan(context.Background(), snap)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&store.Plan{}, plan); d != "" {
		t.Fatal(d)
	}
	other, err := s.Schema().Introspect(context.Background(), "Sales.EU")
	if err != nil {
		t.Fatal(err)
	}
	snap = mustBuild(t, other...)
	mustInsert(t, s, &store.InsertSet{Table: mustTable(t, snap, "a_b"), Fields: []string{"k"}, Rows: [][]record.Value{row("x")}})
	if d := cmp.Diff([][]string{{"x"}}, all(t, s, snap, "a_b", "k")); d != "" {
		t.Fatal(d)
	}
}

func TestStore_ReadsAndWritesANastySchema(t *testing.T) {
	s, snap, _ := openNasty(t)
	if s == nil {
		return
	}
	ctx := context.Background()
	customer := mustTable(t, snap, "customer")
	w := mustInsert(t, s, &store.InsertSet{
		Table: customer, Fields: []string{"mail", "feeling", "doc", "born", "small", "code", "credit"}, Return: []string{"id", "doubled", "credit", "code"},
		Rows: [][]record.Value{
			row("a@x", `it's "fine"`, `{"k": [1, "\"}"]}`, "2024-01-01 12:00:00", 4, "abc", "2.50"),
			row("b@x", "sad", nil, nil, 5, "ab", nil),
		},
	})
	if w.Errs != nil || w.Rows.At(0)[1].N != 8 || w.Rows.At(1)[0].N != 2 || w.Rows.At(0)[2].S != "2.50" {
		t.Fatalf("%+v %v", w.Errs, w.Rows.At(0))
	}
	if err := s.with(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, `UPDATE customer SET tags = '{a,"b,c"}', nums = '{1,2}', spot = '(1,2)', span = '[2024-01-01,2024-01-02)' WHERE id = 1`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	got := all(t, s, snap, "customer", "id", "mail", "feeling", "tags", "nums", "doc", "born", "spot", "span")
	want := [][]string{
		{"1", "a@x", `it's "fine"`, `["a","b,c"]`, "[1,2]", `{"k": [1, "\"}"]}`, "2024-01-01 12:00:00", "(1,2)", `["2024-01-01 00:00:00","2024-01-02 00:00:00")`},
		{"2", "b@x", "sad", "∅", "∅", "∅", "∅", "∅", "∅"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][]string{{"1", "a@x"}}, all(t, s, snap, "happy", "id", "mail")); d != "" {
		t.Error(d)
	}

	details := mustTable(t, snap, "Order_Details")
	mustInsert(t, s, &store.InsertSet{Table: details, Fields: []string{"order", "Line_No", "select", "Select_2", "customer"}, Rows: [][]record.Value{row(1, 2, "x", "y", "1")}})
	if d := cmp.Diff([][]string{{"2", "x", "1", "a@x"}}, all(t, s, snap, "Order_Details", "Line_No", "select", "customer", "customer.mail")); d != "" {
		t.Error(d)
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	u, err := tx.Update(ctx, &store.UpdateSet{Table: details, Keys: [][]record.Value{row(2, 1)}, Fields: []string{"customer", "select"}, Rows: [][]record.Value{row("2", "z")}, Return: []string{"customer"}})
	if err != nil || !u.Hit[0] || u.Rows.At(0)[0].Text() != "2" {
		t.Fatalf("%v %+v", err, u)
	}

	// What the database refuses is told as what it is.
	user := mustTable(t, snap, "user")
	fails := func(table *catalog.Table, fields []string, values []record.Value, kind record.Kind, field string) {
		t.Helper()
		if err := tx.Mark(ctx); err != nil {
			t.Fatal(err)
		}
		w, err := tx.Insert(ctx, &store.InsertSet{Table: table, Fields: fields, Rows: [][]record.Value{values}})
		if err == nil && w.Errs != nil {
			err = w.Errs[0]
		}
		if e := record.AsError(err); e == nil || e.Kind != kind || e.Field != field {
			t.Errorf("got %v, want %s at %q", err, kind, field)
		}
		if err := tx.Back(ctx); err != nil {
			t.Fatal(err)
		}
		if err := tx.Drop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	fails(user, []string{"name"}, row("bad"), record.Rejected, "")
	fails(user, []string{"name", "boss"}, row("x", "99"), record.Restricted, "boss")
	fails(user, []string{"mood"}, row("angry"), record.Invalid, "")
	fails(customer, []string{"mail"}, row("no at sign"), record.Invalid, "")
	fails(customer, []string{"mail", "small"}, row("a@b", nil), record.Invalid, "small")
	fails(customer, []string{"mail", "code"}, row("a@b", "abcd"), record.Invalid, "")
	fails(customer, []string{"mail", "small"}, row("a@b", 70000), record.Invalid, "")
	fails(customer, []string{"mail", "doc"}, row("a@b", "{"), record.Invalid, "")
	fails(customer, []string{"mail", "id"}, row("a@b", 5), record.Invalid, "")
	w, err = tx.Insert(ctx, &store.InsertSet{Table: user, Fields: []string{"name"}, Return: []string{"id", "name"}, Rows: [][]record.Value{row("ann"), row("ann"), row("bob")}})
	if err != nil {
		t.Fatal(err)
	}
	if w.Errs[1] == nil || w.Errs[1].Kind != record.Conflict || w.Rows.At(0)[1].S != "ANN" || w.Rows.At(2)[1].S != "BOB" || !w.Rows.At(1)[0].IsNull() {
		t.Fatalf("%v %v", w.Errs, w.Rows)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestStore_ComparesWhatTheDatabaseCannot asks for each column of a nasty schema to be grouped and compared with itself: the
// database has no equality for json, xml and point, and no collation for what is no text.
func TestStore_ComparesWhatTheDatabaseCannot(t *testing.T) {
	s, snap, _ := openNasty(t)
	if s == nil {
		return
	}
	customer := mustTable(t, snap, "customer")
	mustInsert(t, s, &store.InsertSet{Table: customer, Fields: []string{"mail", "plain"}, Rows: [][]record.Value{row("a@x", `{"k": 1}`)}})
	if err := s.with(t.Context(), func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), `UPDATE customer SET tags = '{a}', nums = '{1}', spot = '(1,2)', span = '[2024-01-01,2024-01-02)', xdoc = '<a/>', daily = '10:00', pair = '(1,2)', doc = '1', born = now(), code = 'x', credit = 1`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, f := range customer.Fields {
		eq := record.Compare(record.Eq, record.F(f.Name), record.F(f.Name))
		for _, fold := range []bool{false, true} {
			eq.Fold = fold
			res, err := s.Query(t.Context(), &store.Read{Snapshot: snap, Table: customer, Fields: []string{"id"}, Query: &record.Query{Where: eq, Limit: -1}})
			if err != nil {
				t.Errorf("%s = %[1]s: %v", f.Name, err)
				continue
			}
			if err := res.Materialise(1 << 20); err != nil || res.Len() != 1 {
				t.Errorf("%s = %[1]s, fold %v: %d rows, %v", f.Name, fold, res.Len(), err)
			}
			res.Close()
		}
		if f.Type == record.TypeBytes {
			continue
		}
		res, err := s.Query(t.Context(), &store.Read{Snapshot: snap, Table: customer, Query: &record.Query{
			Limit: -1, Group: []string{f.Name}, Aggs: []record.Agg{{Func: record.Count}, {Func: record.CountDistinct, Path: f.Name}},
		}})
		if err != nil {
			t.Errorf("grouped by %s: %v", f.Name, err)
			continue
		}
		if err := res.Materialise(1 << 20); err != nil || res.Len() != 1 {
			t.Errorf("grouped by %s: %d rows, %v", f.Name, res.Len(), err)
		}
		res.Close()
	}
}
