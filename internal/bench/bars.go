package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Bars measures nodes against the speed and memory that they must reach: each figure beside its yardstick, in one run,
// by turns, so that what else the machine does meets both.
type Bars struct {
	// User and Password log in at the nodes.
	User, Password string
	// Stores are the databases to measure on, each empty.
	Stores []BarStore
	// Program is the server's own binary. It is started as "serve" with addresses, a database and the shipped defaults.
	Program string
	// Yardstick is the binary of internal/yardstick.
	Yardstick string
	// CAP is the folder of the peer that creates are compared with, internal/yardstick/cap. It is installed by npm.
	CAP string
	// Dir is a scratch folder.
	Dir string
	// Rounds is how often what has a median is measured.
	//
	// Defaults to 5.
	Rounds int
	// Load is how long one measurement under load lasts.
	//
	// Defaults to 5 s.
	Load time.Duration
	// Quick measures less: 3 rounds, loads of 2 s and a tenth of the streamed rows.
	Quick bool
	// Only are the rows to measure, by the beginnings of their names. Empty: all.
	Only []string
}

// BarStore is a database to measure on.
type BarStore struct {
	// Name is what it is called in the table, such as sqlite.
	Name string
	// URL is what --db takes.
	URL string
}

// Bar is one row: what must be reached, and what was.
type Bar struct {
	Name  string `json:"name"`
	What  string `json:"what"`
	Store string `json:"store,omitempty"`
	Unit  string `json:"unit"`
	// Ours and Yardstick are medians in Unit; Yardstick is 0 where there is none.
	Ours      float64 `json:"ours"`
	Yardstick float64 `json:"yardstick,omitempty"`
	// Value is what is judged: the median of the rounds' ratios, or Ours where there is no yardstick.
	Value float64 `json:"value"`
	// Bar must be reached, Aim should be; More says that more is better.
	Bar  float64 `json:"bar"`
	Aim  float64 `json:"aim"`
	More bool    `json:"more,omitempty"`
	// Problem says what went wrong in the measurement; such a row is missed.
	Problem string `json:"problem,omitempty"`
}

// Reaches reports whether the value is at least as good as a limit.
func (b *Bar) Reaches(limit float64) bool {
	if b.More {
		return b.Value >= limit
	}
	return b.Value <= limit
}

// Verdict is "aim", "ok" (the bar, not the aim) or "missed".
func (b *Bar) Verdict() string {
	switch {
	case b.Problem != "" || !b.Reaches(b.Bar):
		return "missed"
	case b.Reaches(b.Aim):
		return "aim"
	}
	return "ok"
}

// BarsResult is the table.
type BarsResult struct {
	Bars []Bar `json:"bars"`
	// OK is true when no row is missed.
	OK bool `json:"ok"`
}

// Print writes the table.
func (r *BarsResult) Print(w io.Writer) error {
	t := newTable("", "store", "ours", "yardstick", "judged", "bar", "aim", "")
	var problems strings.Builder
	for i := range r.Bars {
		b := &r.Bars[i]
		sign, yard, value := "≤", "", figure(b.Value, b.Unit)
		if b.More {
			sign = "≥"
		}
		unit := b.Unit
		if b.Yardstick != 0 {
			yard, unit = figure(b.Yardstick, b.Unit), "×"
			value = figure(b.Value, unit)
		}
		verdict := b.Verdict()
		t.Row(b.What, b.Store, figure(b.Ours, b.Unit), yard, value, sign+" "+figure(b.Bar, unit), sign+" "+figure(b.Aim, unit), verdict)
		if b.Problem != "" {
			fmt.Fprintf(&problems, "%s (%s): %s\n", b.What, b.Store, b.Problem)
		}
	}
	_, err := fmt.Fprintf(w, "%s\n%s", t.Render(), problems.String())
	return err
}

