package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// incidentPath is where the measured records are.
const incidentPath = "/api/now/table/incident"

// storedTable is where the demo stores incidents.
const storedTable = "task"

// createBody is the record that is created again and again.
const createBody = `{"short_description":"disk full","urgency":"1","impact":"1"}`

// batchOf20 is the article's page in one batch.
func (s *barRun) batchOf20(ctx context.Context, b *Bar) error {
	u, err := s.access().targets()
	if err != nil {
		return err
	}
	c := newClient(s.access(), u[0], 1, true, false)
	defer c.close()
	var ns []int
	for n := range endpoints {
		ns = append(ns, n+1)
	}
	return s.repeat(b, func() (float64, error) {
		begin := time.Now()
		if a := c.call(ctx, ns, true); !a.right() {
			return 0, errors.New(a.why)
		}
		return time.Since(begin).Seconds(), nil
	})
}

func (s *barRun) nowBatch(ctx context.Context) (*NowBatchResult, error) {
	if s.batch != nil {
		return s.batch, nil
	}
	r, err := NowBatch{Access: s.access(), Duration: 2 * s.Load}.Run(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	if !r.OK {
		return nil, errors.New(strings.Join(r.Problems, "; "))
	}
	s.batch = r
	return r, nil
}

func (s *barRun) nowBatchRate(ctx context.Context, b *Bar) error {
	r, err := s.nowBatch(ctx)
	if err != nil {
		return err
	}
	b.Ours = r.Cases[len(r.Cases)-1].CallsPerSecond
	b.Value = b.Ours
	return nil
}

func (s *barRun) nowBatchFixed(ctx context.Context, b *Bar) error {
	r, err := s.nowBatch(ctx)
	if err != nil {
		return err
	}
	b.Ours, b.Value = r.OverheadMS, r.OverheadMS
	return nil
}

// idleMemory looks some time after a start, when the first requests have been answered.
func (s *barRun) idleMemory(ctx context.Context, b *Bar) error {
	if err := s.serve(ctx); err != nil {
		return err
	}
	if _, err := s.get(ctx, incidentPath+"?sysparm_limit=1"); err != nil {
		return err
	}
	pause(ctx, 3*time.Second)
	v, err := s.node.resident()
	b.Ours, b.Value = v, v
	return err
}

// start measures from the start of the process to the first whole answer of the Table API.
func (s *barRun) start(ctx context.Context, b *Bar) error {
	return s.repeat(b, func() (float64, error) {
		s.node.stop()
		s.node = nil
		begin := time.Now()
		if err := s.serve(ctx); err != nil {
			return 0, err
		}
		_, err := s.get(ctx, incidentPath+"?sysparm_limit=1")
		return time.Since(begin).Seconds(), err
	})
}

// get is one GET on the node that must succeed.
func (s *barRun) get(ctx context.Context, path string) ([]byte, error) {
	return s.send(ctx, http.MethodGet, path, nil, http.StatusOK)
}

func (s *barRun) send(ctx context.Context, method, path string, body []byte, want int) ([]byte, error) {
	u, err := s.access().targets()
	if err != nil {
		return nil, err
	}
	c := newClient(s.access(), u[0], 1, false, false)
	defer c.close()
	status, answer, err := c.send(ctx, method, path, body)
	if err == nil && status != want {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, status, excerpt(answer))
	}
	return answer, err
}

