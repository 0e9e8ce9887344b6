package endpoint

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Options are the settings of a runner.
type Options struct {
	// MaxRows is how many rows a nested query answers at most. Defaults to 10,000.
	MaxRows int
	// Slow is told of calls that took longer than SlowAfter; nil is told nothing.
	Slow func(Slow)
}

// Runner executes calls of SQL endpoints. It is safe for concurrent use.
type Runner struct {
	st  store.Store
	opt Options

	mu      sync.RWMutex
	texts   map[textKey]*prepared
	planned map[string]time.Time // when a plan was last made of an endpoint that took long
	count   counters

	slowAfter atomic.Int64 // nanoseconds
	maxRows   atomic.Int64
}

// Stats are a runner's counters, since it was made.
type Stats struct {
	Calls     int64 // of endpoints
	Queries   int64 // main statements of queries, begun
	Blocks    int64
	Tags      int64 // tag queries
	Unchanged int64 // calls whose tag the caller had: their main statement was not run
	Nested    int64 // statements for single rows, of nested rows
	Slow      int64 // calls that took longer than telemetry.slow_statement
}

type counters struct {
	calls, queries, blocks, tags, unchanged, nested, slow atomic.Int64
}

// New is a runner on a store.
func New(st store.Store) *Runner { return NewWith(st, Options{}) }

// NewWith is a runner with settings.
func NewWith(st store.Store, opt Options) *Runner {
	if opt.MaxRows == 0 {
		opt.MaxRows = 10_000
	}
	r := &Runner{st: st, opt: opt, texts: map[textKey]*prepared{}, planned: map[string]time.Time{}}
	r.maxRows.Store(int64(opt.MaxRows))
	return r
}

// Stats are the counters now.
func (r *Runner) Stats() Stats {
	return Stats{
		Calls: r.count.calls.Load(), Queries: r.count.queries.Load(), Blocks: r.count.blocks.Load(), Tags: r.count.tags.Load(),
		Unchanged: r.count.unchanged.Load(), Nested: r.count.nested.Load(), Slow: r.count.slow.Load(),
	}
}

// RunSQL runs an endpoint for actor, whose roles are checked. With stream the rows of a query are a cursor that the caller closes,
// else they are held in memory, within limit bytes.
func (r *Runner) RunSQL(ctx context.Context, snap *catalog.Snapshot, actor *record.Actor, call *record.Invocation, stream bool, limit int64) (*record.Rows, *record.SQLOutcome, *record.Error) {
	e := snap.Endpoint(call.Endpoint)
	if e == nil || e.SQL == nil || call.SQL == nil {
		return nil, nil, record.Errorf(record.NoPath, "", "there is no SQL endpoint %.80q", call.Endpoint)
	}
	if err := Allowed(&e.EndpointDef, actor); err != nil {
		return nil, nil, err
	}
	if call.SQL.Login == nil && databaseOnly(e.SQL.Auth) {
		return nil, nil, record.Errorf(record.Unauthenticated, "", "the endpoint is for users of the database")
	}
	x := &run{r: r, ctx: ctx, def: &e.EndpointDef, compiled: e.SQL.Compiled, call: call.SQL, stream: stream, limit: limit}
	if x.compiled == nil || x.compiled.Store != r.st.Name() {
		return nil, nil, record.Errorf(record.Unavailable, "", "the endpoint %s was not compiled for this database; apply the project again", e.Name)
	}
	if len(call.SQL.Binds) != len(x.compiled.Binds) {
		return nil, nil, record.Errorf(record.Internal, "", "endpoint %s takes %d binds, the call has %d", e.Name, len(x.compiled.Binds), len(call.SQL.Binds))
	}
	x.options = store.SQLOptions{Timeout: e.SQL.Timeout, Login: call.SQL.Login, ID: call.SQL.ID, Memory: limit}
	r.count.calls.Add(1)
	rows, out, err := x.run()
	return rows, out, x.named(err)
}

