package dialect

import (
	"context"
	"io"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// What a dialect may want of the door beside decoding. Each is an interface of its own that a [Dialect] may have; the server asks
// for it and knows no protocol by that.

// Guarded is a [Dialect] whose clients prove that a change is their own will and not the doing of another site's page: they fetch
// a token and send it along with the session's cookie.
type Guarded interface {
	Dialect
	// Guard reads from the head of a call what it asks for and owes. The call's body is not read yet.
	Guard(snap *catalog.Snapshot, c *Call) Guard
	// Grant adds a fresh token to a successful answer of a call that asked for one.
	Grant(token string, a *wire.Answer)
	// Refuse answers a change that lacks a valid token. Nothing of it was executed.
	Refuse(c *Call, a *wire.Answer)
}

// Guard is what a call asks for and owes.
type Guard struct {
	Fetch  bool          // asks for a token
	Age    time.Duration // how long one given out now holds
	Token  string        // what the call shows, "" for nothing
	Need   Need          // when the call is executed with a valid token only
	Bearer bool          // also when the caller shows a bearer token, which no browser sends by itself
}

// Need says when a call owes a token.
type Need uint8

// The needs.
const (
	NeedNot     Need = iota
	NeedBrowser      // when a browser may have sent it by itself: by cookie alone, or with the headers that browsers add
	NeedAlways
)

// Timed is a [Dialect] that tells its clients where time went, in headers of its own.
type Timed interface {
	Dialect
	// Timing adds headers to the answer of c, whose head is about to be sent: of a streamed answer what is known by then.
	// It is asked for failed answers too, and once for the whole answer of a batch.
	Timing(c *Call, rec *telemetry.Recorder, a *wire.Answer)
}

// Namer is a [Dialect] that knows better than its paths do how logs, metrics, routes and limits should call what they address.
type Namer interface {
	Dialect
	// ResourceOf names what a path addresses: "odata/GWSAMPLE_BASIC/ProductSet", however the root is spelled. known says that there
	// is such a resource, so that the name may count in metrics without end.
	ResourceOf(snap *catalog.Snapshot, path string) (name string, known bool)
}

// Shared is a [Dialect] whose definitions say pages of which other origins may call, beside those of the setting cors.origins.
type Shared interface {
	Dialect
	// OriginsOf are the origins whose pages may make a call, by its method and path; "*" is all of them.
	OriginsOf(snap *catalog.Snapshot, c *Call) []string
}

// Traced is a [Dialect] whose clients may give their requests ids of their own.
type Traced interface {
	Dialect
	// TraceOf is the id that answers and the database's log know a call by; that of its transaction if its client gave none.
	TraceOf(c *Call) string
}

// Deferrer is a [Dialect] whose clients may ask to be answered later, and then ask a monitor what became of their call.
type Deferrer interface {
	Dialect
	// Deferred reports whether the client prefers an answer later.
	Deferred(snap *catalog.Snapshot, c *Call) bool
	// MonitorOf is the path at which a client asks what became of the call with that id. It lies where the dialect lives.
	MonitorOf(c *Call, id string) string
	// Monitored is the id in the path of a monitor, "" for all other paths.
	Monitored(path string) string
	// Pending answers that a call is under way still: right after it was accepted, or to a monitor.
	Pending(c *Call, monitor string, retry time.Duration, a *wire.Answer)
	// Settled answers a monitor, by what its call c asks for, with the answer that the deferred call had.
	Settled(c *Call, done *wire.Answer, a *wire.Answer)
}

// Entrance is a [Dialect] whose paths say how a caller proves who it is. Of the others every way is taken but a database login.
type Entrance interface {
	Dialect
	// EntryOf says how the caller of c enters, by the call's head: who it is and the body are not known yet. It is asked for single
	// calls and for items of other dialects' batches.
	EntryOf(snap *catalog.Snapshot, c *Call) Entry
}

// Entry says how a caller proves who it is.
type Entry struct {
	Public bool // nobody needs to; who shows something must be right all the same
	Ways   Way  // those that are taken; none: all but ByDatabase
	// Challenges are the values of WWW-Authenticate of an answer 401; none: the server's own.
	Challenges []string
}

// Takes reports whether a caller may prove in this way who it is.
func (e *Entry) Takes(w Way) bool {
	if e.Ways == 0 {
		return w != ByDatabase
	}
	return e.Ways&w != 0
}

// Way is a way to prove who is calling; several make a set.
type Way uint8

// The ways.
const (
	ByBasic    Way = 1 << iota // user and password of weir's own users, or the session that they have opened
	ByBearer                   // an access token
	ByGateway                  // the header of a trusted gateway in front
	ByDatabase                 // user and password of the database, which checks them; they go before ByBasic
)

// wayNames are the ways as definitions spell them ([catalog.SQLDef.Auth]).
var wayNames = map[string]Way{"basic": ByBasic, "oauth": ByBearer, "header": ByGateway, "database": ByDatabase}

// WaysOf is the set of ways with the names that definitions use. What is no name of a way is not in it.
func WaysOf(names []string) Way {
	var all Way
	for _, n := range names {
		all |= wayNames[n]
	}
	return all
}

// Issuer is a [Dialect] with a place of its own where clients get access tokens.
type Issuer interface {
	Dialect
	// IsToken reports whether clients get tokens at path.
	IsToken(path string) bool
}

// Loader is a [Dialect] with calls whose body is worked on while it comes, since it may be larger than memory.
type Loader interface {
	Dialect
	// Loads says of a call whose body has not been read whether it is one of these, and if so about how many bytes its work takes in memory.
	Loads(snap *catalog.Snapshot, c *Call) (memory int64, ok bool)
	// Load runs such a call inside its slot and writes the whole answer, faults included. It reads body to its end, or gives up and closes
	// it; either way nothing of it is read any more when it returns.
	Load(ctx context.Context, l *LoadRun, c *Call, body io.ReadCloser, a *wire.Answer)
}

// LoadRun is what a load works with. It belongs to one request.
type LoadRun struct {
	Snapshot *catalog.Snapshot
	Exec     Executor
	// Public makes of an error what a client may see, as [BatchRun.Public] does. It takes errors of reading the body, too.
	Public func(error) error
}

// FormatOf is a content type as the transaction log names it: json, atom, xml, multipart, text.
func FormatOf(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	main, sub, _ := strings.Cut(strings.TrimSpace(kind), "/")
	if main == "multipart" || main == "text" {
		return main
	}
	sub, _, _ = strings.Cut(sub, "+")
	return sub
}