// sample is a record that was created for the yardstick to copy.
func (s *barRun) sample(ctx context.Context) (sysID, number string, err error) {
	text, err := s.send(ctx, http.MethodPost, incidentPath, []byte(createBody), http.StatusCreated)
	if err != nil {
		return "", "", err
	}
	var got struct {
		Result struct {
			SysID  string `json:"sys_id"`
			Number string `json:"number"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return "", "", err
	}
	return got.Result.SysID, got.Result.Number, nil
}

// getOne compares GETs of one record with the yardstick's.
func (s *barRun) getOne(ctx context.Context, b *Bar) error {
	id, _, err := s.sample(ctx)
	if err != nil {
		return err
	}
	return s.compareGets(ctx, b, incidentPath+"/"+id, "/one/"+id)
}

func (s *barRun) getList(ctx context.Context, b *Bar) error {
	return s.compareGets(ctx, b, incidentPath+"?sysparm_limit=25", "/list?n=25&count=true")
}

// getPage is getList without the count of all records, which costs more than the page when there are many.
func (s *barRun) getPage(ctx context.Context, b *Bar) error {
	return s.compareGets(ctx, b, incidentPath+"?sysparm_limit=25&sysparm_no_count=true", "/list?n=25")
}

// compareGets starts a yardstick that answers with the very bytes that the node answers with, and loads both by turns.
func (s *barRun) compareGets(ctx context.Context, b *Bar, ours, theirs string) error {
	want, err := s.get(ctx, ours)
	if err != nil {
		return err
	}
	shape, err := shapeOf(want)
	if err != nil {
		return err
	}
	args := append([]string{"-db", s.store.URL, "-table", storedTable, "-where", "sys_class_name=incident"}, shape...)
	yard, err := startProcess(ctx, s.Yardstick, append(args, "serve")...)
	if err != nil {
		return err
	}
	defer yard.stop()
	got, err := fetch(ctx, yard.url+theirs)
	if err != nil {
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("the yardstick answers other bytes:\n%s\n%s", excerpt(got), excerpt(want))
	}
	load := func(a Access, path string) func() (float64, error) {
		return func() (float64, error) {
			return rate(Load(ctx, LoadOptions{
				Access: a, Connections: 25, Duration: s.Load / 2, Warmup: s.Load / 10, Request: Request{Method: http.MethodGet, Path: path},
			}))
		}
	}
	return s.rounds(b, load(s.access(), ours), load(Access{Targets: []string{yard.url}}, theirs))
}

func fetch(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

// rate is a load's rate; a load with errors is none.
func rate(r LoadResult, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	if r.Errors() > 0 {
		return 0, fmt.Errorf("%d rejected, %d wrong, %d failed: %s", r.Rejected, r.Wrong, r.Failed, strings.Join(r.Why, "; "))
	}
	return r.PerSecond, nil
}

var datetime = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`)

// shapeOf reads an answer of the Table API, and returns the yardstick's flags that make it answer the same: columns in their order,
// references with their links, and which columns are times or true and false.
func shapeOf(answer []byte) ([]string, error) {
	var got struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		return nil, err
	}
	records := []json.RawMessage{got.Result}
	if len(got.Result) > 0 && got.Result[0] == '[' {
		if err := json.Unmarshal(got.Result, &records); err != nil {
			return nil, err
		}
	}
	var columns []string
	links, flags, seconds := map[string]string{}, map[string]bool{}, map[string]bool{}
	for i, record := range records {
		d := jsontext.NewDecoder(strings.NewReader(string(record)))
		if _, err := d.ReadToken(); err != nil {
			return nil, err
		}
		for d.PeekKind() == '"' {
			t, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			name := t.String()
			if i == 0 {
				columns = append(columns, name)
			}
			v, err := d.ReadValue()
			if err != nil {
				return nil, err
			}
			var text string
			if v.Kind() == '{' {
				var ref struct{ Link, Value string }
				if err := json.Unmarshal(v, &ref); err != nil {
					return nil, err
				}
				links[name] = strings.TrimSuffix(ref.Link, ref.Value)
			} else if err := json.Unmarshal(v, &text); err != nil {
				return nil, err
			}
			flags[name] = flags[name] || text == "true" || text == "false"
			seconds[name] = seconds[name] || datetime.MatchString(text)
		}
	}
	set := func(m map[string]bool) string {
		var list []string
		for name, is := range m {
			if is {
				list = append(list, name)
			}
		}
		return strings.Join(list, ",")
	}
	args := []string{"-columns", strings.Join(columns, ","), "-flags", set(flags), "-seconds", set(seconds)}
	for name, link := range links {
		args = append(args, "-ref", name+"="+link)
	}
	return args, nil
}

// fairness has no yardstick but the same session alone.
func (s *barRun) fairness(ctx context.Context, b *Bar) error {
	id, _, err := s.sample(ctx)
	if err != nil {
		return err
	}
	var alone, beside, ratios []float64
	for range s.Rounds {
		r, err := Fairness(ctx, FairnessOptions{
			Access: s.access(), Request: Request{Method: http.MethodGet, Path: incidentPath + "/" + id},
			SessionPath: incidentPath + "/" + id, Duration: s.Load / 2, LoadProgram: s.Program,
		})
		if err != nil {
			return err
		}
		if !r.OK {
			return fmt.Errorf("quiet: %v, flooded: %v", r.Quiet.Why, r.Loaded.Why)
		}
		alone, beside, ratios = append(alone, r.Quiet.P90MS), append(beside, r.Loaded.P90MS), append(ratios, r.P90Ratio)
	}
	b.Ours, b.Yardstick, b.Value = median(beside), median(alone), median(ratios)
	return nil
}

// batchSize is the creates in one batch.
const batchSize = 1000

// createBatch compares a batch of creates with one set statement.
func (s *barRun) createBatch(ctx context.Context, b *Bar) error {
	_, number, err := s.sample(ctx)
	if err != nil {
		return err
	}
	body := BatchOfCreates("incident", batchSize, func(int) []byte { return []byte(createBody) })
	return s.rounds(b, s.timeBatch(ctx, func() []byte { return body }, CheckBatch(batchSize, http.StatusCreated)), s.yardstick(ctx, number, "insert"))
}

// createBad1 compares a batch in which one of a hundred fails with one in which none does.
func (s *barRun) createBad1(ctx context.Context, b *Bar) error {
	id, _, err := s.sample(ctx)
	if err != nil {
		return err
	}
	clean := BatchOfCreates("incident", batchSize, func(int) []byte { return []byte(createBody) })
	bad := BatchOfCreates("incident", batchSize, func(i int) []byte {
		switch i % 200 {
		case 50:
			return duplicate(id)
		case 150:
			return []byte(`{"short_description":"disk full","urgency":"1","impact":"1","order":"-1"}`) // a check refuses it
		}
		return []byte(createBody)
	})
	check := func(answer []byte) error {
		var got struct {
			Serviced []struct {
				Status int `json:"status_code"`
			} `json:"serviced_requests"`
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			return err
		}
		made := 0
		for _, item := range got.Serviced {
			if item.Status == http.StatusCreated {
				made++
			}
		}
		if len(got.Serviced) != batchSize || made != batchSize-batchSize/100 {
			return fmt.Errorf("%d of %d items were made", made, len(got.Serviced))
		}
		return nil
	}
	return s.rounds(b, s.timeBatch(ctx, func() []byte { return bad }, check),
		s.timeBatch(ctx, func() []byte { return clean }, CheckBatch(batchSize, http.StatusCreated)))
}

func duplicate(sysID string) []byte {
	return fmt.Appendf(nil, `{"sys_id":"%s","short_description":"disk full","urgency":"1","impact":"1"}`, sysID)
}

// createAllBad compares a batch of duplicates with a loop of savepoints.
func (s *barRun) createAllBad(ctx context.Context, b *Bar) error {
	id, number, err := s.sample(ctx)
	if err != nil {
		return err
	}
	body := BatchOfCreates("incident", batchSize, func(int) []byte { return duplicate(id) })
	check := func(answer []byte) error {
		if strings.Contains(string(answer), `"status_code":201`) {
			return errors.New("a duplicate was made")
		}
		return nil
	}
	return s.rounds(b, s.timeBatch(ctx, func() []byte { return body }, check), s.yardstick(ctx, number, "savepoints"))
}

// timeBatch sends a batch on a kept connection and returns its ms.
func (s *barRun) timeBatch(ctx context.Context, body func() []byte, check func([]byte) error) func() (float64, error) {
	u, err := s.access().targets()
	if err != nil {
		return func() (float64, error) { return 0, err }
	}
	c := newClient(s.access(), u[0], 1, true, false)
	return func() (float64, error) {
		b := body()
		begin := time.Now()
		status, answer, err := c.send(ctx, http.MethodPost, batchPath, b)
		took := time.Since(begin)
		if err != nil {
			return 0, err
		}
		if status != http.StatusOK {
			return 0, fmt.Errorf("status %d: %s", status, excerpt(answer))
		}
		return float64(took.Microseconds()) / 1000, check(answer)
	}
}

// yardstick runs the yardstick once; its own first run is not counted.
func (s *barRun) yardstick(ctx context.Context, number, what string) func() (float64, error) {
	return s.yardstickOf(ctx, storedTable, "number="+number, what)
}

// yardstickOf is yardstick for copies of another table's row.
func (s *barRun) yardstickOf(ctx context.Context, table, where, what string) func() (float64, error) {
	return func() (float64, error) {
		out, err := output(ctx, s.Yardstick, "-db", s.store.URL, "-table", table, "-where", where, "-rows", strconv.Itoa(batchSize), "-runs", "1", what)
		if err != nil {
			return 0, err
		}
		var r struct {
			MedianMS float64 `json:"median_ms"`
		}
		return r.MedianMS, errors.Join(json.Unmarshal(out, &r))
	}
}

// createSingle compares single creates with pgbench.
func (s *barRun) createSingle(ctx context.Context, b *Bar) error {
	_, number, err := s.sample(ctx)
	if err != nil {
		return err
	}
	ours := func() (float64, error) {
		return rate(Load(ctx, LoadOptions{
			Access: s.access(), Connections: 50, Duration: s.Load, Warmup: s.Load / 10,
			Request: Request{Method: http.MethodPost, Path: incidentPath, Want: http.StatusCreated, Body: func(int, int) []byte { return []byte(createBody) }},
		}))
	}
	return s.rounds(b, ours, func() (float64, error) {
		out, err := output(ctx, s.Yardstick, "-db", s.store.URL, "-table", storedTable, "-where", "number="+number, "-clients", "50", "-for", s.Load.String(), "pgbench")
		if err != nil {
			return 0, err
		}
		var r struct {
			PerSecond float64 `json:"per_second"`
		}
		err = json.Unmarshal(out, &r)
		return r.PerSecond, err
	})
}

// p99 compares a GET while batches of 10,000 creates repeat with the same alone.
func (s *barRun) p99(ctx context.Context, b *Bar) error {
	id, _, err := s.sample(ctx)
	if err != nil {
		return err
	}
	body := BatchOfCreates("incident", 10_000, func(int) []byte { return []byte(createBody) })
	var quiet, loaded, ratios []float64
	for range s.Rounds {
		r, err := Probe(ctx, ProbeOptions{
			Access: s.access(), Probe: Request{Method: http.MethodGet, Path: incidentPath + "/" + id},
			Load:     Request{Method: http.MethodPost, Path: batchPath, Body: func(int, int) []byte { return body }, Check: nil},
			Duration: s.Load,
		})
		if err != nil {
			return err
		}
		if r.Quiet.Errors() > 0 || r.Loaded.Errors() > 0 || r.Load.Errors() > 0 {
			return fmt.Errorf("quiet: %v, loaded: %v, load: %v", r.Quiet.Why, r.Loaded.Why, r.Load.Why)
		}
		quiet, loaded, ratios = append(quiet, r.Quiet.P99MS), append(loaded, r.Loaded.P99MS), append(ratios, r.P99Ratio)
	}
	b.Ours, b.Yardstick, b.Value = median(loaded), median(quiet), median(ratios)
	return nil
}

// streamRows is how many rows the long list has.
const streamRows = 500_000

// stream fills the table until it has enough rows and lists them all.
func (s *barRun) stream(ctx context.Context, b *Bar) error {
	rows := streamRows
	if s.Quick {
		rows /= 10
	}
	if err := s.fill(ctx, rows); err != nil {
		return err
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	path := incidentPath + "?sysparm_suppress_pagination_header=true&sysparm_limit=" + strconv.Itoa(rows)
	if _, err := s.get(ctx, incidentPath+"?sysparm_limit=100"); err != nil {
		return err
	}
	before, err := s.node.resident()
	if err != nil {
		return err
	}
	high, err := s.node.watch(func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.node.url+path, nil)
		if err != nil {
			return err
		}
		req.SetBasicAuth(s.User, s.Password)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		n, err := countRows(res.Body)
		if err == nil && (res.StatusCode != http.StatusOK || n != rows) {
			err = fmt.Errorf("status %d with %d rows of %d", res.StatusCode, n, rows)
		}
		return err
	})
	b.Ours = high - before
	b.Value = b.Ours
	return err
}