// Allowed is the error of an actor who may not call an endpoint.
func Allowed(e *catalog.EndpointDef, actor *record.Actor) *record.Error {
	if e.Public || len(e.Roles) == 0 {
		return nil // who is nobody has been turned away at the door
	}
	if slices.ContainsFunc(e.Roles, actor.Has) {
		return nil
	}
	return record.Errorf(record.Forbidden, "", "the endpoint needs one of the roles %s", strings.Join(e.Roles, ", "))
}

// databaseOnly reports whether a login of the database is the only way to call an endpoint. A call without one came past the door: it is
// part of a batch, or another endpoint forwards to it.
func databaseOnly(ways []string) bool {
	return len(ways) > 0 && !slices.ContainsFunc(ways, func(w string) bool { return w != "database" })
}

// run is one call.
type run struct {
	r        *Runner
	ctx      context.Context
	def      *catalog.EndpointDef
	compiled *catalog.SQLCompiled
	call     *record.SQLCall
	options  store.SQLOptions
	stream   bool
	limit    int64
}

func (x *run) run() (*record.Rows, *record.SQLOutcome, error) {
	out := &record.SQLOutcome{}
	block := x.def.SQL.Source == catalog.SourceBlock
	if x.compiled.Tag != nil && (!block || len(x.call.Match) > 0) {
		if err := x.tag(out); err != nil {
			return nil, nil, err
		}
		switch {
		case !block && out.Tag != "" && slices.Contains(x.call.Tags, out.Tag):
			x.r.count.unchanged.Add(1)
			out.Same = true
			return nil, out, nil
		case block && !slices.Contains(x.call.Match, out.Tag):
			return nil, nil, record.Errorf(record.Precondition, "", "the entity tag asked for is not the current one")
		}
	}
	if block {
		return nil, out, x.block(out)
	}
	rows, err := x.query()
	return rows, out, err
}

// tag runs the tag query. The tag is a hash of the values of its first row, so that it can stand in a header whatever they are; without
// a row it is "".
func (x *run) tag(out *record.SQLOutcome) error {
	x.r.count.tags.Add(1)
	p := x.r.statement(x.def.Name, -1, x.compiled.Tag, "", nil)
	rows, err := x.r.st.Select(x.ctx, p.st, x.args(p, x.call.Binds, nil), x.options)
	if err != nil {
		return x.at(err, x.compiled.Tag)
	}
	defer rows.Close()
	row, ok := rows.Next()
	if !ok {
		return rows.Err()
	}
	var tag []byte
	for i := range row {
		tag = append(tag, byte(row[i].Form), 0)
		tag = row[i].AppendText(tag)
	}
	sum := sha256.Sum256(tag)
	out.Tag = base64.StdEncoding.EncodeToString(sum[:])
	return nil
}

// query runs the main statement of a query.
func (x *run) query() (*record.Rows, error) {
	st := &x.compiled.Statements[0]
	w, err := x.wrap(st)
	if err != nil {
		return nil, err
	}
	x.r.count.queries.Add(1)
	p := x.r.statement(x.def.Name, 0, st, w.key(), w)
	rows, err := x.r.st.Select(x.ctx, p.st, x.args(p, x.call.Binds, w.args), x.options)
	if err != nil {
		return nil, x.at(err, st)
	}
	if len(st.Nested) > 0 {
		return x.nest(st, p, rows, x.call.Binds)
	}
	rows.Fields, rows.Types = p.names, p.types
	if !x.stream {
		if err := rows.Materialise(x.limit); err != nil {
			rows.Close()
			return nil, err
		}
	}
	return rows, nil
}

// args are the arguments of a statement: of its binds, then more.
func (x *run) args(p *prepared, binds, more []record.Value) []record.Value {
	args := make([]record.Value, 0, len(p.of.Params)+len(more))
	for _, b := range p.of.Params {
		args = append(args, binds[b])
	}
	return append(args, more...)
}

// named is an error with the names that the caller and the log know: a value's is that of its parameter, and what the database
// says of the statement names the endpoint.
func (x *run) named(err error) *record.Error {
	e := record.AsError(err)
	if e == nil {
		return nil
	}
	if e.Kind == record.Rejected {
		named := *e
		named.Rule = x.def.Name
		return &named
	}
	return e
}

