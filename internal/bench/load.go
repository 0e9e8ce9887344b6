package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Request is what a load loop sends.
type Request struct {
	Method string
	// Path is the path with its query.
	Path string
	// Header is sent as it is, beside Host, login, Accept and the body's Content-Type and length. Nil is none.
	Header http.Header
	// Body is the body of request n, counted from 0 on each connection conn; nil sends none. It is called while the load
	// runs, so it should be cheap, and by several goroutines at once.
	Body func(conn, n int) []byte
	// Want is the status of a right answer.
	//
	// Defaults to 200.
	Want int
	// Check judges the body of an answer with the wanted status; an error makes the answer wrong. Nil looks at the status
	// alone, and bodies are dropped unread, which is what a comparison of rates wants. The body is valid during the call only.
	Check func(body []byte) error
}

// LoadOptions describe a closed load: each connection sends its next request when it has read the answer to the last.
type LoadOptions struct {
	Access
	Request Request
	// Connections are kept alive and used at the same time, spread over the targets in turn.
	//
	// Defaults to 1.
	Connections int
	// Duration is how long answers are counted, after a Warmup that is not.
	//
	// Defaults to 5 s, and no warm-up.
	Duration, Warmup time.Duration
	// Each, when it is not 0, is how many requests each connection makes; Duration is then the longest that they may take.
	Each int
	// SessionPath, when set, is asked once on each target before the load; the cookies it sets are sent on all
	// connections, which are then one session.
	SessionPath string
}

// LoadResult is what a load did.
type LoadResult struct {
	Seconds float64 `json:"seconds"`
	// Requests had the wanted status; PerSecond and the times are theirs alone.
	Requests  int     `json:"requests"`
	PerSecond float64 `json:"per_second"`
	MeanMS    float64 `json:"mean_ms"`
	P50MS     float64 `json:"p50_ms"`
	P90MS     float64 `json:"p90_ms"`
	P95MS     float64 `json:"p95_ms"`
	P99MS     float64 `json:"p99_ms"`
	MaxMS     float64 `json:"max_ms"`
	// Bytes is the size of the right answers' bodies.
	Bytes int64 `json:"bytes"`
	// Rejected (429, 503), Wrong (another status than wanted) and Failed (no answer) count the others.
	Rejected int `json:"rejected"`
	Wrong    int `json:"wrong"`
	Failed   int `json:"failed"`
	// Why holds a few of their reasons.
	Why []string `json:"why,omitempty"`
}

// Errors is the number of requests that did not get their right answer.
func (r LoadResult) Errors() int { return r.Rejected + r.Wrong + r.Failed }

// Load runs a closed load. The generator writes prepared bytes and reads only status and length, so that it takes
// little from a server on the same machine. An error means that nothing was measured; bad answers are part of the result.
func Load(ctx context.Context, o LoadOptions) (LoadResult, error) {
	o.Connections = max(o.Connections, 1)
	if o.Duration == 0 {
		o.Duration = 5 * time.Second
	}
	head, err := o.heads(ctx)
	if err != nil {
		return LoadResult{}, err
	}
	if o.Warmup > 0 {
		o.run(ctx, head, o.Warmup)
	}
	r := o.run(ctx, head, o.Duration)
	if err := ctx.Err(); err != nil {
		return LoadResult{}, fmt.Errorf("load stopped before its end: %w", err)
	}
	return r, nil
}

// loadHead is the constant part of the requests to one node.
type loadHead struct {
	base *url.URL
	text []byte // request line and headers, without length and end
}

