package odata

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"weir/demo"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/wire"
)

var updateDocuments = flag.Bool("update-documents", false, "rewrite the metadata and service documents in testdata/metadata")

// shopSnapshot is the snapshot of testdata/metadata/shop.yaml.
func shopSnapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	text, err := os.ReadFile("testdata/metadata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defs catalog.Definitions
	if err := yaml.Unmarshal(text, &defs); err != nil {
		t.Fatal(err)
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	snap.Applied = time.Date(2026, 1, 31, 10, 0, 0, 500e6, time.UTC)
	return snap
}

// get answers a GET.
func get(t *testing.T, d *Dialect, snap *catalog.Snapshot, path string, header ...string) *wire.Answer {
	t.Helper()
	c := &dialect.Call{Method: "GET", Base: "https://weir.test", Actor: record.Actor{Name: "admin", Roles: []string{"admin"}}}
	c.RawPath, c.RawQuery, _ = strings.Cut(path, "?")
	c.Path = c.RawPath
	for i := 0; i+1 < len(header); i += 2 {
		c.Header.Add(header[i], header[i+1])
	}
	x, err := d.Decode(snap, c)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	a := &wire.Answer{}
	x.Reply(nil, a)
	return a
}

// lines breaks a document where people would.
func lines(body []byte) string {
	s := strings.ReplaceAll(string(body), "><", ">\n<")
	if strings.HasPrefix(s, "{") {
		s = strings.ReplaceAll(s, "},", "},\n")
	}
	return s + "\n"
}

func wellFormed(t *testing.T, body []byte) {
	t.Helper()
	if strings.HasPrefix(string(body), "{") {
		if !json.Valid(body) {
			t.Error("not JSON")
		}
		return
	}
	dec := xml.NewDecoder(strings.NewReader(string(body)))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		if e, ok := tok.(xml.StartElement); ok {
			seen := map[xml.Name]bool{}
			for _, a := range e.Attr {
				if seen[a.Name] {
					t.Errorf("<%s> has %s twice", e.Name.Local, a.Name.Local)
				}
				seen[a.Name] = true
			}
		}
	}
}

// checkDocument compares the answer to a GET with a file.
func checkDocument(t *testing.T, d *Dialect, snap *catalog.Snapshot, file, path, typ string, header ...string) {
	t.Helper()
	a := get(t, d, snap, path, header...)
	if a.Status != 200 || a.Header.Get("Content-Type") != typ {
		t.Errorf("%s: %d %s", path, a.Status, a.Header.Get("Content-Type"))
	}
	wellFormed(t, a.Body)
	have := lines(a.Body)
	name := "testdata/metadata/" + file
	if *updateDocuments {
		if err := os.WriteFile(name, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), have); diff != "" {
		t.Errorf("%s (-update-documents writes it): %s", name, diff)
	}
}

func TestDocuments(t *testing.T) {
	snap, d := shopSnapshot(t), New(Options{})
	f := func(file, path, typ string, header ...string) {
		t.Helper()
		checkDocument(t, d, snap, file, path, typ, header...)
	}
	const xmlType, jsonType = "application/xml;charset=utf-8", "application/json;charset=utf-8"
	f("shop.v2.xml", "/sap/opu/odata/DEMO/SHOP/$metadata", xmlType, "Accept", "application/json")
	f("shop.v4.xml", "/odata/v4/SHOP/$metadata", xmlType)
	f("shop.v4.json", "/odata/v4/SHOP/$metadata?$format=json", jsonType)
	f("stock.v2.xml", "/odata/v2/stock/$metadata", xmlType)
	f("stock.v4.xml", "/sap/opu/odata4/sap/g/default/sap/stock/0001/$metadata", xmlType)
	f("service.v2.json", "/sap/opu/odata/DEMO/SHOP/", jsonType, "Accept", "application/json")
	f("service.v2.xml", "/sap/opu/odata/DEMO/SHOP", "application/atomsvc+xml;charset=utf-8")
	f("service.v4.json", "/odata/v4/SHOP/", "application/json;odata.metadata=minimal")
}

func TestMetadata_FormatOfV4FollowsPreference(t *testing.T) {
	snap, d := shopSnapshot(t), New(Options{})
	f := func(query, accept, want string) {
		t.Helper()
		a := get(t, d, snap, "/odata/v4/SHOP/$metadata"+query, "Accept", accept)
		if got := a.Header.Get("Content-Type"); got != want+";charset=utf-8" {
			t.Errorf("%q, %q: %s", query, accept, got)
		}
	}
	f("", "application/json", "application/json")
	f("", "application/json;q=0.5", "application/json")
	f("", "application/json, */*;q=0.1", "application/json")
	f("", "application/json, text/plain, */*", "application/xml") // what axios sends always
	f("", "application/xml, application/json;q=0.9", "application/xml")
	f("", "application/json;q=0.9,application/xml;q=0.1", "application/json")
	f("", "*/*", "application/xml")
	f("", "text/html", "application/xml")
	f("?$format=json", "application/xml", "application/json")
	f("?$format=application/json;odata.metadata=full", "", "application/json")
	f("?$format=xml", "application/json", "application/xml")
}

