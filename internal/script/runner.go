package script

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Data executes the records' side of scripts: the engine.
type Data interface {
	Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome
}

// Options is what a runner works with.
type Options struct {
	Config Config
	// Data is where records live. Without it scripts that touch records fail.
	Data Data
	// ParseQuery reads an encoded query over a table. Without it scripts cannot query.
	ParseQuery func(snap *catalog.Snapshot, actor *record.Actor, table, query string) (*record.Expr, []record.Sort, error)
	// Permit waits for a permit to run a script and returns the function that gives it back; nil is no bound. The session is
	// the caller's key, by which waiting callers take turns.
	Permit func(ctx context.Context, session string) (release func(), err error)
	// Log receives what scripts log. Defaults to slog's default.
	Log *slog.Logger
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Runner runs scripted endpoints.
type Runner struct {
	opt Options

	mu       sync.RWMutex
	programs map[string]program // by endpoint name
}

// program is compiled code, good as long as its source is the endpoint's.
type program struct {
	source  string
	code    *goja.Program
	guarded bool // it runs with guards
}

// maxPrograms bounds the cache; endpoints are the operator's, so it is reached by renaming alone.
const maxPrograms = 4096

// New is a runner.
func New(opt Options) *Runner {
	opt.Config.Defaults()
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Runner{opt: opt, programs: map[string]program{}}
}

// SetData gives the runner its data, which may need the runner to be made. It must be called before the first call.
func (r *Runner) SetData(d Data) { r.opt.Data = d }

// Check compiles the script of an endpoint. The error is Invalid and tells the position in the file.
func Check(e *catalog.EndpointDef) error {
	_, err := compile(e)
	return err
}

func compile(e *catalog.EndpointDef) (*goja.Program, error) {
	name := e.File
	if name == "" {
		name = e.Name
	}
	code, err := goja.Compile(name, e.Script, false)
	if err != nil {
		return nil, record.Errorf(record.Invalid, "", "%s", err.Error())
	}
	return code, nil
}

// code is the compiled script of an endpoint. Two snapshots with the same source share it.
func (r *Runner) code(e *catalog.Endpoint) (program, error) {
	r.mu.RLock()
	p, ok := r.programs[e.Name]
	r.mu.RUnlock()
	if ok && p.source == e.Script {
		return p, nil
	}
	code, err := compile(&e.EndpointDef)
	if err != nil {
		return program{}, err
	}
	p = program{e.Script, code, needsGuards(e.Script)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.programs) >= maxPrograms {
		clear(r.programs)
	}
	r.programs[e.Name] = p
	return p, nil
}

// call is one script under way. It belongs to the goroutine that runs it.
type call struct {
	r     *Runner
	ctx   context.Context
	snap  *catalog.Snapshot
	actor *record.Actor
	end   *catalog.Endpoint
	vm    *goja.Runtime

	request  request
	response response
	faults   map[*goja.Object]*fault // errors of sn_ws_err that the script made
	lines    int                     // logged
	taught   bool                    // strings have the methods of empty fields
	sleeping atomic.Bool             // in gs.sleep
}

// errTime ends a script from outside.
var errTime = errors.New("time")

// Invoke runs the endpoint named by inv for actor and returns its result document.
func (r *Runner) Invoke(ctx context.Context, snap *catalog.Snapshot, actor *record.Actor, inv *record.Invocation) ([]byte, *record.Error) {
	e := snap.Endpoint(inv.Endpoint)
	if e == nil || e.SQL != nil {
		return nil, record.Errorf(record.NoPath, "", "there is no endpoint %.80q", inv.Endpoint)
	}
	if !allowed(e, actor) {
		return nil, record.Errorf(record.Forbidden, "", "the endpoint needs one of the roles %s", strings.Join(e.Roles, ", "))
	}
	program, err := r.code(e)
	if err != nil {
		return appendFailure(nil, 500, record.AsError(err).Msg, "the script of endpoint "+e.Name+" cannot be compiled"), nil
	}
	if r.opt.Permit != nil {
		release, err := r.opt.Permit(ctx, actor.Key)
		if err != nil {
			return nil, record.AsError(err)
		}
		defer release()
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, r.opt.Config.Time)
	defer cancel()

	vm := goja.New()
	vm.SetMaxCallStackSize(r.opt.Config.MaxDepth)
	vm.SetTimeSource(r.opt.Now)
	c := &call{r: r, ctx: ctx, snap: snap, actor: actor, end: e, vm: vm}
	if err := c.request.read(inv.Args); err != nil {
		return nil, record.Errorf(record.Internal, "", "internal error").Because(err)
	}
	if program.guarded {
		if err := c.guard(); err != nil {
			return nil, record.Errorf(record.Internal, "", "internal error").Because(err)
		}
	}
	c.install()
	stop := context.AfterFunc(ctx, func() { vm.Interrupt(errTime) })
	defer stop()
	defer c.watch()()
	value, err := c.run(program.code)
	if isInterrupted(err) {
		if c.isGreedy(err) {
			return nil, c.greedy()
		}
		if errors.Is(outer.Err(), context.Canceled) {
			return nil, record.Errorf(record.Canceled, "", "the caller went away").Because(outer.Err())
		}
		return nil, c.late()
	}
	return c.finish(value, err)
}

func (c *call) late() *record.Error {
	return record.Errorf(record.Timeout, "", "the script ran longer than %v; see script.time", c.r.opt.Config.Time)
}

func allowed(e *catalog.Endpoint, actor *record.Actor) bool {
	if len(e.Roles) == 0 {
		return true
	}
	for _, role := range e.Roles {
		if actor.Has(role) {
			return true
		}
	}
	return false
}

func isInterrupted(err error) bool {
	var i *goja.InterruptedError
	return errors.As(err, &i)
}

// isGreedy reports whether it was for its memory that the script was ended.
func (c *call) isGreedy(err error) bool {
	var i *goja.InterruptedError
	return errors.As(err, &i) && i.Value() == errMemory
}

// run runs the program. The interpreter is not ours, so what it panics with becomes an error of the script.
func (c *call) run(code *goja.Program) (v goja.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the interpreter failed: %v", p)
		}
	}()
	return c.vm.RunProgram(code)
}

