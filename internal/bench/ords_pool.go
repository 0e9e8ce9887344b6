package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// OrdsPool is the article's pool that was too small: 50 users call an endpoint that holds its connection for a while, with a pool of 10 and
// one of 50. Each is measured twice: as weir is shipped, where the gate at the door has more slots than the pool has connections, so that all
// users reach for connections at once as they do in the article, and with a slot for each connection, so that they wait at the door.
type OrdsPool struct {
	// User and Password read the metrics.
	User, Password string
	// Program is the server's own binary, Project the folder that it serves, with what [WriteLevers] has written. DB is an empty PostgreSQL
	// database.
	Program, Project, DB string
	// Pools are the sizes of the pool.
	//
	// Default to the article's 10 and 50.
	Pools []int
	// Users call at once and make Requests requests each.
	//
	// Default to 50 and 20.
	Users, Requests int
	// Hold is how long a request holds its connection, Wait how long one waits for a connection. A pool is too small when
	// Users ÷ pool × Hold is more than Wait.
	//
	// Default to 200 ms and 600 ms, a fifth of the wait of the article's server (jdbc.ConnectionWaitTimeout).
	Hold, Wait time.Duration
}

// How wide the gate is.
const (
	gateShipped = "shipped"
	gateFitted  = "fitted"
)

// PoolCase is what one size of the pool did.
type PoolCase struct {
	Gate string `json:"gate"` // shipped, or fitted: a slot for each connection
	Pool int    `json:"pool"`
	LoadResult
	// Refused is how many waits for a connection were in vain, as the server counts them.
	Refused int `json:"refused"`
	// InUseHigh and WaitingHigh are the most connections in use and requests waiting for one that were seen; QueueHigh waited at the door.
	InUseHigh   int `json:"in_use_high"`
	WaitingHigh int `json:"waiting_high"`
	QueueHigh   int `json:"queue_high"`
	// Says is what a refused request was told, with the pool's figures.
	Says string `json:"says,omitempty"`
}

// OrdsPoolResult compares the sizes.
type OrdsPoolResult struct {
	Users    int        `json:"users"`
	Each     int        `json:"requests_each"`
	HoldMS   float64    `json:"hold_ms"`
	WaitMS   float64    `json:"wait_ms"`
	Cases    []PoolCase `json:"cases"`
	OK       bool       `json:"ok"`
	Problems []string   `json:"problems,omitempty"`
}

func (o OrdsPool) withDefaults() OrdsPool {
	if len(o.Pools) == 0 {
		o.Pools = []int{10, 50}
	}
	if o.Users == 0 {
		o.Users = 50
	}
	if o.Requests == 0 {
		o.Requests = 20
	}
	if o.Hold == 0 {
		o.Hold = 200 * time.Millisecond
	}
	if o.Wait == 0 {
		o.Wait = 600 * time.Millisecond
	}
	return o
}

func (o OrdsPool) validate() error {
	if o.Users < 1 || o.Requests < 1 {
		return fmt.Errorf("users, requests: %d, %d, must be 1 or more", o.Users, o.Requests)
	}
	if o.Hold < 0 || o.Wait < time.Millisecond {
		return errors.New("hold must not be negative, and wait must be 1ms or more")
	}
	for _, n := range o.Pools {
		if n < 1 {
			return fmt.Errorf("pool of %d: must be 1 or more", n)
		}
	}
	return nil
}

// tooSmall reports whether a pool cannot serve all users in time when all of them reach for it.
func (o OrdsPool) tooSmall(pool int) bool {
	rounds := (o.Users + pool - 1) / pool // the last of those that wait gets a connection after all others had theirs
	return time.Duration(rounds-1)*o.Hold > o.Wait
}

// Run measures all sizes and writes a line of progress for each. An error means that one could not be measured.
func (o OrdsPool) Run(ctx context.Context, progress io.Writer) (*OrdsPoolResult, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &OrdsPoolResult{Users: o.Users, Each: o.Requests, HoldMS: o.Hold.Seconds() * 1000, WaitMS: o.Wait.Seconds() * 1000}
	for _, gate := range []string{gateShipped, gateFitted} {
		for _, pool := range o.Pools {
			c, err := o.measure(ctx, gate, pool)
			if err != nil {
				return nil, fmt.Errorf("pool of %d, gate %s: %w", pool, gate, err)
			}
			r.Cases = append(r.Cases, c)
			fmt.Fprintf(progress, "gate %-8s pool %3d  %8.0f requests/s  %4d refused\n", gate, pool, c.PerSecond, c.Rejected)
			o.judge(r, c)
		}
	}
	r.OK = len(r.Problems) == 0
	return r, nil
}

