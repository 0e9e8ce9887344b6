package odata

import (
	"path/filepath"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// marketDefinitions are a little EPM: partners in a tree, what they supply, orders with items, shelves with a key of two fields, and
// every kind of property.
func marketDefinitions() catalog.Definitions {
	no := false
	f := func(name, typ string) catalog.FieldDef { return catalog.FieldDef{Name: name, Type: typ} }
	ref := func(name, table string) catalog.FieldDef {
		return catalog.FieldDef{Name: name, Type: "reference", Reference: table}
	}
	must := func(d catalog.FieldDef) catalog.FieldDef { d.Mandatory = true; return d }
	p := func(name, field string) catalog.PropertyDef { return catalog.PropertyDef{Name: name, Field: field} }
	everybody := catalog.AccessDef{Read: []catalog.GrantDef{{Where: "name != 'hidden'"}}}
	return catalog.Definitions{
		Tables: []catalog.TableDef{
			{Name: "partner", Audit: &no, Key: []string{"id"}, Access: everybody, Fields: []catalog.FieldDef{
				must(f("id", "string")), f("name", "string"), f("city", "string"), f("zip", "string"), ref("parent", "partner"), f("changed", "datetime"),
			}, Indexes: [][]string{{"parent"}}},
			{Name: "product", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				must(f("id", "string")), must(f("name", "string")), f("category", "string"), ref("supplier", "partner"), f("price", "decimal"),
				f("stock", "integer"), f("weight", "float"), f("active", "boolean"), f("created", "datetime"), f("since", "date"),
				f("lead", "duration"), f("opens", "string"), f("uid", "guid"), f("photo", "bytes"), f("changed", "datetime"),
			}, Indexes: [][]string{{"supplier"}, {"category"}}},
			{Name: "orders", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				must(f("id", "string")), ref("customer", "partner"), f("note", "string"), f("version", "integer"),
			}, Indexes: [][]string{{"customer"}}},
			{Name: "item", Audit: &no, Key: []string{"orders", "pos"}, Fields: []catalog.FieldDef{
				ref("orders", "orders"), must(f("pos", "string")), ref("product", "product"), f("quantity", "decimal"),
			}, Indexes: [][]string{{"product"}}},
			{Name: "shelf", Audit: &no, Key: []string{"product", "plant"}, Fields: []catalog.FieldDef{
				ref("product", "product"), must(f("plant", "string")), f("place", "string"),
			}},
			{Name: "move", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				must(f("id", "integer")), ref("product", "product"), f("plant", "string"), f("amount", "integer"),
			}},
			{Name: "secret", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{must(f("id", "string"))}},
		},
		Services: []catalog.ServiceDef{{
			Name: "MARKET", Schema: "MARKET",
			Complex: []catalog.ComplexDef{{Name: "Address", Properties: []catalog.PropertyDef{{Name: "City"}, {Name: "Zip"}}}},
			Sets: []catalog.SetDef{
				{
					Name: "PartnerSet", Table: "partner", ETag: "ChangedAt",
					Properties: []catalog.PropertyDef{
						p("ID", "id"), p("Name", "name"),
						{Name: "Address", Type: "Address", Members: map[string]string{"City": "city", "Zip": "zip"}},
						p("ParentID", "parent"), p("ChangedAt", "changed"),
					},
					Navigation: []catalog.NavDef{
						{Name: "ToParent", Target: "PartnerSet", On: map[string]string{"ParentID": "ID"}},
						{Name: "ToChildren", Target: "PartnerSet", Many: true, On: map[string]string{"ID": "ParentID"}},
						{Name: "ToProducts", Target: "ProductSet", Many: true, On: map[string]string{"ID": "SupplierID"}},
						{Name: "ToOrders", Target: "OrderSet", Many: true, On: map[string]string{"ID": "CustomerID"}},
					},
				},
				{
					Name: "ProductSet", Table: "product", ETag: "ChangedAt",
					Properties: []catalog.PropertyDef{
						p("ID", "id"), p("Name", "name"), p("Category", "category"), p("SupplierID", "supplier"), p("SupplierName", "supplier.name"),
						{Name: "Price", Field: "price", Precision: 16, Scale: 3},
						{Name: "Stock", Field: "stock", Type: "Edm.Int64"},
						p("Weight", "weight"),
						p("Active", "active"), p("CreatedAt", "created"), p("Since", "since"), p("Lead", "lead"),
						{Name: "Opens", Field: "opens", Type: "Edm.TimeOfDay"},
						p("UID", "uid"), p("Photo", "photo"), p("ChangedAt", "changed"),
					},
					Navigation: []catalog.NavDef{
						{Name: "ToSupplier", Target: "PartnerSet", On: map[string]string{"SupplierID": "ID"}},
						{Name: "ToItems", Target: "ItemSet", Many: true, On: map[string]string{"ID": "ProductID"}},
						{Name: "ToShelves", Target: "ShelfSet", Many: true, On: map[string]string{"ID": "ProductID"}},
					},
				},
				{
					Name: "OrderSet", Table: "orders", ETag: "Version", MaxPage: 50,
					Properties: []catalog.PropertyDef{p("ID", "id"), p("CustomerID", "customer"), p("Note", "note"), {Name: "Version", Field: "version", Type: "Edm.Int32"}},
					Navigation: []catalog.NavDef{
						{Name: "ToCustomer", Target: "PartnerSet", On: map[string]string{"CustomerID": "ID"}},
						{Name: "ToItems", Target: "ItemSet", Many: true, On: map[string]string{"ID": "OrderID"}},
					},
				},
				{
					Name: "ItemSet", Table: "item",
					Properties: []catalog.PropertyDef{p("OrderID", "orders"), p("Pos", "pos"), p("ProductID", "product"), {Name: "Quantity", Field: "quantity", Precision: 13, Scale: 3}},
					Navigation: []catalog.NavDef{
						{Name: "ToOrder", Target: "OrderSet", On: map[string]string{"OrderID": "ID"}},
						{Name: "ToProduct", Target: "ProductSet", On: map[string]string{"ProductID": "ID"}},
					},
				},
				{
					Name: "ShelfSet", Table: "shelf", Properties: []catalog.PropertyDef{p("ProductID", "product"), p("Plant", "plant"), p("Place", "place")},
					Navigation: []catalog.NavDef{{Name: "ToMoves", Target: "MoveSet", Many: true, On: map[string]string{"ProductID": "ProductID", "Plant": "Plant"}}},
				},
				{
					Name: "MoveSet", Table: "move", Properties: []catalog.PropertyDef{p("ID", "id"), p("ProductID", "product"), p("Plant", "plant"), p("Amount", "amount")},
					Navigation: []catalog.NavDef{{Name: "ToShelf", Target: "ShelfSet", On: map[string]string{"ProductID": "ProductID", "Plant": "Plant"}}},
				},
				{Name: "SecretSet", Table: "secret", Allow: []string{"create"}, Properties: []catalog.PropertyDef{p("ID", "id")}},
				{
					Name: "ParcelSet", Key: []string{"ID"}, Properties: []catalog.PropertyDef{{Name: "ID"}, {Name: "Note"}},
					Navigation: []catalog.NavDef{{Name: "ToProducts", Target: "ProductSet", Many: true}},
				},
			},
		}},
	}
}

