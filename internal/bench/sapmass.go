package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SAPMass is the article's comparison: products created through one $batch with one changeset, and through one deep insert.
type SAPMass struct {
	Access
	// Service is the path of the service root below the target.
	//
	// Defaults to the demo's ZGWSAMPLE_MASSINSERT_SRV in the version asked for.
	Service string
	// Version of OData that the service speaks: 2 or 4.
	//
	// Defaults to 2.
	Version int
	// Set is the entity set whose entities are created.
	//
	// Defaults to ProductSet.
	Set string
	// DeepSet and DeepNav are the set that deep inserts go to and its navigation property that holds the entities. DeepBody are
	// further members of that entity, as JSON with a comma at its end, {{n}} as in Body.
	//
	// Default to ProductMassInsertSet and ToProducts. A DeepSet of "-" leaves deep inserts out.
	DeepSet, DeepNav, DeepBody string
	// Body is one entity in JSON; {{id}} stands for a text of ten letters and digits that no other entity had, {{n}} for its number.
	//
	// Defaults to a product of the demo.
	Body string
	// Sizes are how many entities a request creates.
	//
	// Default to the article's 1, 10, 100, 500, 1,000 and 2,500.
	Sizes []int
	// Rounds is how often each is measured, after one that is not counted; the ways take turns.
	//
	// Defaults to 5.
	Rounds int
}

// MassCase is the result of one way and size: medians over the rounds, in milliseconds.
type MassCase struct {
	Way      string `json:"way"` // batch or deep
	Products int    `json:"products"`
	// WallMS is from the first byte sent to the last byte read; TotalMS to AppMS are what the server says of itself.
	WallMS  float64 `json:"wall_ms"`
	TotalMS float64 `json:"total_ms,omitempty"`
	HubMS   float64 `json:"hub_ms,omitempty"`
	WireMS  float64 `json:"wire_ms,omitempty"` // between hub and backend
	BackMS  float64 `json:"backend_ms,omitempty"`
	AppMS   float64 `json:"application_ms,omitempty"`
	// OverheadUS is hub, wire and backend for each product, in microseconds.
	OverheadUS float64 `json:"overhead_us,omitempty"`
}

// SAPMassResult is what the comparison found.
type SAPMassResult struct {
	Target  string     `json:"target"`
	Service string     `json:"service"`
	Rounds  int        `json:"rounds"`
	Cases   []MassCase `json:"cases"`
	// Ratios are batch : deep of the wall times, by products.
	Ratios   map[string]float64 `json:"batch_to_deep,omitempty"`
	OK       bool               `json:"ok"`
	Problems []string           `json:"problems,omitempty"`
}

// massArticle is the article's table: gwtotal, gwhub, gwbe and gwapp in milliseconds.
var massArticle = map[string]map[int][4]float64{
	"batch": {
		1: {284, 98, 18, 168}, 10: {804, 292, 80, 432}, 100: {6456, 2384, 641, 3432},
		500: {33699, 11952, 3169, 18578}, 1000: {73870, 25032, 6515, 42323}, 2500: {252835, 81069, 17288, 154478},
	},
	"deep": {
		1: {299, 104, 19, 176}, 10: {507, 104, 23, 381}, 100: {3186, 190, 68, 2929},
		500: {16048, 553, 252, 15244}, 1000: {36517, 1016, 490, 35011}, 2500: {128848, 2345, 1211, 125292},
	},
}

var massSizes = []int{1, 10, 100, 500, 1000, 2500}

// massBody is a product of the demo, with what its type asks for.
const massBody = `{"ProductID":"{{id}}","TypeCode":"PR","Category":"Notebooks","Name":"Notebook {{n}}","Description":"Made by a mass insert",` +
	`"SupplierID":"0100000000","TaxTarifCode":1,"MeasureUnit":"EA","WeightMeasure":"4.200","WeightUnit":"KG","CurrencyCode":"EUR","Price":"956.000",` +
	`"Width":"30.000","Depth":"18.000","Height":"3.000","DimUnit":"CM"}`