// heads prepares one head for each target and opens the session where one is asked for.
func (o LoadOptions) heads(ctx context.Context) ([]loadHead, error) {
	urls, err := o.targets()
	if err != nil {
		return nil, err
	}
	if o.Request.Method == "" || !strings.HasPrefix(o.Request.Path, "/") {
		return nil, fmt.Errorf("request %q %q needs a method and a path that begins with /", o.Request.Method, o.Request.Path)
	}
	var heads []loadHead
	for _, u := range urls {
		req, err := http.NewRequest(o.Request.Method, u.String()+o.Request.Path, nil)
		if err != nil {
			return nil, err
		}
		req.Header = o.Request.Header.Clone()
		if req.Header == nil {
			req.Header = make(http.Header)
		}
		if req.Header.Get("Accept") == "" {
			req.Header.Set("Accept", "application/json")
		}
		if o.Request.Body != nil && req.Header.Get("Content-Type") == "" {
			req.Header.Set("Content-Type", "application/json")
		}
		if o.User != "" {
			req.SetBasicAuth(o.User, o.Password)
		}
		if o.SessionPath != "" {
			cookies, err := o.session(ctx, u)
			if err != nil {
				return nil, err
			}
			for _, c := range cookies {
				req.AddCookie(c)
			}
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", req.Method, req.URL.RequestURI(), u.Host)
		if err := req.Header.Write(&b); err != nil {
			return nil, err
		}
		heads = append(heads, loadHead{u, b.Bytes()})
	}
	return heads, nil
}

func (o LoadOptions) session(ctx context.Context, u *url.URL) ([]*http.Cookie, error) {
	c := newClient(o.Access, u, 1, false, true)
	status, body, err := c.send(ctx, http.MethodGet, o.SessionPath, nil)
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("open a session with %s: status %d: %s", o.SessionPath, status, excerpt(body))
	}
	cookies := c.http.Jar.Cookies(u)
	if len(cookies) == 0 {
		return nil, fmt.Errorf("open a session with %s: no cookie was set", o.SessionPath)
	}
	return cookies, nil
}

// loadTally is one connection's count.
type loadTally struct {
	LoadResult
	times *hdrhistogram.Histogram
}

// run loads for d and stops hard.
func (o LoadOptions) run(ctx context.Context, heads []loadHead, d time.Duration) LoadResult {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var (
		wg      sync.WaitGroup
		why     samples
		tallies = make([]loadTally, o.Connections)
		begin   = time.Now()
	)
	for i := range tallies {
		wg.Go(func() {
			t := &tallies[i]
			t.times = newTimes()
			w := rawConn{access: o.Access, head: heads[i%len(heads)]}
			defer w.close()
			for n := 0; ctx.Err() == nil && (o.Each == 0 || n < o.Each); n++ {
				start := time.Now()
				a := w.do(ctx, o.Request, i, n)
				took := time.Since(start)
				if ctx.Err() != nil {
					return
				}
				t.count(a, took, o.Request.want(), &why)
				if a.err != nil {
					pause(ctx, 10*time.Millisecond) // a server that is down is not asked in a hot loop
				}
			}
		})
	}
	wg.Wait()
	return sum(tallies, time.Since(begin), &why)
}

func (r Request) want() int {
	if r.Want == 0 {
		return http.StatusOK
	}
	return r.Want
}

// count adds one answer.
func (t *loadTally) count(a rawAnswer, took time.Duration, want int, why *samples) {
	switch {
	case a.err != nil:
		t.Failed++
		why.keep("no answer: " + a.err.Error())
	case a.status == want && a.wrong != nil:
		t.Wrong++
		why.keep(a.wrong.Error())
	case a.status == want:
		t.Requests++
		t.Bytes += a.bytes
		record(t.times, took)
	case a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable:
		t.Rejected++
		why.keep(fmt.Sprintf("status %d", a.status))
	default:
		t.Wrong++
		why.keep(fmt.Sprintf("status %d, want %d", a.status, want))
	}
}

func sum(tallies []loadTally, d time.Duration, why *samples) LoadResult {
	var r LoadResult
	times := newTimes()
	for _, t := range tallies {
		r.Requests += t.Requests
		r.Bytes += t.Bytes
		r.Rejected += t.Rejected
		r.Wrong += t.Wrong
		r.Failed += t.Failed
		times.Merge(t.times)
	}
	r.Seconds = d.Seconds()
	r.PerSecond = float64(r.Requests) / r.Seconds
	r.MeanMS, r.MaxMS = times.Mean()/1000, float64(times.Max())/1000
	r.P50MS, r.P90MS, r.P95MS, r.P99MS = percentileMS(times, 50), percentileMS(times, 90), percentileMS(times, 95), percentileMS(times, 99)
	r.Why = why.list()
	return r
}

// rawConn is one kept connection, opened when needed and again after an error or when the server closes it.
type rawConn struct {
	access Access
	head   loadHead
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	body   bytes.Buffer // the last answer's body, when it is to be checked
	forget func() bool  // stops watching for the end of the load
}

