package odata

import (
	"net/url"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/storetest"
)

// clientsFault fails the test unless err is one that a client is to blame for.
func clientsFault(t *testing.T, in string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	switch record.KindOf(err) {
	case record.Invalid, record.NoPath, record.TooLarge:
		if record.AsError(err).Msg == "" {
			t.Fatalf("%q: no message", in)
		}
	default:
		t.Fatalf("%q: %v", in, err)
	}
}

func FuzzParams(f *testing.F) {
	for _, s := range []string{"", "a=1&b=2", "$filter=Name%20eq+'x'", "a=%", "a=%zz&b", "&&=&%00=%ff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		list, err := parseParams(raw)
		clientsFault(t, raw, err)
		for _, p := range list {
			if !isText(p.name) || !isText(p.value) {
				t.Fatalf("%q: %q", raw, p)
			}
			again, err := parseParams(string(appendEscaped(append(appendEscaped(nil, p.name, false), '='), p.value, false)))
			if p.name+p.value != "" && (err != nil || len(again) != 1 || again[0] != p) {
				t.Fatalf("%q: %q is read back as %q, %v", raw, p, again, err)
			}
		}
	})
}

func FuzzLiteral(f *testing.F) {
	for _, s := range []string{
		"null", "'O''Neil'", "5L", "2.5M", "1e-7d", "INF", "datetime'2024-01-31T10:00:00.1234567'", "2024-01-31T10:00:00+02:30", "10:30", "time'PT10H30M'",
		"duration'-P1DT2H3M4.5S'", "guid'01234567-89ab-cdef-0123-456789abcdef'", "01234567-89ab-cdef-0123-456789abcdef", "X'FF'", "binary'_wA='", "'''", "1e999999M",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, ver := range []version{v2, v4} {
			for kind := range edm.ComplexKind {
				v, err := parseLiteral(ver, kind, s)
				clientsFault(t, s, err)
				if err != nil {
					continue
				}
				text, _ := unescape(string(appendLiteral(nil, ver, kind, v)), true)
				again, err := parseLiteral(ver, kind, text)
				if !isText(s) { // a query that is no text is refused before
					continue
				}
				if kind == edm.Decimal && err == nil { // written with the digits of the property
					again.S, v.S = trimmed(again.S), trimmed(v.S)
				}
				if err != nil || again != v {
					t.Fatalf("V%d %s: %q is %+v, written %q, read as %+v, %v", ver, kind, s, v, text, again, err)
				}
			}
		}
	})
}

// trimmed is a decimal without zeros at its end.
func trimmed(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func FuzzPath(f *testing.F) {
	snap := urlSnapshot(f)
	for _, s := range []string{
		"", "$metadata", "ProductSet('HT-1000')/ToSupplier/Address/City/$value", "ItemSet(OrderID='1',Pos='10')", "ProductSet('a%2Fb')/$links/ToItems('x')", "$1/ToItems",
		"ProductSet/a/ToItems/$count", "OrderSet('1')/ToItems('2')/EPM.Item/Note", "Top(N=3,Of=@p)?@p='x'", "OrderSet('7')/EPM.Confirm", "ProductSet/$filter(Stock gt 5)/$each", "%28", "ProductSet(('x'))", "ProductSet((%27",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, ver := range []version{v2, v4} {
			q, ok := fuzzRequest(t, snap, ver, s)
			if !ok {
				continue
			}
			target, err := q.parsePath()
			clientsFault(t, s, err)
			if err == nil {
				showTarget(target)
				if target.set != nil && target.key != nil && len(target.key) != len(target.set.Type.Key) {
					t.Fatalf("%q: a key of %d values", s, len(target.key))
				}
			}
		}
	})
}

// fuzzRequest is urlRequest for an address that may be no query; the service is compiled once.
func fuzzRequest(t testing.TB, snap *catalog.Snapshot, ver version, address string) (*request, bool) {
	rest, raw, _ := strings.Cut(address, "?")
	query, err := parseParams(raw)
	if err != nil {
		return nil, false
	}
	q := *fuzzBase(t, snap)
	q.ver, q.rest, q.query = ver, rest, query
	return &q, true
}

var fuzzed *request

func fuzzBase(t testing.TB, snap *catalog.Snapshot) *request {
	if fuzzed == nil || fuzzed.snap != snap {
		fuzzed = urlRequest(t, snap, v2, "")
	}
	return fuzzed
}

// fuzzOption runs f over values of one query option, in the versions that have it, and checks what is read of them.
func fuzzOption(f *testing.F, set string, names map[version]string, seeds ...string) {
	snap := urlSnapshot(f)
	world := urlWorld(f, snap)
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4096 || !isText(s) {
			return
		}
		for ver, name := range names {
			q, ok := fuzzRequest(t, snap, ver, set+"?"+name+"="+url.QueryEscape(s)+"&@p=Stock%20gt%205&@q=@q%20or%20@p")
			if !ok {
				t.Fatalf("%q cannot be sent", s)
			}
			target, err := q.parsePath()
			if err != nil {
				t.Fatal(err)
			}
			query, err := q.parseQuery(target)
			clientsFault(t, s, err)
			if err != nil {
				continue
			}
			sound(t, q, world, target.set, query)
		}
	})
}

