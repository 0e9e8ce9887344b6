package odata

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/record"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// asked answers a GET whose query is given as data.
func (m *market) asked(t testing.TB, ver version, address string, qy *query, header ...string) (status int, body string, statements int) {
	t.Helper()
	c := &dialect.Call{Method: "GET", Path: fmt.Sprintf("/odata/v%d/MARKET/%s", ver, address), Base: dialecttest.Base, Actor: dialecttest.Actors["admin"]}
	c.RawPath = c.Path
	c.Header.Add("Accept", "application/json")
	for i := 0; i < len(header); i += 2 {
		c.Header.Set(header[i], header[i+1])
	}
	rec := telemetry.New()
	a := dialecttest.Do(telemetry.With(context.WithoutCancel(t.Context()), rec), dialecttest.Server{Snapshot: m.snap, Executor: m.exec, Dialect: given{m.d, qy}}, c)
	return a.Status, string(a.Body), int(rec.SQLCount.Load())
}

// given is the dialect with a query that is not parsed.
type given struct {
	*Dialect
	query *query
}

func (d given) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	q, err := d.begin(snap, c)
	if err != nil {
		return nil, err
	}
	t, err := q.parsePath()
	if err != nil {
		return nil, err
	}
	return q.get(t, d.query)
}

func (d given) Fail(c *dialect.Call, err error, a *wire.Answer) { d.Dialect.Fail(c, err, a) }

// expand is what expanding navs of a set asks for, one inside the other.
func (m *market) expand(set string, navs ...string) *query {
	qy := &query{top: -1, all: true}
	at, typ := qy, m.svc.Set(set).Type
	for _, name := range navs {
		e := &expansion{nav: typ.Nav(name), query: query{top: -1, all: true}}
		at.expand = append(at.expand, e)
		at, typ = &e.query, e.nav.Target.Type
	}
	return qy
}

func TestExpand_IsOneStatementForEachLevel(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		m.many(t, 100)
		two := m.expand("OrderSet", "ToItems", "ToProduct")
		two.expand = append(two.expand, m.expand("OrderSet", "ToCustomer").expand...)
		for _, c := range []struct {
			address string
			query   *query
			most    int
			has     []string
		}{
			{"OrderSet", m.expand("OrderSet", "ToItems", "ToProduct"), 3, []string{`"Note":"order 46"`}},
			{"OrderSet", m.expand("OrderSet", "ToItems", "ToProduct", "ToSupplier", "ToParent"), 5, nil},
			{"OrderSet", two, 4, nil},
			{"OrderSet('0500000000')", m.expand("OrderSet", "ToItems", "ToProduct"), 3, []string{`"ToItems":[{"OrderID":"0500000000","Pos":"0000000010"`}},
			{"OrderSet('0500000002')", m.expand("OrderSet", "ToItems", "ToProduct"), 2, []string{`"ToItems":[]`}},
			{"OrderSet('0500000002')", m.expand("OrderSet", "ToCustomer"), 1, []string{`"ToCustomer":null`}},
			{"OrderSet('nosuch')", m.expand("OrderSet", "ToItems"), 2, []string{"not found"}},
			{"ProductSet('HT-1000')/ToSupplier", m.expand("PartnerSet", "ToChildren"), 3, []string{`"ToChildren":[{"@odata.etag"`}},
		} {
			status, body, n := m.asked(t, v4, c.address, c.query)
			if n > c.most {
				t.Errorf("%s: %d statements, want %d at most", c.address, n, c.most)
			}
			for _, text := range c.has {
				if !strings.Contains(body, text) {
					t.Errorf("%s: %d %.500s\nhas no %s", c.address, status, body, text)
				}
			}
		}
	})
}

// many adds n orders with three items each.
func (m *market) many(t testing.TB, n int) {
	var orders, items [][]string
	for i := range n {
		id := fmt.Sprintf("06%08d", i)
		orders = append(orders, []string{id, "P1", fmt.Sprintf("order %d", i)})
		for k := range 3 {
			items = append(items, []string{id, fmt.Sprintf("%010d", 10*k), fmt.Sprintf("HT-100%d", (i+k)%3), "1"})
		}
	}
	m.insert(t, "orders", []string{"id", "customer", "note"}, orders...)
	m.insert(t, "item", []string{"orders", "pos", "product", "quantity"}, items...)
}