func (o SAPMass) withDefaults() SAPMass {
	def := func(s *string, d string) {
		if *s == "" {
			*s = d
		}
	}
	if o.Version == 0 {
		o.Version = 2
	}
	if o.Version == 4 {
		def(&o.Service, "/odata/v4/ZGWSAMPLE_MASSINSERT_SRV")
	}
	def(&o.Service, "/sap/opu/odata/sap/ZGWSAMPLE_MASSINSERT_SRV")
	def(&o.Set, "ProductSet")
	def(&o.DeepSet, "ProductMassInsertSet")
	def(&o.DeepNav, "ToProducts")
	def(&o.Body, massBody)
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if len(o.Sizes) == 0 {
		o.Sizes = massSizes
	}
	o.Service = "/" + strings.Trim(o.Service, "/")
	return o
}

func (o SAPMass) validate() error {
	if o.Version != 2 && o.Version != 4 {
		return fmt.Errorf("version: %d, must be 2 or 4", o.Version)
	}
	if o.Rounds < 1 {
		return fmt.Errorf("rounds: %d, must be 1 or more", o.Rounds)
	}
	for _, n := range o.Sizes {
		if n < 1 {
			return fmt.Errorf("size %d: must be 1 or more", n)
		}
	}
	return nil
}

// Run measures all sizes both ways and writes a line of progress for each. An error means that nothing could be measured.
func (o SAPMass) Run(ctx context.Context, progress io.Writer) (*SAPMassResult, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	c, err := newODataClient(ctx, o.Access, o.Service, o.Version)
	if err != nil {
		return nil, err
	}
	defer c.close()
	m := massMaker{SAPMass: o, next: massStart()}
	ways := []string{"batch", "deep"}
	if o.DeepSet == "-" {
		ways = ways[:1]
	}
	r := &SAPMassResult{Target: o.Targets[0], Service: o.Service, Rounds: o.Rounds, Ratios: make(map[string]float64), OK: true}
	for _, n := range o.Sizes {
		taken := make(map[string][]massTimes)
		for round := range o.Rounds + 1 {
			for _, way := range ways {
				t, err := m.create(ctx, c, way, n)
				if ctx.Err() != nil {
					return nil, fmt.Errorf("sap-mass stopped before its end: %w", ctx.Err())
				}
				if err != nil {
					return nil, fmt.Errorf("%d products by %s: %w", n, way, err)
				}
				if round > 0 {
					taken[way] = append(taken[way], t)
				}
			}
		}
		walls := make(map[string]float64)
		for _, way := range ways {
			mc := massCase(way, n, taken[way])
			walls[way] = mc.WallMS
			r.Cases = append(r.Cases, mc)
			fmt.Fprintf(progress, "%5d products by %-5s  %10.1f ms\n", n, way, mc.WallMS)
		}
		if walls["deep"] > 0 {
			r.Ratios[strconv.Itoa(n)] = walls["batch"] / walls["deep"]
		}
	}
	return r, nil
}

// massTimes is where the time of one request went, in milliseconds.
type massTimes struct{ wall, total, hub, wire, back, app float64 }

func massCase(way string, n int, list []massTimes) MassCase {
	of := func(f func(massTimes) float64) float64 {
		var v []float64
		for _, t := range list {
			v = append(v, f(t))
		}
		return median(v)
	}
	c := MassCase{
		Way: way, Products: n,
		WallMS: of(func(t massTimes) float64 { return t.wall }), TotalMS: of(func(t massTimes) float64 { return t.total }),
		HubMS: of(func(t massTimes) float64 { return t.hub }), WireMS: of(func(t massTimes) float64 { return t.wire }),
		BackMS: of(func(t massTimes) float64 { return t.back }), AppMS: of(func(t massTimes) float64 { return t.app }),
	}
	c.OverheadUS = of(func(t massTimes) float64 { return (t.hub + t.wire + t.back) * 1000 / float64(n) })
	return c
}

// massMaker makes requests whose entities nobody has seen yet.
type massMaker struct {
	SAPMass
	next int64
}

// massStart is a number that earlier runs have not reached: each millisecond is worth 100 of them, more than are created in it.
func massStart() int64 { return (time.Now().UnixMilli() - 1_600_000_000_000) * 100 }

