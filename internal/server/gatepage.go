package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"weir/internal/catalog"
	"weir/internal/gate"
	"weir/internal/record"
	"weir/internal/wire"
)

// GatePath shows the gate to administrators, and lets them turn its settings: what stats.do is on the platform (protocol notes,
// section 11.4).
const GatePath = "/weir/gate"

// GateSettings are the gate's settings as people write them, for a server that does not know their files.
type GateSettings struct {
	// JSON is the settings in force.
	JSON func() ([]byte, error)
	// Change lays a JSON document over the settings, as a file's would be, and puts the result in force on this node. An error
	// that is a record.Error is the caller's to see; nothing is changed then.
	Change func(ctx context.Context, patch []byte) error
}

// inSlot is a request in its slot. Nothing of it changes while it is there.
type inSlot struct {
	session, id, user, method, url string
	number                         uint64
	since                          time.Time
	pool                           string
}

// slotted are the requests that hold a slot.
type slotted struct {
	mu  sync.Mutex
	all map[*inSlot]struct{}
}

func (s *slotted) add(r *inSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*inSlot]struct{}{}
	}
	s.all[r] = struct{}{}
}

func (s *slotted) remove(r *inSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, r)
}

// list are the requests by pool, the oldest first.
func (s *slotted) list() map[string][]*inSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := map[string][]*inSlot{}
	for r := range s.all {
		by[r.pool] = append(by[r.pool], r)
	}
	for _, list := range by {
		slices.SortFunc(list, func(a, b *inSlot) int { return a.since.Compare(b.since) })
	}
	return by
}

// admitted notes that the request has its slot.
func (v *Visit) admitted(slot *gate.Slot) {
	v.slot = slot
	name, _, session := v.user()
	v.inSlot = inSlot{
		session: session, id: v.Recorder.ID, user: clean(name, 100), method: v.Method, url: v.URL, number: v.Number, since: time.Now(), pool: v.Pool,
	}
	v.s.slotted.add(&v.inSlot)
}

// release gives the slot back; only the first time counts.
func (v *Visit) release() {
	if v.slot == nil {
		return
	}
	v.s.slotted.remove(&v.inSlot)
	v.slot.Release()
	v.slot = nil
}

// The page, as JSON. Times are milliseconds.
type (
	gatePage struct {
		Pools    []poolState     `json:"pools"`
		Permits  []poolState     `json:"permits"`
		Bytes    bytesState      `json:"bytes"`
		Rates    ratesState      `json:"rates"`
		Sessions int             `json:"sessions"`
		Draining bool            `json:"draining"`
		Settings json.RawMessage `json:"settings,omitempty"`
	}
	poolState struct {
		Name       string            `json:"name"`
		Slots      int               `json:"slots"`
		InUse      int               `json:"in_use"`
		MaxInUse   int               `json:"max_in_use"`
		Queue      int               `json:"queue"`
		Waiting    int               `json:"waiting"`
		MaxWaiting int               `json:"max_waiting"`
		Served     uint64            `json:"served"`
		Left       uint64            `json:"left"`
		Rejected   map[string]uint64 `json:"rejected"`
		Wait       float64           `json:"wait_ms"`
		Service    float64           `json:"service_ms"`
		Requests   []requestState    `json:"running,omitempty"`
		Closed     bool              `json:"closed,omitempty"`
	}
	requestState struct {
		Session     string  `json:"session"`
		Transaction string  `json:"transaction"`
		Number      uint64  `json:"number"`
		User        string  `json:"user"`
		Method      string  `json:"method"`
		URL         string  `json:"url"`
		Age         float64 `json:"age_ms"`
	}
	bytesState struct {
		Limit    int64  `json:"limit"`
		Used     int64  `json:"used"`
		MaxUsed  int64  `json:"max_used"`
		Queue    int    `json:"queue"`
		Waiting  int    `json:"waiting"`
		Rejected uint64 `json:"rejected"`
	}
	ratesState struct {
		Rules    int    `json:"rules"`
		Tracked  int    `json:"tracked"`
		Exceeded uint64 `json:"exceeded"`
	}
)

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (s *Server) gatePage() (*gatePage, error) {
	inside, g, now := s.slotted.list(), s.o.Gate.Stats(), time.Now()
	state := func(p gate.PoolStats) poolState {
		return poolState{
			Name: p.Name, Slots: p.Slots, InUse: p.InUse, MaxInUse: p.MaxInUse, Queue: p.Queue, Waiting: p.Waiting, MaxWaiting: p.MaxWaiting,
			Served: p.Served, Left: p.Left, Rejected: p.Rejected, Wait: millis(p.Wait), Service: millis(p.Service), Closed: p.Closed,
		}
	}
	page := &gatePage{
		Bytes:    bytesState{g.Bytes.Limit, g.Bytes.Used, g.Bytes.MaxUsed, g.Bytes.Queue, g.Bytes.Waiting, g.Bytes.Rejected},
		Rates:    ratesState{g.Rates.Rules, g.Rates.Tracked, g.Rates.Exceeded},
		Sessions: g.Sessions, Draining: s.Draining(),
	}
	for _, p := range g.Pools {
		pool := state(p)
		for _, r := range inside[p.Name] {
			pool.Requests = append(pool.Requests, requestState{r.session, r.id, r.number, r.user, r.method, r.url, millis(now.Sub(r.since))})
		}
		page.Pools = append(page.Pools, pool)
	}
	for _, p := range g.Permits {
		page.Permits = append(page.Permits, state(p))
	}
	if s.o.GateSettings.JSON != nil {
		var err error
		if page.Settings, err = s.o.GateSettings.JSON(); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// gateState serves [GatePath].
func (v *Visit) gateState(ctx context.Context, _ *catalog.Snapshot, a *wire.Answer) error {
	switch v.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPatch:
		if err := v.changeGate(ctx); err != nil {
			return err
		}
	default:
		return record.Errorf(record.NotAllowed, "", "%s takes GET and PATCH", GatePath)
	}
	page, err := v.s.gatePage()
	if err != nil {
		return err
	}
	return answerJSON(page, a)
}

// changeGate puts a patch in force.
func (v *Visit) changeGate(ctx context.Context) error {
	if v.s.o.GateSettings.Change == nil {
		return record.Errorf(record.NotAllowed, "", "the gate of this node cannot be changed")
	}
	patch, err := v.patch("the gate")
	if err != nil {
		return err
	}
	if err := v.s.o.GateSettings.Change(ctx, patch); err != nil {
		return err
	}
	name, _, _ := v.user()
	v.s.log.Info("the gate's settings were changed", "txid", v.Recorder.ID, "user", clean(name, 100), "patch", clean(string(patch), maxURL))
	return nil
}