// sound checks a query: its conditions can be evaluated and compiled for both databases, which may refuse no more than values.
func sound(t *testing.T, q *request, world *storetest.World, set *edm.Set, query *query) {
	printQuery(query)
	if set.Type.Table == nil {
		return
	}
	where, sort, aggregate := query.filter, query.sort, &record.Query{Limit: -1}
	if ap := query.apply; ap != nil {
		where, sort = ap.filter, nil
		aggregate.Group, aggregate.Having, aggregate.Sort = ap.groupPaths, ap.having, ap.sort
		for _, a := range ap.aggs {
			aggregate.Aggs = append(aggregate.Aggs, a.agg)
		}
	}
	aggregate.Where = where
	if query.apply == nil {
		aggregate.Sort = sort
	}
	read := &store.Read{Snapshot: q.snap, Table: set.Type.Table, Fields: []string{set.Type.Key[0].Path}, Query: aggregate}
	for _, flavor := range []*store.Flavor{store.SQLite, store.PostgreSQL} {
		c := store.NewCompiler(flavor)
		if _, _, _, _, err := c.Read(read, nil, nil); err != nil && record.KindOf(err) != record.Invalid {
			t.Fatalf("%s: %v", printQuery(query), err)
		}
	}
	for _, r := range world.Rows[set.Type.Table.Root] {
		if _, err := world.Holds(set.Type.Table, r, where); err != nil && record.KindOf(err) != record.Invalid {
			t.Fatalf("%s: %v", printQuery(query), err)
		}
	}
	for _, e := range query.expand {
		sound(t, q, world, e.nav.Target, &e.query)
	}
}

func FuzzFilter(f *testing.F) {
	fuzzOption(
		f, "ProductSet", map[version]string{v2: "$filter", v4: "$filter"},
		"Name eq 'x' and not (Price gt 1.5M or Stock le -5)", "substringof('a',Name) eq true", "contains(tolower(Name),'x') or @p", "@q",
		"CreatedAt ge datetime'2024-01-31T10:00:00' and Since lt datetime'2024-01-31T00:00:00'", "date(CreatedAt) eq 2024-01-31 and CreatedAt lt now()",
		"ToSupplier/ToParent/Address/City ne null", "ToCurrency/Name eq 'Euro'", "ToItems/any(i:i/Quantity gt 5 and i/ToOrder/ToCustomer/ToProducts/all(p:p/Stock lt 5))",
		"ToItems/$count($filter=Note eq 'x') ge 2", "Stock in (1,2,3) and Name in ('','x')", "isof('EPM.Product') and cast(Stock,'Edm.String') eq '5'", "Weight lt INF and -Stock mod 2 eq 1",
		"substring(Name,1,2) eq concat(ID,'x') and indexof(Name,'x') div 2 gt length(Name)", "UID eq guid'01234567-89ab-cdef-0123-456789abcdef'", "Lead add duration'PT1H' gt duration'P1D'", "round(Price mul 2) eq 5 divby 2",
		"ToSupplier eq null", "Photo eq X'00' or Photo eq binary'AA'", "fractionalseconds(CreatedAt) lt 0.5 and time(CreatedAt) ge 10:00", "matchesPattern(Name,'^a$')", "((((((((((true))))))))))",
	)
}

func FuzzSelect(f *testing.F) {
	fuzzOption(f, "PartnerSet", map[version]string{v2: "$select", v4: "$select"}, "ID,Name,*", "Address/City,ToProducts/ToItems/Note", "EPM.*,EPM.Partner/ID", "ToOrders", ",")
}

func FuzzExpand(f *testing.F) {
	fuzzOption(
		f, "PartnerSet", map[version]string{v2: "$expand", v4: "$expand"},
		"ToProducts/ToItems,ToOrders", "ToProducts($select=ID;$filter=Stock gt 5;$top=1;$orderby=Name desc;$expand=ToItems($count=true))", "*($levels=2)", "*/$ref", "ToOrders/$count($filter=Note eq ')')",
		"ToChildren($levels=max;$search=\"a b\" OR c)", "ToParent/$ref",
	)
}

func FuzzOrderby(f *testing.F) {
	fuzzOption(f, "ProductSet", map[version]string{v2: "$orderby", v4: "$orderby"}, "Name desc,ToSupplier/Address/City asc", "ToCurrency/Name", "ToItems/$count", "@p", "length(Name)")
}

func FuzzSearch(f *testing.F) {
	fuzzOption(f, "ProductSet", map[version]string{v2: "search", v4: "$search"}, `a AND "b c" OR NOT (d e)`, `"a \" b`, "((a", "NOT", ")")
}

func FuzzApply(f *testing.F) {
	fuzzOption(
		f, "ProductSet", map[version]string{v4: "$apply"},
		"filter(Stock gt 0)/groupby((Category,ToSupplier/Name),aggregate(Price with sum as T,$count as N))/filter(N gt 1 and Category ne 'x')/orderby(T desc)/top(5)",
		"aggregate(CreatedAt with max as M,Name with countdistinct as D,Weight with average as A,Lead with sum as L)", "topcount(5,Price)/skip(1)", "groupby((ToSupplier/Address/City))", "search(a b)/identity/bottomcount(1,Name)",
		"concat(identity,identity)", "aggregate(Price with min as P)/filter(P eq null)",
	)
}
