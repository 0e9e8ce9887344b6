package dialect

import (
	"context"
	"net/url"
	"runtime"
	"strconv"
	"strings"
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

// addressed is a URL that an item may have and what it means: many items of a batch have the same.
type addressed struct {
	url, path, rawPath, rawQuery string
	dialect                      Dialect
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

// ready reports whether item i can be decoded now; if not, it is answered or left unserviced.
func (r *run) ready(i int) bool {
	it := &r.items[i]
	r.work[i].call = r.call(i)
	switch {
	case it.Skip || r.late():
		r.unserviced(i, nil)
		return false
	case it.Err != nil:
		r.refuse(i, it.Err)
		return false
	}
	if r.parents != nil && len(r.parents[i]) > 0 && r.opt.Decode == nil {
		for _, p := range r.parents[i] {
			if r.parts[p].Unserviced {
				r.unserviced(i, nil)
				return false
			}
			if r.parts[p].failed {
				r.refuse(i, record.Errorf(record.Dependency, r.items[p].ID, "not run, since item %.80q, which it depends on, failed", r.items[p].ID))
				return false
			}
		}
		if err := r.substitute(i); err != nil {
			r.refuse(i, err)
			return false
		}
	}
	return true
}

// call is what decoders see of item i, its address aside.
func (r *run) call(i int) Call {
	it := &r.items[i]
	return Call{Method: it.Method, Base: r.outer.Base, Actor: r.outer.Actor, Item: true, Body: it.Body, Header: r.headers(it.Header), ContentID: it.ID, ID: r.outer.ID}
}

// late reports whether the time of the batch is over.
func (r *run) late() bool { return time.Since(r.begin) >= r.Config.Time }

// decode makes an exchange of item i, which has before ops of its group before it; if that fails the item is answered.
func (r *run) decode(i, before int) bool {
	w := &r.work[i]
	if l := &r.last; l.dialect != nil && l.url == r.items[i].URL {
		w.call.Path, w.call.RawPath, w.call.RawQuery, w.dialect = l.path, l.rawPath, l.rawQuery, l.dialect
	} else {
		if err := r.address(&w.call, r.items[i].URL); err != nil {
			r.refuse(i, err)
			return false
		}
		w.dialect = r.Mux.Find(w.call.Path)
		if w.dialect == nil {
			w.dialect = r.dialect
			r.fail(i, record.Errorf(record.NoPath, "", "Requested URI does not represent any resource"))
			return false
		}
		if b, ok := w.dialect.(Batcher); ok && b.IsBatch("POST", w.call.Path) || sealedPath(w.call.Path) {
			r.refuse(i, record.Errorf(record.Invalid, "", "%.200s cannot be part of a batch", w.call.Path))
			return false
		}
		*l = addressed{r.items[i].URL, w.call.Path, w.call.RawPath, w.call.RawQuery, w.dialect}
	}
	if r.Admit != nil {
		var err error
		if w.header, err = r.Admit(w.call.Method, w.call.Path); err != nil {
			r.fail(i, err)
			return false
		}
	}
	var err error
	if r.opt.Decode != nil {
		w.exchange, err = r.opt.Decode(i, w.dialect, &w.call, before, r.parts)
	}
	if err == nil && w.exchange == nil {
		w.exchange, err = w.dialect.Decode(r.Snapshot, &w.call)
		w.own = true
	}
	if err != nil {
		r.fail(i, err)
		return false
	}
	return true
}

// address fills path and query of c from the URL of an item.
func (r *run) address(c *Call, s string) error {
	if scheme, rest, ok := strings.Cut(s, "://"); ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		_, own, _ := strings.Cut(r.outer.Base, "://")
		if !strings.EqualFold(rest[:end], own) {
			return record.Errorf(record.Invalid, "", "an item addresses this host alone, not %.80q", rest[:end])
		}
		s = rest[end:]
	}
	if r.opt.Decode == nil {
		s, _, _ = strings.Cut(s, "#")
	}
	path, query, _ := strings.Cut(s, "?")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	c.RawPath = path
	if strings.IndexByte(path, '%') >= 0 {
		plain, err := url.PathUnescape(path)
		if err != nil {
			return record.Errorf(record.Invalid, "", "the path %.80q has a bad escape", path)
		}
		path = plain
	}
	c.Path, c.RawQuery = path, query
	return nil
}

// execute runs the exchanges of the items in list, with all that they want to do next, and answers them.
func (r *run) execute(ctx context.Context, list []int) {
	// An exchange that needs order among its own ops would order the whole unit, so those have a unit of their own.
	loose, tight := list, []int(nil)
	if !r.opt.Ordered {
		for k, i := range list {
			e := r.work[i].exchange
			if !e.Ordered || len(e.Ops) < 2 || r.items[i].Group != 0 {
				if tight != nil {
					loose = append(loose, i)
				}
				continue
			}
			if tight == nil {
				loose = append([]int(nil), list[:k]...)
			}
			tight = append(tight, i)
		}
	}
	r.rounds(ctx, loose, r.opt.Ordered)
	r.rounds(ctx, tight, true)
}

// maxRounds bounds how often an exchange may want something more.
const maxRounds = 16

// breathe lets waiting requests go first, now and then: a batch of 10,000 items computes for hundreds of milliseconds, and Go
// takes the processor away only every ten.
func breathe(n int) {
	if n%32 == 31 {
		runtime.Gosched()
	}
}

func (r *run) rounds(ctx context.Context, list []int, ordered bool) {
	for round := 0; len(list) > 0; round++ {
		r.unit(ctx, list, ordered, round == 0)
		if round == 0 {
			r.judge(list)
		}
		var more []int
		for n, i := range list {
			breathe(n)
			w := &r.work[i]
			if round == 0 && allUnserviced(w.out) {
				r.unserviced(i, w.out[0].Err)
				continue
			}
			if w.exchange.Next == nil || r.parts[i].Undone {
				r.reply(i)
				continue
			}
			next, err := w.exchange.Next(w.out)
			switch {
			case err != nil:
				r.fail(i, err)
			case next == nil:
				r.reply(i)
			case round == maxRounds:
				r.fail(i, record.Errorf(record.Internal, "", "the call does not come to an end"))
			default:
				w.exchange = next
				more = append(more, i)
			}
		}
		list = more
	}
}

// judge finds the groups that failed, and the item of each whose failure it was.
func (r *run) judge(list []int) {
	for n := 0; n < len(list); {
		together := r.together(list[n:])
		n += len(together)
		if len(together) == 1 {
			continue
		}
		guilty, kind := -1, record.Dependency
		for _, i := range together {
			for k := range r.work[i].out {
				if err := r.work[i].out[k].Err; err != nil && (guilty < 0 || kind == record.Dependency && err.Kind != record.Dependency) {
					guilty, kind = i, err.Kind
				}
			}
		}
		if guilty < 0 {
			continue
		}
		r.parts[guilty].Guilty = true
		undone := record.Errorf(record.Dependency, r.parts[guilty].ID, "undone, since another request of its group failed")
		for _, i := range together {
			r.parts[i].Undone = true
			for k := range r.work[i].out {
				if err := r.work[i].out[k].Err; i != guilty && err != nil && err.Kind == record.Dependency {
					r.work[i].out[k].Err = undone // the engine speaks of ops, by numbers that mean nothing outside
				}
			}
		}
	}
}

func allUnserviced(out []record.Outcome) bool {
	for k := range out {
		if !out[k].Unserviced {
			return false
		}
	}
	return len(out) > 0
}

// unit joins the ops of the items in list into one unit, executes it and hands each item its outcomes. Groups of items are made in the
// first round, where their writes are.
func (r *run) unit(ctx context.Context, list []int, ordered, grouped bool) {
	n := 0
	for _, i := range list {
		n += len(r.work[i].exchange.Ops)
	}
	u := record.Unit{
		Version: r.Snapshot.Version, Ops: make([]record.Op, 0, n), Ordered: ordered, StopOnError: ordered && r.opt.StopOnError,
		Parallel: r.Config.Parallel,
	}
	if r.Serial {
		u.Parallel = 1
	}
	groups, group, base := 0, 0, 0 // used so far; the group of items under way, and where its ops begin
	for _, i := range list {
		w := &r.work[i]
		e := w.exchange
		key := e.Token
		if key == "" && r.key != "" {
			key = r.key + "#" + strconv.Itoa(i)
		}
		first := len(u.Ops)
		u.Ops = append(u.Ops, e.Ops...)
		ops := u.Ops[first:]
		if g := r.items[i].Group; g == 0 || !grouped {
			group = 0
			groups = shift(ops, first, groups, key)
			continue
		} else if g != group {
			group, base = g, first
			groups++
		}
		if w.own {
			shift(ops, first, 0, key)
		} else {
			shift(ops, base, 0, key)
		}
		for k := range ops {
			ops[k].Group = groups
		}
	}
	u.Actors = actors(r.outer.Actor, u.Ops)
	at := time.Since(r.begin)
	// The least budget is not 0, which would mean that there is none.
	u.Budget = max(r.Config.Time-at, time.Nanosecond)
	var out []record.Outcome
	if n > 0 {
		out = r.Exec.Execute(ctx, r.Snapshot, &u)
	}
	first := 0
	for _, i := range list {
		w := &r.work[i]
		k := len(w.exchange.Ops)
		w.out = out[first : first+k : first+k]
		first += k
		r.parts[i].account(w.out, at)
	}
}

// shift makes the ops of one exchange part of a unit in which they begin at index first and groups were used before. Every
// write gets a token of its own if there is a key. It returns how many groups are used now.
func shift(ops []record.Op, first, groups int, key string) int {
	used := groups
	for k := range ops {
		op := &ops[k]
		if op.Group != 0 {
			op.Group += groups
			used = max(used, op.Group)
		}
		if key != "" && op.Token == "" && op.Verb.Writes() {
			op.Token = key + "/" + strconv.Itoa(k)
		}
		if first == 0 {
			continue
		}
		shiftValues(op.Key, first)
		for a := range op.Set {
			shiftValue(&op.Set[a].Value, first)
		}
		for a := range op.New {
			shiftValue(&op.New[a].Value, first)
		}
		for c := range op.If {
			if op.If[c].Field == "" {
				op.If[c].Op += first
			}
			shiftValues(op.If[c].Values, first)
		}
		if op.Query != nil {
			op.Query.Where.Walk("", func(_ string, e *record.Expr) bool {
				shiftValue(&e.Value, first)
				shiftValues(e.Values, first)
				return true
			})
		}
	}
	return used
}

func shiftValues(list []record.Value, first int) {
	for k := range list {
		shiftValue(&list[k], first)
	}
}

func shiftValue(v *record.Value, first int) {
	if v.Form == record.Ref {
		v.N += int64(first)
	}
}

// account adds the figures of outcomes of a unit that began at.
func (p *Part) account(out []record.Outcome, at time.Duration) {
	for k := range out {
		s := &out[k].Stat
		p.SQL += s.SQL
		p.SQLCount += s.SQLCount
		p.SetOps = max(p.SetOps, s.SetOps)
		p.Rode(s.Set)
		p.Rows += s.Rows
		if s.End == 0 {
			continue
		}
		if p.end == 0 || at+s.Start < p.Start {
			p.Start = at + s.Start
		}
		p.end = max(p.end, at+s.End)
		p.Time = p.end - p.Start
	}
}

// reply lets the exchange of item i write its answer.
func (r *run) reply(i int) {
	w, p := &r.work[i], &r.parts[i]
	p.Answer = r.arena.answer()
	w.exchange.Reply(w.out, &p.Answer)
	switch size := len(p.Body); {
	case size > r.limit:
		r.fail(i, record.Errorf(record.TooLarge, "", "the answer has %d bytes, more than %d; see %s.max_output", size, r.limit, r.name()))
		return
	case r.total+size > r.Config.MaxTotal && !(r.opt.Answered != nil && w.wrote()):
		r.fail(i, record.Errorf(record.TooLarge, "", "the answers of the batch have more than %d bytes; see %s.max_total", r.Config.MaxTotal, r.name()))
		return
	}
	r.answered(i)
}

// wrote reports whether the item's exchange is one that writes.
func (w *work) wrote() bool {
	for k := range w.exchange.Ops {
		if w.exchange.Ops[k].Verb.Writes() {
			return true
		}
	}
	return false
}

// refuse answers item i with a fault that the join found itself.
func (r *run) refuse(i int, err error) {
	r.parts[i].Fault = record.AsError(err).Msg
	r.fail(i, err)
}

// fail answers item i with the error envelope of its dialect.
func (r *run) fail(i int, err error) {
	w, p := &r.work[i], &r.parts[i]
	d := w.dialect
	if d == nil {
		d = r.dialect
	}
	if w.call.Path == "" && r.opt.Decode != nil && r.address(&w.call, r.items[i].URL) != nil {
		w.call.Path, w.call.RawPath = r.outer.Path, r.outer.RawPath // it may say the version of the protocol
	}
	p.Answer = r.arena.answer()
	if r.Public != nil {
		err = r.Public(err)
	}
	d.Fail(&w.call, err, &p.Answer)
	r.answered(i)
}

func (r *run) answered(i int) {
	p := &r.parts[i]
	p.Body = r.arena.keep(p.Body)
	p.In, p.Bytes, p.Format = len(r.items[i].Body), len(p.Body), FormatOf(p.Header.Get("Content-Type"))
	p.ItemRecord.Status = p.Answer.Status
	p.failed = p.Answer.Status >= 400
	p.Header = append(p.Header, r.work[i].header...)
	r.total += len(p.Body)
	clear(r.work[i].out) // nobody needs the rows any more
	r.work[i] = work{}
	r.pass(i)
}

// unserviced leaves item i undone because of err, nil if its time was over.
func (r *run) unserviced(i int, err *record.Error) {
	p := &r.parts[i]
	p.Unserviced = true
	if r.opt.Answered != nil {
		if err == nil {
			err = record.Errorf(record.Timeout, "", "not begun within the %v allowed for a batch; see %s.time", r.Config.Time, r.name())
		}
		r.fail(i, err)
		return
	}
	r.work[i] = work{}
	r.pass(i)
}

// pass notes that item i is done with.
func (r *run) pass(i int) {
	if r.opt.Answered == nil && !r.opt.StopOnError {
		return
	}
	if r.done == nil {
		r.done = make([]bool, len(r.items))
	}
	r.done[i] = true
	r.held++
	r.advance()
}

// advance hands over the answers whose turn it is.
func (r *run) advance() {
	for r.next < len(r.done) && r.done[r.next] && !r.stopped && !r.paused {
		p := &r.parts[r.next]
		if r.opt.Answered != nil {
			r.opt.Answered(r.next, p)
			p.Body = nil
			r.arena.kept = r.arena.kept || p.Header != nil
		}
		r.next++
		r.held--
		g := r.items[r.next-1].Group
		last := r.next == len(r.items) || g == 0 || r.items[r.next].Group != g
		r.stopped = r.opt.StopOnError && last && p.failed
	}
	if r.held == 0 && r.opt.Answered != nil {
		r.arena.rewind()
	}
}

// openHeaders are the item headers that decoders see. Everything else, known or not, is dropped.
var openHeaders = []string{
	"Accept", "Content-Type", "Accept-Language", "Content-Language", "If-Match", "If-None-Match", "Prefer", "Idempotency-Key",
	"X-HTTP-Method-Override", "X-No-Response-Body", "X-WantSessionDebugMessages",
	"OData-Version", "OData-MaxVersion", "DataServiceVersion", "MaxDataServiceVersion", "X-HTTP-Method",
	"Repeatability-Request-ID", "Repeatability-Client-ID", "Repeatability-First-Sent",
}

// sealedHeader reports whether name carries identity, forwarding or framing, which no setting lets an item choose.
func sealedHeader(name string) bool {
	switch name = strings.ToLower(name); name {
	case "authorization", "cookie", "host", "forwarded", "via", "origin", "referer", "connection", "content-length", "content-encoding",
		"transfer-encoding", "x-usertoken", "x-sn-apikey", "x-mfa_token", "x-real-ip":
		return true
	}
	return strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "sec-") ||
		strings.Contains(name, "impersonate")
}

