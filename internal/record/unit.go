package record

import (
	"slices"
	"time"
)

// Verb is what an op does.
type Verb uint8

// The verbs.
const (
	Get       Verb = iota // one record by key
	List                  // records by query, streamed if the op is alone in its unit
	Aggregate             // counts, sums and so on by query
	Insert
	Update // by key
	Upsert // by Match fields: update the one record that has them, else insert
	Delete // by key
	Invoke // a scripted or a SQL endpoint
	Load   // many new records of one table; the only op of its unit
)

var verbNames = []string{"get", "list", "aggregate", "insert", "update", "upsert", "delete", "invoke", "load"}

// String is the verb in lower case.
func (v Verb) String() string { return verbNames[v] }

// Writes reports whether the verb changes records of its table. What a script does is not known.
func (v Verb) Writes() bool { return v >= Insert && v <= Delete || v == Load }

// Assign gives a field a value. The value's form fits the field's type, or is Ref.
type Assign struct {
	Field string
	Value Value
}

// Op is one operation on one table, in terms of the catalog.
type Op struct {
	Verb   Verb
	Table  string
	Key    []Value  // get, update, delete: one value for each key field of the table, Refs allowed
	Match  []string // upsert: the fields of Set that find the record
	Set    []Assign // insert, update, upsert; fields not named keep their value or take their default
	New    []Assign // upsert: what a new record gets instead of Set; nil: the same
	Query  *Query   // list, aggregate
	Return []string // paths that the outcome's rows hold, in this order; nil: none are read back
	If     []Condition
	Group  int         // ops with the same non-zero group commit or fail together
	Actor  int         // index into Unit.Actors
	Invoke *Invocation // invoke
	Load   *Loading    // load
	Keep   bool        // insert, update, load: audit fields that are given are kept, not overwritten (needs an admin)
	Token  string      // idempotency: a repeat of the same token by the same actor re-renders the stored outcome; "" for none
}

// Loading is new records of one table, each by itself: those that cannot be written are told, the others are committed together. It is
// what inserts of the same records would do, without rows in the outcome.
type Loading struct {
	Fields []string
	Cells  []Value // record after record, a value for each of Fields
}

// Loaded is what became of a load.
type Loaded struct {
	Rows int64 // written
	Errs []RowError
}

// RowError is what is wrong with one record of a load.
type RowError struct {
	Row int // from 0
	Err *Error
}

// Query selects records. A nil Where is all of them.
type Query struct {
	Where  *Expr
	Sort   []Sort
	Offset int64
	Limit  int64 // negative: no limit
	Count  bool  // also count all matching records, without regard to Offset, Limit and Each
	Each   *Each // of a list: a bound for each of several records that others belong to; Offset and Limit bound what it leaves

	// For aggregates.
	Group  []string // paths
	Aggs   []Agg
	Having []Having
}

// Each bounds the records of a list that have the same values in Paths, in the order of the list: of the items of many orders, the
// first three of each. Nulls are the same value.
type Each struct {
	Paths  []string
	Offset int64
	Limit  int64 // negative: no limit
}

// Sort is one sort key.
type Sort struct {
	Path string // a path; in an aggregate "" means Agg
	Desc bool
	Agg  *Agg
}

// AggFunc is an aggregate function.
type AggFunc uint8

// The aggregate functions. Count counts rows when its path is "", else non-null values.
const (
	Count AggFunc = iota
	Sum
	Avg
	Min
	Max
	CountDistinct
)

// Agg is one aggregate: a function over a path. The columns of an aggregate's rows are its Group paths, then its Aggs.
type Agg struct {
	Func AggFunc
	Path string
}

// Having compares an aggregate with a constant by Cmp (Eq … Ge); several are ANDed.
type Having struct {
	Agg   Agg
	Cmp   ExprOp
	Value Value
}

// Condition is a precondition of an op. With Field == "" it asks that op Op of the unit succeeded (or failed, if Failed);
// with a field it asks that the record at hand has one of Values there (If-Match; Negate: none of them). If it does not
// hold the outcome is a Dependency or a Precondition error.
type Condition struct {
	Op     int
	Failed bool
	Field  string
	Values []Value
	Negate bool
}