// block runs the statements of a block in one transaction.
func (x *run) block(out *record.SQLOutcome) error {
	x.r.count.blocks.Add(1)
	binds := slices.Clone(x.call.Binds)
	tx, err := x.r.st.BeginPlain(x.ctx, x.options)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for i := range x.compiled.Statements {
		st := &x.compiled.Statements[i]
		p := x.r.statement(x.def.Name, i, st, "", nil)
		rows, affected, err := tx.Run(x.ctx, p.st, x.args(p, binds, nil))
		if err != nil {
			return x.at(err, st)
		}
		out.Affected += affected
		if len(st.Into) == 0 || rows == nil {
			continue
		}
		if x.resultSet(st) {
			rows.Fields, rows.Types = p.names, p.types
			out.Sets = append(out.Sets, record.OutRows{Name: x.outside(st.Into[0]), Rows: rows})
			continue
		}
		if rows.Len() == 0 {
			continue // what was assigned before stays
		}
		for j, v := range rows.At(0) {
			if j < len(st.Into) && st.Into[j] != "" {
				binds[x.bind(st.Into[j])] = v
			}
		}
	}
	if err := x.outcome(out, binds); err != nil {
		return err
	}
	return tx.Commit(x.ctx)
}

// resultSet reports whether all rows of a statement are one parameter.
func (x *run) resultSet(st *catalog.SQLStatement) bool {
	return len(st.Into) == 1 && slices.ContainsFunc(x.def.SQL.Params, func(p catalog.SQLParam) bool {
		return p.Bind == st.Into[0] && p.Type == "RESULTSET"
	})
}

// at gives an error about a parameter of a statement the name that the caller knows it by.
func (x *run) at(err error, st *catalog.SQLStatement) error {
	e := record.AsError(err)
	number, ok := strings.CutPrefix(e.Field, "$")
	n, bad := strconv.Atoi(number)
	if !ok || bad != nil {
		return err
	}
	named := *e
	if named.Field = ""; n >= 1 && n <= len(st.Params) {
		named.Field = x.outside(x.compiled.Binds[st.Params[n-1]].Name)
	}
	return &named
}

func (x *run) bind(name string) int {
	return slices.IndexFunc(x.compiled.Binds, func(b catalog.SQLBind) bool { return b.Name == name })
}

// outside is the name of a bind in answers.
func (x *run) outside(bind string) string {
	for _, p := range x.def.SQL.Params {
		if p.Bind == bind {
			return p.Name
		}
	}
	return bind
}

// The header names of what a block answers (protocol notes, section 6), as declared parameters have them.
const (
	headerStatus  = "X-ORDS-STATUS-CODE"
	headerForward = "X-ORDS-FORWARD-LOCATION"
	headerOlder   = "X-ORDS-FORWARD" // what older definitions call it
)

// outcome reads what a block answers from its binds.
func (x *run) outcome(out *record.SQLOutcome, binds []record.Value) error {
	status, forward := record.Value{}, record.Value{}
	if i := x.bind(bindStatus); i >= 0 {
		status = binds[i]
	}
	if i := x.bind(bindForward); i >= 0 {
		forward = binds[i]
	}
	for _, p := range x.def.SQL.Params {
		i := x.bind(p.Bind)
		switch {
		case i < 0 || p.Access == "IN" || p.Type == "RESULTSET":
		case p.Source == "HEADER" && strings.EqualFold(p.Name, headerStatus):
			status = binds[i]
		case p.Source == "HEADER" && (strings.EqualFold(p.Name, headerForward) || strings.EqualFold(p.Name, headerOlder)):
			forward = binds[i]
		default:
			out.Out = append(out.Out, record.Assign{Field: p.Name, Value: binds[i]})
		}
	}
	if !status.Empty() {
		v, err := store.Fit(record.TypeInteger, status)
		if err != nil || v.Form != record.Int || v.N < 100 || v.N > 599 {
			return record.Errorf(record.Rejected, "", "the block set the status %.20q, which is none", status.Text())
		}
		out.Status = int(v.N)
	}
	out.Forward = forward.Text()
	return nil
}