// judge holds a case against what must come of it.
func (o OrdsPool) judge(r *OrdsPoolResult, c PoolCase) {
	problem := func(format string, args ...any) {
		r.Problems = append(r.Problems, fmt.Sprintf("gate %s, pool %d: ", c.Gate, c.Pool)+fmt.Sprintf(format, args...))
	}
	if n := c.Wrong + c.Failed; n > 0 {
		problem("%d wrong or no answers: %s", n, strings.Join(c.Why, "; "))
	}
	switch small := o.tooSmall(c.Pool); {
	case c.Rejected > 0 && c.Gate == gateFitted:
		problem("%d were refused, although they should wait at the door: %s", c.Rejected, c.Says)
	case c.Rejected > 0 && !small:
		problem("%d were refused, although the pool is large enough: %s", c.Rejected, c.Says)
	case c.Rejected == 0 && c.Gate == gateShipped && small:
		problem("nobody was refused, although %d users wait longer than %v for a connection", o.Users, o.Wait)
	}
}

// measure starts a node with a pool and calls it.
func (o OrdsPool) measure(ctx context.Context, gate string, pool int) (PoolCase, error) {
	c := PoolCase{Gate: gate, Pool: pool}
	set := []string{"--set", fmt.Sprintf("database.pool.max=%d", pool), "--set", "database.pool.wait=" + o.Wait.String()}
	if gate == gateFitted {
		set = append(set, "--set", fmt.Sprintf("gate.pools.default.slots=%d", pool))
	}
	node, err := startOrds(ctx, o.Program, o.Project, o.DB, set...)
	if err != nil {
		return c, err
	}
	defer node.stop()
	access := Access{Targets: []string{node.url}, User: o.User, Password: o.Password}
	urls, err := access.targets()
	if err != nil {
		return c, err
	}
	watcher := newClient(access, urls[0], 2, true, false)
	defer watcher.close()
	load := LoadOptions{
		Access: Access{Targets: access.Targets}, Connections: o.Users, Each: o.Requests, Duration: 5 * time.Minute,
		Request: Request{Method: http.MethodGet, Path: fmt.Sprintf("/ords/%s/hold/?seconds=%g", LeverSchema, o.Hold.Seconds())},
	}
	warm := load
	warm.Each = 1
	if _, err := Load(ctx, warm); err != nil {
		return c, err
	}
	const refused = "weir_store_borrow_timeouts_total"
	before := watcher.gauges(ctx)[refused]

	watching, stop := context.WithCancel(ctx)
	defer stop()
	var work sync.WaitGroup
	work.Go(func() {
		for watching.Err() == nil {
			c.watch(watcher.gauges(watching))
			pause(watching, o.Hold/2)
		}
	})
	work.Go(func() { // one user more, who reads what a refused one is told
		for watching.Err() == nil && c.Says == "" {
			status, body, err := watcher.send(watching, http.MethodGet, load.Request.Path, nil)
			if err == nil && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests) {
				c.Says = excerptOf(body, 1000)
			}
			pause(watching, o.Hold/2)
		}
	})
	result, err := Load(ctx, load)
	stop()
	work.Wait()
	c.LoadResult = result
	after := watcher.gauges(ctx)
	c.watch(after)
	c.Refused = int(after[refused] - before)
	return c, err
}

// watch takes high waters from the node's figures.
func (c *PoolCase) watch(figures map[string]float64) {
	c.InUseHigh = max(c.InUseHigh, int(figures["weir_store_connections_in_use"]))
	c.WaitingHigh = max(c.WaitingHigh, int(figures["weir_store_connections_waiting"]))
	c.QueueHigh = max(c.QueueHigh, int(figures[`weir_gate_waiting_high{pool="default"}`]))
}
