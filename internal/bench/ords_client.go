package bench

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// ordsServer is a server whose levers are pulled.
type ordsServer struct {
	store   OrdsStore
	access  Access
	hashing string // base URL of the node that remembers no credential, if there is one
	client  *ordsClient
	token   string
}

// leverRun is a case that is ready to be measured.
type leverRun struct {
	pulled
	target, path string
	header       http.Header
	want         int
	bytes        int64 // of an answer
	body         []byte
	statements   float64
	trips        float64
	loads        []LoadResult
}

// prepare finds out how a case is called, and calls it once; why says why it is left out.
func (o OrdsLevers) prepare(ctx context.Context, s *ordsServer, c pulled) (run *leverRun, why string, err error) {
	run = &leverRun{pulled: c, target: s.access.Targets[0], path: o.Base + "/" + c.path, header: http.Header{}, want: http.StatusOK}
	basic := func(user, password string) {
		run.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	if c.hashing {
		if s.hashing == "" {
			return nil, "it needs a node with auth.remember: 0", nil
		}
		run.target = s.hashing
	}
	switch c.as {
	case "basic":
		basic(o.User, o.Password)
	case "database":
		if s.store.Login == nil {
			return nil, "there are no users of the database", nil
		}
		basic(s.store.Login.User, s.store.Login.Password)
	case "bearer":
		if s.token == "" {
			if s.token, why, err = s.client.tokenFor(ctx, o.Base, o.Client, o.Secret); err != nil || why != "" {
				return nil, why, err
			}
		}
		run.header.Set("Authorization", "Bearer "+s.token)
	}
	if len(c.set) > 0 {
		if status, _, _, err := s.client.call(ctx, run.target, http.MethodGet, "/weir/settings", s.client.admin(), nil); err != nil || status != http.StatusOK {
			return nil, fmt.Sprintf("settings cannot be changed: GET /weir/settings has status %d", status), err
		}
	}
	status, header, body, err := s.client.call(ctx, run.target, http.MethodGet, run.path, run.header, nil)
	switch {
	case err != nil:
		return nil, "", err
	case status == http.StatusNotFound:
		return nil, "there is no " + run.path, nil
	case status != http.StatusOK:
		return nil, "", fmt.Errorf("GET %s: status %d: %s", run.path, status, excerpt(body))
	}
	run.body, run.bytes = body, int64(len(body))
	if c.unchanged {
		tag := header.Get("ETag")
		if tag == "" {
			return nil, "its answer has no ETag", nil
		}
		run.header.Set("If-None-Match", tag)
		run.want, run.bytes = http.StatusNotModified, 0
	}
	return run, "", nil
}

// differ says which of some answers holds other values than the first. An answer whose items are one row with one array, which is how JSON
// by hand looks, stands for the rows of that array.
func differ(runs []*leverRun) string {
	var first any
	for i, run := range runs {
		items, err := itemsOf(run.body)
		switch {
		case err != nil:
			return fmt.Sprintf("%s: %v", run.name, err)
		case i == 0:
			first = items
		case !reflect.DeepEqual(first, items):
			return fmt.Sprintf("%s answers with other values than %s", run.name, runs[0].name)
		}
	}
	return ""
}

func itemsOf(body []byte) ([]any, error) {
	var answer struct{ Items []any }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if len(answer.Items) == 1 {
		if row, ok := answer.Items[0].(map[string]any); ok && len(row) == 1 {
			for _, v := range row {
				if list, ok := v.([]any); ok {
					return list, nil
				}
			}
		}
	}
	return answer.Items, nil
}

// ordsClient makes the calls beside the load.
type ordsClient struct {
	a    Access
	base string
	http *http.Client
}

func newOrdsClient(a Access) (*ordsClient, error) {
	urls, err := a.targets()
	if err != nil {
		return nil, err
	}
	return &ordsClient{
		a: a, base: urls[0].String(),
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: a.tlsConfig(), DisableCompression: true}},
	}, nil
}

