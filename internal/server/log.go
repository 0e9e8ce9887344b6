package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/internal/dialect"
)

// redaction hides the values of query parameters.
type redaction struct {
	all   bool
	names []string
}

func newRedaction(names []string) redaction {
	r := redaction{all: slices.Contains(names, "*")}
	for _, n := range names {
		r.names = append(r.names, strings.ToLower(n))
	}
	return r
}

// maxURL is how much of an address logs keep.
const maxURL = 2000

// url is path and query as logs show them: still escaped, so that no control character reaches a line, and redacted.
func (r redaction) url(u *url.URL) string {
	return r.text(u.EscapedPath(), u.RawQuery)
}

func (r redaction) text(path, query string) string {
	if query == "" {
		return clean(path, maxURL)
	}
	if r.all || r.touches(query) {
		parts := strings.Split(query, "&")
		for i, p := range parts {
			name, _, has := strings.Cut(p, "=")
			plain, err := url.QueryUnescape(name)
			if has && (r.all || err != nil || slices.Contains(r.names, strings.ToLower(plain))) {
				parts[i] = name + "=***"
			}
		}
		query = strings.Join(parts, "&")
	}
	return clean(path+"?"+query, maxURL)
}

// touches reports whether a query may hold a hidden name, escaped names included.
func (r redaction) touches(query string) bool {
	if strings.ContainsRune(query, '%') {
		return true
	}
	lower := strings.ToLower(query)
	return slices.ContainsFunc(r.names, func(n string) bool { return strings.Contains(lower, n) })
}

// clean is text without control characters, at most n bytes of it.
func clean(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	if !strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 || c >= 0x7f }) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c == '\u2029' {
			return '\uFFFD'
		}
		return c
	}, s)
}

func (v *Visit) logStart() {
	if v.s.cfg.Log.Requests != "all" {
		return
	}
	name, _, session := v.user()
	v.s.log.LogAttrs(context.Background(), slog.LevelInfo, "*** Start",
		slog.Uint64("n", v.Number), slog.String("txid", v.Recorder.ID), slog.String("session", session),
		slog.String("method", v.Method), slog.String("url", v.URL), slog.String("user", clean(name, 100)))
}

func (v *Visit) user() (name, key, session string) {
	if v.Identity == nil {
		return "guest", "", ""
	}
	return v.Identity.Actor.Name, v.Identity.Actor.Key, v.Identity.Session
}

func (v *Visit) kind() string {
	switch {
	case v.Later:
		return "deferred"
	case v.Batch:
		return "batch_rest"
	case v.Dialect == "oauth":
		return "oauth"
	}
	return "rest"
}

// logEnd writes the line at a request's end, before it those of its batch's items: the fields of the platform's node log
// (protocol notes, section 11.6), in its order.
func (v *Visit) logEnd() {
	slow := v.Total >= v.s.cfg.Log.Slow
	if v.s.cfg.Log.Requests == "none" || v.s.cfg.Log.Requests == "slow" && !slow {
		return
	}
	v.logItems()
	name, key, session := v.user()
	r := v.Recorder
	waits := time.Duration(r.SemWait.Load() + r.SessionWait.Load())
	trace := ""
	if d, ok := v.d.(dialect.Traced); ok && v.call.Method != "" {
		trace = d.TraceOf(&v.call)
	}
	v.s.log.LogAttrs(context.Background(), slog.LevelInfo, "*** End",
		slog.Uint64("n", v.Number), slog.String("txid", r.ID), slog.String("session", session), slog.Bool("excessive", slow),
		slog.String("url", v.URL), slog.String("user", clean(name, 100)),
		slog.Duration("total", v.Total), slog.Duration("processing", v.Total-waits),
		slog.Duration("sem_wait", time.Duration(r.SemWait.Load())), slog.Duration("session_wait", time.Duration(r.SessionWait.Load())),
		slog.Duration("sql", time.Duration(r.SQL.Load())), slog.Int64("sql_count", r.SQLCount.Load()),
		slog.Duration("acl", time.Duration(r.Access.Load())), slog.String("source", remote(v.r)), slog.String("type", v.kind()),
		slog.String("method", v.Method), slog.String("api_name", v.API()), slog.String("resource", v.resource(200)),
		slog.String("user_id", key), slog.String("pool", v.Pool), slog.Int64("output_length", r.Bytes.Load()), slog.Int("items", len(v.Items)),
		slog.Int("response_status", v.Status), slog.String("request_id", trace))
}

// itemLine is a line about an item, and the moment that it tells of.
type itemLine struct {
	at  time.Duration // since the request began
	msg string
	it  *dialect.ItemRecord
}

const (
	itemStart = "*** Start batch item"
	itemEnd   = "*** End batch item"
)

// logItems writes the lines of a batch's items. When an item began and ended is known only when its set is done, so the lines are
// written then, in the order of the moments that they tell of and with those as their times. What did not run only ends.
func (v *Visit) logItems() {
	lines := make([]itemLine, 0, 2*len(v.Items))
	for i := range v.Items {
		it := &v.Items[i]
		if it.Unserviced {
			lines = append(lines, itemLine{v.Total, itemEnd, it})
			continue
		}
		lines = append(lines, itemLine{v.batchAt + it.Start, itemStart, it}, itemLine{v.batchAt + it.Start + it.Time, itemEnd, it})
	}
	slices.SortStableFunc(lines, func(a, b itemLine) int { return cmp.Compare(a.at, b.at) })
	ctx, to := context.Background(), v.s.log.Handler()
	if !to.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for _, l := range lines {
		it := l.it
		line := slog.NewRecord(v.Recorder.Begin.Add(l.at), slog.LevelInfo, l.msg, 0)
		line.AddAttrs(slog.Uint64("n", v.Number), slog.String("txid", v.Recorder.ID), slog.String("id", clean(it.ID, 100)),
			slog.String("method", clean(it.Method, 16)), slog.String("url", v.s.redact.item(it.URL)))
		if l.msg == itemEnd {
			line.AddAttrs(slog.Duration("start", it.Start), slog.Duration("total", it.Time), slog.Duration("sql", it.SQL),
				slog.Int("sql_count", it.SQLCount), slog.Int("set_ops", it.SetOps), slog.Int("rows", it.Rows), slog.Int("output_length", it.Bytes),
				slog.Bool("unserviced", it.Unserviced), slog.Int("response_status", it.Status))
		}
		_ = to.Handle(ctx, line) // as slog.Logger does: a log that cannot be written has nobody to tell
	}
}

// item is the address of a batch item as logs show it.
func (r redaction) item(u string) string {
	path, query, _ := strings.Cut(u, "?")
	return r.text(path, query)
}
