package demo

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/dialect/odata"
	"weir/internal/edm"
	"weir/internal/engine"
	reader "weir/internal/project"
	"weir/internal/record"
	"weir/internal/script"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// The model of the sample service, as the protocol notes (section 8) write it down: Name:type(length), with ! not nullable, -c not
// creatable, -u not updatable, -s not sortable, -f not filterable; D is a decimal with its digits, DT a time.
var model = map[string]string{
	"BusinessPartner": `Address:CT_Address! BusinessPartnerID:S(10)!-c-u CompanyName:S(80)! WebAddress:S-s-f EmailAddress:S(255)! PhoneNumber:S(30) FaxNumber:S(30)
		LegalForm:S(10) CurrencyCode:S(5)! BusinessPartnerRole:S(3)! CreatedAt:DT-c-u ChangedAt:DT-c-u`,
	"Product": `ProductID:S(10)!-u TypeCode:S(2)! Category:S(40)! Name:S(255)!-s-f NameLanguage:S(2)-c-u-s-f Description:S(255)-s-f DescriptionLanguage:S(2)-c-u-s-f
		SupplierID:S(10)! SupplierName:S(80)-c-u TaxTarifCode:Byte! MeasureUnit:S(3)! WeightMeasure:D(13,3) WeightUnit:S(3) CurrencyCode:S(5)! Price:D(16,3)
		Width:D(13,3) Depth:D(13,3) Height:D(13,3) DimUnit:S(3) CreatedAt:DT-c-u ChangedAt:DT-c-u`,
	"SalesOrder": `SalesOrderID:S(10)!-c-u Note:S(255)-u-s-f NoteLanguage:S(2)-c-u-s-f CustomerID:S(10)!-u CustomerName:S(80)-c-u CurrencyCode:S(5)-u
		GrossAmount:D(16,3)-c-u NetAmount:D(16,3)-c-u TaxAmount:D(16,3)-c-u LifecycleStatus:S(1)-c-u LifecycleStatusDescription:S(60)-c-u-s-f
		BillingStatus:S(1)-c-u BillingStatusDescription:S(60)-c-u-s-f DeliveryStatus:S(1)-c-u DeliveryStatusDescription:S(60)-c-u-s-f CreatedAt:DT-c-u ChangedAt:DT-c-u`,
	"SalesOrderLineItem": `SalesOrderID:S(10)!-u ItemPosition:S(10)!-c-u ProductID:S(10)! Note:S(255)-s-f NoteLanguage:S(2)-c-u-s-f CurrencyCode:S(5)-c-u
		GrossAmount:D(16,3)-c-u NetAmount:D(16,3)-c-u TaxAmount:D(16,3)-c-u DeliveryDate:DT!-s-f Quantity:D(13,3)!-s-f QuantityUnit:S(3)-c-u-s-f`,
	"Contact": `Address:CT_Address! ContactGuid:Guid!-c-u BusinessPartnerID:S(10)!-u Title:S(10) FirstName:S(40)! MiddleName:S(40) LastName:S(40) Nickname:S(40)
		Initials:S(10) Sex:S(1)! PhoneNumber:S(30) FaxNumber:S(30) EmailAddress:S(255) Language:S(2) DateOfBirth:DT`,
	"VH_Sex": `Sex:S(1)! Shorttext:S(60)!`, "VH_Country": `Land1:S(3)! Landx:S(15)! Natio:S(15)!`, "VH_AddressType": `AddressType:S(2)! Shorttext:S(60)!`,
	"VH_Category": `Category:S(40)!`, "VH_Currency": `Waers:S(5)! Ltext:S(40)!`, "VH_UnitQuantity": `Msehi:S(3)! Msehl:S(30)!`,
	"VH_UnitWeight": `Msehi:S(3)! Msehl:S(30)!`, "VH_UnitLength": `Msehi:S(3)! Msehl:S(30)!`, "VH_ProductTypeCode": `TypeCode:S(2)! Shorttext:S(60)!`,
	"VH_BPRole": `BpRole:S(3)! Shorttext:S(60)!`, "VH_Language": `Spras:S(2)! Sptxt:S(16)!`,
}

// written is a property in the notation of the model. Keys and value helps say by themselves that they cannot be set.
func written(p *edm.Property, set *edm.Set) string {
	s := p.Name + ":"
	switch p.Kind {
	case edm.String:
		s += "S"
		if p.MaxLength > 0 {
			s += fmt.Sprintf("(%d)", p.MaxLength)
		}
	case edm.Decimal:
		s += fmt.Sprintf("D(%d,%d)", p.Precision, p.Scale)
	case edm.DateTimeOffset, edm.Date:
		s += "DT"
	case edm.ComplexKind:
		s += p.Complex.Name
	case edm.GUID:
		s += "Guid"
	default:
		s += strings.TrimPrefix(p.Kind.Name(), "Edm.")
	}
	if !p.Nullable {
		s += "!"
	}
	if set.Creatable || set.Updatable {
		if !p.Creatable {
			s += "-c"
		}
		if !p.Updatable {
			s += "-u"
		}
	}
	for _, a := range []string{"sortable", "filterable"} {
		if p.Annotations[a] == "false" {
			s += "-" + a[:1]
		}
	}
	return s
}