// market is the engine of a test on one database, with records.
type market struct {
	snap *catalog.Snapshot
	svc  *edm.Service
	exec dialect.Executor
	d    *Dialect
}

// onMarket calls f for each database with a maker of markets. Without a PostgreSQL for tests it is SQLite alone.
func onMarket(t *testing.T, f func(t *testing.T, open func(t *testing.T) *market)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) *market {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			if err != nil {
				t.Fatal(err)
			}
			return newMarket(t, s)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) *market {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			if err != nil {
				t.Fatal(err)
			}
			return newMarket(t, s)
		})
	})
}

func newMarket(t testing.TB, s store.Store) *market {
	t.Cleanup(func() { s.Close() })
	m := marketSnapshot(t)
	storetest.Create(t, s, m.snap)
	e, err := engine.New(s, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m.exec = e
	m.fill(t)
	return m
}

// marketSnapshot is a market without an engine.
func marketSnapshot(t testing.TB) *market {
	snap, err := catalog.Build(1, marketDefinitions())
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{})
	svc, err := d.model.service(snap, "MARKET")
	if err != nil {
		t.Fatal(err)
	}
	d.now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	return &market{snap: snap, svc: svc, d: d}
}

// insert writes records of a table: each row is the texts of fields, "" for null.
func (m *market) insert(t testing.TB, name string, fields []string, rows ...[]string) {
	t.Helper()
	table, err := m.snap.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	u := &record.Unit{Version: 1, Actors: []record.Actor{{System: true}}}
	for _, row := range rows {
		op := record.Op{Verb: record.Insert, Table: name, Group: 1}
		for i, text := range row {
			if text == "" {
				continue
			}
			v, err := record.Parse(table.Field(fields[i]).Type, text)
			if err != nil {
				t.Fatal(err)
			}
			op.Set = append(op.Set, record.Assign{Field: fields[i], Value: v})
		}
		u.Ops = append(u.Ops, op)
	}
	for _, o := range m.exec.Execute(t.Context(), m.snap, u) {
		if o.Err != nil {
			t.Fatalf("insert into %s: %v", name, o.Err)
		}
	}
}

