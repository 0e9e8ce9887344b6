package server

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/internal/gate"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// metrics are the server's figures. What a request touches is resolved once for each dialect; the rest is read at a scrape.
type metrics struct {
	handler  http.Handler
	running  atomic.Int64
	internal prometheus.Counter

	poolExhausted prometheus.Counter

	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	layers   *prometheus.CounterVec
	items    prometheus.Counter
	dialects sync.Map // name → *dialectMetrics

	statements, trips *prometheus.CounterVec

	resources       *prometheus.CounterVec
	resourceSeconds *prometheus.CounterVec
}

// dialectMetrics are the children of one dialect.
type dialectMetrics struct {
	classes [6]prometheus.Counter // by the first digit of the status
	seconds prometheus.Observer
	layers  [len(shownLayers)]prometheus.Counter
	sql     prometheus.Counter

	statements, trips prometheus.Counter
}

var shownLayers = [...]telemetry.Layer{telemetry.Hub, telemetry.Queue, telemetry.BE, telemetry.App, telemetry.Wire}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		internal: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_internal_errors_total", Help: "Internal errors, panics included."}),
		poolExhausted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_pool_exhausted_total", Help: "Operations that got no database connection in time.",
		}),
		items: prometheus.NewCounter(prometheus.CounterOpts{Name: "weir_batch_items_total", Help: "Items of batches answered."}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_requests_total", Help: "Requests by dialect and class of the answer's status; gone: the client went away.",
		}, []string{"dialect", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_request_seconds", Help: "Time from a request's arrival to the last byte of its answer.",
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"dialect"}),
		layers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_layer_seconds_total", Help: "Time by layer: hub, queue, be, app, wire exclude each other; sql is within app.",
		}, []string{"dialect", "layer"}),
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_statements_total", Help: "Statements that requests had the database run.",
		}, []string{"dialect"}),
		trips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_round_trips_total", Help: "Round trips to the database that requests made.",
		}, []string{"dialect"}),
		resources: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_resource_requests_total", Help: "Requests by what they address: odata/SERVICE/SET.",
		}, []string{"resource"}),
		resourceSeconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_resource_seconds_total", Help: "Time of requests by what they address.",
		}, []string{"resource"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.internal, m.items, m.requests, m.seconds, m.layers, m.statements, m.trips, m.poolExhausted, m.resources, m.resourceSeconds, &figures{s: s}, StoreFigures(s.o.Pool, s.o.Counters),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(s.o.Collectors...)
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return m
}

func (m *metrics) of(name string) *dialectMetrics {
	if d, ok := m.dialects.Load(name); ok {
		return d.(*dialectMetrics)
	}
	d := &dialectMetrics{
		seconds: m.seconds.WithLabelValues(name), sql: m.layers.WithLabelValues(name, "sql"),
		statements: m.statements.WithLabelValues(name), trips: m.trips.WithLabelValues(name),
	}
	for i, class := range []string{"gone", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		d.classes[i] = m.requests.WithLabelValues(name, class)
	}
	for i, l := range shownLayers {
		d.layers[i] = m.layers.WithLabelValues(name, l.String())
	}
	kept, _ := m.dialects.LoadOrStore(name, d)
	return kept.(*dialectMetrics)
}

func (m *metrics) observe(v *Visit) {
	d := m.of(v.Dialect)
	class := v.Status / 100
	if v.Status == statusGone || class < 1 || class > 5 {
		class = 0
	}
	d.classes[class].Inc()
	d.seconds.Observe(v.Total.Seconds())
	for i, l := range shownLayers {
		d.layers[i].Add(v.Recorder.Layer(l).Seconds())
	}
	d.sql.Add(float64(v.Recorder.SQL.Load()) / 1e9)
	d.statements.Add(float64(v.Recorder.SQLCount.Load()))
	d.trips.Add(float64(v.Recorder.Trips.Load()))
	if v.known {
		m.resources.WithLabelValues(v.Name).Inc()
		m.resourceSeconds.WithLabelValues(v.Name).Add(v.Total.Seconds())
	}
	if len(v.Items) > 0 {
		m.items.Add(float64(len(v.Items)))
	}
}