// install puts what scripts know into the global object. Everything is made when it is first touched, so a script that
// only sleeps pays for nothing else.
func (c *call) install() {
	vm := c.vm
	vm.Set("gs", newSurface(c, c, gsMethods))
	vm.Set("request", vm.NewDynamicObject(&requestObject{c: c}))
	vm.Set("response", newSurface(c, c, responseMethods))
	vm.Set("GlideRecord", c.newGlideRecord)
	vm.Set("GlideRecordSecure", c.newGlideRecord)
	vm.Set("GlideAggregate", c.newGlideAggregate)
	vm.Set("GlideDateTime", c.newGlideDateTime)
	vm.Set("sn_ws_err", vm.NewDynamicObject(&faultSpace{c: c}))
}

// surface is an object of the host: methods of T, made when first asked for, which scripts cannot replace.
type surface[T any] struct {
	c       *call
	self    T
	methods map[string]func(T, goja.FunctionCall) goja.Value
	made    map[string]goja.Value
}

func newSurface[T any](c *call, self T, methods map[string]func(T, goja.FunctionCall) goja.Value) *goja.Object {
	return c.vm.NewDynamicObject(&surface[T]{c: c, self: self, methods: methods})
}

// Get is the method named key.
func (s *surface[T]) Get(key string) goja.Value {
	if v, ok := s.made[key]; ok {
		return v
	}
	m, ok := s.methods[key]
	if !ok {
		return nil
	}
	v := s.c.vm.ToValue(func(f goja.FunctionCall) goja.Value { return m(s.self, f) })
	if s.made == nil {
		s.made = map[string]goja.Value{}
	}
	s.made[key] = v
	return v
}

// Set refuses: the host's objects are not the script's.
func (s *surface[T]) Set(string, goja.Value) bool { return false }

// Has reports whether there is a method named key.
func (s *surface[T]) Has(key string) bool { _, ok := s.methods[key]; return ok }

// Delete refuses.
func (s *surface[T]) Delete(string) bool { return false }

// Keys is empty, so that the methods do not appear in JSON.
func (s *surface[T]) Keys() []string { return nil }

// throw ends the Go function at hand with an error that the script may catch.
func (c *call) throw(err error) {
	e := record.AsError(err)
	if e.Kind == record.Timeout || e.Kind == record.Canceled {
		c.vm.Interrupt(errTime)
	}
	panic(c.newFault(statusOf(e.Kind), e.Msg, ""))
}

// statusOf is the status of an error that a script lets pass.
func statusOf(k record.Kind) int {
	switch k {
	case record.Invalid, record.NoTable, record.TooLarge:
		return 400
	case record.Forbidden:
		return 403
	case record.NotFound:
		return 404
	case record.Conflict:
		return 409
	case record.Busy:
		return 429
	case record.Unavailable:
		return 503
	}
	return 500
}

// text is argument i as text, "" if it is missing, null or undefined.
func text(f goja.FunctionCall, i int) string {
	v := f.Argument(i)
	if goja.IsUndefined(v) || goja.IsNull(v) {
		return ""
	}
	return v.String()
}
