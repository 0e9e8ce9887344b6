package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// weir is one running server.
type weir struct {
	t     testing.TB
	db    database
	args  []string
	addr  string // 127.0.0.1:port
	url   string // http://127.0.0.1:port
	greet *journal
	log   *journal
	env   []string // beside this process's own
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone
	took  time.Duration // from the start of the process to its first answer

	behind *behind // its backend, when servers are split; see [split]
}

// split says that each server of the tests is a hub with a backend (WEIR_TEST_SPLIT=1): what holds for the one must hold for the two.
var split = os.Getenv("WEIR_TEST_SPLIT") == "1"

// startLimit is how long a server may take to say where it is. It bounds a test, it judges nothing.
const startLimit = 60 * time.Second

// serve starts a server on db and returns when it answers. It is ended with the test, and its log must then show no fault of ours.
func serve(t testing.TB, db database, args ...string) *weir {
	t.Helper()
	w := &weir{t: t, db: db, args: args}
	w.start("127.0.0.1:0")
	t.Cleanup(func() { w.end(t) })
	return w
}

// again starts the server anew at the same address, on the same database.
func (w *weir) again() {
	w.t.Helper()
	w.start(w.addr)
}

func (w *weir) start(listen string) {
	w.t.Helper()
	if split {
		w.startSplit(listen)
		return
	}
	args := append([]string{"serve"}, w.args...)
	args = append(args, "--listen", listen, "--db", w.db.url)
	w.launch(w.t.TempDir(), args...)
}

// end kills the server; its log must show no fault of ours.
func (w *weir) end(t testing.TB) {
	w.kill()
	if fault := w.fault(); fault != "" {
		t.Errorf("the log shows a fault: %s", fault)
	}
	if t.Failed() {
		t.Logf("log of weir %s at %s:\n%s", w.cmd.Args[1], w.addr, w.log.tail(8<<10))
	}
	if w.behind != nil {
		w.behind.end(t)
	}
}

var greeting = regexp.MustCompile(`at (https?)://(127\.0\.0\.1:\d+)`)

// launch starts the command in a folder and waits for its greeting and its first answer.
func (w *weir) launch(dir string, args ...string) {
	w.t.Helper()
	begin := time.Now()
	w.cmd = exec.Command(binary, args...)
	w.cmd.Dir = dir
	w.cmd.Env = append(os.Environ(), w.env...)
	// A server that outlives its test would disturb the next ones.
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if w.log == nil {
		w.log = &journal{}
	}
	w.greet = &journal{}
	w.cmd.Stdout, w.cmd.Stderr = w.greet, w.log
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		cmd.Wait()
		close(ended)
	}(w.cmd, w.ended)
	w.addr = ""
	w.until("the server to start", startLimit, func() bool {
		select {
		case <-w.ended:
			w.t.Fatalf("weir %s ended with %d:\n%s%s", strings.Join(args, " "), w.cmd.ProcessState.ExitCode(), w.greet, w.log)
		default:
		}
		if m := greeting.FindStringSubmatch(w.greet.String()); m != nil {
			w.url, w.addr = m[1]+"://"+m[2], m[2]
		}
		if w.addr == "" {
			return false
		}
		res, err := client.Get(w.url + "/healthz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	w.took = time.Since(begin)
}

// until asks every few milliseconds until it is so; a test that waits longer fails.
func (w *weir) until(what string, limit time.Duration, so func() bool) {
	w.t.Helper()
	until(w.t, what, limit, so)
}

func until(t testing.TB, what string, limit time.Duration, so func() bool) {
	t.Helper()
	last := time.NewTimer(limit)
	defer last.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-last.C:
			t.Fatalf("waited %s for %s", limit, what)
		}
	}
}

// kill is kill -9.
func (w *weir) kill() {
	w.cmd.Process.Signal(syscall.SIGKILL)
	<-w.ended
	if w.behind != nil {
		w.behind.kill()
	}
}

// term asks the server to end, and does not wait.
func (w *weir) term() { w.cmd.Process.Signal(syscall.SIGTERM) }

