package script

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"

	"weir/internal/record"
)

// gsMethods are the methods of the object gs.
var gsMethods map[string]func(*call, goja.FunctionCall) goja.Value

func init() { // the methods refer to each other through call, which the compiler takes for a cycle
	gsMethods = map[string]func(*call, goja.FunctionCall) goja.Value{
		"sleep": (*call).sleep,

		"info": logAt(slog.LevelInfo), "warn": logAt(slog.LevelWarn), "error": logAt(slog.LevelError), "debug": logAt(slog.LevelDebug),
		"log": logAt(slog.LevelInfo), "print": logAt(slog.LevelInfo), "logWarning": logAt(slog.LevelWarn), "logError": logAt(slog.LevelError),
		"addErrorMessage": nothing, "addInfoMessage": nothing,

		"getUserID":          func(c *call, _ goja.FunctionCall) goja.Value { return c.vm.ToValue(c.actor.Key) },
		"getUserName":        func(c *call, _ goja.FunctionCall) goja.Value { return c.vm.ToValue(c.actor.Name) },
		"getUserDisplayName": func(c *call, _ goja.FunctionCall) goja.Value { return c.vm.ToValue(c.actor.Name) },
		"hasRole":            (*call).hasRole,
		"getUser":            func(c *call, _ goja.FunctionCall) goja.Value { return newSurface(c, c, userMethods) },

		"nil": func(c *call, f goja.FunctionCall) goja.Value { return c.vm.ToValue(text(f, 0) == "") },
		"generateGUID": func(c *call, _ goja.FunctionCall) goja.Value {
			var b [16]byte
			rand.Read(b[:])
			return c.vm.ToValue(hex.EncodeToString(b[:]))
		},
		"getProperty": (*call).property,
		"base64Encode": func(c *call, f goja.FunctionCall) goja.Value {
			return c.vm.ToValue(base64.StdEncoding.EncodeToString([]byte(text(f, 0))))
		},
		"base64Decode": func(c *call, f goja.FunctionCall) goja.Value {
			b, err := base64.StdEncoding.DecodeString(text(f, 0))
			if err != nil {
				c.throw(record.Errorf(record.Invalid, "", "the text is no base64"))
			}
			return c.vm.ToValue(string(b))
		},

		"now":         func(c *call, _ goja.FunctionCall) goja.Value { return c.date(c.now()) },
		"nowDateTime": func(c *call, _ goja.FunctionCall) goja.Value { return c.moment(c.now()) },
		"minutesAgo":  ago(func(t time.Time, n int) time.Time { return t.Add(-time.Duration(n) * time.Minute) }),
		"hoursAgo":    ago(func(t time.Time, n int) time.Time { return t.Add(-time.Duration(n) * time.Hour) }),
		"daysAgo":     ago(func(t time.Time, n int) time.Time { return t.AddDate(0, 0, -n) }),
		"monthsAgo":   ago(func(t time.Time, n int) time.Time { return t.AddDate(0, -n, 0) }),
		"daysAgoStart": ago(func(t time.Time, n int) time.Time {
			return midnight(t).AddDate(0, 0, -n)
		}),
		"daysAgoEnd": ago(func(t time.Time, n int) time.Time {
			return midnight(t).AddDate(0, 0, 1-n).Add(-time.Second)
		}),
		"beginningOfToday":     ago(func(t time.Time, _ int) time.Time { return midnight(t) }),
		"endOfToday":           ago(func(t time.Time, _ int) time.Time { return midnight(t).AddDate(0, 0, 1).Add(-time.Second) }),
		"beginningOfYesterday": ago(func(t time.Time, _ int) time.Time { return midnight(t).AddDate(0, 0, -1) }),
		"endOfYesterday":       ago(func(t time.Time, _ int) time.Time { return midnight(t).Add(-time.Second) }),
	}
}

// userMethods are the methods of the object that gs.getUser returns.
var userMethods = map[string]func(*call, goja.FunctionCall) goja.Value{
	"getName":        func(c *call, _ goja.FunctionCall) goja.Value { return c.vm.ToValue(c.actor.Name) },
	"getID":          func(c *call, _ goja.FunctionCall) goja.Value { return c.vm.ToValue(c.actor.Key) },
	"getDisplayName": func(c *call, _ goja.FunctionCall) goja.Value { return c.vm.ToValue(c.actor.Name) },
	"hasRole":        (*call).hasRole,
}

func nothing(*call, goja.FunctionCall) goja.Value { return goja.Undefined() }

// now is the time, UTC.
func (c *call) now() time.Time { return c.r.opt.Now().UTC() }

