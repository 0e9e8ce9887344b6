package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/demo"
)

// key lets hubs and backends of a test know each other, unless it says otherwise.
func key(t *testing.T) { t.Setenv("WEIR_REMOTE_KEY", "a key for the tests of this machine") }

// behind is one running backend.
type behind struct {
	*weir
	calls string // where it takes calls
}

var takes = regexp.MustCompile(`takes calls at (127\.0\.0\.1:\d+)`)

// backend starts a backend on db. It is ended with the test, and its log must then show no fault of ours.
func backend(t *testing.T, db database, args ...string) *behind {
	t.Helper()
	b := &behind{weir: &weir{t: t, db: db, args: args}}
	b.begin("127.0.0.1:0", "127.0.0.1:0")
	t.Cleanup(func() { b.end(t) })
	return b
}

func (b *behind) begin(calls, status string) {
	b.t.Helper()
	args := append([]string{"backend"}, b.args...)
	b.launch(b.t.TempDir(), append(args, "--db", b.db.url, "--listen", calls, "--status", status)...)
	b.calls = takes.FindStringSubmatch(b.greet.String())[1]
}

// again starts the backend anew at the same addresses, on the same database.
func (b *behind) again() {
	b.t.Helper()
	b.begin(b.calls, b.addr)
}

// startSplit starts the server as a hub with a backend. Settings go to both.
func (w *weir) startSplit(listen string) {
	w.t.Helper()
	w.env = []string{"WEIR_REMOTE_KEY=a key for the tests of this machine"}
	if w.behind == nil {
		var args []string
		for i, a := range w.args {
			if a == "--set" || i == 0 && !strings.HasPrefix(a, "-") || i > 0 && w.args[i-1] == "--set" {
				args = append(args, a)
			}
		}
		w.behind = &behind{weir: &weir{t: w.t, db: w.db, args: args, env: w.env}}
		w.behind.begin("127.0.0.1:0", "127.0.0.1:0")
	} else {
		w.behind.again()
	}
	w.launch(w.t.TempDir(), append(append([]string{"hub"}, w.args...), "--listen", listen, "--backend", w.behind.calls)...)
}

// hub starts a hub before backends. It is ended with the test.
func hub(t *testing.T, backends []*behind, args ...string) *weir {
	t.Helper()
	var at []string
	for _, b := range backends {
		at = append(at, b.calls)
	}
	w := &weir{t: t, args: args}
	w.launch(t.TempDir(), append([]string{"hub", "--listen", "127.0.0.1:0", "--backend", strings.Join(at, ",")}, args...)...)
	t.Cleanup(func() { w.end(t) })
	w.until("all backends to be up", startLimit, func() bool { return w.sum("weir_backend_up") == len(backends) })
	return w
}

// sum adds up a figure of /metrics over its labels.
func (w *weir) sum(name string) int {
	w.t.Helper()
	a, err := w.do(request{path: "/metrics"})
	if err != nil {
		w.t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(a.body) {
		if rest, ok := strings.CutPrefix(line, name+"{"); ok {
			_, value, _ := strings.Cut(rest, "} ")
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				w.t.Fatal(err)
			}
			total += n
		}
	}
	return total
}

// backends are as many as a database of that kind can have, and at most two.
func backends(t *testing.T, kind string, db database, args ...string) []*behind {
	t.Helper()
	list := []*behind{backend(t, db, args...)}
	if kind == "postgres" {
		list = append(list, backend(t, db, args...))
	}
	return list
}

// TestSplit_KilledBackendLosesNothing kills a backend in the middle of a load of creates, several times. What was acknowledged is there
// once; whoever was not acknowledged has a clear answer; and while another backend is there the work goes on.
func TestSplit_KilledBackendLosesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		key(t)
		list := backends(t, kind, demoData(t, kind))
		h := hub(t, list)
		l := newLedger()
		for round := range 3 {
			before := l.acknowledged()
			stop := make(chan struct{})
			// Batches are answered with one status for each item; the whole answer breaks only if nobody knows who is calling.
			wait := l.load(h, round, 24, 3, stop, http.StatusServiceUnavailable)
			h.until("acknowledged creates", startLimit, func() bool { return l.acknowledged() >= before+200 })
			victim := list[round%len(list)]
			victim.kill()
			if len(list) > 1 {
				after := l.acknowledged()
				h.until("the other backend to do the work", startLimit, func() bool { return l.acknowledged() >= after+100 })
			}
			victim.again()
			h.until("the backend to be found again", startLimit, func() bool { return h.sum("weir_backend_up") == len(list) })
			after := l.acknowledged()
			h.until("creates to be acknowledged again", startLimit, func() bool { return l.acknowledged() >= after+100 })
			close(stop)
			wait()
			l.audit(t, h)
		}
		if h.sum("weir_backend_lost_total") == 0 {
			t.Error("no call was lost: this was no test")
		}
	})
}