// stop asks the server to end and returns its exit code.
func (w *weir) stop() int {
	w.t.Helper()
	w.term()
	select {
	case <-w.ended:
	case <-time.After(startLimit):
		w.t.Fatalf("the server did not end within %s of SIGTERM", startLimit)
	}
	code := w.cmd.ProcessState.ExitCode()
	if w.behind != nil {
		code = max(code, w.behind.stop())
	}
	return code
}

// alive reports whether the process still runs.
func (w *weir) alive() bool {
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

var faultLine = regexp.MustCompile(`(?m)^.*(internal error|panic|fatal error|DATA RACE|goroutine \d+ \[).*$`)

// fault is the first line of the log that tells of a fault of ours.
func (w *weir) fault() string { return faultLine.FindString(w.log.String()) }

// memory reads a figure of /proc/PID/status, such as VmRSS (resident now) or VmHWM (the most since [weir.forget]), in bytes.
func (w *weir) memory(name string) int64 {
	w.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			return n << 10
		}
	}
	w.t.Fatalf("/proc/PID/status has no %s", name)
	return 0
}

// forget lets VmHWM begin anew from what is resident now, and returns that.
func (w *weir) forget() int64 {
	w.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", w.cmd.Process.Pid), []byte("5"), 0); err != nil {
		w.t.Fatal(err)
	}
	return w.memory("VmRSS")
}

// client keeps connections for as many callers as a test has, and gives up on a server that hangs.
var client = &http.Client{
	Timeout:   60 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
}

// request is one call. Without a user it is admin's; "-" is nobody.
type request struct {
	method, path string
	body         string
	user         string
	header       map[string]string
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. An error is one of the connection.
func (w *weir) do(r request) (answer, error) {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	if r.method == "" {
		r.method = http.MethodGet
	}
	req, err := http.NewRequest(r.method, w.url+r.path, body)
	if err != nil {
		return answer{}, err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	switch r.user {
	case "":
		req.SetBasicAuth("admin", "admin")
	case "-":
	default:
		req.SetBasicAuth(r.user, r.user)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}, err
}

// get is a GET that must succeed; its body is decoded into v.
func (w *weir) get(path string, v any) answer {
	w.t.Helper()
	return w.must(http.StatusOK, request{path: path}, v)
}

// must sends a request whose answer must have the status; unless v is nil the body is decoded into it.
func (w *weir) must(status int, r request, v any) answer {
	w.t.Helper()
	a, err := w.do(r)
	if err != nil {
		w.t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	if a.status != status {
		w.t.Fatalf("%s %s: %d instead of %d\n%.2000s", r.method, r.path, a.status, status, a.body)
	}
	if v != nil {
		if err := json.Unmarshal([]byte(a.body), v); err != nil {
			w.t.Fatalf("%s %s: %v\n%.2000s", r.method, r.path, err, a.body)
		}
	}
	return a
}

// row is a record as the Table API shows it, without reference links.
type row map[string]string

// rows reads records of a table.
func (w *weir) rows(table, query, fields string) []row {
	w.t.Helper()
	var list struct{ Result []row }
	w.get("/api/now/table/"+table+"?sysparm_exclude_reference_link=true&sysparm_limit=1000000&sysparm_fields="+fields+"&sysparm_query="+url.QueryEscape(query), &list)
	return list.Result
}

// dial opens a connection to the server that is closed with the test.
func (w *weir) dial() net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// head is the head of a request for a raw connection, as admin.
func head(method, path string, fields ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic YWRtaW46YWRtaW4=\r\n" +
		strings.Join(append(fields, ""), "\r\n") + "\r\n"
}

// read reads one answer from a raw connection within a time.
func read(c net.Conn, within time.Duration) (answer, error) {
	c.SetReadDeadline(time.Now().Add(within))
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}, err
}

// journal keeps what a process writes.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// String is all of it.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) tail(n int) string {
	s := j.String()
	return s[max(0, len(s)-n):]
}