func services(t *testing.T) (*catalog.Snapshot, map[string]*edm.Service) {
	t.Helper()
	p, err := reader.Read(Project())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := p.Build(1)
	if err != nil {
		t.Fatal(err)
	}
	list := make(map[string]*edm.Service)
	defs := snap.Services()
	for i := range defs {
		if list[defs[i].Name], err = edm.Compile(snap, &defs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return snap, list
}

func TestServices_TheSampleServiceIsComplete(t *testing.T) {
	_, list := services(t)
	if diff := cmp.Diff([]string{"GWSAMPLE_BASIC", "ZGWSAMPLE_MASSINSERT_SRV", "itsm"}, sorted(list)); diff != "" {
		t.Fatal(diff)
	}
	for name, namespace := range map[string]string{"GWSAMPLE_BASIC": "IWBEP", "ZGWSAMPLE_MASSINSERT_SRV": "sap"} {
		svc := list[name]
		if svc.Namespace != namespace || svc.Schema != name {
			t.Errorf("%s: namespace %s, schema %s", name, svc.Namespace, svc.Schema)
		}
		for typ, want := range model {
			set := svc.Set(typ + "Set")
			if set == nil || set.Type.Name != typ {
				t.Errorf("%s: no set of %s", name, typ)
				continue
			}
			var got []string
			for _, p := range set.Type.Properties {
				got = append(got, written(p, set))
			}
			if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
				t.Errorf("%s: %s (-notes +service):\n%s", name, typ, diff)
			}
			if help := strings.HasPrefix(typ, "VH_"); help && (set.Creatable || set.Updatable || set.Deletable || set.Annotations["pageable"] != "false") {
				t.Errorf("%s: %s is no value help", name, typ)
			} else if etag := typ == "Product" || typ == "BusinessPartner"; (set.Type.ETag != nil) != etag || etag && set.Type.ETag.Name != "ChangedAt" {
				t.Errorf("%s: %s has ETag %v", name, typ, set.Type.ETag)
			}
			for _, p := range set.Type.Properties {
				if p.Kind == edm.Decimal && p.Annotations["unit"] == "" {
					t.Errorf("%s: %s.%s has no unit", name, typ, p.Name)
				}
			}
		}
		if orders := svc.Set("SalesOrderSet"); orders.Updatable || !orders.Creatable || !orders.Deletable {
			t.Errorf("%s: sales orders are created and deleted, and changed by functions alone", name)
		}
		f := func(function, result, parameter string, kind edm.Kind) {
			t.Helper()
			fn := svc.Function(function)
			if fn == nil || !fn.Post || len(fn.Parameters) != 1 || fn.Parameters[0].Name != parameter || fn.Parameters[0].Kind != kind {
				t.Errorf("%s: %s: %+v", name, function, fn)
				return
			}
			if fn.Set != nil && fn.Set.Name+"/"+fn.ActionFor.Name != result || fn.Complex != nil && fn.Complex.Name != result {
				t.Errorf("%s: %s returns something else than %s", name, function, result)
			}
		}
		f("RegenerateAllData", "CT_String", "NoOfSalesOrders", edm.Int32)
		for _, action := range []string{"Confirm", "Cancel", "InvoiceCreated", "GoodsIssueCreated"} {
			f("SalesOrder_"+action, "SalesOrderSet/SalesOrder", "SalesOrderID", edm.String)
		}
	}
}

func TestServices_AssociationsAreThoseOfTheSampleService(t *testing.T) {
	_, list := services(t)
	var got []string
	for _, a := range list["GWSAMPLE_BASIC"].Assocs {
		on := ""
		for i := range a.Principal {
			on += fmt.Sprintf(" %s=%s", a.Principal[i].Name, a.Dependent[i].Name)
		}
		got = append(got, fmt.Sprintf("%s %s %s→%s%s", a.Name, a.SetName, a.From.Set.Name, a.To.Set.Name, on))
		if a.From.Multiplicity == "*" || a.To.Multiplicity != "*" || a.From.Role != "FromRole_"+a.Name || a.To.Role != "ToRole_"+a.Name {
			t.Errorf("%s: %+v %+v", a.Name, a.From, a.To)
		}
	}
	slices.Sort(got)
	want := []string{
		"Assoc_BusinessPartner_Contacts Assoc_BusinessPartner_Contacts_AssocSet BusinessPartnerSet→ContactSet BusinessPartnerID=BusinessPartnerID",
		"Assoc_BusinessPartner_Products Assoc_BusinessPartner_Products_AssocSet BusinessPartnerSet→ProductSet BusinessPartnerID=SupplierID",
		"Assoc_BusinessPartner_SalesOrders Assoc_BusinessPartner_SalesOrders_AssocS BusinessPartnerSet→SalesOrderSet BusinessPartnerID=CustomerID",
		"Assoc_Product_SalesOrderLineItems Assoc_Product_SalesOrderLineItems_AssocS ProductSet→SalesOrderLineItemSet ProductID=ProductID",
		"Assoc_SalesOrder_SalesOrderLineItems Assoc_SalesOrder_SalesOrderLineItems_Ass SalesOrderSet→SalesOrderLineItemSet SalesOrderID=SalesOrderID",
		"Assoc_VH_BPRole_BusinessPartners Assoc_VH_BPRole_BusinessPartners_AssocSe VH_BPRoleSet→BusinessPartnerSet BpRole=BusinessPartnerRole",
		"Assoc_VH_Category_Products Assoc_VH_Category_Products_AssocSet VH_CategorySet→ProductSet Category=Category",
		"Assoc_VH_Country_BusinessPartners Assoc_VH_Country_BusinessPartners_AssocS VH_CountrySet→BusinessPartnerSet",
		"Assoc_VH_Country_Contacts Assoc_VH_Country_Contacts_AssocSet VH_CountrySet→ContactSet",
		"Assoc_VH_Currency_BusinessPartners Assoc_VH_Currency_BusinessPartners_Assoc VH_CurrencySet→BusinessPartnerSet Waers=CurrencyCode",
		"Assoc_VH_Currency_Products Assoc_VH_Currency_Products_AssocSet VH_CurrencySet→ProductSet Waers=CurrencyCode",
		"Assoc_VH_Currency_SalesOrderLineItems Assoc_VH_Currency_SalesOrderLineItems_As VH_CurrencySet→SalesOrderLineItemSet Waers=CurrencyCode",
		"Assoc_VH_Currency_SalesOrders Assoc_VH_Currency_SalesOrders_AssocSet VH_CurrencySet→SalesOrderSet Waers=CurrencyCode",
		"Assoc_VH_Language_Contacts Assoc_VH_Language_Contacts_AssocSet VH_LanguageSet→ContactSet Spras=Language",
		"Assoc_VH_ProductTypeCode_Products Assoc_VH_ProductTypeCode_Products_AssocS VH_ProductTypeCodeSet→ProductSet TypeCode=TypeCode",
		"Assoc_VH_Sex_Contacts Assoc_VH_Sex_Contacts_AssocSet VH_SexSet→ContactSet Sex=Sex",
		"Assoc_VH_UnitLength_Products Assoc_VH_UnitLength_Products_AssocSet VH_UnitLengthSet→ProductSet Msehi=DimUnit",
		"Assoc_VH_UnitQuantity_Products Assoc_VH_UnitQuantity_Products_AssocSet VH_UnitQuantitySet→ProductSet Msehi=MeasureUnit",
		"Assoc_VH_UnitQuantity_SalesOrderLineItem Assoc_VH_UnitQuantity_SalesOrderLineItem VH_UnitQuantitySet→SalesOrderLineItemSet Msehi=QuantityUnit",
		"Assoc_VH_UnitWeight_Products Assoc_VH_UnitWeight_Products_AssocSet VH_UnitWeightSet→ProductSet Msehi=WeightUnit",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestServices_TheMassInsertCarriesProducts(t *testing.T) {
	_, list := services(t)
	svc := list["ZGWSAMPLE_MASSINSERT_SRV"]
	shell := svc.Set("ProductMassInsertSet")
	if shell == nil || shell.Type.Table != nil || len(shell.Type.Key) != 1 {
		t.Fatalf("%+v", shell)
	}
	nav := shell.Type.Nav("ToProducts")
	if nav == nil || !nav.Many || nav.Target != svc.Set("ProductSet") || len(nav.On) != 0 || nav.Assoc.Name != "Assoc_ProductMassInsert_Products" {
		t.Fatalf("%+v", nav)
	}
}

func TestServices_ITSMExposesTheNowTables(t *testing.T) {
	_, list := services(t)
	svc := list["itsm"]
	for _, name := range []string{"incident", "problem", "change_request", "sys_user", "sys_user_group", "cmn_location", "core_company", "cmdb_ci"} {
		if svc.Set(name) == nil {
			t.Errorf("no set %s", name)
		}
	}
	if nav := svc.Set("incident").Type.Nav("to_caller_id"); nav == nil || nav.Target.Name != "sys_user" {
		t.Errorf("incident.to_caller_id: %+v", nav)
	}
}

func amount(t *testing.T, s string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is no amount", s)
	}
	return r
}

// What the rules would have made of orders and items, their records in the files must already be.
func TestData_SalesOrdersAddUp(t *testing.T) {
	p := read(t)
	prices := make(map[string]string)
	for _, r := range p.data["product"] {
		prices[r["product_id"]] = r["price"]
	}
	type sums struct{ net, tax, gross *big.Rat }
	orders := make(map[string]sums)
	next := make(map[string]int)
	for _, r := range p.data["sales_order_line_item"] {
		id := r["sales_order_id"]
		next[id] += 10
		if r["item_position"] != fmt.Sprintf("%010d", next[id]) {
			t.Errorf("order %s: position %s where %d was due", id, r["item_position"], next[id])
		}
		if r["unit_price"] != prices[r["product_id"]] || r["currency_code"] != "EUR" {
			t.Errorf("order %s: price %s %s of %s", id, r["unit_price"], r["currency_code"], r["product_id"])
		}
		net := new(big.Rat).Mul(amount(t, r["unit_price"]), amount(t, r["quantity"]))
		cents := new(big.Rat).Mul(net, big.NewRat(19, 1))
		tax := amount(t, new(big.Rat).Quo(cents, big.NewRat(100, 1)).FloatString(2))
		gross := new(big.Rat).Add(net, tax)
		if amount(t, r["net_amount"]).Cmp(net) != 0 || amount(t, r["tax_amount"]).Cmp(tax) != 0 || amount(t, r["gross_amount"]).Cmp(gross) != 0 {
			t.Errorf("order %s, position %s: %s + %s = %s, want %s + %s", id, r["item_position"], r["net_amount"], r["tax_amount"], r["gross_amount"], net.FloatString(2), tax.FloatString(2))
		}
		if orders[id].net == nil {
			orders[id] = sums{new(big.Rat), new(big.Rat), new(big.Rat)}
		}
		o := orders[id]
		o.net.Add(o.net, net)
		o.tax.Add(o.tax, tax)
		o.gross.Add(o.gross, gross)
	}
	for _, r := range p.data["sales_order"] {
		o := orders[r["sales_order_id"]]
		if o.net == nil {
			t.Errorf("order %s has no items", r["sales_order_id"])
			continue
		}
		for field, want := range map[string]*big.Rat{"net_amount": o.net, "tax_amount": o.tax, "gross_amount": o.gross} {
			if amount(t, r[field]).Cmp(want) != 0 {
				t.Errorf("order %s: %s %s, want %s", r["sales_order_id"], field, r[field], want.FloatString(2))
			}
		}
		open := r["lifecycle_status"] == "N" || r["lifecycle_status"] == "X"
		if open && r["billing_status"]+r["delivery_status"] != "" || (r["lifecycle_status"] == "C") != (r["billing_status"]+r["delivery_status"] == "PD") {
			t.Errorf("order %s: %s %q %q", r["sales_order_id"], r["lifecycle_status"], r["billing_status"], r["delivery_status"])
		}
		if r["created_at"] > r["changed_at"] {
			t.Errorf("order %s changed before it was made", r["sales_order_id"])
		}
	}
}

func TestData_DescriptionsAreThoseOfTheMatrices(t *testing.T) {
	p := read(t)
	for field, matrix := range map[string]string{"lifecycle_status": "lifecycle", "billing_status": "billing", "delivery_status": "delivery"} {
		for _, r := range p.data["sales_order"] {
			if !slices.ContainsFunc(p.tables["sales_order"].Matrices[matrix], func(row []any) bool { return row[0] == r[field] && row[1] == r[field+"_description"] }) {
				t.Errorf("order %s: %s is %q, described as %q", r["sales_order_id"], field, r[field], r[field+"_description"])
			}
		}
	}
}

func TestData_ValueHelpsHoldEveryCodeInUse(t *testing.T) {
	p := read(t)
	f := func(help, key, table string, fields ...string) {
		t.Helper()
		known := make(map[string]bool)
		for _, r := range p.data[help] {
			known[r[key]] = true
		}
		for _, r := range p.data[table] {
			for _, field := range fields {
				if r[field] != "" && !known[r[field]] {
					t.Errorf("%s.%s: %s is not in %s", table, field, r[field], help)
				}
			}
		}
		if len(known) == 0 || p.tables[table].Field(fields[0]) == nil {
			t.Errorf("%s, %s: nothing compared", help, table)
		}
	}
	f("vh_country", "land1", "business_partner", "country")
	f("vh_country", "land1", "contact", "country")
	f("vh_address_type", "address_type", "business_partner", "address_type")
	f("vh_address_type", "address_type", "contact", "address_type")
	f("vh_bp_role", "bp_role", "business_partner", "business_partner_role")
	f("vh_language", "spras", "contact", "language")
	f("vh_sex", "sex", "contact", "sex")
	f("vh_category", "category", "product", "category")
	f("vh_product_type_code", "type_code", "product", "type_code")
	f("vh_unit_quantity", "msehi", "product", "measure_unit")
	f("vh_unit_weight", "msehi", "product", "weight_unit")
	f("vh_unit_length", "msehi", "product", "dim_unit")
	f("vh_currency", "waers", "product", "currency_code")
	f("vh_currency", "waers", "business_partner", "currency_code")
	f("vh_currency", "waers", "sales_order", "currency_code")
	f("vh_unit_quantity", "msehi", "sales_order_line_item", "quantity_unit")
}

func TestData_SampleKeysAreThoseThatClientsKnow(t *testing.T) {
	p := read(t)
	f := func(table, field, prefix string, digits, first, least int) string {
		t.Helper()
		last := ""
		for i, r := range p.data[table] {
			last = fmt.Sprintf("%s%0*d", prefix, digits, first+i)
			if r[field] != last {
				t.Errorf("%s line %d: %s, want %s", table, i+2, r[field], last)
			}
		}
		if len(p.data[table]) < least {
			t.Errorf("%d records of %s only", len(p.data[table]), table)
		}
		return last
	}
	f("sales_order", "sales_order_id", "", 10, 500000000, 100)
	product := f("product", "product_id", "HT-", 4, 1000, 120)
	partner := f("business_partner", "business_partner_id", "", 10, 100000000, 40)
	// What is beyond them the script deletes.
	text := string(glob(t, "endpoints/epm/regenerate_all_data.js")["endpoints/epm/regenerate_all_data.js"])
	for _, want := range []string{`"product_id<HT-1000^ORproduct_id>` + product + `"`, `"business_partner_id>` + partner + `"`} {
		if !strings.Contains(text, want) {
			t.Errorf("regenerate_all_data.js does not hold %s", want)
		}
	}
}

// shop is the part epm on a database, with an engine and its scripts.
type shop struct {
	t    *testing.T
	snap *catalog.Snapshot
	e    *engine.Engine
	now  time.Time
}

var (
	admin = record.Actor{Key: "6816f79cc0a8016401c5a33be04be441", Name: "admin", Roles: []string{"admin"}}
	clerk = record.Actor{Key: "00000000000000000000000000000001", Name: "clerk", Roles: []string{"epm_user"}}
	guest = record.Actor{Key: "00000000000000000000000000000002", Name: "guest", Roles: []string{"ess"}}
)

// onShops runs f on each database.
func onShops(t *testing.T, f func(*shop)) {
	eachDatabase(t, func(t *testing.T, open func(*testing.T) *shop) { f(open(t)) })
}

// eachDatabase calls f for each database, with what opens a fresh one that holds the part.
func eachDatabase(t *testing.T, f func(t *testing.T, open func(*testing.T) *shop)) {
	part, err := fs.Sub(files, "epm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := reader.Read(part)
	if err != nil {
		t.Fatal(err)
	}
	on := func(t *testing.T, st store.Store, err error) *shop {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		report, err := reader.Apply(t.Context(), st, p, reader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := &shop{t: t, snap: report.Snapshot, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
		scripts := script.New(script.Options{ParseQuery: now.New(now.Options{}).ParseQuery, Log: slog.New(slog.DiscardHandler)})
		if s.e, err = engine.New(st, engine.Options{Invoker: scripts, Now: func() time.Time { return s.now }}); err != nil {
			t.Fatal(err)
		}
		scripts.SetData(s.e)
		t.Cleanup(func() { s.e.Close() })
		return s
	}
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) *shop {
			st, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			return on(t, st, err)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) *shop {
			st, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			return on(t, st, err)
		})
	})
}

// The files of testdata/odata are calls of the sample services.
func TestServices_OnTheWire(t *testing.T) {
	eachDatabase(t, func(t *testing.T, open func(*testing.T) *shop) {
		dialecttest.EndToEnd(t, "testdata/odata/*.txtar", func(t *testing.T) dialecttest.Server {
			s := open(t)
			return dialecttest.Server{Snapshot: s.snap, Executor: s.e, Dialect: odata.New(odata.Options{Now: func() time.Time { return s.now }})}
		})
	})
}

func (s *shop) do(actor record.Actor, ops ...record.Op) []record.Outcome {
	s.t.Helper()
	return s.e.Execute(s.t.Context(), s.snap, &record.Unit{Version: s.snap.Version, Ops: ops, Actors: []record.Actor{actor}})
}

func (s *shop) must(ops ...record.Op) []record.Outcome {
	s.t.Helper()
	out := s.do(clerk, ops...)
	for i, o := range out {
		if o.Err != nil {
			s.t.Fatalf("op %d: %v", i, o.Err)
		}
	}
	return out
}

// values are fields of a record: name, text, name, text …
func (s *shop) values(table string, pairs ...any) []record.Assign {
	s.t.Helper()
	t, err := s.snap.Table(table)
	if err != nil {
		s.t.Fatal(err)
	}
	var list []record.Assign
	for i := 0; i < len(pairs); i += 2 {
		v, isRef := pairs[i+1].(record.Value)
		if !isRef {
			if v, err = record.Parse(t.Field(pairs[i].(string)).Type, pairs[i+1].(string)); err != nil {
				s.t.Fatal(err)
			}
		}
		list = append(list, record.Assign{Field: pairs[i].(string), Value: v})
	}
	return list
}

func (s *shop) insert(table string, pairs ...any) record.Op {
	return record.Op{Verb: record.Insert, Table: table, Set: s.values(table, pairs...)}
}

func (s *shop) update(table string, key []record.Value, pairs ...any) record.Op {
	return record.Op{Verb: record.Update, Table: table, Key: key, Set: s.values(table, pairs...)}
}

func key(parts ...string) []record.Value {
	list := make([]record.Value, len(parts))
	for i, p := range parts {
		list[i] = record.TextValue(p)
	}
	return list
}

// want compares fields of a record with texts; decimals as numbers.
func (s *shop) want(table string, k []record.Value, want string, fields ...string) {
	s.t.Helper()
	out := s.must(record.Op{Verb: record.Get, Table: table, Key: k, Return: fields})
	var got []string
	for _, v := range out[0].Rows.At(0) {
		text := v.Text()
		if r, ok := new(big.Rat).SetString(text); ok && strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(r.FloatString(2), "0"), ".")
		}
		if v.IsNull() {
			text = "-"
		}
		got = append(got, text)
	}
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		s.t.Errorf("%s %v:\n%s", table, k, diff)
	}
}