// figure is a number with three digits that mean something.
func figure(v float64, unit string) string {
	digits := 0
	switch {
	case v < 10:
		digits = 2
	case v < 100:
		digits = 1
	}
	if unit == "×" {
		digits = 2
	}
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}

// Run measures all rows and writes a line of progress for each. An error means that nothing could be measured.
func (o Bars) Run(ctx context.Context, progress io.Writer) (*BarsResult, error) {
	if o.Rounds == 0 {
		o.Rounds = 5
		if o.Quick {
			o.Rounds = 3
		}
	}
	if o.Load == 0 {
		o.Load = 5 * time.Second
		if o.Quick {
			o.Load = 2 * time.Second
		}
	}
	r := &BarsResult{OK: true}
	for _, store := range o.Stores {
		s := &barRun{Bars: o, store: store, progress: progress}
		if err := s.run(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", store.Name, err)
		}
	}
	if len(r.Bars) == 0 {
		return nil, fmt.Errorf("no row is called %s", strings.Join(o.Only, " or "))
	}
	for i := range r.Bars {
		r.OK = r.OK && r.Bars[i].Verdict() != "missed"
	}
	return r, nil
}

// measurement is one row of the table and how to measure it.
type measurement struct {
	name    string
	what    string
	unit    string
	bar     float64
	aim     float64
	more    bool
	stores  string // "" is all, else the one where it is measured
	measure func(s *barRun, ctx context.Context, b *Bar) error
}

// measurements are the rows in the order in which they are measured: those that need a small database first.
var measurements = []measurement{
	{"batch-20", "one batch of 20 calls of 250 ms", "s", 0.28, 0.26, false, "sqlite", (*barRun).batchOf20},
	{"now-batch-rate", "now-batch: calls/s, 20 in a batch", "/s", 540, 610, true, "sqlite", (*barRun).nowBatchRate},
	{"now-batch-fixed", "now-batch: fixed cost of a request", "ms", 8, 3, false, "sqlite", (*barRun).nowBatchFixed},
	{"idle-memory", "idle server: resident memory", "MiB", 80, 45, false, "", (*barRun).idleMemory},
	{"start", "start to first answer, existing database", "s", 0.5, 0.2, false, "", (*barRun).start},
	{"get-one", "GET one incident, 25 connections", "/s", 0.6, 0.85, true, "", (*barRun).getOne},
	{"get-list", "GET a list of 25, 25 connections", "/s", 0.6, 0.85, true, "", (*barRun).getList},
	{"get-page", "the same without counting all (X-Total-Count)", "/s", 0.6, 0.85, true, "", (*barRun).getPage},
	{"fairness", "p90 beside a session that floods, against alone", "ms", 3, 1.5, false, "", (*barRun).fairness},
	{"create-batch", "1,000 creates in a batch, against one set statement", "ms", 3, 1.5, false, "", (*barRun).createBatch},
	{"create-bad1", "the same, 1 % bad, against clean", "ms", 2, 1.3, false, "", (*barRun).createBad1},
	{"create-allbad", "the same, all bad, against a savepoint loop", "ms", 1.5, 0.5, false, "", (*barRun).createAllBad},
	{"odata-ratio", "$batch of 1,000 creates, against one deep insert", "ms", 1.5, 1.2, false, "", (*barRun).massRatio},
	{"odata-gateway", "hub and backend of that $batch, for each product", "µs", 25, 8, false, "", (*barRun).massGateway},
	{"odata-deep", "deep insert of 1,000, against one set statement", "ms", 2.5, 1.4, false, "", (*barRun).massDeep},
	{"odata-growth", "time for each product: $batch of 10,000, against 1,000", "µs", 1.05, 0.95, false, "", (*barRun).massGrowth},
	{"odata-cap-batch", "$batch of 1,000, SAP CAP's time against ours", "ms", 20, 40, true, "sqlite", massCAP("batch", 0)},
	{"odata-cap-deep", "deep insert of 1,000, SAP CAP's time against ours", "ms", 2.5, 4, true, "sqlite", massCAP("deep", 0)},
	{"odata-cap-batch-100k", "the $batch, with 100,000 products already there", "ms", 20, 40, true, "sqlite", massCAP("batch", 100_000)},
	{"odata-cap-deep-100k", "the deep insert, with 100,000 already there", "ms", 2.5, 4, true, "sqlite", massCAP("deep", 100_000)},
	{"odata-expand", "1,000 orders with their items, against two statements", "rows/s", 0.6, 0.9, true, "", (*barRun).expand},
	{"odata-memory", "$batch of 10,000 creates: growth of memory", "MiB", 120, 60, false, "", (*barRun).massMemory},
	{"create-single", "single creates, 50 connections, against pgbench", "/s", 0.5, 0.85, true, "postgres", (*barRun).createSingle},
	{"p99", "p99 of a GET beside batches of 10,000 creates, against quiet", "ms", 5, 2, false, "", (*barRun).p99},
	{"bodies", "200 bodies of 64 MiB: growth of memory beyond the byte budget", "MiB", 0, 0, false, "sqlite", (*barRun).bodies},
	{"stream", "a list of 500,000 rows: growth of memory", "MiB", 64, 24, false, "", (*barRun).stream},
}