// figures collects what others count, when somebody asks.
type figures struct{ s *Server }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descRunning  = desc("weir_requests_running", "Requests that have arrived and are not yet answered.")
	descDraining = desc("weir_draining", "1 while the node is about to stop.")

	descSlots    = desc("weir_gate_slots", "Slots of the pool.", "pool")
	descInUse    = desc("weir_gate_in_use", "Slots in use.", "pool")
	descUseHigh  = desc("weir_gate_in_use_high", "Most slots ever in use.", "pool")
	descQueue    = desc("weir_gate_queue", "Places in the pool's queue.", "pool")
	descWaiting  = desc("weir_gate_waiting", "Requests waiting.", "pool")
	descHigh     = desc("weir_gate_waiting_high", "Most requests that ever waited.", "pool")
	descServed   = desc("weir_gate_served_total", "Requests served.", "pool")
	descLeft     = desc("weir_gate_left_total", "Requests whose client left the queue.", "pool")
	descRejected = desc("weir_gate_rejected_total", "Requests rejected, by limit.", "pool", "limit")
	descWait     = desc("weir_gate_wait_seconds_total", "Time waited by requests served.", "pool")
	descService  = desc("weir_gate_service_seconds_total", "Time slots were held.", "pool")

	descPermits   = desc("weir_permits", "Permits.", "kind")
	descPermitUse = desc("weir_permits_in_use", "Permits in use.", "kind")
	descPermitQ   = desc("weir_permits_waiting", "Work waiting for a permit.", "kind")

	descBytes        = desc("weir_bytes_held", "Bytes held for clients.")
	descBytesHigh    = desc("weir_bytes_held_high", "Most bytes ever held for clients.")
	descBytesLimit   = desc("weir_bytes_limit", "Bytes that may be held.")
	descBytesRefused = desc("weir_bytes_rejected_total", "Requests refused because of the byte budget.")

	descRateExceeded = desc("weir_rate_exceeded_total", "Requests over an hourly limit.")

	descPoolMax     = desc("weir_store_connections_max", "Database connections at most.")
	descPoolUse     = desc("weir_store_connections_in_use", "Database connections in use.")
	descPoolIdle    = desc("weir_store_connections_idle", "Database connections idle.")
	descPoolWaiting = desc("weir_store_connections_waiting", "Work waiting for a database connection.")
	descBorrowed    = desc("weir_store_borrowed_total", "Database connections handed out.")
	descBorrowLost  = desc("weir_store_borrow_timeouts_total", "Waits for a database connection that were in vain.")
	descBorrowWait  = desc("weir_store_borrow_wait_seconds_total", "Time waited for database connections.")

	descTxWritten = desc("weir_transactions_written_total", "Rows of the transaction log written.")
	descTxLost    = desc("weir_transactions_lost_total", "Rows of the transaction log lost, because the queue was full or a write failed.")
	descTxQueued  = desc("weir_transactions_queued", "Rows of the transaction log waiting to be written.")
)

// Describe describes nothing: what there is to collect depends on the settings.
func (f *figures) Describe(chan<- *prometheus.Desc) {}

// Collect reads all figures.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	s := f.s
	gauge(descRunning, float64(s.metrics.running.Load()))
	gauge(descDraining, map[bool]float64{true: 1}[s.Draining()])
	g := s.o.Gate.Stats()
	for _, p := range g.Pools {
		gauge(descSlots, float64(p.Slots), p.Name)
		gauge(descInUse, float64(p.InUse), p.Name)
		gauge(descUseHigh, float64(p.MaxInUse), p.Name)
		gauge(descQueue, float64(p.Queue), p.Name)
		gauge(descWaiting, float64(p.Waiting), p.Name)
		gauge(descHigh, float64(p.MaxWaiting), p.Name)
		count(descServed, float64(p.Served), p.Name)
		count(descLeft, float64(p.Left), p.Name)
		count(descWait, p.WaitTotal.Seconds(), p.Name)
		count(descService, p.ServiceTotal.Seconds(), p.Name)
		for _, limit := range []string{gate.LimitPoolQueue, gate.LimitSessionQueue, gate.LimitWait, gate.LimitDraining, gate.LimitPoolClosed} {
			count(descRejected, float64(p.Rejected[limit]), p.Name, limit)
		}
	}
	for _, p := range g.Permits {
		gauge(descPermits, float64(p.Slots), p.Name)
		gauge(descPermitUse, float64(p.InUse), p.Name)
		gauge(descPermitQ, float64(p.Waiting), p.Name)
	}
	gauge(descBytes, float64(g.Bytes.Used))
	gauge(descBytesHigh, float64(g.Bytes.MaxUsed))
	gauge(descBytesLimit, float64(g.Bytes.Limit))
	count(descBytesRefused, float64(g.Bytes.Rejected))
	count(descRateExceeded, float64(g.Rates.Exceeded))
	count(descTxWritten, float64(s.tx.written.Load()))
	count(descTxLost, float64(s.tx.lost.Load()))
	gauge(descTxQueued, float64(s.tx.queued()))
}

// StoreFigures collects the figures of a database's connections and of the engine on it; nil for none of them.
func StoreFigures(pool func() store.Stats, counters func() map[string]float64) prometheus.Collector {
	return &storeFigures{pool, counters}
}

type storeFigures struct {
	pool     func() store.Stats
	counters func() map[string]float64
}

// Describe describes nothing: names of the engine's counters are not known beforehand.
func (f *storeFigures) Describe(chan<- *prometheus.Desc) {}

// Collect reads the figures.
func (f *storeFigures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	count := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	if f.pool != nil {
		p := f.pool()
		gauge(descPoolMax, float64(p.Max))
		gauge(descPoolUse, float64(p.InUse))
		gauge(descPoolIdle, float64(p.Idle))
		gauge(descPoolWaiting, float64(p.Waiting))
		count(descBorrowed, float64(p.Borrowed))
		count(descBorrowLost, float64(p.Timeouts))
		count(descBorrowWait, p.WaitTime.Seconds())
	}
	if f.counters != nil {
		for name, v := range f.counters() {
			count(desc(name, "A counter of the engine."), v)
		}
	}
}
