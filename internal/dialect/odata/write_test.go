package odata

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/engine"
	"weir/internal/script"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// onShops calls f for each database with a maker of shops that are empty. Without a PostgreSQL for tests it is SQLite alone.
func onShops(t *testing.T, f func(t *testing.T, open func(t *testing.T) dialecttest.Server)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) dialecttest.Server {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			if err != nil {
				t.Fatal(err)
			}
			return newShop(t, s)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) dialecttest.Server {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			if err != nil {
				t.Fatal(err)
			}
			return newShop(t, s)
		})
	})
}

func newShop(t *testing.T, s store.Store) dialecttest.Server {
	t.Cleanup(func() { s.Close() })
	snap := shop(t)
	storetest.Create(t, s, snap)
	var ids atomic.Int64
	e, err := engine.New(s, engine.Options{
		Now: shopDialect().now, Invoker: script.New(script.Options{}), NewID: func() string { return fmt.Sprintf("%032x", ids.Add(1)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return dialecttest.Server{Snapshot: snap, Executor: e, Dialect: shopDialect()}
}

// The files of testdata/write run in order against an empty shop on a real engine.
func TestGolden_Write(t *testing.T) {
	onShops(t, func(t *testing.T, open func(t *testing.T) dialecttest.Server) {
		dialecttest.EndToEnd(t, "testdata/write/*.txtar", open)
	})
}

// statements runs a call and counts what the database is asked.
func statements(t *testing.T, s dialecttest.Server, method, path, body string) (*wire.Answer, int64) {
	t.Helper()
	rec := telemetry.New()
	a := dialecttest.Do(telemetry.With(t.Context(), rec), s, &dialect.Call{
		Method: method, Path: path, RawPath: path, Base: dialecttest.Base, Actor: dialecttest.Actors["admin"], Body: []byte(body),
		Header: wire.Header{{Name: "Accept", Value: "application/json"}, {Name: "Content-Type", Value: "application/json"}},
	})
	return a, rec.SQLCount.Load()
}

// A deep insert of thousands costs a handful of statements, and its answer has all entities in the order of the request.
func TestDeepInsert_IsAHandfulOfStatements(t *testing.T) {
	const n = 2500
	onShops(t, func(t *testing.T, open func(t *testing.T) dialecttest.Server) {
		s := open(t)
		var products, orders []string
		for i := range n {
			products = append(products, fmt.Sprintf(`{"ID":"P%d","Name":"n","Price":"%d.5"}`, (i*7)%n, i))
			orders = append(orders, fmt.Sprintf(`{"Note":"%d","ToItems":[{"Position":"2","ToRemarks":[{"Text":"a"}]},{"Position":"1"}]}`, i))
		}
		body := `{"ID":"X","ToProducts":[` + strings.Join(products, ",") + `],"ToOrders":[` + strings.Join(orders, ",") + `]}`
		few, most := int64(0), int64(12)
		if a, n := statements(t, s, "POST", "/odata/v2/SHOP/CarrierSet", `{"ID":"Y","ToProducts":[{"ID":"Q","Name":"n"}],"ToOrders":[{"ToItems":[{"Position":"1","ToRemarks":[{"Text":"a"}]}]}]}`); a.Status != 201 {
			t.Fatalf("%d %s", a.Status, a.Body)
		} else {
			few = n
		}
		a, count := statements(t, s, "POST", "/odata/v2/SHOP/CarrierSet", body)
		if a.Status != 201 {
			t.Fatalf("%d %.500s", a.Status, a.Body)
		}
		if count > few || few > most {
			t.Errorf("%d statements for thousands, %d for one of each; want no more than %d", count, few, most)
		}
		var answer struct {
			D struct {
				ToProducts struct{ Results []struct{ ID, Price string } }
				ToOrders   struct {
					Results []struct {
						ID, Note string
						ToItems  struct {
							Results []struct {
								Order, Position string
								ToRemarks       struct {
									Results []struct{ Text, Position string }
								}
							}
						}
					}
				}
			}
		}
		if err := json.Unmarshal(a.Body, &answer); err != nil {
			t.Fatal(err)
		}
		if len(answer.D.ToProducts.Results) != n || len(answer.D.ToOrders.Results) != n {
			t.Fatalf("%d products and %d orders", len(answer.D.ToProducts.Results), len(answer.D.ToOrders.Results))
		}
		for i := range n {
			p, o := answer.D.ToProducts.Results[i], answer.D.ToOrders.Results[i]
			if p.ID != fmt.Sprintf("P%d", (i*7)%n) || p.Price != fmt.Sprintf("%d.500", i) {
				t.Fatalf("product %d: %+v", i, p)
			}
			items := o.ToItems.Results
			if o.Note != strconv.Itoa(i) || len(items) != 2 || items[0].Position != "2" || items[1].Position != "1" || items[0].Order != o.ID ||
				len(items[0].ToRemarks.Results) != 1 || items[0].ToRemarks.Results[0].Position != "2" {
				t.Fatalf("order %d: %+v", i, o)
			}
		}
		// One bad row spoils it all, and is named.
		products[1998] = `{"ID":"Z1998","Name":"n","Price":"-1"}`
		for i := range products[:1998] {
			products[i] = fmt.Sprintf(`{"ID":"Z%d","Name":"n"}`, i)
		}
		a, _ = statements(t, s, "POST", "/odata/v2/SHOP/CarrierSet", `{"ID":"X","ToProducts":[`+strings.Join(products[:2000], ",")+`]}`)
		if a.Status != 400 || !strings.Contains(string(a.Body), `"target":"ToProducts(1998)/Price"`) {
			t.Errorf("%d %.1000s", a.Status, a.Body)
		}
		if a, _ := statements(t, s, "GET", "/odata/v2/SHOP/ProductSet/$count", ""); string(a.Body) != strconv.Itoa(n+1) {
			t.Errorf("%s products", a.Body)
		}
	})
}

// What a create costs between the wire and the engine: a batch of thousands pays it for each.
func TestCreate_AllocatesLittle(t *testing.T) {
	snap, d := shop(t), shopDialect()
	body := []byte(`{"ID":"HT-1000","Name":"Notebook","Price":"956.000","Supplier":"0100000000","Stock":12,"Active":true,"Since":"/Date(1706695200000)/"}`)
	call := dialect.Call{
		Method: "POST", Path: "/odata/v2/SHOP/ProductSet", RawPath: "/odata/v2/SHOP/ProductSet", Base: dialecttest.Base, Actor: dialecttest.Actors["admin"], Body: body,
		Header: wire.Header{{Name: "Accept", Value: "application/json"}, {Name: "Content-Type", Value: "application/json"}},
	}
	n := testing.AllocsPerRun(100, func() {
		c := call
		if _, err := d.Decode(snap, &c); err != nil {
			t.Fatal(err)
		}
	})
	if n > 9 {
		t.Errorf("%v allocations to decode a create", n)
	}
}

// A repeat of a call with an idempotency key is answered like the first one and changes nothing, a deep insert too.
func TestWrite_IsRepeatable(t *testing.T) {
	onShops(t, func(t *testing.T, open func(t *testing.T) dialecttest.Server) {
		s := open(t)
		do := func(path, body string) *wire.Answer {
			return dialecttest.Do(t.Context(), s, &dialect.Call{
				Method: "POST", Path: path, RawPath: path, Base: dialecttest.Base, Actor: dialecttest.Actors["admin"], Body: []byte(body),
				Header: wire.Header{{Name: "Accept", Value: "application/json"}, {Name: "Content-Type", Value: "application/json"}, {Name: "Idempotency-Key", Value: "k" + path}},
			})
		}
		for path, body := range map[string]string{
			"/odata/v2/SHOP/ProductSet": `{"ID":"A","Name":"a"}`,
			"/odata/v4/SHOP/OrderSet":   `{"Note":"n","ToItems":[{"Position":"1","ToRemarks":[{"Text":"t"}]},{"Position":"2"}]}`,
			"/odata/v2/SHOP/PartnerSet": `{"Name":"p","ToOrders":[{"Note":"of p"}]}`,
		} {
			first, second := do(path, body), do(path, body)
			if first.Status != 201 || second.Status != 201 || string(first.Body) != string(second.Body) || first.Header.Get("Location") != second.Header.Get("Location") {
				t.Errorf("%s: %d %s\n%d %s", path, first.Status, first.Body, second.Status, second.Body)
			}
		}
		if a, _ := statements(t, s, "GET", "/odata/v2/SHOP/OrderSet/$count", ""); string(a.Body) != "2" {
			t.Errorf("%s orders", a.Body)
		}
	})
}