func (m *market) fill(t testing.TB) {
	m.insert(t, "partner", []string{"id", "name", "city", "zip", "parent", "changed"},
		[]string{"P1", "SAP & <Sons>", "Walldorf", "69190", "", "2024-01-31 10:00:00"},
		[]string{"P2", "Becker \"B\" Berlin", "Berlin", "10115", "P1", "2024-01-31 10:00:00.5"},
		[]string{"P3", "Ünïcode 😀", "", "", "P1", ""},
		[]string{"P4", "O'Neil/Co", "Dublin", "", "P2", "1969-12-31 23:59:59.9999"},
		[]string{"P5", "hidden", "Nowhere", "", "P1", "2024-02-01 00:00:00"})
	m.insert(t, "product", []string{"id", "name", "category", "supplier", "price", "stock", "weight", "active", "created", "since", "lead", "opens", "uid", "photo", "changed"},
		[]string{"HT-1000", "Notebook Basic 15", "Notebooks", "P1", "956", "9007199254740993", "4.2", "true", "2024-01-31 10:00:00.123456", "2024-01-31", "3661", "08:30:00", "0123456789abcdef0123456789abcdef", "\x00\xffab", "2024-01-31 10:00:00"},
		[]string{"HT-1001", "Notebook Basic 17", "Notebooks", "P1", "1249.5", "0", "-1e300", "false", "", "1969-12-31", "-60", "23:59:59", "", "", "2024-01-31 10:00:01"},
		[]string{"HT-1002", "Mouse's \"pad\" \\ 100%", "Mice", "P2", "0.0005", "-1", "0", "", "2024-02-29 23:59:59", "", "90000", "", "", "", ""},
		[]string{"HT 1003/x", "Odd key", "Mice", "P9", "-7", "", "", "", "", "", "", "", "", "", ""},
		[]string{"HT-1004", "Nobody's", "", "", "", "", "", "", "", "", "", "", "", "", ""},
		[]string{"HT-1005", "Of the hidden", "Mice", "P5", "1", "", "", "", "", "", "", "", "", "", ""})
	m.insert(t, "orders", []string{"id", "customer", "note", "version"},
		[]string{"0500000000", "P1", "first", "1"}, []string{"0500000001", "P2", "", "7"}, []string{"0500000002", "", "lost", ""})
	m.insert(t, "item", []string{"orders", "pos", "product", "quantity"},
		[]string{"0500000000", "0000000010", "HT-1000", "1"}, []string{"0500000000", "0000000020", "HT-1001", "2.5"},
		[]string{"0500000000", "0000000030", "HT-1000", "3"}, []string{"0500000001", "0000000010", "HT-1002", "4"})
	m.insert(t, "shelf", []string{"product", "plant", "place"},
		[]string{"HT-1000", "0001", "A"}, []string{"HT-1000", "0002", "B"}, []string{"HT-1001", "0001", "C"}, []string{"HT-1001", "0002", "D"})
	m.insert(t, "move", []string{"id", "product", "plant", "amount"},
		[]string{"1", "HT-1000", "0001", "5"}, []string{"2", "HT-1000", "0002", "6"}, []string{"3", "HT-1001", "0001", "7"}, []string{"4", "HT-1001", "0003", "8"})
}
