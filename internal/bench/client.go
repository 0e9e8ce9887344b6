package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Access says where the server is and who is calling.
type Access struct {
	// Targets are the base URLs of the nodes, such as http://127.0.0.1:8080. Threads and users are spread over them in turn.
	Targets []string
	// User and Password log in by Basic on every call. An empty User sends no login.
	User, Password string
	// Insecure accepts any TLS certificate.
	Insecure bool
}

// targets returns the parsed base URLs, or an error that names the one at fault.
func (a Access) targets() ([]*url.URL, error) {
	if len(a.Targets) == 0 {
		return nil, errors.New("no target: give the base URL of at least one node, such as http://127.0.0.1:8080")
	}
	var urls []*url.URL
	for _, t := range a.Targets {
		u, err := url.Parse(strings.TrimRight(t, "/"))
		if err != nil {
			return nil, fmt.Errorf("target %q: %w", t, err)
		}
		if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			return nil, fmt.Errorf("target %q is not a base URL such as http://127.0.0.1:8080", t)
		}
		urls = append(urls, u)
	}
	return urls, nil
}

func (a Access) tlsConfig() *tls.Config {
	return &tls.Config{InsecureSkipVerify: a.Insecure, MinVersion: tls.VersionTLS12}
}

// maxAnswer bounds what is read of one answer; the experiments' own answers have a few kilobytes.
const maxAnswer = 64 << 20

// client sends the experiments' calls to one node and checks what comes back.
type client struct {
	base *url.URL
	a    Access
	http *http.Client
}