func (c *ordsClient) close() { c.http.CloseIdleConnections() }

// admin are the headers of calls that change settings.
func (c *ordsClient) admin() http.Header {
	h := http.Header{}
	if c.a.User != "" {
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.a.User+":"+c.a.Password)))
	}
	return h
}

// call makes one call with the same headers as the load and returns the whole answer.
func (c *ordsClient) call(ctx context.Context, base, method, path string, h http.Header, body []byte) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header = h.Clone()
	req.Header.Set("Accept", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return res.StatusCode, res.Header, b, err
}

// change changes settings while the server runs; a null gives one back.
func (c *ordsClient) change(ctx context.Context, set map[string]any) error {
	patch, err := json.Marshal(set)
	if err != nil {
		return err
	}
	h := c.admin()
	h.Set("Content-Type", "application/json")
	status, _, body, err := c.call(ctx, c.base, http.MethodPatch, "/weir/settings", h, patch)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("change settings to %s: status %d: %s", patch, status, excerpt(body))
	}
	return nil
}

// tokenFor gets an access token for a client; why says why there is none.
func (c *ordsClient) tokenFor(ctx context.Context, base, id, secret string) (token, why string, err error) {
	if id == "" {
		return "", "there is no OAuth client", nil
	}
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))
	form := url.Values{"grant_type": {"client_credentials"}}.Encode()
	status, _, body, err := c.call(ctx, c.base, http.MethodPost, base+"/oauth/token", h, []byte(form))
	if err != nil {
		return "", "", err
	}
	var answer struct {
		Token string `json:"access_token"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Token == "" {
		return "", fmt.Sprintf("no token: status %d: %s", status, excerpt(body)), nil
	}
	return answer.Token, "", nil
}

var (
	statementCount = regexp.MustCompile(`(\d+) statements?`)
	tripCount      = regexp.MustCompile(`(\d+) round trips?`)
)

// work finds out how many statements the database runs for one request and in how many round trips, as the server tells; -1 if it does not.
// Server-Timing is a median of a few requests, since a connection prepares a statement once. A streamed answer sends it before the statements
// are done, so what the metrics have counted for endpoints meanwhile goes where it is more.
func (c *ordsClient) work(ctx context.Context, run *leverRun) (statements, trips float64, err error) {
	const samples = 5
	h := run.header.Clone()
	h.Set("X-Weir-Timing", "1")
	before, known := c.ran(ctx, run.target)
	var lists [2][]float64
	for range samples {
		status, header, body, err := c.call(ctx, run.target, http.MethodGet, run.path, h, nil)
		if err != nil {
			return 0, 0, err
		}
		if status != run.want {
			return 0, 0, fmt.Errorf("GET %s: status %d, want %d: %s", run.path, status, run.want, excerpt(body))
		}
		for i, count := range []*regexp.Regexp{statementCount, tripCount} {
			n := -1.0
			if m := count.FindStringSubmatch(header.Get("Server-Timing")); m != nil {
				if n, err = strconv.ParseFloat(m[1], 64); err != nil {
					return 0, 0, err
				}
			}
			lists[i] = append(lists[i], n)
		}
	}
	statements, trips = median(lists[0]), median(lists[1])
	if after, ok := c.ran(ctx, run.target); known && ok && (after-before)/samples > statements {
		return (after - before) / samples, -1, nil
	}
	return statements, trips, nil
}

// ran is how many statements of endpoints a node has run so far; not ok if it does not tell.
func (c *ordsClient) ran(ctx context.Context, base string) (n float64, ok bool) {
	u, err := url.Parse(base)
	if err != nil {
		return 0, false
	}
	node := newClient(c.a, u, 1, false, false)
	defer node.close()
	figures := node.gauges(ctx)
	for _, name := range []string{"queries", "tag_queries", "nested"} {
		v, found := figures["weir_endpoint_"+name+"_total"]
		n, ok = n+v, ok || found
	}
	return n, ok
}