func (o Bars) wants(name string) bool {
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, func(only string) bool { return strings.HasPrefix(name, only) })
}

// barRun is the measurements on one store.
type barRun struct {
	Bars
	store    BarStore
	progress io.Writer
	node     *process
	batch    *NowBatchResult // measured once for two rows
}

func (s *barRun) access() Access {
	return Access{Targets: []string{s.node.url}, User: s.User, Password: s.Password}
}

func (s *barRun) run(ctx context.Context, r *BarsResult) (err error) {
	var chosen []measurement
	for _, m := range measurements {
		if s.wants(m.name) && (m.stores == "" || m.stores == s.store.Name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	// The first start makes the database; what is measured runs on an existing one.
	if err := s.serve(ctx); err != nil {
		return err
	}
	defer func() { s.node.stop() }()
	for _, m := range chosen {
		fmt.Fprintf(s.progress, "%s: %s\n", s.store.Name, m.what)
		b := Bar{Name: m.name, What: m.what, Store: s.store.Name, Unit: m.unit, Bar: m.bar, Aim: m.aim, More: m.more}
		if err := m.measure(s, ctx, &b); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			b.Problem = err.Error()
		}
		r.Bars = append(r.Bars, b)
	}
	return nil
}

// serve starts the node, again if it runs already.
func (s *barRun) serve(ctx context.Context) (err error) {
	s.node.stop()
	s.node, err = startProcess(ctx, s.Program, "serve", "--listen", "127.0.0.1:0", "--db", s.store.URL, "--set", "log.level=warn")
	return err
}

// rounds measures ours and the yardstick by turns and keeps the medians of both and of the ratios. A round before them is not
// counted: it warms both.
func (s *barRun) rounds(b *Bar, ours, yardstick func() (float64, error)) error {
	var a, y, ratios []float64
	for i := range s.Rounds + 1 {
		v, err := ours()
		if err != nil {
			return err
		}
		w, err := yardstick()
		if err != nil {
			return fmt.Errorf("yardstick: %w", err)
		}
		if i == 0 {
			continue
		}
		a, y, ratios = append(a, v), append(y, w), append(ratios, ratio(v, w))
	}
	b.Ours, b.Yardstick, b.Value = median(a), median(y), median(ratios)
	return nil
}

// repeat measures what has no yardstick.
func (s *barRun) repeat(b *Bar, ours func() (float64, error)) error {
	var a []float64
	for i := range s.Rounds + 1 {
		v, err := ours()
		if err != nil {
			return err
		}
		if i > 0 {
			a = append(a, v)
		}
	}
	b.Ours = median(a)
	b.Value = b.Ours
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
