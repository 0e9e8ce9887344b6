package dialect

import (
	"context"
	"time"

	"weir/internal/record"
	"weir/internal/wire"
)

// Item is one call inside a batch, not yet decoded.
type Item struct {
	ID     string
	Method string
	URL    string // relative, or absolute on the batch's own host
	Header wire.Header
	Body   []byte
	// Depends are the ids of items whose answers this one needs. Only an item that has some may use their answers in its
	// body; see [Join.Run].
	Depends []string
	// After are indexes of earlier items that are answered before this one is decoded. It is for batches with a Decode of their own,
	// which says what becomes of the item when one of them failed.
	After []int
	// Group, if not 0, joins neighbouring items with the same number: they take effect in their order and commit or fail together.
	Group int
	// Err is a fault found while the envelope was read: the item is answered with it and not executed.
	Err error
	// Skip leaves the item unserviced, since a bound was passed before it.
	Skip bool
}

// Part is the answer of one item.
type Part struct {
	wire.Answer
	ItemRecord
	// Fault is the text of what kept the item from being decoded, "" if it was decoded.
	Fault string
	// Undone says that the item's group failed, so that nothing of it happened; Guilty is the one item of the group that decides how.
	Undone, Guilty bool

	end    time.Duration // since the batch began
	failed bool
}

// Join executes the items of a batch together, whatever dialect each of them speaks: every item is decoded by the decoder
// that its path would meet alone, the ops of all of them become one unit, and every exchange writes its own part of the
// answer. No item re-enters HTTP, and none is admitted again.
//
// Who is calling, the host of links and everything else of the outer request holds for all items; of an item's headers
// only those on an allowlist are seen.
type Join struct {
	Config BatchConfig
	// Name is where the settings stand, for messages.
	//
	// Defaults to now.batch.
	Name string
}

// Options are how one batch wants to be run.
type Options struct {
	Ordered   bool // the items take effect in the order given
	MaxOutput int  // bytes of an item's answer, where lower than the setting; 0: the setting
	// StopOnError, with Ordered, leaves everything after the first item that fails unserviced, the rest of its group aside.
	StopOnError bool
	// Decode, if not nil, makes the exchange of item i in place of d, the dialect of its path; nil leaves it to d. The op indexes of
	// the exchange count from the group's first op, of which before are those of earlier items; its groups do not matter within one. The
	// parts are the answers so far, without bodies where Answered has had them. Where there is a Decode, URLs and bodies are taken as they
	// are.
	Decode func(i int, d Dialect, c *Call, before int, parts []Part) (*Exchange, error)
	// Answered, if not nil, gets the parts in the order of the items, each as soon as it and all before it are answered; those that a
	// failure kept from running excepted. What its time kept from running is answered with an error. The body is valid until Answered
	// returns, and so are the headers if it sets them to nil.
	Answered func(i int, p *Part)
}

// Run executes items on behalf of outer and returns one part for each, in the order given. Faults of an item are answered
// within its part, by the dialect of its path or, if that is unknown, by d. The error is TooLarge if there are too many
// items; then nothing was executed.
//
// An item that depends on others is decoded in a later stage, after their answers were written: "${id.path}" in its URL,
// and in its body where Depends names the id, stands for a value of the answer of item id ("${11.result.sys_id}"). The value is
// escaped for its place and can choose neither host nor path structure nor an operator; "$${" is a plain "${". When an item
// that it depends on failed, the dependent one is not run and its error is a Dependency.
func (j *Join) Run(ctx context.Context, b *BatchRun, d Dialect, outer *Call, items []Item, opt Options) ([]Part, error) {
	if len(items) > j.Config.MaxItems {
		return nil, record.Errorf(record.TooLarge, "", "the batch has %d items, more than %d; see %s.max_items", len(items), j.Config.MaxItems, j.name())
	}
	r := &run{
		Join: j, BatchRun: b, outer: outer, dialect: d, items: items, opt: opt,
		parts: make([]Part, len(items)), work: make([]work, len(items)),
		begin: time.Now(), limit: j.Config.MaxOutput, key: outer.Header.Get("Idempotency-Key"),
	}
	if opt.MaxOutput > 0 && opt.MaxOutput < r.limit {
		r.limit = opt.MaxOutput
	}
	for i := range items {
		p := &r.parts[i]
		p.ID, p.Method, p.URL = items[i].ID, items[i].Method, items[i].URL
	}
	// What has not begun when the time is over never begins, by the unit's budget. What is under way then is cut off a moment
	// later, so that the two are told apart: only the former is safe to send again.
	ctx, cancel := context.WithTimeout(ctx, j.Config.Time+grace)
	defer cancel()
	r.bound()
	for _, stage := range r.stages() {
		r.run(ctx, stage)
	}
	if r.stopped {
		for i := r.next; i < len(items); i++ {
			r.parts[i] = Part{ItemRecord: ItemRecord{ID: items[i].ID, Method: items[i].Method, URL: items[i].URL, Unserviced: true}}
		}
	}
	return r.parts, nil
}

func (j *Join) name() string {
	if j.Name == "" {
		return "now.batch"
	}
	return j.Name
}

// grace is how long an item may go on when the time of its batch is over.
const grace = 50 * time.Millisecond