func TestMetadata_WhoHasItGetsNoMore(t *testing.T) {
	snap, d := shopSnapshot(t), New(Options{})
	const path = "/sap/opu/odata/DEMO/SHOP/$metadata"
	first := get(t, d, snap, path)
	etag := first.Header.Get("ETag")
	if got := first.Header.Get("Last-Modified"); got != "Sat, 31 Jan 2026 10:00:00 GMT" || etag == "" {
		t.Fatalf("Last-Modified %q, ETag %q", got, etag)
	}
	f := func(want int, header ...string) {
		t.Helper()
		a := get(t, d, snap, path, header...)
		if a.Status != want || (want == 304) != (len(a.Body) == 0) || a.Header.Get("ETag") != etag {
			t.Errorf("%q: %d with %d bytes, ETag %s", header, a.Status, len(a.Body), a.Header.Get("ETag"))
		}
	}
	f(304, "If-None-Match", etag)
	f(304, "If-None-Match", `"other", `+strings.TrimPrefix(etag, "W/"))
	f(304, "If-None-Match", "*")
	f(200, "If-None-Match", `"other"`)
	f(200, "If-None-Match", `"other"`, "If-Modified-Since", "Sat, 31 Jan 2026 10:00:00 GMT") // the first decides
	f(304, "If-Modified-Since", "Sat, 31 Jan 2026 10:00:00 GMT")
	f(200, "If-Modified-Since", "Sat, 31 Jan 2026 09:59:59 GMT")
	f(200, "If-Modified-Since", "yesterday")

	// Formats and versions differ; a new snapshot with the same service does not.
	for _, other := range []string{"/odata/v4/SHOP/$metadata", "/odata/v4/SHOP/$metadata?$format=json"} {
		if a := get(t, d, snap, other, "If-None-Match", etag); a.Status != 200 || a.Header.Get("OData-Version") != "4.0" {
			t.Errorf("%s: %d", other, a.Status)
		}
	}
	snap = shopSnapshot(t)
	f(304, "If-None-Match", etag)
}

func TestMetadata_LinksStandAtTheCallersAddress(t *testing.T) {
	snap, d := shopSnapshot(t), New(Options{})
	for _, root := range []string{"/sap/opu/odata/DEMO/SHOP", "/sap/opu/odata/DEMO/SHOP;v=2;o=A&B"} {
		a := get(t, d, snap, root+"/$metadata")
		wellFormed(t, a.Body)
		if want := `<atom:link rel="self" href="https://weir.test` + strings.ReplaceAll(root, "&", "&amp;") + `/$metadata"`; !strings.Contains(string(a.Body), want) {
			t.Errorf("%s is missing", want)
		}
	}
}

// The sample service of SAP Gateway, as its own document describes it (protocol notes, section 8), and the one of mass creation.
func TestDocuments_OfTheDemo(t *testing.T) {
	p, err := project.Read(demo.Project())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := p.Build(1)
	if err != nil {
		t.Fatal(err)
	}
	d := New(Options{})
	const typ = "application/xml;charset=utf-8"
	checkDocument(t, d, snap, "gwsample.v2.xml", "/sap/opu/odata/IWBEP/GWSAMPLE_BASIC/$metadata", typ)
	checkDocument(t, d, snap, "gwsample.v4.xml", "/sap/opu/odata4/iwbep/gwsample_basic/default/iwbep/GWSAMPLE_BASIC/0001/$metadata", typ)
	mass := string(get(t, d, snap, "/sap/opu/odata/sap/ZGWSAMPLE_MASSINSERT_SRV/$metadata").Body)
	for _, want := range []string{`<EntitySet Name="ProductMassInsertSet"`, `<EntitySet Name="ProductSet"`, `<NavigationProperty Name="ToProducts" Relationship="ZGWSAMPLE_MASSINSERT_SRV.Assoc_ProductMassInsert_Products"`} {
		if !strings.Contains(mass, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, path := range []string{"/odata/v2/itsm/$metadata", "/odata/v4/itsm/$metadata", "/odata/v4/itsm/$metadata?$format=json"} {
		a := get(t, d, snap, path)
		wellFormed(t, a.Body)
		if a.Status != 200 || strings.Contains(string(a.Body), "password") {
			t.Errorf("%s: %d", path, a.Status)
		}
	}
}