func TestExpand_EachEntityHasItsOwn(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		ids := func(set string) *query { return &query{top: -1, props: m.svc.Set(set).Type.Key} }
		nav := func(set, name string, inner *query) *expansion {
			return &expansion{nav: m.svc.Set(set).Type.Nav(name), query: *inner}
		}
		f := func(address string, qy *query, want string) {
			t.Helper()
			status, body, _ := m.asked(t, v4, address, qy, "Accept", "application/json;odata.metadata=none")
			if status != 200 || body != want {
				t.Errorf("%s: %d\ngot  %s\nwant %s", address, status, body, want)
			}
		}
		// Many, one, none, and what the partner does not exist for.
		qy := ids("ProductSet")
		qy.expand = []*expansion{nav("ProductSet", "ToItems", ids("ItemSet")), nav("ProductSet", "ToSupplier", ids("PartnerSet"))}
		f("ProductSet", qy, `{"value":[{"ID":"HT 1003/x","ToItems":[],"ToSupplier":null},`+
			`{"ID":"HT-1000","ToItems":[{"OrderID":"0500000000","Pos":"0000000010"},{"OrderID":"0500000000","Pos":"0000000030"}],"ToSupplier":{"ID":"P1"}},`+
			`{"ID":"HT-1001","ToItems":[{"OrderID":"0500000000","Pos":"0000000020"}],"ToSupplier":{"ID":"P1"}},`+
			`{"ID":"HT-1002","ToItems":[{"OrderID":"0500000001","Pos":"0000000010"}],"ToSupplier":{"ID":"P2"}},`+
			`{"ID":"HT-1004","ToItems":[],"ToSupplier":null},{"ID":"HT-1005","ToItems":[],"ToSupplier":{"ID":"P5"}}]}`)
		// A key of two fields, both ways; plant 0003 of HT-1001 is no shelf.
		qy = ids("ShelfSet")
		qy.expand = []*expansion{nav("ShelfSet", "ToMoves", ids("MoveSet"))}
		f("ShelfSet", qy, `{"value":[{"ProductID":"HT-1000","Plant":"0001","ToMoves":[{"ID":1}]},{"ProductID":"HT-1000","Plant":"0002","ToMoves":[{"ID":2}]},`+
			`{"ProductID":"HT-1001","Plant":"0001","ToMoves":[{"ID":3}]},{"ProductID":"HT-1001","Plant":"0002","ToMoves":[]}]}`)
		qy = ids("MoveSet")
		qy.expand = []*expansion{nav("MoveSet", "ToShelf", ids("ShelfSet"))}
		f("MoveSet", qy, `{"value":[{"ID":1,"ToShelf":{"ProductID":"HT-1000","Plant":"0001"}},{"ID":2,"ToShelf":{"ProductID":"HT-1000","Plant":"0002"}},`+
			`{"ID":3,"ToShelf":{"ProductID":"HT-1001","Plant":"0001"}},{"ID":4,"ToShelf":null}]}`)
		f("ShelfSet(ProductID='HT-1000',Plant='0002')/ToMoves", ids("MoveSet"), `{"value":[{"ID":2}]}`)
		f("MoveSet(3)/ToShelf", ids("ShelfSet"), `{"ProductID":"HT-1001","Plant":"0001"}`)
		// A bound, an order, a count and a filter for each entity.
		inner := ids("ItemSet")
		inner.sort = []record.Sort{{Path: "pos", Desc: true}}
		inner.top, inner.skip, inner.count = 1, 1, true
		qy = ids("OrderSet")
		qy.expand = []*expansion{nav("OrderSet", "ToItems", inner)}
		f("OrderSet", qy, `{"value":[{"ID":"0500000000","ToItems@odata.count":3,"ToItems":[{"OrderID":"0500000000","Pos":"0000000020"}]},`+
			`{"ID":"0500000001","ToItems@odata.count":1,"ToItems":[]},{"ID":"0500000002","ToItems@odata.count":0,"ToItems":[]}]}`)
		f("OrderSet('0500000000')", qy, `{"ID":"0500000000","ToItems@odata.count":3,"ToItems":[{"OrderID":"0500000000","Pos":"0000000020"}]}`)
		inner.top, inner.skip = -1, 0
		inner.filter = record.Compare(record.Eq, record.F("product"), record.C(record.TextValue("HT-1000")))
		qy.expand[0].query = *inner
		f("OrderSet", qy, `{"value":[{"ID":"0500000000","ToItems@odata.count":2,"ToItems":[{"OrderID":"0500000000","Pos":"0000000030"},{"OrderID":"0500000000","Pos":"0000000010"}]},`+
			`{"ID":"0500000001","ToItems@odata.count":0,"ToItems":[]},{"ID":"0500000002","ToItems@odata.count":0,"ToItems":[]}]}`)
		// The number alone, and addresses alone.
		qy.expand[0].only = true
		f("OrderSet", qy, `{"value":[{"ID":"0500000000","ToItems@odata.count":2},{"ID":"0500000001","ToItems@odata.count":0},{"ID":"0500000002","ToItems@odata.count":0}]}`)
		qy.expand[0] = nav("OrderSet", "ToItems", ids("ItemSet"))
		qy.expand[0].refs = true
		f("OrderSet('0500000001')", qy, `{"ID":"0500000001","ToItems":[{"@odata.id":"ItemSet(OrderID='0500000001',Pos='0000000010')"}]}`)
		// Levels: two, and as many as there are.
		qy = ids("PartnerSet")
		qy.filter = record.Compare(record.Eq, record.F("id"), record.C(record.TextValue("P1")))
		qy.expand = []*expansion{nav("PartnerSet", "ToChildren", ids("PartnerSet"))}
		f("PartnerSet", qy, `{"value":[{"ID":"P1","ToChildren":[{"ID":"P2"},{"ID":"P3"},{"ID":"P5"}]}]}`)
		for _, depth := range []int{1, -1} {
			qy.expand[0].depth = depth
			leaf := map[int]string{1: "", -1: `,"ToChildren":[]`}[depth]
			f("PartnerSet", qy, `{"value":[{"ID":"P1","ToChildren":[{"ID":"P2","ToChildren":[{"ID":"P4"`+leaf+`}]},{"ID":"P3","ToChildren":[]},{"ID":"P5","ToChildren":[]}]}]}`)
		}
	})
}

