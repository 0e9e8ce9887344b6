package odata

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/engine"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// numbersDrawn are keys that a database draws, which gaps make differ.
var numbersDrawn = regexp.MustCompile(`0000000\d{3}`)

// randomBatch is a batch of up to a dozen parts over a few products and orders: changesets and single operations, some of which fail.
func randomBatch(r *rand.Rand, ver version) *dialect.Call {
	var b strings.Builder
	ids := 0
	known := []string{}
	op := func(changes bool) {
		method, target, body := "GET", "", ""
		key := string(rune('A' + r.IntN(4)))
		update := []string{"MERGE", "PUT"}[r.IntN(2)]
		if ver == v4 {
			update = "PATCH"
		}
		what := r.IntN(9)
		if changes && what >= 5 {
			what = r.IntN(5)
		}
		switch {
		case what == 0 && len(known) > 0:
			method, target, body = update, "$"+known[r.IntN(len(known))], fmt.Sprintf(`{"Note":"n%d"}`, r.IntN(9))
		case what <= 1:
			method, target, body = "POST", "ProductSet", fmt.Sprintf(`{"ID":"%s","Name":"N","Price":%q}`, key, []string{"1", "2.5", "-1"}[r.IntN(3)])
		case what == 2:
			method, target, body = "POST", "OrderSet", fmt.Sprintf(`{"Note":"o","ToItems":[{"Position":"%d"},{"Position":"%d"}]}`, r.IntN(3), 3+r.IntN(2)-r.IntN(3))
		case what == 3:
			method, target, body = update, "ProductSet('"+key+"')", fmt.Sprintf(`{"Name":"M%d"}`, r.IntN(9))
		case what == 4:
			method, target = "DELETE", "ProductSet('"+key+"')"
		case what == 5:
			target = "ProductSet('" + key + "')"
		case what == 6:
			target = "ProductSet?$orderby=ID&$select=ID,Name,Price,Version"
		case what == 7:
			target = "OrderSet?$expand=ToItems&$select=Note,ToItems/Position&$orderby=ID"
			if ver == v4 {
				target = "OrderSet?$expand=ToItems($select=Position)&$select=Note&$orderby=ID"
			}
		default:
			target = "OrderSet/$count"
		}
		ids++
		fmt.Fprintf(&b, "Content-Type: application/http\r\nContent-ID: %d\r\n\r\n%s %s HTTP/1.1\r\nAccept: application/json\r\nIf-Match: *\r\n", ids, method, target)
		if body != "" {
			b.WriteString("Content-Type: application/json\r\n")
		}
		b.WriteString("\r\n" + body + "\r\n")
		if target == "OrderSet" {
			known = append(known, fmt.Sprint(ids))
		}
	}
	for range 1 + r.IntN(8) {
		b.WriteString("--b\r\n")
		if r.IntN(2) == 0 {
			op(false)
			continue
		}
		b.WriteString("Content-Type: multipart/mixed; boundary=c\r\n\r\n")
		for range 1 + r.IntN(4) {
			b.WriteString("--c\r\n")
			op(true)
		}
		b.WriteString("--c--\r\n")
	}
	b.WriteString("--b--\r\n")
	path := fmt.Sprintf("/odata/v%d/SHOP/$batch", ver)
	c := &dialect.Call{Method: "POST", Path: path, RawPath: path, Base: dialecttest.Base, Actor: dialecttest.Actors["admin"], Body: []byte(b.String())}
	c.Header.Add("Content-Type", "multipart/mixed; boundary=b")
	if r.IntN(2) == 0 {
		c.Header.Add("Prefer", "continue-on-error")
	}
	return c
}

// A batch is answered as if its operations ran one by one, and leaves the same behind: whole changesets or nothing of them, and nothing
// behind the failure at which a batch of V4 stops.
func TestBatch_FusionIsUnobservable(t *testing.T) {
	open := func(fuse bool) *batchShop {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		b := &batchShop{snap: shop(t), mux: &dialect.Mux{}}
		storetest.Create(t, s, b.snap)
		e, err := engine.New(s, engine.Options{Fuse: &fuse, Now: shopDialect().now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		b.exec = &counted{Executor: e}
		b.d = New(Options{Batch: BatchOptions{Boundary: func() string { return "Z" }}})
		b.d.now = shopDialect().now
		b.mux.Handle("/odata/", b.d)
		return b
	}
	fused, single := open(true), open(false)
	for seed := range uint64(150) {
		ver := []version{v2, v4}[seed%2]
		r := rand.New(rand.NewPCG(seed, 1))
		call := randomBatch(r, ver)
		text := string(call.Body)
		answer := func(b *batchShop) string {
			c := *call
			a, _ := b.do(t.Context(), &c)
			state := ""
			for _, path := range []string{"ProductSet", "OrderSet?$expand=ToItems"} {
				path, query, _ := strings.Cut("/odata/v4/SHOP/"+path, "?")
				s, _ := b.do(t.Context(), &dialect.Call{Method: "GET", Path: path, RawPath: path, RawQuery: query, Actor: call.Actor, Base: call.Base})
				state += string(s.Body) + "\n"
			}
			return numbersDrawn.ReplaceAllString(fmt.Sprintf("%d\n%s\n%s", a.Status, strings.ReplaceAll(string(a.Body), "\r\n", "\n"), state), "<number>")
		}
		want, got := answer(single), answer(fused)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-one by one +fused):\n%s\nof\n%s", seed, diff, text)
		}
		if strings.Contains(got, `"code":"SY/530"`) || strings.Contains(got, "HTTP/1.1 500") {
			t.Fatalf("seed %d: an internal error\n%s\nof\n%s", seed, got, text)
		}
	}
}
