package script

import (
	"strings"
	"time"

	"github.com/dop251/goja"

	"weir/internal/record"
)

// dateTime is one GlideDateTime, UTC.
type dateTime struct {
	c  *call
	at time.Time
}

// dateTimeOf is the time that an argument means: a GlideDateTime, a record's value or a text.
func (c *call) dateTimeOf(v goja.Value) time.Time {
	if o, ok := v.(*goja.Object); ok {
		if value, ok := goja.AssertFunction(o.Get("getValue")); ok {
			if s, err := value(o); err == nil {
				v = s
			}
		}
	}
	t, ok := record.ParseTime(strings.TrimSpace(v.String()))
	if !ok {
		c.throw(record.Errorf(record.Invalid, "", "%.60q is no date and time", v.String()))
	}
	return t
}

// newGlideDateTime is the constructor GlideDateTime: of now, of a text, or of another one.
func (c *call) newGlideDateTime(f goja.ConstructorCall) *goja.Object {
	d := &dateTime{c: c, at: c.now().Truncate(time.Second)}
	if v := f.Argument(0); !goja.IsUndefined(v) && !goja.IsNull(v) && v.String() != "" {
		d.at = c.dateTimeOf(v)
	}
	return newSurface(c, d, dateTimeMethods)
}

var dateTimeMethods map[string]func(*dateTime, goja.FunctionCall) goja.Value

func init() {
	say := func(layout string) func(*dateTime, goja.FunctionCall) goja.Value {
		return func(d *dateTime, _ goja.FunctionCall) goja.Value { return d.c.vm.ToValue(d.at.Format(layout)) }
	}
	move := func(by func(t time.Time, n int) time.Time) func(*dateTime, goja.FunctionCall) goja.Value {
		return func(d *dateTime, f goja.FunctionCall) goja.Value {
			n := f.Argument(0).ToInteger()
			moved := d.at
			if n > -1e10 && n < 1e10 {
				moved = by(d.at, int(n))
			}
			if y := moved.Year(); n <= -1e10 || n >= 1e10 || y < 1 || y > 9999 {
				d.c.throw(record.Errorf(record.Invalid, "", "%d is too far away", n))
			}
			d.at = moved
			return goja.Undefined()
		}
	}
	days := move(func(t time.Time, n int) time.Time { return t.AddDate(0, 0, n) })
	months := move(func(t time.Time, n int) time.Time { return t.AddDate(0, n, 0) })
	years := move(func(t time.Time, n int) time.Time { return t.AddDate(n, 0, 0) })
	weeks := move(func(t time.Time, n int) time.Time { return t.AddDate(0, 0, 7*n) })
	number := func(of func(t time.Time) int64) func(*dateTime, goja.FunctionCall) goja.Value {
		return func(d *dateTime, _ goja.FunctionCall) goja.Value { return d.c.vm.ToValue(of(d.at)) }
	}
	dateTimeMethods = map[string]func(*dateTime, goja.FunctionCall) goja.Value{
		"getValue": say(record.TimeLayout), "getDisplayValue": say(record.TimeLayout), "toString": say(record.TimeLayout), "toJSON": say(record.TimeLayout),
		"getDate": say(time.DateOnly), "getLocalDate": say(time.DateOnly), "getTime": say(time.TimeOnly), "getLocalTime": say(time.TimeOnly),
		"setValue": func(d *dateTime, f goja.FunctionCall) goja.Value {
			d.at = d.c.dateTimeOf(f.Argument(0))
			return goja.Undefined()
		},
		"setDisplayValue": func(d *dateTime, f goja.FunctionCall) goja.Value {
			d.at = d.c.dateTimeOf(f.Argument(0))
			return goja.Undefined()
		},
		"getNumericValue":  number(time.Time.UnixMilli),
		"getYearUTC":       number(func(t time.Time) int64 { return int64(t.Year()) }),
		"getMonthUTC":      number(func(t time.Time) int64 { return int64(t.Month()) }),
		"getDayOfMonthUTC": number(func(t time.Time) int64 { return int64(t.Day()) }),
		"getDayOfWeekUTC":  number(func(t time.Time) int64 { return int64((t.Weekday()+6)%7 + 1) }),
		"addSeconds":       move(func(t time.Time, n int) time.Time { return t.Add(time.Duration(n) * time.Second) }),
		"addDays":          days, "addDaysUTC": days, "addDaysLocalTime": days,
		"addWeeks": weeks, "addWeeksUTC": weeks, "addMonths": months, "addMonthsUTC": months, "addYears": years, "addYearsUTC": years,
		"before": func(d *dateTime, f goja.FunctionCall) goja.Value {
			return d.c.vm.ToValue(d.at.Before(d.c.dateTimeOf(f.Argument(0))))
		},
		"after": func(d *dateTime, f goja.FunctionCall) goja.Value {
			return d.c.vm.ToValue(d.at.After(d.c.dateTimeOf(f.Argument(0))))
		},
		"equals": func(d *dateTime, f goja.FunctionCall) goja.Value {
			return d.c.vm.ToValue(d.at.Equal(d.c.dateTimeOf(f.Argument(0))))
		},
		"compareTo": func(d *dateTime, f goja.FunctionCall) goja.Value {
			return d.c.vm.ToValue(d.at.Compare(d.c.dateTimeOf(f.Argument(0))))
		},
	}
}
