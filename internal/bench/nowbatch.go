package bench

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// NowBatch is the article's comparison: 20 endpoints called singly and in batches of 5, 10 and 20, by threads that never
// pause, each connection closed after its call, stopped hard at the end of each case. The load model is closed.
type NowBatch struct {
	Access
	// Threads call at the same time.
	//
	// Defaults to 8, as in the article.
	Threads int
	// Duration is how long each case is measured.
	//
	// Defaults to 10 s, with Full to the article's 5 minutes.
	Duration time.Duration
	// Full asks for the article's 5 minutes a case, unless Duration says otherwise.
	Full bool
	// Warmup runs before the first case, uncounted: the server fills its caches and pools.
	//
	// Defaults to 1 s.
	Warmup time.Duration
	// EndpointTime is what an endpoint takes by itself; the overhead is counted beyond it.
	//
	// Defaults to 250 ms, the article's sleep.
	EndpointTime time.Duration
	// Batches are the sizes to compare, each from 1 (singly, without the batch API) to 20.
	//
	// Defaults to 1, 5, 10, 20.
	Batches []int
}

// NowBatchCase is the result of one batch size.
type NowBatchCase struct {
	// Batch is the number of calls in a request; 1 means single calls without the batch API.
	Batch int `json:"batch"`
	// Seconds is how long the case was measured.
	Seconds float64 `json:"seconds"`
	// Requests and Calls count what was answered rightly within the time; what was in flight at its end is not counted.
	Requests       int     `json:"requests"`
	Calls          int     `json:"calls"`
	CallsPerSecond float64 `json:"calls_per_second"`
	// CallMS is the article's average: (duration × threads) / calls. It is thread time, not a latency.
	CallMS float64 `json:"call_ms"`
	// RequestMS, P50MS, P99MS and MaxMS are measured times of whole requests, connection included.
	RequestMS float64 `json:"request_ms"`
	P50MS     float64 `json:"p50_ms"`
	P99MS     float64 `json:"p99_ms"`
	MaxMS     float64 `json:"max_ms"`
	// Rejected (429, 503), Wrong (another answer than the right one) and Failed (no answer) count calls.
	Rejected int `json:"rejected"`
	Wrong    int `json:"wrong"`
	Failed   int `json:"failed"`
}

// Errors is the number of calls that did not get their right answer.
func (c NowBatchCase) Errors() int { return c.Rejected + c.Wrong + c.Failed }

// NowBatchResult is what the comparison found.
type NowBatchResult struct {
	Targets []string       `json:"targets"`
	Threads int            `json:"threads"`
	Cases   []NowBatchCase `json:"cases"`
	// Line is fitted through the cases' request times; absent when fewer than two sizes were measured.
	Line *Line `json:"line,omitempty"`
	// OverheadMS is what a request costs beyond its endpoint's own time; see [Line.Overhead].
	OverheadMS float64 `json:"overhead_ms"`
	// EndpointMS is the endpoint's own time that OverheadMS leaves out.
	EndpointMS float64 `json:"endpoint_ms"`
	// ArticleLine is the line through the article's table.
	ArticleLine Line `json:"article_line"`
	// OK is true when every case was answered and every answer was right. Problems say why not.
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
}

func (o NowBatch) withDefaults() NowBatch {
	if o.Threads == 0 {
		o.Threads = articleThreads
	}
	if o.Duration == 0 {
		o.Duration = 10 * time.Second
		if o.Full {
			o.Duration = articleSeconds * time.Second
		}
	}
	if o.Warmup == 0 {
		o.Warmup = time.Second
	}
	if o.EndpointTime == 0 {
		o.EndpointTime = 250 * time.Millisecond
	}
	if len(o.Batches) == 0 {
		for _, c := range article {
			o.Batches = append(o.Batches, c.batch)
		}
	}
	return o
}

func (o NowBatch) validate() error {
	if o.Threads < 1 {
		return fmt.Errorf("threads: %d, must be 1 or more", o.Threads)
	}
	if o.Duration < 0 || o.Warmup < 0 {
		return fmt.Errorf("duration and warm-up must not be negative")
	}
	for _, b := range o.Batches {
		if b < 1 || b > endpoints {
			return fmt.Errorf("batch size %d: must be from 1 to %d, the number of endpoints", b, endpoints)
		}
	}
	return nil
}