// Invocation is a call of an endpoint, by its name. A scripted one gets a JSON document; what the documents hold is between
// the dialect and the script, the engine passes them through. A SQL endpoint gets SQL.
type Invocation struct {
	Endpoint string
	Args     []byte
	SQL      *SQLCall
}

// SQLCall is what a call of a SQL endpoint asks for.
type SQLCall struct {
	Binds  []Value  // by the endpoint's binds, in their order; null for what the caller did not give
	Where  *Expr    // of a query: a condition over its columns, by their names
	Sort   []Sort   // likewise; a Path is a column
	Offset int64    // of a query: rows to leave out
	Limit  int64    // of a query: rows wanted at most; negative: no more than the bound on all endpoints
	Tags   []string // entity tags that the caller has: when the tag query answers one of them, the query is not run
	Match  []string // of a block: the tag query must answer one of them, else nothing is run and the outcome is a Precondition
	Login  *Login   // run it in a session of this database user's own
	ID     string   // of the request, for the database's own log
}

// Login is a database user with the password. It is never logged or stored.
type Login struct{ User, Password string }

// String is the user: the password is never printed.
func (l Login) String() string { return l.User + ":***" }

// GoString is what String is, so that %#v prints no password either.
func (l Login) GoString() string { return l.String() }

// SQLOutcome is what became of a call of a SQL endpoint beside the rows of its query.
type SQLOutcome struct {
	Tag      string    // a hash of what the tag query answers, in characters of an entity tag; "" without one or without a row
	Same     bool      // Tag is one that the caller has; the query was not run
	Status   int       // of a block: the status that it set, 0 for none
	Forward  string    // of a block: the address that it forwards to, "" for none
	Out      []Assign  // of a block: its OUT parameters with their values, in the order of their declaration
	Sets     []OutRows // of a block: its OUT parameters that are rows
	Affected int64     // of a block: rows written by all of its statements
}

// OutRows is an OUT parameter that holds rows.
type OutRows struct {
	Name string
	Rows *Rows
}

// Actor is on whose behalf an op runs.
type Actor struct {
	Key    string // key of the user's record
	Name   string // login name, what sys_created_by holds
	Roles  []string
	System bool // weir itself: no access rules
}

// Has reports whether the actor has the role, or is admin or the system, who have all.
func (a *Actor) Has(role string) bool {
	return a.System || slices.Contains(a.Roles, role) || slices.Contains(a.Roles, "admin")
}

// Admin reports whether the actor may do everything.
func (a *Actor) Admin() bool { return a.System || slices.Contains(a.Roles, "admin") }

// Unit is the ops handed to the engine together: one exchange, or all the items of a batch.
type Unit struct {
	Version     uint64 // of the catalog snapshot that the ops were decoded with
	Ops         []Op
	Actors      []Actor
	Ordered     bool          // all ops, invocations too, take effect in the order given
	StopOnError bool          // with Ordered: after the first failed op nothing more runs; what came before stays
	Parallel    int           // bound on reads and invocations under way at once; 0: the engine's setting; 1: one after another
	Budget      time.Duration // time for the whole unit; what has not begun by then gets a Timeout with Unserviced; 0: none
}

// Outcome is what became of one op.
type Outcome struct {
	Err        *Error
	Unserviced bool        // not begun: nothing happened, safe to send again
	Key        []Value     // of the record written or read
	Rows       *Rows       // what Return or the query asked for; nil if nothing
	Total      int64       // with Query.Count, all matching records; else -1
	Inserted   bool        // an upsert or insert that made a new record
	Changed    bool        // a write that changed something
	Result     []byte      // of an invocation of a scripted endpoint
	SQL        *SQLOutcome // of an invocation of a SQL endpoint
	Load       *Loaded     // of a load
	Stat       Stat
}

// Stat is where the time of one op went. A fused op shares its set's statement: SQL is the set's time divided by its
// ops, SetOps says how many there were. Set numbers the sets of a unit from 1, so that ops which shared a statement are
// known by it; 0: the op had none. SetTime is how long the whole set took.
type Stat struct {
	Start, End time.Duration // since the unit began
	SQL        time.Duration
	SQLCount   int
	SetOps     int
	Set        int
	SetTime    time.Duration
	Rows       int
}
