package odata

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// urlRows are records of the tables of the test service, by table: values by field, separated by blanks as name=text. What a row
// does not name is null.
var urlRows = map[string][]map[string]string{
	"partner": {
		{"id": "1", "name": "SAP", "city": "Walldorf", "zip": "69190", "role": "01", "changed": "2024-01-31 10:00:00.123456"},
		{"id": "2", "name": "Becker Berlin", "city": "Berlin", "role": "02", "parent": "1", "changed": "2024-02-01 00:00:00"},
		{"id": "3", "name": "O'Neil", "city": "", "role": "02", "parent": "2"},
		{"id": "4", "parent": "9"},
	},
	"product": {
		{
			"id": "A", "name": "Notebook 15", "category": "Notebooks", "supplier": "1", "price": "999.50", "stock": "5", "weight": "2.5", "active": "true",
			"created": "2024-01-31 10:00:00.123456", "since": "2024-01-31", "lead": "3600", "opens": "10:30:00", "currency": "EUR", "uid": "0123456789abcdef0123456789abcdef", "photo": "\x01\x02",
		},
		{"id": "B", "name": "notebook 17", "category": "Notebooks", "supplier": "2", "price": "1200", "stock": "0", "weight": "-0.5", "active": "false", "created": "2024-02-01 00:00:00", "since": "2024-02-29", "lead": "90", "opens": "08:00:00", "currency": "USD"},
		{"id": "C", "name": "Größe 100% _ Mouse", "category": "Mice", "supplier": "3", "price": "9.99", "stock": "-3", "weight": "0.1", "active": "true", "created": "1969-12-31 23:59:59.999999", "since": "1969-12-31", "currency": "XXX"},
		{"id": "D", "category": "Mice", "supplier": "9", "price": "0.10"},
		{"id": "E", "name": "😀 flat", "stock": "100", "price": "12345678901234567890.123"},
	},
	"orders": {
		{"id": "10", "customer": "1", "note": "first", "gross": "100", "created": "2024-01-01 00:00:00"},
		{"id": "11", "customer": "2", "gross": "5.5", "created": "2024-01-02 12:30:15.25"},
		{"id": "12", "note": "nobody's"},
	},
	"item": {
		{"orders": "10", "pos": "1", "product": "A", "quantity": "10", "note": "x"},
		{"orders": "10", "pos": "2", "product": "B", "quantity": "1.5"},
		{"orders": "11", "pos": "1", "product": "A", "quantity": "3", "note": "y"},
		{"orders": "12", "pos": "1", "product": "Z", "quantity": "0"},
	},
	"currency": {{"code": "EUR", "name": "Euro", "digits": "2"}, {"code": "USD", "name": "US Dollar", "digits": "2"}, {"code": "JPY", "name": "Yen", "digits": "0"}},
	"bin":      {{"product": "A", "plant": "P1", "place": "left"}, {"product": "A", "plant": "P2", "place": "right"}, {"product": "B", "plant": "P1"}},
	"move": {
		{"id": "1", "product": "A", "plant": "P1", "amount": "5"},
		{"id": "2", "product": "A", "plant": "P2", "amount": "7"},
		{"id": "3", "product": "B", "plant": "P2", "amount": "1"},
		{"id": "4", "product": "A", "plant": "P1"},
		{"id": "5"},
	},
}

// urlWorld is urlRows in memory.
func urlWorld(t testing.TB, snap *catalog.Snapshot) *storetest.World {
	t.Helper()
	w := &storetest.World{Snapshot: snap, Rows: map[string][]storetest.Record{}}
	for name, rows := range urlRows {
		table, err := snap.Table(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			r := storetest.Record{}
			for field, text := range row {
				v, err := record.Parse(table.Field(field).Type, text)
				if err != nil {
					t.Fatal(err)
				}
				r[field] = v
			}
			w.Rows[name] = append(w.Rows[name], r)
		}
	}
	return w
}

