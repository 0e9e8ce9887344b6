package server

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"weir/internal/auth"
	"weir/internal/gate"
	"weir/internal/record"
	"weir/internal/telemetry"
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

// gateState serves [GatePath]. It needs no slot, so that it answers when none is free.
func (s *Server) gateState(w http.ResponseWriter, r *http.Request) {
	v := &Visit{
		Recorder: telemetry.New(), Number: s.serial.Add(1), Method: r.Method, Path: r.URL.Path, Identity: auth.Guest(), Dialect: "weir",
		URL: s.redact.url(r.URL), s: s, w: w, r: r, control: http.NewResponseController(w), d: s.o.Fallback,
	}
	v.Recorder.ID = newTransactionID()
	v.leave = v.Recorder.Enter(telemetry.Hub)
	s.metrics.running.Add(1)
	defer v.end()
	defer v.recover()
	ctx := telemetry.With(r.Context(), v.Recorder)
	snap, err := s.o.Snapshot(ctx)
	if err == nil {
		err = v.identify(ctx, snap)
	}
	v.logStart()
	if err == nil && !v.Identity.Actor.Admin() {
		err = record.Errorf(record.Forbidden, "", "the gate is for administrators")
	}
	if err == nil {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodPatch:
			err = v.changeGate(ctx)
		default:
			err = record.Errorf(record.NotAllowed, "", "%s takes GET and PATCH", GatePath)
		}
	}
	var page *gatePage
	if err == nil {
		page, err = s.gatePage()
	}
	a := answer()
	defer release(a)
	if err == nil {
		a.Body, err = json.Marshal(page)
	}
	if err != nil {
		v.fail(err)
		return
	}
	a.Header.Set("Content-Type", "application/json;charset=UTF-8")
	v.send(a)
}

// changeGate puts a patch in force.
func (v *Visit) changeGate(ctx context.Context) error {
	if v.s.o.GateSettings.Change == nil {
		return record.Errorf(record.NotAllowed, "", "the gate of this node cannot be changed")
	}
	// Not text/plain, which a page of another site may send without asking.
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/merge-patch+json" && kind != "application/json" {
		return record.Errorf(record.Unsupported, "Content-Type", "a change of the gate is application/merge-patch+json")
	}
	v.control.SetReadDeadline(time.Now().Add(v.s.cfg.Limits.BodyTime))
	body, err := io.ReadAll(io.LimitReader(v.r.Body, maxForm+1))
	v.control.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		return v.unread(err)
	case len(body) > maxForm:
		return record.Errorf(record.TooLarge, "", "a change of the gate has at most %d bytes", maxForm)
	case !json.Valid(body):
		return record.Errorf(record.Invalid, "", "the body is not JSON")
	}
	if err := v.s.o.GateSettings.Change(ctx, body); err != nil {
		return err
	}
	name, _, _ := v.user()
	v.s.log.Info("the gate's settings were changed", "txid", v.Recorder.ID, "user", clean(name, 100), "patch", clean(string(body), maxURL))
	return nil
}