// Run measures all cases and writes a line of progress each second. An error means that nothing could be measured:
// bad options, no right answer in the warm-up, or ctx ended. Errors during the cases are part of the result.
func (o NowBatch) Run(ctx context.Context, progress io.Writer) (*NowBatchResult, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	urls, err := o.targets()
	if err != nil {
		return nil, err
	}
	threads := make([]*client, o.Threads)
	for i := range threads {
		threads[i] = newClient(o.Access, urls[i%len(urls)], 1, false, false)
		defer threads[i].close()
	}
	for i, u := range urls {
		c := newClient(o.Access, u, 1, false, false)
		for _, ns := range [][]int{{1}, {1, 2}} {
			probe, cancel := context.WithTimeout(ctx, 30*time.Second)
			a := c.call(probe, ns, len(ns) > 1)
			cancel()
			if !a.right() {
				return nil, fmt.Errorf("%s does not answer as the experiment needs: %s", o.Targets[i], a.why)
			}
		}
	}
	fmt.Fprintf(progress, "warming up for %v\n", o.Warmup)
	o.runCase(ctx, threads, o.Batches[len(o.Batches)-1], o.Warmup, io.Discard, &samples{})

	r := &NowBatchResult{
		Targets: o.Targets, Threads: o.Threads, ArticleLine: ArticleLine(),
		EndpointMS: float64(o.EndpointTime) / float64(time.Millisecond),
	}
	var points []Point
	var why samples
	for _, b := range o.Batches {
		c := o.runCase(ctx, threads, b, o.Duration, progress, &why)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("now-batch stopped before its end: %w", err)
		}
		r.Cases = append(r.Cases, c)
		if c.Requests > 0 {
			points = append(points, Point{Calls: b, RequestMS: c.RequestMS})
		} else {
			r.Problems = append(r.Problems, fmt.Sprintf("%s: no request was answered rightly in %v", batchName(b), o.Duration))
		}
		if n := c.Errors(); n > 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("%s: %d calls rejected, %d answered wrongly, %d not answered", batchName(b), c.Rejected, c.Wrong, c.Failed))
		}
	}
	if l, ok := Fit(points); ok {
		r.Line, r.OverheadMS = &l, l.Overhead(r.EndpointMS)
	}
	r.OK = len(r.Problems) == 0
	r.Problems = append(r.Problems, why.list()...)
	return r, nil
}

// threadTally is one thread's count of one case; threads share nothing while they run but the progress counters.
type threadTally struct {
	requests int
	calls    [outcomes]int
	times    *hdrhistogram.Histogram // µs, right requests only
}

// runCase runs all threads for d on requests of batch calls each and stops hard: what is in flight then is cut off and not counted.
func (o NowBatch) runCase(ctx context.Context, threads []*client, batch int, d time.Duration, progress io.Writer, why *samples) NowBatchCase {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var (
		turn        atomic.Int64 // which request is next: the endpoints are taken round robin by all threads
		done, fails atomic.Int64 // for the progress line
		wg          sync.WaitGroup
		tallies     = make([]threadTally, len(threads))
		begin       = time.Now()
	)
	for i, c := range threads {
		wg.Go(func() {
			t := &tallies[i]
			t.times = newTimes()
			ns := make([]int, batch)
			for ctx.Err() == nil {
				first := int(turn.Add(1)-1) * batch
				for k := range ns {
					ns[k] = (first+k)%endpoints + 1
				}
				start := time.Now()
				a := c.call(ctx, ns, batch > 1)
				took := time.Since(start)
				if ctx.Err() != nil {
					return // the hard stop
				}
				for o, n := range a.n {
					t.calls[o] += n
				}
				done.Add(int64(a.n[served]))
				if a.right() {
					t.requests++
					record(t.times, took)
					continue
				}
				fails.Add(int64(a.n[rejected] + a.n[wrong] + a.n[failed]))
				why.keep(a.why)
				if a.n[failed] > 0 {
					pause(ctx, 10*time.Millisecond) // a server that is down is not asked in a hot loop
				}
			}
		})
	}
	stopped := everySecond(ctx, func() {
		s := time.Since(begin).Seconds()
		fmt.Fprintf(progress, "%-14s %3.0f of %.0f s  %7d calls  %7.1f calls/s  %d errors\n",
			batchName(batch), s, d.Seconds(), done.Load(), float64(done.Load())/s, fails.Load())
	})
	wg.Wait()
	<-stopped

	r := NowBatchCase{Batch: batch, Seconds: d.Seconds()}
	times := newTimes()
	for _, t := range tallies {
		r.Requests += t.requests
		r.Calls += t.calls[served]
		r.Rejected += t.calls[rejected]
		r.Wrong += t.calls[wrong]
		r.Failed += t.calls[failed]
		times.Merge(t.times)
	}
	r.CallsPerSecond = float64(r.Calls) / d.Seconds()
	r.CallMS = averageMS(d.Seconds(), len(threads), r.Calls)
	r.RequestMS = times.Mean() / 1000
	r.P50MS, r.P99MS, r.MaxMS = percentileMS(times, 50), percentileMS(times, 99), float64(times.Max())/1000
	return r
}

// batchName names a case for people.
func batchName(b int) string {
	if b == 1 {
		return "singly"
	}
	return fmt.Sprintf("batches of %d", b)
}

// newTimes is a histogram of times in µs, from 1 µs to an hour, to three digits.
func newTimes() *hdrhistogram.Histogram { return hdrhistogram.New(1, time.Hour.Microseconds(), 3) }

// record adds a time; what is out of range is counted at its edge, so that no slow answer is lost.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	h.RecordValue(min(max(d.Microseconds(), 1), time.Hour.Microseconds()))
}

// percentileMS is the nearest-rank percentile in ms, 0 for an empty histogram.
func percentileMS(h *hdrhistogram.Histogram, p float64) float64 {
	return float64(h.ValueAtPercentile(p)) / 1000
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// everySecond calls f once a second until ctx ends; the channel closes when the last call is over.
func everySecond(ctx context.Context, f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-ctx.Done():
				return
			}
		}
	}()
	return done
}
