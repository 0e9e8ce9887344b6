package remote

import "github.com/prometheus/client_golang/prometheus"

func desc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"backend"}, nil)
}

var (
	descUp          = desc("weir_backend_up", "1 while the backend answers and is not about to stop.")
	descReady       = desc("weir_backend_ready", "1 while the backend's database answers too.")
	descOutstanding = desc("weir_backend_outstanding", "Calls sent to the backend and not yet answered.")
	descCalls       = desc("weir_backend_calls_total", "Calls tried at the backend.")
	descLost        = desc("weir_backend_lost_total", "Calls lost with the backend, or with the connection to it.")
	descRetries     = desc("weir_backend_retries_total", "Calls sent again to another backend, after this one had lost them.")
)

var (
	descTaken   = prometheus.NewDesc("weir_backend_taken_total", "Calls taken from hubs.", nil, nil)
	descRunning = prometheus.NewDesc("weir_backend_running", "Calls of hubs under way.", nil, nil)
)

// Describe describes the figures of a backend.
func (s *Server) Describe(out chan<- *prometheus.Desc) {
	out <- descTaken
	out <- descRunning
}

// Collect reads the figures of a backend.
func (s *Server) Collect(out chan<- prometheus.Metric) {
	taken, running := s.Calls()
	out <- prometheus.MustNewConstMetric(descTaken, prometheus.CounterValue, float64(taken))
	out <- prometheus.MustNewConstMetric(descRunning, prometheus.GaugeValue, float64(running))
}

// Describe describes the figures of the backends.
func (c *Client) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descUp, descReady, descOutstanding, descCalls, descLost, descRetries} {
		out <- d
	}
	c.wire.Describe(out)
}

// Collect reads the figures of the backends.
func (c *Client) Collect(out chan<- prometheus.Metric) {
	truth := map[bool]float64{true: 1}
	for _, b := range c.backends {
		gauge := func(d *prometheus.Desc, v float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, b.addr)
		}
		count := func(d *prometheus.Desc, n int64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), b.addr)
		}
		s := b.now()
		gauge(descUp, truth[s.up && !s.Draining])
		gauge(descReady, truth[s.up && s.Ready && !s.Draining])
		gauge(descOutstanding, float64(b.outstanding.Load()))
		count(descCalls, b.calls.Load())
		count(descLost, b.lost.Load())
		count(descRetries, b.repeated.Load())
	}
	c.wire.Collect(out)
}