// TestSplit_BackendThatStopsIsMissedByNobody ends one of two backends under load as an operator does. Not one create fails.
func TestSplit_BackendThatStopsIsMissedByNobody(t *testing.T) {
	if postgresURL(t) == "" {
		t.Skip("two backends need PostgreSQL")
	}
	key(t)
	list := backends(t, "postgres", demoData(t, "postgres"))
	h := hub(t, list)
	l := newLedger()
	stop := make(chan struct{})
	wait := l.load(h, 0, 16, 2, stop, http.StatusCreated) // and nothing else, from a server that stays up
	for round := range 2 {
		before := l.acknowledged()
		h.until("acknowledged creates", startLimit, func() bool { return l.acknowledged() >= before+200 })
		if code := list[round].stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		list[round].again()
		h.until("the backend to be found again", startLimit, func() bool { return h.sum("weir_backend_up") == 2 })
	}
	close(stop)
	wait()
	l.audit(t, h)
	if n := h.sum("weir_backend_lost_total"); n != 0 {
		t.Errorf("%d calls were lost", n)
	}
}

// TestSplit_WrongKeyIsRefused starts a hub that has another key, and one that has none.
func TestSplit_WrongKeyIsRefused(t *testing.T) {
	key(t)
	b := backend(t, demoData(t, "sqlite"))
	for _, test := range []struct {
		name, key, want string
		code            int
	}{
		{"Wrong", "quite another key of a stranger", "does not know this hub's key", 1},
		{"None", "", "remote.key", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			c := exec.Command(binary, "hub", "--listen", "127.0.0.1:0", "--backend", b.calls)
			c.Env = append(os.Environ(), "WEIR_REMOTE_KEY="+test.key)
			c.Dir, c.Stdout, c.Stderr = t.TempDir(), &out, &out
			err := c.Run()
			if got := c.ProcessState.ExitCode(); err == nil || got != test.code || !strings.Contains(out.String(), test.want) {
				t.Errorf("exit code %d, want %d:\n%s", got, test.code, out.String())
			}
			if test.key != "" && strings.Contains(out.String(), test.key) {
				t.Errorf("the key is told:\n%s", out.String())
			}
		})
	}
	if strings.Contains(b.log.String(), "key") {
		t.Errorf("the backend's log tells of keys:\n%s", b.log)
	}
	// It serves the one who knows it still.
	h := hub(t, []*behind{b})
	h.get("/api/now/table/incident?sysparm_limit=1", nil)
}