func TestSalesOrders_KeepTheirAmounts(t *testing.T) {
	onShops(t, func(s *shop) {
		grouped := func(op record.Op) record.Op { op.Group = 1; return op }
		item := func(order any, product, quantity string) record.Op {
			return s.insert("sales_order_line_item", "sales_order_id", order, "product_id", product, "quantity", quantity, "delivery_date", "2026-12-24 00:00:00")
		}
		out := s.must(
			grouped(s.insert("sales_order", "customer_id", "0100000001", "note", "first")),
			grouped(item(record.RefTo(0, "sales_order_id"), "HT-1000", "2")),
			grouped(item(record.RefTo(0, "sales_order_id"), "HT-1001", "1")),
		)
		if out[0].Key[0].S != "0500000100" || out[1].Key[1].S != "0000000010" || out[2].Key[1].S != "0000000020" {
			t.Fatalf("keys %v %v %v", out[0].Key, out[1].Key, out[2].Key)
		}
		order := out[0].Key
		amounts := []string{"net_amount", "tax_amount", "gross_amount"}
		s.want("sales_order_line_item", out[1].Key, "956 1912 363.28 2275.28 EUR EA", append([]string{"unit_price"}, append(amounts, "currency_code", "quantity_unit")...)...)
		s.want("sales_order", order, "3027.33 575.19 3602.52 EUR N New - Initial - Initial EN", append(amounts, "currency_code", "lifecycle_status", "lifecycle_status_description",
			"billing_status", "billing_status_description", "delivery_status", "delivery_status_description", "note_language")...)

		s.must(s.update("sales_order_line_item", out[1].Key, "quantity", "1"))
		s.want("sales_order", order, "2071.33 393.55 2464.88", amounts...)
		s.must(record.Op{Verb: record.Delete, Table: "sales_order_line_item", Key: out[2].Key})
		s.want("sales_order", order, "956 181.64 1137.64", amounts...)
		// A price that changes afterwards is not that of the order.
		s.must(s.update("product", key("HT-1000"), "price", "1"))
		s.must(s.update("sales_order_line_item", out[1].Key, "quantity", "3", "note", "more"))
		s.want("sales_order", order, "2868 544.92 3412.92", amounts...)
		again := s.must(item(order[0], "HT-1000", "0.5"))
		if again[0].Key[1].S != "0000000020" {
			t.Errorf("position %s after one was deleted at the end, want 0000000020", again[0].Key[1].S)
		}
		s.must(record.Op{Verb: record.Delete, Table: "sales_order", Key: order})
		for _, o := range s.do(clerk, record.Op{Verb: record.Get, Table: "sales_order_line_item", Key: out[1].Key, Return: []string{"note"}}) {
			if record.KindOf(o.Err) != record.NotFound {
				t.Errorf("an item outlives its order: %v", o.Err)
			}
		}
	})
}