// headers is what decoders may see of the headers of an item; the list is changed in place.
func (r *run) headers(list wire.Header) wire.Header {
	kept := list[:0]
	for _, f := range list {
		if OpenHeader(f.Name) || len(r.Config.Headers) > 0 && listed(r.Config.Headers, f.Name) && !sealedHeader(f.Name) {
			kept = append(kept, f)
		}
	}
	return kept
}

// openBySize are the openHeaders by the length of their names.
var openBySize = func() (list [32][]string) {
	for _, n := range openHeaders {
		list[len(n)] = append(list[len(n)], n)
	}
	return list
}()

// OpenHeader reports whether decoders see the header of an item.
func OpenHeader(name string) bool {
	return len(name) < len(openBySize) && listed(openBySize[len(name)], name)
}

func listed(names []string, name string) bool {
	for _, n := range names {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// sealedPath reports whether path belongs to login, tokens or the operator, which no item may reach.
func sealedPath(path string) bool {
	path = strings.ToLower(path)
	for _, p := range []string{"/oauth_token.do", "/oauth_revoke_token.do", "/weir", "/login", "/logout", "/api/jwt/", "/admin", "/plan", "/metrics", "/console", "/debug", "/healthz", "/readyz"} {
		if path == strings.TrimSuffix(p, "/") || strings.HasPrefix(path, p) && (strings.HasSuffix(p, "/") || path[len(p)] == '/') {
			return true
		}
	}
	return false
}

// arena holds the bodies and headers of many answers in few pieces.
type arena struct {
	piece  []byte
	fields []wire.HeaderField
	kept   bool // somebody keeps headers that lie in fields
}

const pieceSize = 64 << 10

// answer is an empty answer with room for what most have.
func (a *arena) answer() wire.Answer {
	const usual = 8
	n := len(a.fields)
	if cap(a.fields)-n < usual {
		a.fields, n = make([]wire.HeaderField, 0, 32*usual), 0
	}
	a.fields = a.fields[:n+usual]
	return wire.Answer{Header: a.fields[n : n : n+usual], Body: a.room()}
}

// room is an empty slice to append to.
func (a *arena) room() []byte {
	if cap(a.piece)-len(a.piece) < pieceSize/16 {
		a.piece = make([]byte, 0, pieceSize)
	}
	return a.piece[len(a.piece):]
}

// rewind makes the pieces at hand free again, when nobody needs any answer in them.
func (a *arena) rewind() {
	a.piece = a.piece[:0]
	if !a.kept {
		a.fields = a.fields[:0]
	}
}

// keep makes body permanent. One that has outgrown its room lives in memory of its own already.
func (a *arena) keep(body []byte) []byte {
	n := len(a.piece)
	if len(body) > 0 && len(body) <= cap(a.piece)-n && &body[0] == &a.piece[n : n+1][0] {
		a.piece = a.piece[:n+len(body)]
	}
	return body[:len(body):len(body)]
}