// urlStores are databases that hold a world.
func urlStores(t *testing.T, w *storetest.World) map[string]store.Store {
	t.Helper()
	lite, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db"), Max: 2, Wait: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	stores := map[string]store.Store{"sqlite": lite}
	if address := storetest.Postgres(t); address != "" {
		post, err := postgres.Open(t.Context(), postgres.Options{URL: address, Max: 2, Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		stores["postgres"] = post
	}
	for _, s := range stores {
		t.Cleanup(func() { s.Close() })
		storetest.Create(t, s, w.Snapshot)
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, rows := range w.Rows {
			table, _ := w.Snapshot.Table(name)
			set := &store.InsertSet{Table: table}
			for _, f := range table.Fields {
				set.Fields = append(set.Fields, f.Name)
			}
			for _, r := range rows {
				row := make([]record.Value, len(set.Fields))
				for i, f := range set.Fields {
					row[i] = r[f]
				}
				set.Rows = append(set.Rows, row)
			}
			done, err := tx.Insert(t.Context(), set)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range done.Errs {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return stores
}

// keysFound runs a read and gives the first column of its rows.
func keysFound(t *testing.T, s store.Store, q *store.Read) string {
	t.Helper()
	res, err := s.Query(t.Context(), q)
	if err != nil {
		return err.Error()
	}
	defer res.Close()
	if err := res.Materialise(0); err != nil {
		return err.Error()
	}
	var list []string
	for i := range res.Len() {
		list = append(list, res.At(i)[0].Text())
	}
	return strings.Join(list, " ")
}

// TestFilter_FindsTheSameEverywhere compares what filters find with what they should, in memory and on the databases.
func TestFilter_FindsTheSameEverywhere(t *testing.T) {
	snap := urlSnapshot(t)
	world := urlWorld(t, snap)
	stores := urlStores(t, world)
	for _, c := range []struct {
		ver  version // 0: both
		set  string
		in   string
		want string
	}{
		// Null: a comparison is never unknown.
		{0, "ProductSet", "Name eq null", "D"},
		{0, "ProductSet", "Name ne null", "A B C E"},
		{0, "ProductSet", "Stock eq 5", "A"},
		{0, "ProductSet", "Stock ne 5", "B C D E"},
		{0, "ProductSet", "not (Stock eq 5)", "B C D E"},
		{0, "ProductSet", "Stock lt 5", "B C"},
		{0, "ProductSet", "not (Stock lt 5)", "A D E"},
		{0, "ProductSet", "Stock lt null or null gt Stock", ""},
		{v2, "ProductSet", "Stock ge null", ""},
		{v4, "ProductSet", "Stock ge null", "D"},
		{v4, "ProductSet", "Stock ge Weight", "A B D"},
		{v2, "ProductSet", "Stock ge Weight", "A B"},
		// A function of null is null in V4; in V2 it finds nothing, and not finds what it does not find.
		{v2, "ProductSet", "substringof('book',Name)", "A B"},
		{v2, "ProductSet", "not substringof('book',Name)", "C D E"},
		{v4, "ProductSet", "contains(Name,'book')", "A B"},
		{v4, "ProductSet", "not contains(Name,'book')", "C E"},
		{v4, "ProductSet", "contains(Name,'book') eq null", "D"},
		{v4, "ProductSet", "contains(Name,'book') ne null", "A B C E"},
		{v4, "ProductSet", "contains(Name,'book') eq false", "C E"},
		{v4, "ProductSet", "contains(Name,'book') ne true", "C D E"},
		{v4, "ProductSet", "not (contains(Name,'book') and Stock gt 0)", "B C D E"}, // unknown and false is false
		{v4, "ProductSet", "not (contains(Name,'book') or Stock gt 0)", "C"},
		{v4, "ProductSet", "not (not contains(Name,'book'))", "A B"},
		{v2, "ProductSet", "not Active", "B D E"},
		{v4, "ProductSet", "not Active", "B"},
		{0, "ProductSet", "Active", "A C"},
		{0, "ProductSet", "Active ne true", "B D E"},
		{0, "PartnerSet", "Address/City eq ''", "3 4"},
		{0, "PartnerSet", "Address/City ne ''", "1 2"},
		{v4, "PartnerSet", "Address/City in ('Berlin','')", "2 3 4"},

		// Numbers.
		{0, "ProductSet", "Price eq 12345678901234567890.123", "E"},
		{0, "ProductSet", "Price eq 12345678901234567890.124", ""},
		{0, "ProductSet", "Price gt 999.4999 and Price lt 1200.0001", "A B"},
		{0, "ProductSet", "Price eq 1.2e3", "B"},
		{0, "ProductSet", "Stock gt -0.5", "A B E"},
		{0, "ProductSet", "Stock lt 99999999999999999999", "A B C E"},
		{0, "ProductSet", "Weight eq 2.5 or Weight eq -0.5", "A B"},
		{0, "ProductSet", "Weight lt INF", "A B C"},
		{0, "ProductSet", "Stock mod 2 eq 1", "A"},
		{0, "ProductSet", "Stock div 2 eq 2", "A"},
		{0, "ProductSet", "10 div Stock gt 0", "A"},
		{v4, "ProductSet", "Stock divby 2 eq 2.5", "A"},
		{0, "ProductSet", "Price mul 2 sub Stock eq 1994", "A"},
		{0, "ProductSet", "-Stock eq 3", "C"},
		{0, "ProductSet", "round(Weight) eq 3 or floor(Weight) eq -1 or ceiling(Weight) eq 1", "A B C"},
		{0, "ProductSet", "round(Price) eq 1000", "A"},

		// Texts.
		{0, "ProductSet", "Name eq 'Notebook 15'", "A"},
		{0, "ProductSet", "Name eq 'notebook 15'", ""},
		{0, "ProductSet", "toupper(Name) eq 'NOTEBOOK 17'", "B"},
		{0, "ProductSet", "tolower(Category) eq 'mice' and Name ne null", "C"},
		{0, "ProductSet", "startswith(Name,'Note') or endswith(Name,'flat')", "A E"},
		{0, "ProductSet", "endswith(Name,'17')", "B"},
		{0, "ProductSet", "length(Name) eq 6", "E"},
		{0, "ProductSet", "indexof(Name,'%') eq 9", "C"},
		{0, "ProductSet", "substring(Name,2) eq 'flat'", "E"},
		{0, "ProductSet", "substring(Name,0,4) eq 'Note'", "A"},
		{0, "ProductSet", "concat(concat(ID,'-'),Category) eq 'A-Notebooks'", "A"},
		{v2, "ProductSet", "replace(Name,'book','pad') eq 'Notepad 15'", "A"},
		{v2, "ProductSet", "substringof('%',Name) or substringof('_',Name)", "C"},
		{0, "ProductSet", "trim(' x ') eq 'x' and ID eq 'A'", "A"},
		{v4, "ProductSet", "matchesPattern(Name,'^Note') or matchesPattern(Name,'Mouse$')", "A C"},
		{0, "ProductSet", "Name gt 'O'", "B E"},
		{0, "PartnerSet", "Name eq 'O''Neil'", "3"},
		{0, "ProductSet", "ID eq 'A' or ID eq 'C' or ID eq 'x'", "A C"},
		{v4, "ProductSet", "Stock in (5,0.0,7.5)", "A B"},
		{v4, "ProductSet", "not (ID in ('A','B'))", "C D E"},

		// Times. V2 knows milliseconds.
		{v2, "ProductSet", "CreatedAt eq datetime'2024-01-31T10:00:00.123'", "A"},
		{v2, "ProductSet", "CreatedAt eq datetime'2024-01-31T10:00:00.1239999'", "A"},
		{v2, "ProductSet", "CreatedAt eq datetime'2024-01-31T10:00:00.124'", ""},
		{v2, "ProductSet", "CreatedAt le datetime'2024-01-31T10:00:00.123'", "A C"},
		{v2, "ProductSet", "CreatedAt gt datetime'2024-01-31T10:00:00.123'", "B"},
		{v2, "ProductSet", "CreatedAt ne datetime'2024-01-31T10:00:00.123'", "B C D E"},
		{v2, "ProductSet", "CreatedAt eq datetime'1969-12-31T23:59:59.999'", "C"},
		{v2, "ProductSet", "CreatedAt le datetime'9999-12-31T23:59:59.9999999'", "A B C"},
		{v4, "ProductSet", "CreatedAt eq 2024-01-31T10:00:00.123Z", ""},
		{v4, "ProductSet", "CreatedAt eq 2024-01-31T12:00:00.123456+02:00", "A"},
		{v4, "ProductSet", "CreatedAt ge 2024-02-01", "B"},
		{v4, "ProductSet", "date(CreatedAt) eq 2024-01-31", "A"},
		{v4, "ProductSet", "date(CreatedAt) le 2024-01-31", "A C"},
		{v4, "ProductSet", "date(CreatedAt) eq Since", "A C D E"},
		{v4, "ProductSet", "date(CreatedAt) in (2024-01-31,2024-02-01)", "A B"},
		{v4, "ProductSet", "time(CreatedAt) eq 10:00:00", "A"},
		{v4, "ProductSet", "time(CreatedAt) gt 12:00:00", "C"},
		{v4, "OrderSet", "fractionalseconds(CreatedAt) eq 0.25", "11"},
		{0, "ProductSet", "year(CreatedAt) eq 2024 and month(CreatedAt) eq 1 and day(CreatedAt) eq 31", "A"},
		{0, "ProductSet", "hour(CreatedAt) eq 23 and minute(CreatedAt) eq 59 and second(CreatedAt) eq 59", "C"},
		{0, "ProductSet", "day(Since) eq 29", "B"},
		{v2, "ProductSet", "Since lt datetime'2024-01-31T10:00:00'", "A C"},
		{v2, "ProductSet", "Since gt datetime'2024-01-30T10:00:00'", "A B"},
		{v4, "ProductSet", "Since gt 2024-01-31", "B"},
		{v4, "ProductSet", "CreatedAt sub 2024-01-31T10:00:00.123456Z eq duration'PT0S'", "A"},
		{v4, "ProductSet", "CreatedAt add Lead ge 2024-01-31T11:00:00Z", "A B"},
		{v4, "ProductSet", "Lead eq duration'PT1M30S' or Lead ge duration'PT1H'", "A B"},
		{v2, "ProductSet", "Lead eq time'PT1M30S'", "B"},
		{v2, "ProductSet", "Opens lt time'PT10H30M'", "B"},
		{v4, "ProductSet", "Opens ge 10:30", "A"},
		{v4, "ProductSet", "cast(Since,Edm.DateTimeOffset) lt CreatedAt", "A C"},
		{v4, "ProductSet", "cast(Stock,Edm.String) eq '-3'", "C"},

		// GUIDs and bytes.
		{v2, "ProductSet", "UID eq guid'01234567-89AB-CDEF-0123-456789abcdef'", "A"},
		{v4, "ProductSet", "UID eq 01234567-89ab-cdef-0123-456789abcdef", "A"},
		{v2, "ProductSet", "Photo eq X'0102'", "A"},
		{v4, "ProductSet", "Photo ne binary'AQI'", "B C D E"},

		// Paths to one entity, over references and other relations; the supplier 9 is not there.
		{0, "ProductSet", "ToSupplier/Name eq 'SAP'", "A"},
		{0, "ProductSet", "ToSupplier/Name ne 'SAP'", "B C D E"},
		{0, "ProductSet", "ToSupplier/ToParent/Name eq 'SAP'", "B"},
		{0, "ProductSet", "ToSupplier/Address/City eq null", "C D E"},
		{0, "ProductSet", "SupplierName eq 'SAP'", "A"},
		{0, "ProductSet", "ToCurrency/Name eq 'Euro'", "A"},
		{0, "ProductSet", "ToCurrency/Name eq null", "C D E"},
		{0, "ProductSet", "length(ToCurrency/Name) gt 4 and ToCurrency/Digits eq 2", "B"},
		{0, "MoveSet", "ToBin/Place eq 'left' or ToBin/Place eq 'right'", "1 2 4"},
		{0, "ItemSet", "ToOrder/ToCustomer/Name eq 'SAP' and ToProduct/ToCurrency/Name eq 'US Dollar'", "10"},
		{v4, "ProductSet", "ToSupplier eq null", "D E"},
		{v4, "MoveSet", "ToBin eq null", "3 5"},

		// Collections.
		{v4, "ProductSet", "ToItems/any()", "A B"},
		{v4, "ProductSet", "ToItems/any(i:i/Quantity gt 5)", "A"},
		{v4, "ProductSet", "ToItems/all(i:i/Quantity gt 2)", "A C D E"},
		{v4, "ProductSet", "ToItems/all(i:contains(i/Note,'x'))", "C D E"},
		{v4, "ProductSet", "not ToItems/any(i:i/Note eq null)", "A C D E"},
		{v4, "ProductSet", "ToItems/any(i:i/ToOrder/ToCustomer/Name eq 'Becker Berlin')", "A"},
		{v4, "PartnerSet", "ToOrders/any(o:o/ToItems/any(i:i/ToProduct/ID eq 'B'))", "1"},
		{v4, "PartnerSet", "ToOrders/any(o:o/ToItems/all(i:i/Quantity gt 2))", "2"},
		{v4, "ProductSet", "ToItems/$count eq 2", "A"},
		{v4, "ProductSet", "ToItems/$count eq 0", "C D E"},
		{v4, "ProductSet", "ToItems/$count lt 1.5", "B C D E"},
		{v4, "ProductSet", "ToItems/$count($filter=Note eq 'x') eq 1", "A"},
		{v4, "ProductSet", "ToSupplier/ToOrders/$count eq 1", "A B"},
		{v4, "ProductSet", "ToSupplier/ToChildren/any(c:c/Address/City eq 'Berlin')", "A"},
		{v4, "MoveSet", "ToBin/ToMoves/$count ge 2", "1 4"},
		{v4, "MoveSet", "ToBin/ToMoves/$count eq 0", "3 5"},
		{v4, "MoveSet", "ToBin/ToMoves/all(m:m/Amount gt 1)", "2 3 5"},
		{v4, "MoveSet", "ToBin/ToMoves/any(m:m/Amount eq null)", "1 4"},
	} {
		for _, ver := range []version{v2, v4} {
			if c.ver != 0 && c.ver != ver {
				continue
			}
			q := urlRequest(t, snap, ver, c.set+"?"+option("$filter", c.in))
			target, err := q.parsePath()
			if err != nil {
				t.Fatal(err)
			}
			query, err := q.parseQuery(target)
			if err != nil {
				t.Errorf("V%d %s: %v", ver, c.in, err)
				continue
			}
			table := target.set.Type.Table
			key := target.set.Type.Key[0].Path
			rows, _, err := world.Read(&store.Read{Snapshot: snap, Table: table, Fields: []string{key}, Query: &record.Query{Where: query.filter, Limit: -1}})
			var list []string
			for _, r := range rows {
				list = append(list, r[0].Text())
			}
			if got := strings.Join(list, " "); got != c.want || err != nil {
				t.Errorf("V%d %s: %s\nin memory: %s %v\n     want: %s", ver, c.set, c.in, got, err, c.want)
			}
			for _, name := range slices.Sorted(maps.Keys(stores)) {
				read := &store.Read{Snapshot: snap, Table: table, Fields: []string{key}, Query: &record.Query{Where: query.filter, Limit: -1}}
				if got := keysFound(t, stores[name], read); got != c.want {
					t.Errorf("V%d %s: %s\n%s: %s\nwant: %s", ver, c.set, c.in, name, got, c.want)
				}
			}
		}
	}
}

// TestFilter_AtTheBoundsIsAnsweredOrInvalid runs filters that are as large as the settings allow.
func TestFilter_AtTheBoundsIsAnsweredOrInvalid(t *testing.T) {
	snap := urlSnapshot(t)
	stores := urlStores(t, urlWorld(t, snap))
	repeat := func(n int, f func(i int) string, sep string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, sep)
	}
	number := func(format string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(format, i) }
	}
	walks := []string{"ToSupplier", "ToSupplier/ToParent", "ToSupplier/ToParent/ToParent", "ToSupplier/ToParent/ToParent/ToParent", "ToCurrency"}
	// Any within any, forty times.
	anyOf := "ToChildren/any()"
	for i := range 40 {
		anyOf = fmt.Sprintf("ToChildren/any(v%[1]d:v%[1]d/%[2]s)", i, anyOf)
	}
	for name, c := range map[string]struct{ set, in string }{
		"any in any":   {"PartnerSet", anyOf},
		"and":          {"ProductSet", repeat(1000, number("Stock ne %d"), " and ")},
		"or":           {"ProductSet", repeat(500, number("Stock gt %d or Weight lt 5"), " or ")},
		"deep or":      {"ProductSet", strings.Repeat("(", 99) + "Stock gt 1" + repeat(99, number(" or Stock gt %d)"), "")},
		"mixed":        {"ProductSet", strings.Repeat("(", 99) + "Stock gt 1" + repeat(49, number(" or Stock gt %d) and Weight gt 1)"), "") + ")"},
		"not":          {"ProductSet", strings.Repeat("not (", 50) + "Stock gt 1" + strings.Repeat(")", 50)},
		"sum":          {"ProductSet", "Stock" + strings.Repeat(" add 1", 190) + " gt 5"},
		"long sum":     {"ProductSet", "Stock" + strings.Repeat(" add 1", 900) + " gt 5"},
		"product":      {"ProductSet", "Stock" + strings.Repeat(" mul 1000000", 50) + " gt 5"},
		"powers":       {"ProductSet", "Weight" + strings.Repeat(" mul 1e300", 50) + " gt 5"},
		"calls":        {"ProductSet", strings.Repeat("concat(Name,", 90) + "'x'" + strings.Repeat(")", 90) + " eq 'x'"},
		"rounded":      {"ProductSet", strings.Repeat("round(", 90) + "Price" + strings.Repeat(")", 90) + " eq 1"},
		"walks":        {"ProductSet", repeat(900, func(i int) string { return fmt.Sprintf("%s/Name ne '%d'", walks[i%4], i) }, " and ")},
		"through":      {"ProductSet", repeat(200, number("ToCurrency/Digits ne %d"), " and ")},
		"any":          {"PartnerSet", repeat(40, number("ToProducts/any(p:p/Stock ne %d)"), " and ")},
		"many any":     {"PartnerSet", repeat(90, number("ToProducts/any(p:p/Stock ne %d)"), " and ")},
		"some any":     {"PartnerSet", repeat(90, number("ToProducts/any(p:p/Stock eq %d)"), " or ")},
		"walked any":   {"PartnerSet", repeat(90, number("ToProducts/any(p:p/ToSupplier/ToParent/Name ne '%d')"), " and ")},
		"nested any":   {"PartnerSet", "ToChildren/any(a:a/ToChildren/any(b:b/ToChildren/any(c:c/ToChildren/any(d:d/ToChildren/any(e:e/ToProducts/any())))))"},
		"deep any":     {"PartnerSet", strings.Repeat("(", 40) + "ToChildren/any()" + strings.Repeat(") and ToChildren/any(x:x/Name eq 'x')", 40)},
		"remainders":   {"ProductSet", "Weight" + strings.Repeat(" mod 5", 190) + " gt 5"},
		"positions":    {"ProductSet", strings.Repeat("substring(Name,length(", 40) + "Name" + strings.Repeat("))", 40) + " eq 'x'"},
		"null of null": {"ProductSet", "contains(Name,'x')" + strings.Repeat(" eq null", 500)},
		"many in":      {"ProductSet", "Stock in (" + repeat(5000, number("%d"), ",") + ")"},
		"long time":    {"ProductSet", "CreatedAt add duration'P999999999D' gt now()"},
		"overflow":     {"ProductSet", "9223372036854775807 add Stock gt 1 or -(-9223372036854775807 sub 1) lt Stock"},
		"substring":    {"ProductSet", "substring(Name,9223372036854775807,9223372036854775807) eq 'x'"},
	} {
		q := urlRequest(t, snap, v4, c.set+"?"+option("$filter", c.in))
		target, err := q.parsePath()
		if err != nil {
			t.Fatal(err)
		}
		query, err := q.parseQuery(target)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range stores {
			res, err := s.Query(t.Context(), &store.Read{
				Snapshot: snap, Table: target.set.Type.Table, Fields: []string{"id"}, Query: &record.Query{Where: query.filter, Limit: -1},
			})
			if err == nil {
				err = res.Materialise(0)
			}
			if err != nil && record.KindOf(err) != record.Invalid {
				t.Errorf("%s: %.300v", name, err)
			}
		}
	}
}