// What a caller may not see is not there: neither on the way nor among what is expanded.
func TestExpand_HidesWhatTheCallerMayNotSee(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		m.exec = as{m.exec, dialecttest.Actors["ess"]}
		if status, body, _ := m.asked(t, v2, "ProductSet('HT-1005')", m.expand("ProductSet", "ToSupplier")); status != 200 || !strings.Contains(body, `"ToSupplier":null`) {
			t.Errorf("%d %s", status, body)
		}
		if status, body, _ := m.asked(t, v4, "ProductSet('HT-1005')/ToSupplier/ToProducts", &everything); status != 404 {
			t.Errorf("through a hidden partner: %d %s", status, body)
		}
		if status, body, _ := m.asked(t, v4, "PartnerSet('P5')/ToProducts/$count", &everything); status != 404 {
			t.Errorf("count below a hidden partner: %d %s", status, body)
		}
	})
}

// as runs all units for one actor.
type as struct {
	dialect.Executor
	actor record.Actor
}

func (e as) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	u.Actors[0] = e.actor
	return e.Executor.Execute(ctx, snap, u)
}

func (e as) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	u.Actors[0] = e.actor
	return e.Executor.Stream(ctx, snap, u)
}

// Entities that refer to each other can be expanded to any number, which must not become memory.
func TestExpand_IsBounded(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		m.d.opt.MaxEntities = 500
		var navs []string
		for range 4 {
			navs = append(navs, "ToProducts", "ToSupplier")
		}
		if status, body, _ := m.asked(t, v4, "PartnerSet", m.expand("PartnerSet", navs...)); status != 200 {
			t.Errorf("%d %s", status, body)
		}
		var rows [][]string
		for i := range 30 {
			rows = append(rows, []string{fmt.Sprintf("M%d", i), "m", "P3"})
		}
		m.insert(t, "product", []string{"id", "name", "supplier"}, rows...)
		status, body, _ := m.asked(t, v4, "PartnerSet", m.expand("PartnerSet", navs...))
		if status != 413 || !strings.Contains(body, "odata.max_entities") {
			t.Errorf("%d %.300s", status, body)
		}
	})
}

func TestExpand_OfManyIsWrittenInOrder(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		m.many(t, 2000)
		m.svc.Set("OrderSet").MaxPage = 0
		_, body, n := m.asked(t, v2, "OrderSet", m.expand("OrderSet", "ToItems"))
		if n > 2 || strings.Count(body, `"type":"MARKET.Item"`) != 6004 {
			t.Errorf("%d statements, %d items", n, strings.Count(body, `"type":"MARKET.Item"`))
		}
	})
}