// run is one batch under way.
type run struct {
	*Join
	*BatchRun
	outer   *Call
	dialect Dialect
	items   []Item
	opt     Options
	parts   []Part
	work    []work
	begin   time.Time
	limit   int
	key     string // the caller's idempotency key for the whole batch
	total   int    // bytes of the answers so far
	arena   arena
	parents [][]int // by item; nil if no item depends on another
	scan    scan

	last    addressed
	done    []bool // answered or left unserviced
	next    int    // the first item that Answered has not had
	held    int    // answers that it has not had
	stopped bool   // the item before next failed, and that is the end
	paused  bool   // it gets nothing for now
}

// work is the state of one item between its decoding and its answer.
type work struct {
	call     Call
	dialect  Dialect
	header   wire.Header // for the answer, from BatchRun.Admit
	exchange *Exchange
	own      bool // op indexes count from the exchange, not from the group
	out      []record.Outcome
}

// bound leaves the items behind one with too large a body unserviced.
func (r *run) bound() {
	for i := range r.items {
		if len(r.items[i].Body) <= r.Config.MaxInput {
			continue
		}
		if r.items[i].Err == nil {
			r.items[i].Err = record.Errorf(record.TooLarge, "", "the body has %d bytes, more than %d; see %s.max_input", len(r.items[i].Body), r.Config.MaxInput, r.name())
		}
		for k := i + 1; k < len(r.items); k++ {
			r.items[k].Skip = true
		}
		return
	}
}

// run decodes, executes and answers the items of one stage.
func (r *run) run(ctx context.Context, stage []int) {
	ready := make([]int, 0, len(stage))
	var reads, more bool // ready holds items that only read; that may want to do more
	flush := func() {
		r.execute(ctx, ready)
		ready, reads, more = ready[:0], false, false
	}
	for n := 0; n < len(stage) && !r.stopped; {
		breathe(n)
		together := r.together(stage[n:])
		n += len(together)
		if !r.prepare(together) {
			if r.opt.StopOnError {
				flush()
			}
			continue
		}
		if !r.opt.Ordered {
			ready = append(ready, together...)
			continue
		}
		writes, again, single := r.nature(together)
		// Under order, what an item still wants to do after its first outcomes comes before the next write begins; and where the first
		// failure is the end, an answer may be one though no op failed, which is known of a read before the next write begins.
		if writes && (more || reads && r.opt.StopOnError) {
			flush()
			if r.stopped {
				break
			}
		}
		ready = append(ready, together...)
		reads, more = reads || !writes, more || again
		if writes && (again || !single && r.opt.StopOnError) {
			flush()
		}
	}
	flush()
}

// together is the first item of list, or its group.
func (r *run) together(list []int) []int {
	n := 1
	if g := r.items[list[0]].Group; g != 0 {
		for n < len(list) && r.items[list[n]].Group == g {
			n++
		}
	}
	return list[:n]
}

// prepare decodes an item or a group. If that fails they are answered, and nothing of the group happens.
func (r *run) prepare(list []int) bool {
	if len(list) > 1 {
		r.paused = true // what became of the group is known when all of it is
		defer func() {
			r.paused = false
			r.advance()
		}()
	}
	before := 0
	for k, i := range list {
		if r.ready(i) && r.decode(i, before) {
			before += len(r.work[i].exchange.Ops)
			continue
		}
		if len(list) > 1 {
			r.undo(list, k)
		}
		return false
	}
	return true
}

// undo answers the items of a group of which item k could not be decoded.
func (r *run) undo(list []int, k int) {
	guilty := &r.parts[list[k]]
	guilty.Guilty = true
	for _, i := range list {
		r.parts[i].Undone = true
	}
	for n, i := range list {
		if n > k {
			r.work[i].call = r.call(i)
		}
		switch {
		case n == k:
		case guilty.Unserviced:
			r.unserviced(i, nil)
		default:
			r.refuse(i, record.Errorf(record.Dependency, guilty.ID, "not run, since another request of its group failed"))
		}
	}
}

// nature tells what kind of work items are: whether they may write, want to do more after their first outcomes, and are one op or one
// group.
func (r *run) nature(list []int) (writes, again, single bool) {
	single = true
	for _, i := range list {
		w := &r.work[i]
		e := w.exchange
		again = again || e.Next != nil
		writes = writes || w.call.Method != "GET" && w.call.Method != "HEAD"
		for k := range e.Ops {
			writes = writes || e.Ops[k].Verb.Writes() || e.Ops[k].Verb == record.Invoke
			single = single && (len(list) > 1 || len(e.Ops) == 1 || e.Ops[k].Group != 0 && e.Ops[k].Group == e.Ops[0].Group)
		}
	}
	return writes, again, single
}

// late reports whether the time of the batch is over.
func (r *run) late() bool { return time.Since(r.begin) >= r.Config.Time }

// maxRounds bounds how often an exchange may want something more.
const maxRounds = 16

// openHeaders are the item headers that decoders see. Everything else, known or not, is dropped.
var openHeaders = []string{
	"Accept", "Content-Type", "Accept-Language", "Content-Language", "If-Match", "If-None-Match", "Prefer", "Idempotency-Key",
	"X-HTTP-Method-Override", "X-No-Response-Body", "X-WantSessionDebugMessages",
	"OData-Version", "OData-MaxVersion", "DataServiceVersion", "MaxDataServiceVersion", "X-HTTP-Method",
	"Repeatability-Request-ID", "Repeatability-Client-ID", "Repeatability-First-Sent",
}

// openBySize are the openHeaders by the length of their names.
var openBySize = func() (list [32][]string) {
	for _, n := range openHeaders {
		list[len(n)] = append(list[len(n)], n)
	}
	return list
}()

const pieceSize = 64 << 10
