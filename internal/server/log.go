package server

import (
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
	v.s.log.Info("*** Start", "n", v.Number, "txid", v.Recorder.ID, "url", v.URL, "user", v.Identity.Actor.Name)
}

func (v *Visit) user() (name, key, session string) {
	if v.Identity == nil {
		return "guest", "", ""
	}
	return v.Identity.Actor.Name, v.Identity.Actor.Key, v.Identity.Session
}

func (v *Visit) kind() string {
	switch {
	case v.Batch:
		return "batch_rest"
	case v.Dialect == "oauth":
		return "oauth"
	}
	return "rest"
}

// logEnd writes the line at a request's end: the fields of the platform's node log, in its order.
func (v *Visit) logEnd() {
	switch v.s.cfg.Log.Requests {
	case "none":
		return
	case "slow":
		if v.Total < v.s.cfg.Log.Slow {
			return
		}
	}
	name, key, _ := v.user()
	r := v.Recorder
	waits := time.Duration(r.SemWait.Load() + r.SessionWait.Load())
	api, resource := apiName(v.Path)
	v.s.log.LogAttrs(context.Background(), slog.LevelInfo, "*** End",
		slog.Uint64("n", v.Number), slog.String("txid", r.ID), slog.String("url", v.URL), slog.String("user", name),
		slog.Duration("total", v.Total), slog.Duration("processing", v.Total-waits),
		slog.Duration("sem_wait", time.Duration(r.SemWait.Load())), slog.Duration("session_wait", time.Duration(r.SessionWait.Load())),
		slog.Duration("sql", time.Duration(r.SQL.Load())), slog.Int64("sql_count", r.SQLCount.Load()),
		slog.Duration("acl", time.Duration(r.Access.Load())), slog.String("source", remote(v.r)), slog.String("type", v.kind()),
		slog.String("method", v.Method), slog.String("api_name", clean(api, 200)), slog.String("resource", clean(resource, 200)),
		slog.String("user_id", key), slog.String("pool", v.Pool), slog.Int("response_status", v.Status))
	for i := range v.Items {
		v.logItem(&v.Items[i])
	}
}

func (v *Visit) logItem(it *dialect.ItemRecord) {
	v.s.log.LogAttrs(context.Background(), slog.LevelInfo, "*** End batch item",
		slog.Uint64("n", v.Number), slog.String("txid", v.Recorder.ID), slog.String("id", clean(it.ID, 100)),
		slog.String("method", clean(it.Method, 16)), slog.String("url", v.s.redact.item(it.URL)),
		slog.Duration("start", it.Start), slog.Duration("total", it.Time), slog.Duration("sql", it.SQL),
		slog.Int("sql_count", it.SQLCount), slog.Bool("unserviced", it.Unserviced), slog.Int("response_status", it.Status))
}

// item is the address of a batch item as logs show it.
func (r redaction) item(u string) string {
	path, query, _ := strings.Cut(u, "?")
	return r.text(path, query)
}
