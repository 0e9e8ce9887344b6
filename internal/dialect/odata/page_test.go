package odata

import (
	"encoding/base64"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/record"
)

// Pages of any order, size and data put one after another are the list itself, on both databases: nulls and equal values included.
func TestPages_TogetherAreTheWholeList(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		q := &request{d: m.d, snap: m.snap, svc: m.svc, ver: v4, call: &dialect.Call{}}
		set := m.svc.Set("ProductSet")
		sorts := []string{"category", "price", "stock", "weight", "active", "created", "since", "lead", "opens", "uid", "supplier", "supplier.name", "supplier.parent.name", "changed", "name", "id"}
		rapid.Check(t, func(rt *rapid.T) {
			var order []record.Sort
			for range rapid.IntRange(0, 3).Draw(rt, "keys") {
				order = append(order, record.Sort{Path: rapid.SampledFrom(sorts).Draw(rt, "path"), Desc: rapid.Bool().Draw(rt, "desc")})
			}
			order = totalOrder(set, order)
			s := q.shape(set, &query{top: -1, sort: order})
			size := rapid.Int64Range(1, 4).Draw(rt, "size")
			list := func(where *record.Expr, limit int64) [][]record.Value {
				u := &record.Unit{Version: 1, Actors: []record.Actor{{System: true}}, Ops: []record.Op{{
					Verb: record.List, Table: "product", Return: s.paths, Query: &record.Query{Where: where, Sort: order, Limit: limit},
				}}}
				o := m.exec.Execute(t.Context(), m.snap, u)[0]
				if o.Err != nil {
					rt.Fatal(o.Err)
				}
				var rows [][]record.Value
				for i := range o.Rows.Len() {
					rows = append(rows, o.Rows.At(i))
				}
				return rows
			}
			all := list(nil, -1)
			var got [][]record.Value
			var where *record.Expr
			for {
				rows := list(where, size+1)
				got = append(got, rows[:min(len(rows), int(size))]...)
				if len(rows) <= int(size) {
					break
				}
				p := &page{seal: seal(set, order)}
				for _, k := range order {
					p.cols = append(p.cols, s.column(k.Path))
				}
				p.mark(rows[size-1])
				values, err := readToken(set, order, base64.RawURLEncoding.EncodeToString(p.last))
				if err != nil {
					rt.Fatal(err)
				}
				where = behind(order, values)
			}
			if !slices.EqualFunc(all, got, slices.Equal[[]record.Value]) {
				rt.Fatalf("order %v, pages of %d: %d rows of %d\n%v\n%v", order, size, len(got), len(all), got, all)
			}
		})
	})
}

func TestToken_OfAnotherOrderOrMakerIsInvalid(t *testing.T) {
	snap := marketSnapshot(t)
	set := snap.svc.Set("ProductSet")
	order := totalOrder(set, []record.Sort{{Path: "price", Desc: true}})
	p := &page{cols: []int{0, 1}, seal: seal(set, order)}
	p.mark([]record.Value{record.TextValue("1.5"), record.TextValue("HT-1000")})
	good := base64.RawURLEncoding.EncodeToString(p.last)
	if values, err := readToken(set, order, good); err != nil || values[0].S != "1.5" || values[1].S != "HT-1000" {
		t.Fatal(values, err)
	}
	if _, err := readToken(set, totalOrder(set, []record.Sort{{Path: "price"}}), good); record.KindOf(err) != record.Invalid {
		t.Errorf("another order: %v", err)
	}
	if _, err := readToken(snap.svc.Set("OrderSet"), order, good); record.KindOf(err) != record.Invalid {
		t.Errorf("another set: %v", err)
	}
	for _, bad := range []string{"", "500", "AAAA", good + "AA", good[:len(good)-2], good + "!", "\x00"} {
		if _, err := readToken(set, order, bad); record.KindOf(err) != record.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	snap := marketSnapshot(f)
	set := snap.svc.Set("ProductSet")
	order := totalOrder(set, []record.Sort{{Path: "price"}, {Path: "created"}})
	p := &page{cols: []int{0, 1, 2}, seal: seal(set, order)}
	p.mark([]record.Value{record.TextValue("1.5"), {Form: record.Time, N: -7}, record.TextValue("HT")})
	f.Add(base64.RawURLEncoding.EncodeToString(p.last))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := readToken(set, order, text)
		if err != nil {
			if record.KindOf(err) != record.Invalid {
				t.Fatal(err)
			}
			return
		}
		again := &page{cols: []int{0, 1, 2}, seal: seal(set, order)}
		again.mark(values)
		back, err := readToken(set, order, base64.RawURLEncoding.EncodeToString(again.last))
		if err != nil || !slices.Equal(back, values) {
			t.Fatal(back, values, err)
		}
		behind(order, values)
	})
}