// rawAnswer is what the load loop keeps of an answer.
type rawAnswer struct {
	status int
	bytes  int64
	wrong  error // what Check said
	err    error // why there is no answer
}

// do sends one request and reads its answer; the end of ctx cuts it off.
func (w *rawConn) do(ctx context.Context, r Request, conn, n int) rawAnswer {
	if w.conn == nil {
		if err := w.open(ctx); err != nil {
			return rawAnswer{err: err}
		}
	}
	w.out = append(w.out[:0], w.head.text...)
	var body []byte
	if r.Body != nil {
		body = r.Body(conn, n)
		w.out = append(w.out, "Content-Length: "...)
		w.out = strconv.AppendInt(w.out, int64(len(body)), 10)
		w.out = append(w.out, "\r\n"...)
	}
	w.out = append(append(w.out, "\r\n"...), body...)

	if _, err := w.conn.Write(w.out); err != nil {
		w.close()
		return rawAnswer{err: err}
	}
	sink := io.Discard
	if r.Check != nil {
		w.body.Reset()
		sink = &w.body
	}
	a, reuse := readAnswer(w.in, r.Method == http.MethodHead, sink)
	if a.err != nil || !reuse {
		w.close()
	}
	if r.Check != nil && a.err == nil && a.status == r.want() {
		a.wrong = r.Check(w.body.Bytes())
	}
	return a
}

// open connects. The end of ctx, which is the end of the load, closes the connection under whatever waits on it.
func (w *rawConn) open(ctx context.Context) error {
	host := w.head.base.Host
	if w.head.base.Port() == "" {
		host = net.JoinHostPort(w.head.base.Hostname(), map[string]string{"http": "80", "https": "443"}[w.head.base.Scheme])
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	if w.head.base.Scheme == "https" {
		conf := w.access.tlsConfig()
		conf.ServerName = w.head.base.Hostname()
		t := tls.Client(c, conf)
		if err := t.HandshakeContext(ctx); err != nil {
			c.Close()
			return err
		}
		c = t
	}
	w.conn, w.in = c, bufio.NewReaderSize(c, 16<<10)
	w.forget = context.AfterFunc(ctx, func() { c.Close() })
	return nil
}

func (w *rawConn) close() {
	if w.conn != nil {
		w.forget()
		w.conn.Close()
		w.conn = nil
	}
}

// readAnswer reads one HTTP/1.1 answer, its body into sink; reuse says whether the connection may carry another request.
func readAnswer(in *bufio.Reader, head bool, sink io.Writer) (a rawAnswer, reuse bool) {
	fail := func(err error) (rawAnswer, bool) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return rawAnswer{err: err}, false
	}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fail(err)
	}
	if len(line) < 12 || string(line[:7]) != "HTTP/1." {
		return fail(fmt.Errorf("not an HTTP/1 answer: %.40q", line))
	}
	if a.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fail(fmt.Errorf("not an HTTP/1 answer: %.40q", line))
	}
	reuse = line[7] == '1'
	length, chunked := int64(-1), false
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return fail(err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.ParseInt(string(value), 10, 64); err != nil || length < 0 {
				return fail(fmt.Errorf("bad Content-Length %q", value))
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			reuse = reuse && !bytes.EqualFold(value, []byte("close"))
		}
	}
	switch {
	case head || a.status == http.StatusNoContent || a.status == http.StatusNotModified:
	case chunked:
		a.bytes, err = copyChunks(in, sink)
	case length >= 0:
		a.bytes, err = io.CopyN(sink, in, length)
	default: // the end of the connection is the end of the body
		a.bytes, err = io.Copy(sink, in)
		reuse = false
	}
	if err != nil {
		return fail(err)
	}
	return a, reuse
}

// copyChunks reads a chunked body and its trailers.
func copyChunks(in *bufio.Reader, sink io.Writer) (total int64, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return total, err
		}
		size, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
		n, err := strconv.ParseInt(string(size), 16, 64)
		if err != nil || n < 0 {
			return total, fmt.Errorf("bad chunk size %.20q", size)
		}
		if n == 0 {
			break
		}
		total += n
		if _, err := io.CopyN(sink, in, n); err != nil {
			return total, err
		}
		if _, err := in.Discard(len("\r\n")); err != nil {
			return total, err
		}
	}
	for { // trailers
		line, err := in.ReadSlice('\n')
		if err != nil {
			return total, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return total, nil
		}
	}
}