func TestTables_RefuseWhatMakesNoSense(t *testing.T) {
	onShops(t, func(s *shop) {
		f := func(op record.Op, kind record.Kind, field, text string) {
			s.t.Helper()
			err := s.do(clerk, op)[0].Err
			if err == nil || err.Kind != kind || err.Field != field || !strings.Contains(err.Msg, text) {
				s.t.Errorf("%s %s: %v (%s, field %q), want %s, %q: %s", op.Verb, op.Table, err, record.KindOf(err), fieldOf(err), kind, field, text)
			}
		}
		product := func(pairs ...any) record.Op {
			return s.insert("product", append([]any{"product_id", "T-1", "category", "Notebooks", "name", "x", "supplier_id", "0100000000"}, pairs...)...)
		}
		item := func(pairs ...any) record.Op {
			return s.insert("sales_order_line_item", append([]any{"delivery_date", "2026-12-24 00:00:00"}, pairs...)...)
		}
		open := s.must(s.insert("sales_order", "customer_id", "0100000001"))[0].Key
		closed := key("0500000000")
		s.must(product("product_id", "USD-1", "currency_code", "USD", "price", "5"))

		f(product("price", "-1"), record.Rejected, "price", "must not be negative")
		f(product("supplier_id", "0199999999"), record.Restricted, "supplier_id", "refers to a record that does not exist")
		f(product("product_id", "HT-1000"), record.Conflict, "product_id", "exists already")
		f(product("name", ""), record.Invalid, "name", "must be filled in")
		f(product("product_id", "12345678901"), record.Invalid, "product_id", "more than the 10 allowed")
		f(record.Op{Verb: record.Delete, Table: "business_partner", Key: key("0100000000")}, record.Restricted, "", "refers to it in supplier_id")
		f(s.insert("sales_order", "customer_id", "0199999999"), record.Restricted, "customer_id", "refers to a record that does not exist")
		f(s.insert("sales_order", "customer_id", "0100000001", "lifecycle_status", "P"), record.Rejected, "lifecycle_status", "begins as a new one")
		f(s.update("sales_order", open, "lifecycle_status", "C"), record.Rejected, "lifecycle_status", "closed by its invoice and its delivery")
		f(s.update("sales_order", open, "billing_status", "P"), record.Rejected, "billing_status", "only a sales order in progress is invoiced")
		f(s.update("sales_order", open, "delivery_status", "D"), record.Rejected, "delivery_status", "only a sales order in progress is delivered")
		f(s.update("sales_order", open, "currency_code", "USD"), record.Rejected, "currency_code", "stays")
		f(s.update("sales_order", closed, "lifecycle_status", "N"), record.Rejected, "lifecycle_status", "cannot change from Closed to New")
		f(item("sales_order_id", open[0], "product_id", "HT-9999", "quantity", "1"), record.Rejected, "product_id", "no such product")
		f(item("sales_order_id", closed[0], "product_id", "HT-1000", "quantity", "1"), record.Rejected, "sales_order_id", "still new")
		f(item("sales_order_id", "0599999999", "product_id", "HT-1000", "quantity", "1"), record.Rejected, "sales_order_id", "no such sales order")
		f(item("sales_order_id", open[0], "product_id", "USD-1", "quantity", "1"), record.Rejected, "product_id", "another currency")
		f(item("sales_order_id", open[0], "product_id", "HT-1000", "quantity", "0"), record.Rejected, "quantity", "greater than 0")
		f(item("sales_order_id", open[0], "product_id", "HT-1000"), record.Invalid, "quantity", "must be filled in")
		f(s.insert("contact", "business_partner_id", "0199999999", "first_name", "x", "sex", "F"), record.Restricted, "business_partner_id", "refers to a record that does not exist")
	})
}