func TestNextLink_KeepsAllButThePage(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"", "?$skiptoken=AQ"},
		{"$top=250&$skip=20&$filter=A%20eq%20'x'&sap-client=100&$skiptoken=zzz", "?$filter=A%20eq%20'x'&sap-client=100&$top=150&$skiptoken=AQ"},
		{"%24top=250&%24orderby=Name+desc&&", "?%24orderby=Name+desc&$top=150&$skiptoken=AQ"},
		{"$filter=a \"<é>\\", "?$filter=a%20%22%3C%C3%A9%3E%5C&$skiptoken=AQ"},
		{"%zz=1&a=%zz", "?%zz=1&a=%zz&$skiptoken=AQ"},
		{"select=ID&Top=250&skip=20&skiptoken=zzz", "?select=ID&$skiptoken=AQ"},
	} {
		q := &request{ver: v4, call: &dialect.Call{Base: dialecttest.Base, RawQuery: c.raw}, root: "/odata/v4/MARKET", rest: "ProductSet"}
		top := int64(-1)
		if params, err := parseParams(c.raw); err == nil {
			if _, ok := params.get("$top"); ok {
				top = 150
			}
		}
		if got, want := q.nextLink([]byte{1}, top), dialecttest.Base+"/odata/v4/MARKET/ProductSet"+c.want; got != want {
			t.Errorf("%s\ngot  %s\nwant %s", c.raw, got, want)
		}
	}
}

// Who follows the links sees every entity that was there from first to last once, whatever is written meanwhile.
func TestPages_AreStableUnderWrites(t *testing.T) {
	link := regexp.MustCompile(`"(?:__next|@odata\.nextLink)":"([^"]*)"|<link rel="next" href="([^"]*)"/>`)
	id := regexp.MustCompile(`Set\('(HT-[0-9]*)'\)","uri"|"ID":"(HT-[0-9]*)"|<d:ID>(HT-[0-9]*)</d:ID>`)
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		m.d.opt.PageSize = 2
		seller := 0
		for _, c := range []struct{ root, accept string }{
			{"/odata/v2/MARKET", "application/json"}, {"/odata/v2/MARKET", "application/atom+xml"}, {"/odata/v4/MARKET", "application/json"},
		} {
			address := dialecttest.Base + c.root + "/ProductSet?$orderby=Name&$filter=startswith(ID,'HT-')&$select=ID&$top=100"
			var seen []string
			for pages := 0; address != ""; pages++ {
				if pages > 20 {
					t.Fatal("no end")
				}
				path, query, _ := strings.Cut(strings.TrimPrefix(address, dialecttest.Base), "?")
				call := &dialect.Call{Method: "GET", Path: path, RawPath: path, RawQuery: html.UnescapeString(query), Base: dialecttest.Base, Actor: dialecttest.Actors["admin"]}
				call.Header.Add("Accept", c.accept)
				a := dialecttest.Do(t.Context(), dialecttest.Server{Snapshot: m.snap, Executor: m.exec, Dialect: m.d}, call)
				if a.Status != 200 {
					t.Fatalf("%s: %d %s", address, a.Status, a.Body)
				}
				last := ""
				for _, found := range id.FindAllStringSubmatch(string(a.Body), -1) {
					if found[2] != "" {
						last = found[2]
					} else {
						last = found[1] + found[3]
					}
					if n := len(seen); n == 0 || seen[n-1] != last { // JSON of V2 names an entity twice
						seen = append(seen, last)
					}
				}
				address = ""
				if next := link.FindStringSubmatch(string(a.Body)); next != nil {
					address = next[1] + next[2]
				}
				// One before everything that was seen, so that offsets would shift.
				seller++
				m.insert(t, "product", []string{"id", "name"}, []string{fmt.Sprintf("A-%d", seller), "AAA"}, []string{fmt.Sprintf("HT-0%d", seller), "AAA"})
			}
			for _, want := range []string{"HT-1000", "HT-1001", "HT-1002", "HT-1004", "HT-1005"} {
				if n := count(seen, want); n != 1 {
					t.Errorf("%s as %s: %s was seen %d times of %v", c.root, c.accept, want, n, seen)
				}
			}
		}
	})
}

func count(list []string, s string) (n int) {
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}