// certificates writes those of an authority, a backend and a hub to a folder.
func certificates(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for i, name := range []string{"ca", "backend", "hub"} {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: i == 0,
			KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if i == 0 {
			ca, caKey = c, k
		}
		der, err := x509.CreateCertificate(rand.Reader, c, ca, &k.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		write(t, filepath.Join(dir, name+".key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	}
	return dir
}

func TestSplit_MutualTLS(t *testing.T) {
	dir := certificates(t)
	tls := func(name string) []string {
		return []string{
			"--set", "remote.tls.ca=" + filepath.Join(dir, "ca.pem"), "--set", "remote.tls.cert=" + filepath.Join(dir, name+".pem"),
			"--set", "remote.tls.key=" + filepath.Join(dir, name+".key"),
		}
	}
	b := backend(t, demoData(t, "sqlite"), append(tls("backend"), "--set", "remote.peers=hub")...)
	h := hub(t, []*behind{b}, tls("hub")...)
	l := newLedger()
	for i := range 20 {
		l.create(h, fmt.Sprintf("e2e-tls-%d", i))
	}
	l.audit(t, h)
	// Nobody without a certificate that the authority has given to the hub.
	for _, args := range [][]string{
		tls("backend"), // one of the authority, and not a hub's
		{"--set", "remote.tls.ca=" + filepath.Join(dir, "ca.pem"), "--set", "remote.key=a key that nobody asked for"},
	} {
		c := exec.Command(binary, append([]string{"hub", "--listen", "127.0.0.1:0", "--backend", b.calls, "--set", "remote.wait=20s"}, args...)...)
		c.Dir = t.TempDir()
		if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "remote.tls") {
			t.Errorf("exit code %d:\n%s", c.ProcessState.ExitCode(), out)
		}
	}
}

// TestSplit_LongListNeedsNoMemory reads a list of 30,000 records through a hub. Neither process grows by the list.
func TestSplit_LongListNeedsNoMemory(t *testing.T) {
	const rows, perBatch = 30_000, 1_000
	onEach(t, func(t *testing.T, kind string) {
		key(t)
		b := backend(t, demoData(t, kind))
		h := hub(t, []*behind{b}, "--set", "transactions.table=")
		for n := 0; n < rows; n += perBatch {
			items := make([]item, perBatch)
			for i := range items {
				items[i] = item{
					fmt.Sprint(i), "POST", "/api/now/table/cmdb_ci?sysparm_fields=sys_id",
					fmt.Sprintf(`{"name":"ci %d","short_description":"one of many, with a text that has a length such as texts have","attributes":"long"}`, n+i),
				}
			}
			h.must(http.StatusOK, request{method: "POST", path: "/api/now/batch", body: batch(items...)}, nil)
		}
		client.CloseIdleConnections()
		b.kill() // and begin with small processes
		h.kill()
		b.again()
		h = hub(t, []*behind{b}, "--set", "transactions.table=")
		h.get("/api/now/table/cmdb_ci?sysparm_limit=10", nil)
		hubBefore, backendBefore := h.forget(), b.forget()
		res := h.open("/api/now/table/cmdb_ci?sysparm_limit=1000000&sysparm_query=attributes=long")
		counted := &counter{}
		if _, err := io.Copy(counted, res.Body); err != nil {
			t.Fatal(err)
		}
		if counted.rows != rows || res.Header.Get("X-Total-Count") != fmt.Sprint(rows) {
			t.Errorf("%d rows instead of %d, X-Total-Count %s", counted.rows, rows, res.Header.Get("X-Total-Count"))
		}
		for _, p := range []struct {
			name         string
			before, most int64
		}{{"hub", hubBefore, h.memory("VmHWM")}, {"backend", backendBefore, b.memory("VmHWM")}} {
			t.Logf("%s: resident memory %d MiB, at most %d MiB", p.name, p.before>>20, p.most>>20)
			if grown, limit := p.most-p.before, int64(32<<20); grown > limit {
				t.Errorf("the %s's resident memory grew by %d MiB, which is more than %d", p.name, grown>>20, limit>>20)
			}
		}

		// Whoever reads slowly holds up the backend, and when that dies has no whole answer.
		slow := h.open("/api/now/table/cmdb_ci?sysparm_limit=1000000&sysparm_query=attributes=long")
		if _, err := io.ReadFull(slow.Body, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		b.kill()
		if n, err := io.Copy(io.Discard, slow.Body); err == nil {
			t.Errorf("%d bytes of an answer whose backend died were a whole answer", n)
		}
		a, err := h.do(request{path: "/api/now/table/cmdb_ci?sysparm_limit=1"})
		if err != nil || a.status != http.StatusServiceUnavailable || envelope(a) != nil || a.header.Get("Retry-After") == "" {
			t.Errorf("without a backend: %d %v %s %v", a.status, a.header, a.body, err)
		}
		if a, err := h.do(request{path: "/readyz", user: "-"}); err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("/readyz without a backend: %d %v", a.status, err)
		}
		b.again()
		h.until("the hub to be ready again", startLimit, func() bool {
			a, err := h.do(request{path: "/readyz", user: "-"})
			return err == nil && a.status == http.StatusOK
		})
		h.get("/api/now/table/cmdb_ci?sysparm_limit=1", nil)
	})
}

// open sends a GET as admin, whose answer's body is closed with the test.
func (w *weir) open(path string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequest("GET", w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.SetBasicAuth("admin", "admin")
	res, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("GET %s: %d", path, res.StatusCode)
	}
	return res
}

// TestSplit_HubsFollowWhatIsAppliedAndRevoked changes a project and a user under running hubs.
func TestSplit_HubsFollowWhatIsAppliedAndRevoked(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		key(t)
		db := demoData(t, kind)
		list := backends(t, kind, db, "--set", "auth.remember=1h", "--set", "auth.roles=1h")
		hubs := []*weir{hub(t, list), hub(t, list)}
		folder := t.TempDir()
		if err := os.CopyFS(folder, demo.Project()); err != nil {
			t.Fatal(err)
		}
		const with = "/api/now/table/incident?sysparm_fields=short_description,proof_note"
		edit(t, filepath.Join(folder, "tables", "incident.yaml"), "fields:\n", "fields:\n  - {name: proof_note, label: Proof, type: string, max_length: 40}\n")
		write(t, filepath.Join(folder, "endpoints", "snc", "proof.js"), example(t, folder))
		// Meanwhile creates go on, and not one fails.
		var failed atomic.Int64
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := hubs[i%2].do(request{method: "POST", path: with, body: `{"short_description":"x","proof_note":"kept"}`})
				if err != nil || a.status != http.StatusCreated {
					failed.Add(1)
					t.Errorf("a create while definitions change: %d %s %v", a.status, a.body, err)
				}
			}
		}()
		if out, err := exec.Command(binary, "apply", folder, "--db", db.url).CombinedOutput(); err != nil {
			t.Errorf("weir apply: %v\n%s", err, out)
		}
		for i, h := range hubs {
			h.until(fmt.Sprintf("hub %d to take up what was applied", i), 20*time.Second, func() bool {
				a, err := h.do(request{method: "POST", path: with, body: `{"short_description":"x","proof_note":"kept"}`})
				return err == nil && a.body == `{"result":{"short_description":"x","proof_note":"kept"}}`
			})
			h.until(fmt.Sprintf("hub %d to serve the new endpoint", i), 10*time.Second, func() bool {
				a, err := h.do(request{path: "/api/snc/proof"})
				return err == nil && a.status == http.StatusOK
			})
		}
		close(stop)
		<-stopped

		const beth = "/api/now/table/sys_user/40ffc6683dd254c4684cfdad332e0a84"
		as := func(h *weir) int {
			a, err := h.do(request{path: "/api/now/table/incident?sysparm_limit=1", user: "beth.anglin"})
			if err != nil {
				t.Fatal(err)
			}
			return a.status
		}
		for range 4 { // both backends remember her
			for i, h := range hubs {
				if got := as(h); got != http.StatusOK {
					t.Fatalf("hub %d: beth is answered %d before", i, got)
				}
			}
		}
		hubs[0].must(http.StatusOK, request{method: "PATCH", path: beth, body: `{"locked_out":"true"}`}, nil)
		hubs[1].until("all backends to lock the user out", 10*time.Second, func() bool {
			for range 4 {
				if as(hubs[1]) != http.StatusUnauthorized {
					return false
				}
			}
			return true
		})
	})
}