func fieldOf(err *record.Error) string {
	if err == nil {
		return ""
	}
	return err.Field
}

func TestVersions_MoveWithEveryChange(t *testing.T) {
	onShops(t, func(s *shop) {
		k := s.must(s.insert("business_partner", "company_name", "New", "email_address", "new@example.com"))[0].Key
		if k[0].S != "0100000046" {
			t.Errorf("the next partner is %s", k[0].S)
		}
		s.want("business_partner", k, "2026-11-30 12:00:00 2026-11-30 12:00:00 01 EUR", "created_at", "changed_at", "business_partner_role", "currency_code")
		s.now = s.now.Add(time.Hour)
		s.must(s.update("business_partner", k, "city", "Bonn"))
		s.want("business_partner", k, "2026-11-30 12:00:00 2026-11-30 13:00:00", "created_at", "changed_at")
	})
}

func TestAccess_ClerksWriteAndAllRead(t *testing.T) {
	onShops(t, func(s *shop) {
		partner := s.insert("business_partner", "company_name", "New", "email_address", "new@example.com")
		code := s.insert("vh_sex", "sex", "X", "shorttext", "Other")
		f := func(actor record.Actor, op record.Op, want string) {
			s.t.Helper()
			got := "ok"
			if err := s.do(actor, op)[0].Err; err != nil {
				got = err.Kind.String()
			}
			if got != want {
				s.t.Errorf("%s: %s %s: %s, want %s", actor.Name, op.Verb, op.Table, got, want)
			}
		}
		f(guest, record.Op{Verb: record.Get, Table: "product", Key: key("HT-1000"), Return: []string{"name", "supplier_id.company_name"}}, "ok")
		f(guest, partner, "forbidden")
		f(guest, s.update("product", key("HT-1000"), "name", "x"), "forbidden")
		f(clerk, partner, "ok")
		f(clerk, code, "forbidden")
		f(admin, code, "ok")
	})
}