// entity appends one entity.
func (m *massMaker) entity(dst []byte) []byte {
	m.next++
	id := strings.ToUpper(strconv.FormatInt(m.next, 36))
	id = "B" + strings.Repeat("0", max(0, 9-len(id))) + id
	s := strings.ReplaceAll(m.Body, "{{id}}", id)
	return append(dst, strings.ReplaceAll(s, "{{n}}", strconv.FormatInt(m.next, 10))...)
}

func (m *massMaker) batch(n int) []byte {
	var b []byte
	b = append(b, "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"...)
	for i := range n {
		entity := m.entity(nil)
		b = append(b, "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: "...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, "\r\n\r\nPOST "...)
		b = append(b, m.Set...)
		b = append(b, " HTTP/1.1\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(entity)), 10)
		b = append(b, "\r\n\r\n"...)
		b = append(b, entity...)
		b = append(b, "\r\n"...)
	}
	return append(b, "--changeset_1--\r\n--batch_1--\r\n"...)
}

func (m *massMaker) deep(n int) []byte {
	b := append([]byte{'{'}, strings.ReplaceAll(m.DeepBody, "{{n}}", strconv.FormatInt(m.next, 10))...)
	b = append(b, '"')
	b = append(b, m.DeepNav...)
	b = append(b, `":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = m.entity(b)
	}
	return append(b, "]}"...)
}

// create creates n entities in one request and checks that each was made.
func (m *massMaker) create(ctx context.Context, c *odataClient, way string, n int) (massTimes, error) {
	path, contentType, accept, body := "/$batch", "multipart/mixed; boundary=batch_1", "multipart/mixed", []byte(nil)
	if way == "deep" {
		path, contentType, accept, body = "/"+m.DeepSet, "application/json", "application/json", m.deep(n)
	} else {
		body = m.batch(n)
	}
	begin := time.Now()
	status, header, answer, err := c.send(ctx, http.MethodPost, path, contentType, accept, body)
	took := time.Since(begin)
	if err != nil {
		return massTimes{}, err
	}
	if status/100 != 2 {
		return massTimes{}, fmt.Errorf("status %d: %s", status, excerpt(answer))
	}
	if made := bytes.Count(answer, []byte(" 201 Created")); way == "batch" && made != n {
		return massTimes{}, fmt.Errorf("%d of %d were created: %s", made, n, excerpt(answer))
	}
	if made, ok := countNested(answer, m.DeepNav); way == "deep" && (!ok || made != n) {
		return massTimes{}, fmt.Errorf("the answer holds %d of %d created: %s", made, n, excerpt(answer))
	}
	t := layersOf(header)
	t.wall = float64(took.Nanoseconds()) / 1e6
	return t, nil
}

// layersOf reads where the server says that the time went: Server-Timing, whose layers have fractions, else sap-statistics in
// whole milliseconds.
func layersOf(h http.Header) massTimes {
	var t massTimes
	found := false
	for _, metric := range strings.Split(h.Get("Server-Timing"), ",") {
		name, rest, _ := strings.Cut(strings.TrimSpace(metric), ";dur=")
		v, err := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(rest, ";", 2)[0]), 64)
		if err != nil {
			continue
		}
		switch name {
		case "hub":
			t.hub, found = v, true
		case "rfc":
			t.wire = v
		case "be":
			t.back = v
		case "app":
			t.app = v
		case "total":
			t.total = v
		}
	}
	if found {
		return t
	}
	for _, pair := range strings.Split(h.Get("sap-statistics"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "gwtotal":
			t.total = v
		case "gwhub":
			t.hub = v
		case "gwrfcoh":
			t.wire = v
		case "gwbe":
			t.back = v
		case "gwapp":
			t.app = v
		}
	}
	return t
}

// odataClient talks to one service, with the handshake that changes need.
type odataClient struct {
	a       Access
	root    string
	version int
	token   string
	http    *http.Client
}

func newODataClient(ctx context.Context, a Access, service string, version int) (*odataClient, error) {
	targets, err := a.targets()
	if err != nil {
		return nil, err
	}
	if len(targets) > 1 {
		return nil, errors.New("one target is measured, not several")
	}
	jar, _ := cookiejar.New(nil) // without options it cannot fail
	c := &odataClient{
		a: a, root: targets[0].String() + service, version: version,
		http: &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: a.tlsConfig(), DisableCompression: true, MaxConnsPerHost: 1}},
	}
	// A server without the handshake answers without a token, which is as good.
	status, header, answer, err := c.send(ctx, http.MethodGet, "/", "", "application/json", nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("GET %s/: status %d: %s", c.root, status, excerpt(answer))
	}
	c.token = header.Get("X-CSRF-Token")
	return c, nil
}

func (c *odataClient) close() { c.http.CloseIdleConnections() }

// send makes one call and returns the whole answer.
func (c *odataClient) send(ctx context.Context, method, path, contentType, accept string, body []byte) (int, http.Header, []byte, error) {
	u, err := url.Parse(c.root)
	if err != nil {
		return 0, nil, nil, err
	}
	rest, query, _ := strings.Cut(path, "?")
	u.Path += rest
	u.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Accept", accept)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.version == 4 {
		req.Header.Set("OData-Version", "4.0")
		req.Header.Set("OData-MaxVersion", "4.0")
	}
	req.Header.Set("sap-statistics", "true")
	req.Header.Set("X-Weir-Timing", "1")
	if token := c.token; token != "" {
		req.Header.Set("X-CSRF-Token", token)
	} else if method == http.MethodGet {
		req.Header.Set("X-CSRF-Token", "Fetch")
	}
	if c.a.User != "" {
		req.SetBasicAuth(c.a.User, c.a.Password)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxMassAnswer))
	return res.StatusCode, res.Header, answer, err
}

// maxMassAnswer bounds what is read of one answer: 10,000 products take about 15 MiB.
const maxMassAnswer = 256 << 20

// Print writes the article's table beside ours.
func (r *SAPMassResult) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s, medians of %d, milliseconds\n", r.Target, r.Service, r.Rounds)
	names := map[string]string{"batch": "one $batch, one changeset", "deep": "one deep insert"}
	for _, way := range []string{"batch", "deep"} {
		t := newTable("products", "article total", "hub", "backend", "app", "total", "hub", "wire", "backend", "app", "overhead each", "article")
		rows := 0
		for _, c := range r.Cases {
			if c.Way != way {
				continue
			}
			rows++
			a, known := massArticle[way][c.Products]
			row := []string{strconv.Itoa(c.Products), "–", "–", "–", "–"}
			each := "–"
			if known {
				for i := range a {
					row[i+1] = fmt.Sprintf("%.0f", a[i])
				}
				each = fmt.Sprintf("%.1f ms", (a[1]+a[2])/float64(c.Products))
			}
			row = append(row, fmt.Sprintf("%.1f", c.WallMS))
			if c.TotalMS == 0 {
				row = append(row, "–", "–", "–", "–", "–", each)
			} else {
				row = append(row, fmt.Sprintf("%.2f", c.HubMS), fmt.Sprintf("%.2f", c.WireMS), fmt.Sprintf("%.2f", c.BackMS),
					fmt.Sprintf("%.2f", c.AppMS), fmt.Sprintf("%.1f µs", c.OverheadUS), each)
			}
			t.Row(row...)
		}
		if rows > 0 {
			fmt.Fprintf(&b, "%s\n%s\n", names[way], t.Render())
		}
	}
	if len(r.Ratios) > 0 {
		t := newTable("batch : deep", "article", "here")
		var sizes []int
		for s := range r.Ratios {
			n, _ := strconv.Atoi(s)
			sizes = append(sizes, n)
		}
		slices.Sort(sizes)
		for _, n := range sizes {
			theirs := "–"
			if a, ok := massArticle["batch"][n]; ok {
				theirs = fmt.Sprintf("%.2f ×", a[0]/massArticle["deep"][n][0])
			}
			t.Row(fmt.Sprintf("%d products", n), theirs, fmt.Sprintf("%.2f ×", r.Ratios[strconv.Itoa(n)]))
		}
		fmt.Fprintf(&b, "%s\n", t.Render())
	}
	b.WriteString("our total is seen by the client, the layers are the server's; overhead is hub, wire and backend for each product.\n")
	printProblems(&b, r.OK, r.Problems)
	_, err := io.WriteString(w, b.String())
	return err
}
