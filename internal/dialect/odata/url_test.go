package odata

import (
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
)

// urlDefinitions are tables and a service with every kind of property and relation: references, a plain field that another
// table's key equals, a relation of two fields, complex properties, and a shell.
func urlDefinitions() catalog.Definitions {
	no, yes := false, true
	key := func(name string, n int) catalog.FieldDef {
		return catalog.FieldDef{Name: name, Type: "string", MaxLength: n}
	}
	ref := func(name, table string) catalog.FieldDef {
		return catalog.FieldDef{Name: name, Type: "reference", Reference: table}
	}
	f := func(name, typ string) catalog.FieldDef { return catalog.FieldDef{Name: name, Type: typ} }
	p := func(name, field string) catalog.PropertyDef { return catalog.PropertyDef{Name: name, Field: field} }
	return catalog.Definitions{
		Tables: []catalog.TableDef{
			{Name: "partner", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				key("id", 10), f("name", "string"), f("city", "string"), f("zip", "string"), f("role", "string"),
				ref("parent", "partner"), f("changed", "datetime"),
			}},
			{Name: "product", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				key("id", 10), f("name", "string"), f("category", "string"), ref("supplier", "partner"), f("price", "decimal"),
				f("stock", "integer"), f("weight", "float"), f("active", "boolean"), f("created", "datetime"), f("since", "date"),
				f("lead", "duration"), f("opens", "string"), f("currency", "string"), f("uid", "guid"), f("photo", "bytes"),
			}},
			{Name: "orders", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				key("id", 10), ref("customer", "partner"), f("note", "string"), f("gross", "decimal"), f("created", "datetime"),
			}},
			{Name: "item", Audit: &no, Key: []string{"orders", "pos"}, Fields: []catalog.FieldDef{
				ref("orders", "orders"), key("pos", 10), ref("product", "product"), f("quantity", "decimal"), f("note", "string"),
			}},
			{Name: "currency", Audit: &no, Key: []string{"code"}, Fields: []catalog.FieldDef{key("code", 5), f("name", "string"), f("digits", "integer")}},
			{Name: "bin", Audit: &no, Key: []string{"product", "plant"}, Fields: []catalog.FieldDef{
				ref("product", "product"), key("plant", 4), f("place", "string"),
			}},
			{Name: "move", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
				f("id", "integer"), ref("product", "product"), f("plant", "string"), f("amount", "integer"),
			}},
		},
		Services: []catalog.ServiceDef{{
			Name: "EPM", Schema: "EPM",
			Complex: []catalog.ComplexDef{{Name: "Address", Properties: []catalog.PropertyDef{{Name: "City"}, {Name: "Zip"}}}},
			Sets: []catalog.SetDef{
				{
					Name: "PartnerSet", Table: "partner", Search: []string{"Name", "Role"},
					Properties: []catalog.PropertyDef{
						p("ID", "id"), p("Name", "name"),
						{Name: "Address", Type: "Address", Members: map[string]string{"City": "city", "Zip": "zip"}},
						p("Role", "role"), p("ParentID", "parent"), p("ChangedAt", "changed"),
					},
					Navigation: []catalog.NavDef{
						{Name: "ToParent", Target: "PartnerSet", On: map[string]string{"ParentID": "ID"}},
						{Name: "ToChildren", Target: "PartnerSet", Many: true, On: map[string]string{"ID": "ParentID"}},
						{Name: "ToProducts", Target: "ProductSet", Many: true, On: map[string]string{"ID": "SupplierID"}},
						{Name: "ToOrders", Target: "OrderSet", Many: true, On: map[string]string{"ID": "CustomerID"}},
					},
				},
				{
					Name: "ProductSet", Table: "product", Search: []string{"Name", "Category"},
					Properties: []catalog.PropertyDef{
						p("ID", "id"), p("Name", "name"), p("Category", "category"), p("SupplierID", "supplier"), p("SupplierName", "supplier.name"),
						{Name: "Price", Field: "price", Precision: 16, Scale: 3},
						{Name: "Stock", Field: "stock", Type: "Edm.Int32"},
						p("Weight", "weight"),
						p("Active", "active"), p("CreatedAt", "created"), p("Since", "since"), p("Lead", "lead"),
						{Name: "Opens", Field: "opens", Type: "Edm.TimeOfDay"},
						p("Currency", "currency"), p("UID", "uid"), p("Photo", "photo"),
					},
					Navigation: []catalog.NavDef{
						{Name: "ToSupplier", Target: "PartnerSet", On: map[string]string{"SupplierID": "ID"}},
						{Name: "ToCurrency", Target: "CurrencySet", On: map[string]string{"Currency": "Code"}},
						{Name: "ToItems", Target: "ItemSet", Many: true, On: map[string]string{"ID": "ProductID"}},
						{Name: "ToBins", Target: "BinSet", Many: true, On: map[string]string{"ID": "ProductID"}},
					},
				},
				{
					Name: "OrderSet", Table: "orders",
					Properties: []catalog.PropertyDef{p("ID", "id"), p("CustomerID", "customer"), p("Note", "note"), p("Gross", "gross"), p("CreatedAt", "created")},
					Navigation: []catalog.NavDef{
						{Name: "ToCustomer", Target: "PartnerSet", On: map[string]string{"CustomerID": "ID"}},
						{Name: "ToItems", Target: "ItemSet", Many: true, On: map[string]string{"ID": "OrderID"}},
					},
				},
				{
					Name: "ItemSet", Table: "item",
					Properties: []catalog.PropertyDef{p("OrderID", "orders"), p("Pos", "pos"), p("ProductID", "product"), p("Quantity", "quantity"), p("Note", "note")},
					Navigation: []catalog.NavDef{
						{Name: "ToOrder", Target: "OrderSet", On: map[string]string{"OrderID": "ID"}},
						{Name: "ToProduct", Target: "ProductSet", On: map[string]string{"ProductID": "ID"}},
					},
				},
				{Name: "CurrencySet", Table: "currency", Properties: []catalog.PropertyDef{p("Code", "code"), p("Name", "name"), p("Digits", "digits")}},
				{
					Name: "BinSet", Table: "bin", Properties: []catalog.PropertyDef{p("ProductID", "product"), p("Plant", "plant"), p("Place", "place")},
					Navigation: []catalog.NavDef{{Name: "ToMoves", Target: "MoveSet", Many: true, On: map[string]string{"ProductID": "ProductID", "Plant": "Plant"}}},
				},
				{
					Name: "MoveSet", Table: "move", Properties: []catalog.PropertyDef{p("ID", "id"), p("ProductID", "product"), p("Plant", "plant"), p("Amount", "amount")},
					Navigation: []catalog.NavDef{{Name: "ToBin", Target: "BinSet", On: map[string]string{"ProductID": "ProductID", "Plant": "Plant"}}},
				},
				{
					Name: "ShellSet", Key: []string{"ID"}, Properties: []catalog.PropertyDef{{Name: "ID"}, {Name: "Note"}},
					Navigation: []catalog.NavDef{{Name: "ToProducts", Target: "ProductSet", Many: true}},
				},
			},
			Functions: []catalog.FunctionDef{
				{Name: "Confirm", Method: "POST", Set: "OrderSet", Returns: "Order", Endpoint: "e", ActionFor: "Order", Parameters: []catalog.PropertyDef{
					{Name: "ID", MaxLength: 10, Nullable: &no}, {Name: "Times", Type: "Edm.Int32", Nullable: &yes},
				}},
				{Name: "Top", Set: "ProductSet", Returns: "Collection(Product)", Endpoint: "e", Parameters: []catalog.PropertyDef{
					{Name: "N", Type: "Edm.Int32", Nullable: &no}, {Name: "Of", MaxLength: 40, Nullable: &yes},
				}},
			},
		}},
		Endpoints: []catalog.EndpointDef{{Name: "e", Path: "/api/x/e", Method: "POST", Script: "1"}},
	}
}

func urlSnapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	snap, err := catalog.Build(1, urlDefinitions())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// urlRequest is a GET of an address below the root of the test service.
func urlRequest(t testing.TB, snap *catalog.Snapshot, ver version, address string) *request {
	t.Helper()
	svc, err := edm.Compile(snap, &snap.Services()[0])
	if err != nil {
		t.Fatal(err)
	}
	rest, raw, _ := strings.Cut(address, "?")
	q := &request{d: New(Options{}), snap: snap, svc: svc, ver: ver, rest: rest, method: "GET", call: &dialect.Call{}}
	q.refs = func(id string) (reference, bool) {
		return reference{set: svc.Set("OrderSet"), key: []record.Value{record.RefTo(0, "id")}}, id == "1" || id == "id-17-2"
	}
	if q.query, err = parseParams(raw); err != nil {
		t.Fatal(err)
	}
	return q
}

// showTarget is a target as text.
func showTarget(t *target) string {
	var b strings.Builder
	values := func(list []record.Value) {
		b.WriteByte('(')
		for i, v := range list {
			if i > 0 {
				b.WriteByte(',')
			}
			if v.IsNull() {
				b.WriteByte('-')
			}
			b.WriteString(v.Text())
		}
		b.WriteByte(')')
	}
	b.WriteString([]string{"service", "metadata", "batch", "set", "entity", "property", "function"}[t.kind])
	if t.set != nil {
		b.WriteString(" " + t.set.Name)
	}
	if t.key != nil {
		values(t.key)
	}
	for _, s := range t.path {
		b.WriteString("/" + s.nav.Name)
		if s.key != nil {
			values(s.key)
		}
	}
	for _, p := range t.prop {
		b.WriteString("." + p.Name)
	}
	if t.function != nil {
		b.WriteString(" " + t.function.Name)
		values(t.args)
	}
	for _, flag := range []struct {
		on   bool
		name string
	}{{t.value, " value"}, {t.count, " count"}, {t.links, " links"}, {t.each, " each"}, {t.filter != nil, " filter"}} {
		if flag.on {
			b.WriteString(flag.name)
		}
	}
	return b.String()
}