// call runs a scripted endpoint as the service does and returns its status and its answer, or its message.
func (s *shop) call(actor record.Actor, endpoint, body string) (int, string) {
	s.t.Helper()
	args, err := json.Marshal(map[string]any{"method": "POST", "url": "/", "base": "http://localhost", "body": body})
	if err != nil {
		s.t.Fatal(err)
	}
	out := s.do(actor, record.Op{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: endpoint, Args: args}})[0]
	if out.Err != nil {
		return 0, out.Err.Kind.String()
	}
	var answer struct {
		Status int
		Body   json.RawMessage
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(out.Result, &answer); err != nil {
		s.t.Fatalf("%v: %s", err, out.Result)
	}
	if answer.Error != nil {
		return answer.Status, answer.Error.Message
	}
	return answer.Status, string(answer.Body)
}

func TestFunctions_MoveOrdersThroughTheirLife(t *testing.T) {
	onShops(t, func(s *shop) {
		orders := make([]string, 3)
		for i := range orders {
			orders[i] = s.must(s.insert("sales_order", "customer_id", "0100000001"))[0].Key[0].S
		}
		f := func(endpoint string, i, status int, want string) {
			s.t.Helper()
			got, answer := s.call(clerk, endpoint, fmt.Sprintf(`{"SalesOrderID":%q}`, orders[i]))
			if want == "" {
				want = fmt.Sprintf(`{"SalesOrderID":%q}`, orders[i])
			}
			if got != status || answer != strings.ReplaceAll(want, "#", orders[i]) {
				s.t.Errorf("%s: %d %s, want %d %s", endpoint, got, answer, status, want)
			}
		}
		const confirm, cancel, invoice, deliver = "Confirm a sales order", "Cancel a sales order", "Invoice a sales order", "Deliver a sales order"
		f(invoice, 0, 400, "Sales order # is New; only one in progress can be invoiced")
		f(deliver, 0, 400, "Sales order # is New; only one in progress can be delivered")
		f(confirm, 0, 0, "")
		f(confirm, 0, 400, "Sales order # is In Progress; only a new one can be confirmed")
		f(invoice, 0, 0, "")
		f(invoice, 0, 400, "Sales order # is invoiced already")
		f(cancel, 0, 400, "Sales order # is invoiced or delivered and cannot be canceled")
		s.want("sales_order", key(orders[0]), "P P Paid - Initial", "lifecycle_status", "billing_status", "billing_status_description", "delivery_status", "delivery_status_description")
		f(deliver, 0, 0, "")
		s.want("sales_order", key(orders[0]), "C Closed P D Delivered", "lifecycle_status", "lifecycle_status_description", "billing_status", "delivery_status", "delivery_status_description")
		f(deliver, 0, 400, "Sales order # is Closed; only one in progress can be delivered")
		f(cancel, 0, 400, "Sales order # is Closed and cannot be canceled")

		f(cancel, 1, 0, "")
		s.want("sales_order", key(orders[1]), "X Canceled", "lifecycle_status", "lifecycle_status_description")
		f(confirm, 1, 400, "Sales order # is Canceled; only a new one can be confirmed")
		f(confirm, 2, 0, "")
		f(cancel, 2, 0, "")

		for _, endpoint := range []string{confirm, cancel, invoice, deliver} {
			if status, text := s.call(clerk, endpoint, `{"SalesOrderID":"4711"}`); status != 404 || text != "There is no sales order '4711'" {
				t.Errorf("%s of nothing: %d %s", endpoint, status, text)
			}
			if status, _ := s.call(clerk, endpoint, `{}`); status != 404 {
				t.Errorf("%s without a key: %d", endpoint, status)
			}
			if _, text := s.call(guest, endpoint, `{"SalesOrderID":"0500000000"}`); text != "forbidden" {
				t.Errorf("%s by a guest: %s", endpoint, text)
			}
		}
	})
}