// newClient returns a client of one node that opens at most conns connections. Without keepAlive each connection is
// closed after its call, as in the article. Cookies are kept only with a session.
func newClient(a Access, base *url.URL, conns int, keepAlive, session bool) *client {
	c := &client{base: base, a: a, http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives:   !keepAlive,
		MaxConnsPerHost:     conns,
		MaxIdleConnsPerHost: conns,
		TLSClientConfig:     a.tlsConfig(),
		DisableCompression:  true,
	}}}
	if session {
		c.http.Jar, _ = cookiejar.New(nil) // without options it cannot fail
	}
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// send makes one call and returns status and whole body.
func (c *client) send(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.a.User != "" {
		req.SetBasicAuth(c.a.User, c.a.Password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, b, err
}

// endpoints is how many scripted endpoints the article made: /api/snc/test_api_1 to _20.
const endpoints = 20

// batchPath is where the article sends its batches.
const batchPath = "/api/now/v1/batch"

func endpointPath(n int) string { return "/api/snc/test_api_" + strconv.Itoa(n) }

// batchBody builds the article's payload for the given endpoints: ids count from 11 as there, JSON both ways.
func batchBody(ns []int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"batch_request_id":"1","enforce_order":false,"rest_requests":[`)
	for i, n := range ns {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","exclude_response_headers":true,"headers":[`+
			`{"name":"Content-Type","value":"application/json"},{"name":"Accept","value":"application/json"}],`+
			`"url":"%s","method":"GET"}`, 10+n, endpointPath(n))
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// outcome says what became of one call to an endpoint.
type outcome int

const (
	served   outcome = iota // right status, right body
	rejected                // 429 or 503: the server said that it has no room
	wrong                   // answered, but not with what was asked
	failed                  // no answer: refused, reset, timed out
	outcomes
)

// answer is what became of one request: an outcome for each call in it, and why the first bad one was bad.
type answer struct {
	n   [outcomes]int
	why string
}

func (a *answer) add(o outcome, n int, format string, args ...any) {
	a.n[o] += n
	if o != served && a.why == "" {
		a.why = fmt.Sprintf(format, args...)
	}
}

// right is true when every call was served as asked and nothing else came.
func (a *answer) right() bool { return a.why == "" }

// call asks for the given endpoints in one request, singly when there is one and not asBatch, and checks the answer.
func (c *client) call(ctx context.Context, ns []int, asBatch bool) (a answer) {
	var (
		status int
		body   []byte
		err    error
	)
	if asBatch {
		status, body, err = c.send(ctx, http.MethodPost, batchPath, batchBody(ns))
	} else {
		status, body, err = c.send(ctx, http.MethodGet, endpointPath(ns[0]), nil)
	}
	switch {
	case err != nil:
		a.add(failed, len(ns), "no answer: %v", err)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		a.add(rejected, len(ns), "status %d: %s", status, excerpt(body))
	case status != http.StatusOK:
		a.add(wrong, len(ns), "status %d: %s", status, excerpt(body))
	case asBatch:
		a.checkBatch(ns, body)
	default:
		a.checkSingle(ns[0], body)
	}
	return a
}

// checkSingle judges the body of endpoint n: {"result":{"response":"Test API n"}}.
func (a *answer) checkSingle(n int, body []byte) {
	var got struct {
		Result struct{ Response string }
	}
	want := "Test API " + strconv.Itoa(n)
	if err := json.Unmarshal(body, &got); err != nil {
		a.add(wrong, 1, "endpoint %d: %v in %s", n, err, excerpt(body))
	} else if got.Result.Response != want {
		a.add(wrong, 1, "endpoint %d answered %q, want %q", n, got.Result.Response, want)
	} else {
		a.add(served, 1, "")
	}
}

// checkBatch judges a batch answer: each id asked for must be served exactly once, with 200 and the right body. Ids
// reported as unserviced, ids missing and ids never asked for are wrong answers.
func (a *answer) checkBatch(ns []int, body []byte) {
	var got struct {
		Serviced []struct {
			ID     string `json:"id"`
			Body   string `json:"body"`
			Status int    `json:"status_code"`
		} `json:"serviced_requests"`
		Unserviced []string `json:"unserviced_requests"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		a.add(wrong, len(ns), "batch answer: %v in %s", err, excerpt(body))
		return
	}
	open := make(map[string]int, len(ns))
	for _, n := range ns {
		open[strconv.Itoa(10+n)] = n
	}
	for _, item := range got.Serviced {
		n, ok := open[item.ID]
		if !ok {
			a.add(wrong, 1, "batch answer serves id %q, which was not asked for or came twice", item.ID)
			continue
		}
		delete(open, item.ID)
		text, err := base64.StdEncoding.DecodeString(item.Body)
		switch {
		case item.Status == http.StatusTooManyRequests || item.Status == http.StatusServiceUnavailable:
			a.add(rejected, 1, "item %s: status %d: %s", item.ID, item.Status, excerpt(text))
		case item.Status != http.StatusOK:
			a.add(wrong, 1, "item %s: status %d: %s", item.ID, item.Status, excerpt(text))
		case err != nil:
			a.add(wrong, 1, "item %s: body: %v", item.ID, err)
		default:
			a.checkSingle(n, text)
		}
	}
	for id := range open {
		a.add(wrong, 1, "item %s was not served (unserviced_requests: %v)", id, got.Unserviced)
	}
}

// excerpt is the start of a body, for a message.
func excerpt(b []byte) string { return excerptOf(b, 200) }

func excerptOf(b []byte, most int) string {
	s := strings.TrimSpace(string(b[:min(len(b), most)]))
	if s == "" {
		return "(empty body)"
	}
	return s
}

// gauges reads a node's /metrics: gauge name with its labels → value. A server without them yields nil.
func (c *client) gauges(ctx context.Context) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, body, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil || status != http.StatusOK {
		return nil
	}
	m := make(map[string]float64)
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if i < 0 || line[0] == '#' {
			continue
		}
		if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
			m[line[:i]] = v
		}
	}
	return m
}

// samples keeps the first few distinct reasons, for people to read.
type samples struct {
	mu  sync.Mutex
	why []string
}

// keep adds a reason unless there are enough of them.
func (s *samples) keep(why string) {
	const most = 5
	if why == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.why {
		if w == why {
			return
		}
	}
	if len(s.why) < most {
		s.why = append(s.why, why)
	}
}

func (s *samples) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.why...)
}