func (c *call) moment(t time.Time) goja.Value {
	return c.vm.ToValue(t.Format(record.TimeLayout))
}

func (c *call) date(t time.Time) goja.Value { return c.vm.ToValue(t.Format(time.DateOnly)) }

func midnight(t time.Time) time.Time { return t.Truncate(24 * time.Hour) }

// ago is a method that counts back from now.
func ago(back func(t time.Time, n int) time.Time) func(*call, goja.FunctionCall) goja.Value {
	return func(c *call, f goja.FunctionCall) goja.Value {
		n := f.Argument(0).ToInteger()
		if n < -1e6 || n > 1e9 {
			c.throw(record.Errorf(record.Invalid, "", "%d is too far away", n))
		}
		return c.moment(back(c.now(), int(n)))
	}
}

// sleep waits, at most as long as settings allow and the call may last.
func (c *call) sleep(f goja.FunctionCall) goja.Value {
	d := time.Duration(min(max(f.Argument(0).ToInteger(), 0), c.r.opt.Config.MaxSleep.Milliseconds())) * time.Millisecond
	c.sleeping.Store(true)
	defer c.sleeping.Store(false)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.ctx.Done():
		c.vm.Interrupt(errTime)
	}
	return goja.Undefined()
}

func (c *call) hasRole(f goja.FunctionCall) goja.Value {
	for role := range strings.SplitSeq(text(f, 0), ",") {
		if c.actor.Has(strings.TrimSpace(role)) {
			return c.vm.ToValue(true)
		}
	}
	return c.vm.ToValue(false)
}

// maxLine is how many bytes of a logged line are kept.
const maxLine = 1000

// logAt is a method that logs its first argument, in which {0} … {9} stand for the following ones.
func logAt(level slog.Level) func(*call, goja.FunctionCall) goja.Value {
	return func(c *call, f goja.FunctionCall) goja.Value {
		c.lines++
		limit := c.r.opt.Config.MaxLog
		if c.lines > limit {
			if c.lines == limit+1 {
				c.r.opt.Log.LogAttrs(c.ctx, slog.LevelWarn, "script logs more than it may; see script.max_log", slog.String("endpoint", c.end.Name))
			}
			return goja.Undefined()
		}
		line := text(f, 0)
		for i := 1; i < len(f.Arguments) && i <= 10; i++ {
			line = strings.ReplaceAll(line, "{"+strconv.Itoa(i-1)+"}", text(f, i))
			if len(line) > 16*maxLine {
				break
			}
		}
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		c.r.opt.Log.LogAttrs(c.ctx, level, "script", slog.String("endpoint", c.end.Name), slog.String("user", c.actor.Name), slog.String("text", line))
		return goja.Undefined()
	}
}

// property is the value of a system property, which scripts may read whoever calls them; the second argument where there
// is none.
func (c *call) property(f goja.FunctionCall) goja.Value {
	missing := f.Argument(1)
	if goja.IsUndefined(missing) {
		missing = goja.Null()
	}
	if _, err := c.snap.Table("sys_properties"); err != nil {
		return missing
	}
	u := &record.Unit{
		Version: c.snap.Version,
		Actors:  []record.Actor{{Name: "system", System: true}},
		Ops: []record.Op{{
			Verb: record.List, Table: "sys_properties", Return: []string{"value"},
			Query: &record.Query{Where: record.Compare(record.Eq, record.F("name"), record.C(record.TextValue(text(f, 0)))), Limit: 1},
		}},
	}
	out := c.execute(u)[0]
	if out.Err != nil {
		c.throw(out.Err)
	}
	if out.Rows == nil || out.Rows.Len() == 0 {
		return missing
	}
	return c.vm.ToValue(out.Rows.At(0)[0].Text())
}

// execute runs a unit; its outcomes are one for each op, whatever happens.
func (c *call) execute(u *record.Unit) []record.Outcome {
	if c.ctx.Err() != nil {
		c.vm.Interrupt(errTime)
		panic(c.newFault(500, "the time of the script is over", ""))
	}
	if c.r.opt.Data == nil {
		panic(c.newFault(500, "scripts have no records here", ""))
	}
	out := c.r.opt.Data.Execute(c.ctx, c.snap, u)
	if len(out) != len(u.Ops) {
		panic(c.newFault(500, "internal error", fmt.Sprintf("%d outcomes for %d ops", len(out), len(u.Ops))))
	}
	return out
}

// alone runs one op on behalf of the caller.
func (c *call) alone(op record.Op) record.Outcome {
	return c.execute(&record.Unit{Version: c.snap.Version, Actors: []record.Actor{*c.actor}, Ops: []record.Op{op}})[0]
}