func TestFunctions_RegenerateBringsTheSampleBack(t *testing.T) {
	onShops(t, func(s *shop) {
		partner := s.must(s.insert("business_partner", "company_name", "New", "email_address", "new@example.com"))[0].Key[0]
		s.must(s.insert("product", "product_id", "T-1", "category", "Notebooks", "name", "x", "supplier_id", partner))
		s.must(s.insert("contact", "business_partner_id", partner, "first_name", "x", "sex", "F"))
		status, answer := s.call(admin, "Regenerate all data", `{"NoOfSalesOrders":12}`)
		if want := `{"String":"100 sales orders, 1 products and 1 business partners deleted; 12 sales orders created"}`; status != 0 || answer != want {
			t.Fatalf("%d %s", status, answer)
		}
		count := func(table string) string {
			out := s.must(record.Op{Verb: record.Aggregate, Table: table, Query: &record.Query{Aggs: []record.Agg{{Func: record.Count}}, Limit: -1}})
			return out[0].Rows.At(0)[0].Text()
		}
		p := read(t)
		for table, want := range map[string]int{
			"sales_order": 12, "sales_order_line_item": 4 * (1 + 2 + 3), "product": len(p.data["product"]), "business_partner": len(p.data["business_partner"]), "contact": len(p.data["contact"]),
		} {
			if got := count(table); got != strconv.Itoa(want) {
				t.Errorf("%s records of %s, want %d", got, table, want)
			}
		}
		for body, want := range map[string]string{`{"NoOfSalesOrders":-1}`: "whole number", `{"NoOfSalesOrders":501}`: "from 0 to 500", `{"NoOfSalesOrders":"x"}`: "whole number"} {
			if status, answer := s.call(admin, "Regenerate all data", body); status != 400 || !strings.Contains(answer, want) {
				t.Errorf("%s: %d %s", body, status, answer)
			}
		}
		if _, text := s.call(clerk, "Regenerate all data", `{"NoOfSalesOrders":0}`); text != "forbidden" {
			t.Errorf("by a clerk: %s", text)
		}
		if status, answer := s.call(admin, "Regenerate all data", `{}`); status != 0 || !strings.HasPrefix(answer, `{"String":"12 sales orders`) || count("sales_order") != "0" {
			t.Errorf("without a number: %d %s", status, answer)
		}
	})
}

func TestEndpoints_TakeTheirNameAndPathFromTheFunction(t *testing.T) {
	snap, list := services(t)
	path := regexp.MustCompile(`^/api/epm/[a-z_/]+$`)
	for _, f := range list["GWSAMPLE_BASIC"].Functions {
		e := snap.Endpoint(f.Endpoint)
		if e == nil || e.Method != "POST" || !path.MatchString(e.Path) || len(e.Roles) != 1 {
			t.Errorf("%s: endpoint %+v", f.Name, e)
		}
	}
}