// countRows counts the records of an answer while it comes, by the number that each has.
func countRows(r io.Reader) (n int, err error) {
	const mark = `"number":"`
	buffer := make([]byte, 0, 64<<10)
	for {
		k, err := r.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+k]
		text := string(buffer)
		n += strings.Count(text, mark)
		// A mark may be cut in two by the end of the buffer; what cannot be its beginning goes.
		keep := 0
		for i := 1; i < len(mark) && i <= len(text); i++ {
			if strings.HasSuffix(text, mark[:i]) {
				keep = i
			}
		}
		buffer = append(buffer[:0], text[len(text)-keep:]...)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// fill creates incidents by batches until there are enough.
func (s *barRun) fill(ctx context.Context, rows int) error {
	text, err := s.get(ctx, "/api/now/stats/incident?sysparm_count=true")
	if err != nil {
		return err
	}
	var got struct {
		Result struct {
			Stats struct {
				Count string `json:"count"`
			} `json:"stats"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	have, err := strconv.Atoi(got.Result.Stats.Count)
	if err != nil {
		return err
	}
	const size = 5000
	body := BatchOfCreates("incident", size, func(int) []byte { return []byte(createBody) })
	for ; have < rows; have += size {
		if _, err := s.send(ctx, http.MethodPost, batchPath, body, http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

// bodies sends 200 bodies of 64 MiB at once, which is much more than the server may hold, and looks how much it did.
func (s *barRun) bodies(ctx context.Context, b *Bar) error {
	if err := s.serve(ctx); err != nil {
		return err
	}
	if _, err := s.get(ctx, incidentPath+"?sysparm_limit=1"); err != nil {
		return err
	}
	u, err := url.Parse(s.node.url)
	if err != nil {
		return err
	}
	c := newClient(s.access(), u, 1, false, false)
	defer c.close()
	budget, ok := c.gauges(ctx)["weir_bytes_limit"]
	if !ok {
		return errors.New("the server does not tell its byte budget (weir_bytes_limit)")
	}
	before, err := s.node.resident()
	if err != nil {
		return err
	}
	high, err := s.node.watch(func() error {
		ctx, cancel := context.WithTimeout(ctx, 2*s.Load)
		defer cancel()
		var work sync.WaitGroup
		for range 200 {
			work.Go(func() { sendLarge(ctx, u.Host, s.User, s.Password, 64<<20) })
		}
		work.Wait()
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := s.get(ctx, incidentPath+"?sysparm_limit=1"); err != nil {
		return fmt.Errorf("afterwards: %w", err)
	}
	b.Ours = high - before - budget/(1<<20)
	b.Value = b.Ours
	return nil
}

// sendLarge sends a batch whose body is size blanks, until it is sent, refused or the time is over.
func sendLarge(ctx context.Context, host, user, password string, size int) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	req, _ := http.NewRequest(http.MethodPost, "http://"+host+batchPath, nil) // a valid URL, as it answered before
	req.SetBasicAuth(user, password)
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		batchPath, host, req.Header.Get("Authorization"), size)
	chunk := []byte(strings.Repeat(" ", 1<<20))
	for sent := 0; sent < size; sent += len(chunk) {
		if _, err := conn.Write(chunk); err != nil {
			return
		}
	}
	io.Copy(io.Discard, io.LimitReader(conn, 1))
}