// BatchOfCreates builds a Now batch of n creates in table, ids 0 to n-1; record is the JSON of record i.
func BatchOfCreates(table string, n int, record func(i int) []byte) []byte {
	var b []byte
	b = append(b, `{"batch_request_id":"1","rest_requests":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"id":"`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `","exclude_response_headers":true,"headers":[{"name":"Content-Type","value":"application/json"},`+
			`{"name":"Accept","value":"application/json"}],"url":"/api/now/table/`...)
		b = append(b, url.PathEscape(table)...)
		b = append(b, `","method":"POST","body":"`...)
		b = base64.StdEncoding.AppendEncode(b, record(i))
		b = append(b, `"}`...)
	}
	return append(b, `]}`...)
}

// ProbeOptions describe how one kind of request fares while another load runs.
type ProbeOptions struct {
	Access
	// Probe is the request that is timed, sent on a schedule of Rate a second over Connections. Its time counts from
	// the planned start, so that a stall of the server is not hidden by asking less.
	//
	// Rate defaults to 100 a second, Connections to 4.
	Probe       Request
	Rate        float64
	Connections int
	// Load is the request that repeats beside it, closed, over LoadConnections (default 1), for instance a batch of
	// 10,000 creates.
	Load            Request
	LoadConnections int
	// Duration is how long each of the two phases lasts: quiet, then loaded.
	//
	// Defaults to 10 s.
	Duration time.Duration
	// ProbeSession and LoadSession, when set, are paths from which each side first gets session cookies of its own.
	ProbeSession, LoadSession string
	// LoadProgram, when set, is the weir binary, which makes the load in a process of its own (weir bench load). In this
	// process the probe's answers would wait behind the load's, and what is measured would be the generator.
	// Load is then a GET without a body.
	LoadProgram string
}

// ProbeResult compares the probe's times.
type ProbeResult struct {
	Quiet  LoadResult `json:"quiet"`
	Loaded LoadResult `json:"loaded"`
	// Load is what the other side did meanwhile.
	Load LoadResult `json:"load"`
	// P90Ratio and P99Ratio are loaded against quiet; 0 when there is nothing to compare.
	P90Ratio float64 `json:"p90_ratio"`
	P99Ratio float64 `json:"p99_ratio"`
	// OK is true when all probes were answered rightly in both phases and the load was served at all.
	OK bool `json:"ok"`
}