// TestSplit_TimesAreThoseOfTheMachines asks for the layers of an answer.
func TestSplit_TimesAreThoseOfTheMachines(t *testing.T) {
	key(t)
	h := hub(t, []*behind{backend(t, demoData(t, "sqlite"))})
	a := h.must(http.StatusOK, request{path: "/api/now/table/incident?sysparm_limit=50", header: map[string]string{"X-Weir-Timing": "1"}}, nil)
	timing := a.header.Get("Server-Timing")
	got := map[string]float64{}
	for _, part := range strings.Split(timing, ", ") {
		name, rest, timed := strings.Cut(part, ";dur=")
		if !timed {
			continue
		}
		rest, _, _ = strings.Cut(rest, ";")
		ms, err := strconv.ParseFloat(rest, 64)
		if err != nil {
			t.Fatalf("%s: %v", timing, err)
		}
		got[name] = ms
	}
	sum := 0.0
	for _, layer := range []string{"hub", "be", "app", "wire"} {
		if got[layer] <= 0 {
			t.Errorf("%s took no time: %s", layer, timing)
		}
		sum += got[layer]
	}
	if sum += got["queue"]; sum > got["total"]*1.02+0.1 || sum < got["total"]*0.8-1 {
		t.Errorf("the layers are %.3f ms together, of %.3f: %s", sum, got["total"], timing)
	}
	if got["sql"] <= 0 || !strings.Contains(timing, "statements") || strings.Contains(timing, `desc="0 statements`) {
		t.Errorf("no statements: %s", timing)
	}
}