// Probe times a scheduled request alone, then while the load repeats. The p99 of a GET beside mass creates is
// measured so; see [Fairness] for two sessions of the same calls.
func Probe(ctx context.Context, o ProbeOptions) (ProbeResult, error) {
	if o.Rate == 0 {
		o.Rate = 100
	}
	if o.Rate < 0 || math.IsInf(o.Rate, 0) || math.IsNaN(o.Rate) {
		return ProbeResult{}, fmt.Errorf("rate: %v a second, must be more than 0", o.Rate)
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
	}
	if o.Connections < 1 {
		o.Connections = 4
	}
	probe := LoadOptions{Access: o.Access, Request: o.Probe, Connections: o.Connections, SessionPath: o.ProbeSession}
	load := LoadOptions{Access: o.Access, Request: o.Load, Connections: max(o.LoadConnections, 1), SessionPath: o.LoadSession}
	probeHeads, err := probe.heads(ctx)
	if err != nil {
		return ProbeResult{}, fmt.Errorf("probe: %w", err)
	}
	beside := func() (LoadResult, error) { return loadIn(ctx, o.LoadProgram, load, o.Duration) }
	if o.LoadProgram == "" {
		loadHeads, err := load.heads(ctx)
		if err != nil {
			return ProbeResult{}, fmt.Errorf("load: %w", err)
		}
		beside = func() (LoadResult, error) { return load.run(ctx, loadHeads, o.Duration), nil }
	}
	var r ProbeResult
	r.Quiet = probe.runScheduled(ctx, probeHeads, o.Rate, o.Duration)
	loaded := make(chan error, 1)
	go func() {
		var err error
		r.Load, err = beside()
		loaded <- err
	}()
	r.Loaded = probe.runScheduled(ctx, probeHeads, o.Rate, o.Duration)
	if err := <-loaded; err != nil {
		return ProbeResult{}, fmt.Errorf("load: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return ProbeResult{}, fmt.Errorf("probe stopped before its end: %w", err)
	}
	r.P90Ratio, r.P99Ratio = ratio(r.Loaded.P90MS, r.Quiet.P90MS), ratio(r.Loaded.P99MS, r.Quiet.P99MS)
	r.OK = r.Quiet.Errors() == 0 && r.Loaded.Errors() == 0 && r.Quiet.Requests > 0 && r.Loaded.Requests > 0 && r.Load.Requests > 0
	return r, nil
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// runScheduled sends rate requests a second for d, each planned start taken by the next free connection, and counts
// times from the planned start. What is planned but not answered within the grace counts as failed: leaving it out would
// hide the slowest.
func (o LoadOptions) runScheduled(ctx context.Context, heads []loadHead, rate float64, d time.Duration) LoadResult {
	parent := ctx
	// Answers may come for a while after the last start, so that the last requests are judged like the others.
	ctx, cancel := context.WithTimeout(ctx, d+max(d/2, time.Second))
	defer cancel()
	var (
		wg      sync.WaitGroup
		why     samples
		tallies = make([]loadTally, o.Connections)
		begin   = time.Now()
		planned = make(chan time.Time)
	)
	for i := range tallies {
		wg.Go(func() {
			t := &tallies[i]
			t.times = newTimes()
			w := rawConn{access: o.Access, head: heads[i%len(heads)]}
			defer w.close()
			n := 0
			for start := range planned {
				pause(ctx, time.Until(start))
				a := w.do(ctx, o.Request, i, n)
				if parent.Err() != nil {
					continue
				}
				t.count(a, time.Since(start), o.Request.want(), &why)
				n++
			}
		})
	}
	for k := range int(rate * d.Seconds()) {
		planned <- begin.Add(time.Duration(float64(k) / rate * float64(time.Second)))
	}
	close(planned)
	wg.Wait()
	return sum(tallies, d, &why)
}

// FairnessOptions describe a session that floods beside one that does not.
type FairnessOptions struct {
	Access
	// Request is what both sessions send, such as a GET of one record.
	Request Request
	// SessionPath gives each of the two its cookies.
	SessionPath string
	// Flood is how many connections the flooding session uses at once; it never pauses.
	//
	// Defaults to 200.
	Flood int
	// Rate, Duration and LoadProgram are as in [ProbeOptions].
	Rate        float64
	Duration    time.Duration
	LoadProgram string
}

// Fairness measures what a flooding session does to another one: the P90Ratio of the result compares the other session's
// calls while the first floods with its calls alone. The flood's own answers may be 429.
func Fairness(ctx context.Context, o FairnessOptions) (ProbeResult, error) {
	if o.Flood == 0 {
		o.Flood = 200
	}
	return Probe(ctx, ProbeOptions{
		Access: o.Access, Probe: o.Request, Rate: o.Rate, Connections: 4, ProbeSession: o.SessionPath,
		Load: o.Request, LoadConnections: o.Flood, LoadSession: o.SessionPath, Duration: o.Duration,
		LoadProgram: o.LoadProgram,
	})
}

// CheckBatch returns a check that a batch answer serves n items, all with the given status,
// each once, and leaves none unserviced.
func CheckBatch(n, status int) func(body []byte) error {
	return func(body []byte) error {
		var got struct {
			Serviced []struct {
				ID     string `json:"id"`
				Status int    `json:"status_code"`
			} `json:"serviced_requests"`
			Unserviced []json.RawMessage `json:"unserviced_requests"`
		}
		if err := json.Unmarshal(body, &got); err != nil {
			return fmt.Errorf("batch answer: %w", err)
		}
		if len(got.Serviced) != n || len(got.Unserviced) != 0 {
			return fmt.Errorf("batch answer serves %d of %d items, %d unserviced", len(got.Serviced), n, len(got.Unserviced))
		}
		seen := make(map[string]bool, n)
		for _, item := range got.Serviced {
			if seen[item.ID] {
				return fmt.Errorf("batch answer serves item %s twice", item.ID)
			}
			seen[item.ID] = true
			if item.Status != status {
				return fmt.Errorf("item %s: status %d, want %d", item.ID, item.Status, status)
			}
		}
		return nil
	}
}
