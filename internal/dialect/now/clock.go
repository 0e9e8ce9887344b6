package now

import (
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
)

// clock reads the relative times of queries. Days, weeks and so on begin in its zone.
type clock struct {
	now  time.Time
	zone *time.Location
}

func isDate(f *catalog.Field) bool { return f.Type == record.TypeDateTime || f.Type == record.TypeDate }

// unit is a span of the calendar.
type unit uint8

const (
	minute unit = iota
	hour
	day
	week
	month
	quarter
	year
)

// unitNames are the units as conditions spell them; dayofweek is the vendor's word for a day.
var unitNames = map[string]unit{
	"minute": minute, "hour": hour, "day": day, "dayofweek": day, "week": week, "month": month, "quarter": quarter, "year": year,
}

// maxShift bounds how many units a query may go back or ahead: time's arithmetic stays within its range.
const maxShift = 1_000_000

// shift moves t by n units.
func (u unit) shift(t time.Time, n int) time.Time {
	switch u {
	case minute:
		return t.Add(time.Duration(n) * time.Minute)
	case hour:
		return t.Add(time.Duration(n) * time.Hour)
	case day:
		return t.AddDate(0, 0, n)
	case week:
		return t.AddDate(0, 0, 7*n)
	case month, quarter:
		if u == quarter {
			n *= 3
		}
		// The last day of a shorter month, not the first of the next one.
		first := time.Date(t.Year(), t.Month(), 1, t.Hour(), t.Minute(), t.Second(), 0, t.Location()).AddDate(0, n, 0)
		return first.AddDate(0, 0, min(t.Day(), first.AddDate(0, 1, -1).Day())-1)
	}
	return month.shift(t, 12*n)
}

// start is where the unit that t falls in begins. Weeks begin on Monday.
func (u unit) start(t time.Time) time.Time {
	y, m, d := t.Date()
	switch u {
	case minute:
		return time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, t.Location())
	case hour:
		return time.Date(y, m, d, t.Hour(), 0, 0, 0, t.Location())
	case day:
		return time.Date(y, m, d, 0, 0, 0, 0, t.Location())
	case week:
		return time.Date(y, m, d-(int(t.Weekday())+6)%7, 0, 0, 0, 0, t.Location())
	case month:
		return time.Date(y, m, 1, 0, 0, 0, 0, t.Location())
	case quarter:
		return time.Date(y, (m-1)/3*3+1, 1, 0, 0, 0, 0, t.Location())
	}
	return time.Date(y, 1, 1, 0, 0, 0, 0, t.Location())
}

// end is the last second of the unit that t falls in.
func (u unit) end(t time.Time) time.Time { return u.shift(u.start(t), 1).Add(-time.Second) }

// seconds is how long a unit is where its length must be one number.
func (u unit) seconds() int64 {
	return [...]int64{60, 3600, 86400, 7 * 86400, 30 * 86400, 91 * 86400, 365 * 86400}[u]
}

// parseCall reads gs.name(arg, …) as queries hold it after "javascript:": a name and constant arguments, nothing more. It
// is not run; what is not on the list is invalid.
func parseCall(s string) (name string, args []string, ok bool) {
	s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), ";"))
	s = strings.TrimPrefix(s, "gs.")
	name, rest, found := strings.Cut(s, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if !found || !closed || len(inner) > 200 {
		return "", nil, false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return "", nil, false
		}
	}
	if strings.TrimSpace(inner) == "" {
		return name, nil, true
	}
	for _, a := range strings.Split(inner, ",") {
		a = strings.TrimSpace(a)
		if n := len(a); n >= 2 && (a[0] == '\'' || a[0] == '"') && a[n-1] == a[0] {
			a = a[1 : n-1]
		}
		if a == "" || strings.ContainsAny(a, `'"()\`) {
			return "", nil, false
		}
		args = append(args, a)
	}
	return name, args, true
}

var agoUnits = map[string]unit{
	"minutes": minute, "hours": hour, "days": day, "weeks": week, "months": month, "quarters": quarter, "years": year,
}

// span is a stretch of the calendar: from one unit to another, counted from the present one.
type span struct {
	unit     unit
	from, to int
}

var spans = map[string]span{
	"Today": {day, 0, 0}, "Yesterday": {day, -1, -1}, "Tomorrow": {day, 1, 1},
	"ThisWeek": {week, 0, 0}, "LastWeek": {week, -1, -1}, "NextWeek": {week, 1, 1},
	"ThisMonth": {month, 0, 0}, "LastMonth": {month, -1, -1}, "NextMonth": {month, 1, 1},
	"ThisQuarter": {quarter, 0, 0}, "LastQuarter": {quarter, -1, -1}, "NextQuarter": {quarter, 1, 1},
	"ThisYear": {year, 0, 0}, "LastYear": {year, -1, -1}, "NextYear": {year, 1, 1},
	"CurrentMinute": {minute, 0, 0}, "LastMinute": {minute, -1, -1},
	"CurrentHour": {hour, 0, 0}, "LastHour": {hour, -1, -1},
}

// spanNamed is Today, LastMonth … or Last<n><units>: the n units before the present one, and that one, as the filter "Last 7
// days" of list views means it.
func spanNamed(name string) (span, bool) {
	if s, ok := spans[name]; ok {
		return s, true
	}
	rest, ok := strings.CutPrefix(name, "Last")
	if !ok {
		return span{}, false
	}
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, number := parseInt(rest[:digits])
	u, known := agoUnits[strings.ToLower(rest[digits:])]
	if !number || !known || n < 1 || n > maxSpan {
		return span{}, false
	}
	return span{u, -int(n), 0}, true
}

// maxSpan bounds the n of Last<n><units>, so that no date before year 0 comes of it.
const maxSpan = 1000

// call is the time that a whitelisted call means: now(), nowDateTime(), daysAgo(n), daysAgoStart(n), daysAgoEnd(n) and the
// like for other units, beginningOf… and endOf… of a span, dateGenerate(date, time).
func (c clock) call(name string, args []string) (time.Time, bool) {
	now := c.now.In(c.zone)
	if head, tail, ok := strings.Cut(name, "Ago"); ok && len(args) == 1 {
		u, known := agoUnits[head]
		n, number := parseInt(args[0])
		if !known || !number || n > maxShift || n < -maxShift {
			return time.Time{}, false
		}
		at := u.shift(now, -int(n))
		switch tail {
		case "":
			return c.valid(at)
		case "Start":
			return c.valid(u.start(at))
		case "End":
			return c.valid(u.end(at))
		}
		return time.Time{}, false
	}
	if name == "dateGenerate" && len(args) == 2 {
		return c.generate(args[0], args[1])
	}
	if len(args) > 0 {
		return time.Time{}, false
	}
	if name, ok := strings.CutPrefix(name, "beginningOf"); ok {
		s, known := spanNamed(name)
		return s.unit.start(s.unit.shift(s.unit.start(now), s.from)), known
	}
	if name, ok := strings.CutPrefix(name, "endOf"); ok {
		s, known := spanNamed(name)
		return s.unit.end(s.unit.shift(s.unit.start(now), s.to)), known
	}
	switch name {
	case "now", "nowDateTime":
		return now, true
	}
	return time.Time{}, false
}

// valid refuses times that no date field holds.
func (c clock) valid(t time.Time) (time.Time, bool) { return t, t.Year() >= 0 && t.Year() <= 9999 }

// generate is gs.dateGenerate('2026-01-31', '00:00:00'); the time may also be start or end.
func (c clock) generate(date, at string) (time.Time, bool) {
	switch at {
	case "start":
		at = "00:00:00"
	case "end":
		at = "23:59:59"
	}
	t, err := time.ParseInLocation(record.TimeLayout, date+" "+at, c.zone)
	return t, err == nil
}

// at is a time as a value of the field.
func (c *comparison) at(t time.Time) record.Value {
	if c.field.Type == record.TypeDate {
		return record.TextValue(t.Format("2006-01-02"))
	}
	return record.TimeValue(t.UTC())
}

// between finds times from start to before end.
func (c *comparison) between(start, end time.Time) *record.Expr {
	return both(c.make(record.Ge, c.at(start)), c.make(record.Lt, c.at(end)))
}

// within finds times whose text begins with a year, a month or a day: 2026, 2026-11, 2026-11-30.
func (c *comparison) within(text string) *record.Expr {
	for _, l := range []struct {
		layout string
		unit   unit
	}{{"2006-01-02", day}, {"2006-01", month}, {"2006", year}} {
		if t, err := time.Parse(l.layout, text); err == nil {
			return c.between(t, l.unit.shift(t, 1))
		}
	}
	return nil
}

// on reads ON<label>@<start>@<end>; the label says nothing. A date alone is its day.
func (c *comparison) on(value string) *record.Expr {
	if !isDate(c.field) {
		return nil
	}
	label, span, ok := strings.Cut(value, "@")
	start, end, whole := strings.Cut(span, "@")
	if ok && whole {
		return both(c.compare(record.Ge, start), c.compare(record.Le, end))
	}
	t, err := time.ParseInLocation("2006-01-02", label, c.p.clock.zone)
	if err != nil {
		return nil
	}
	return c.between(t, day.shift(t, 1))
}

// relative reads RELATIVE…@<unit>@<ago or ahead>@<n>.
func (c *comparison) relative(op operator, value string) *record.Expr {
	parts := strings.Split(strings.TrimPrefix(value, "@"), "@")
	if len(parts) != 3 || !isDate(c.field) {
		return nil
	}
	u, known := unitNames[parts[0]]
	n, number := parseInt(parts[2])
	if !known || !number || n > maxShift || n < -maxShift {
		return nil
	}
	switch parts[1] {
	case "ago":
		n = -n
	case "ahead":
	default:
		return nil
	}
	t, ok := c.p.clock.valid(u.shift(c.p.clock.now.In(c.p.clock.zone), int(n)))
	if !ok {
		return nil
	}
	switch op {
	case opRelGt:
		return c.make(record.Gt, c.at(t))
	case opRelLt:
		return c.make(record.Lt, c.at(t))
	case opRelGe:
		return c.make(record.Ge, c.at(t))
	case opRelLe:
		return c.make(record.Le, c.at(t))
	}
	if c.field.Type == record.TypeDate {
		u = max(u, day)
	}
	start := u.start(t)
	return c.between(start, u.shift(start, 1))
}

// distance reads MORETHAN<field>@<unit>@<before or after>@<n> and LESSTHAN…: how far the field is from another.
func (c *comparison) distance(op operator, value string) *record.Expr {
	parts := strings.Split(value, "@")
	if len(parts) != 4 || c.field.Type != record.TypeDateTime {
		return nil
	}
	f := c.other(parts[0])
	u, known := unitNames[parts[1]]
	n, number := parseInt(parts[3])
	if f == nil || f.Type != record.TypeDateTime || !known || !number || n < 0 || n > maxShift {
		return nil
	}
	own, other := record.F(c.path), record.F(parts[0])
	gap := record.C(record.IntValue(n * u.seconds()))
	var far, beyond, towards record.ExprOp
	switch parts[2] {
	case "after":
		far, beyond, towards = record.Add, record.Gt, record.Lt
	case "before":
		far, beyond, towards = record.Sub, record.Lt, record.Gt
	default:
		return nil
	}
	mark := record.Compare(far, other, gap)
	if op == opMoreThan {
		return record.Compare(beyond, own, mark)
	}
	// Less than n after: between the other and the mark.
	return both(record.Compare(opposite(towards), own, other), record.Compare(towards, own, mark))
}

// opposite turns < into >= and > into <=.
func opposite(op record.ExprOp) record.ExprOp {
	if op == record.Lt {
		return record.Ge
	}
	return record.Le
}

var weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

var monthNames = []string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

var partOps = map[string]record.ExprOp{
	"dayofweek": record.Weekday, "dayofmonth": record.Day, "month": record.Month, "quarter": record.Quarter, "year": record.Year,
	"hour": record.Hour, "minute": record.Minute,
}

var partCompare = map[string]record.ExprOp{
	"EE": record.Eq, "GT": record.Gt, "GE": record.Ge, "LT": record.Lt, "LE": record.Le,
}

// datePart reads DATEPART<label>@javascript:gs.datePart('dayofweek','monday','GE'). Parts are of UTC times.
func (c *comparison) datePart(value string) *record.Expr {
	_, call, _ := strings.Cut(value, "@")
	call, ok := strings.CutPrefix(call, "javascript:")
	name, args, read := parseCall(call)
	if !ok || !read || name != "datePart" || len(args) != 3 || !isDate(c.field) {
		return nil
	}
	part, known := partOps[args[0]]
	cmp, comparing := partCompare[args[2]]
	if !known || !comparing || c.field.Type == record.TypeDate && (part == record.Hour || part == record.Minute) {
		return nil
	}
	n, ok := parseInt(args[1])
	if name := strings.ToLower(args[1]); !ok && part == record.Weekday {
		n = int64(slices.Index(weekdays, name)) + 1
	} else if !ok && part == record.Month {
		n = int64(slices.Index(monthNames, name)) + 1
	} else if !ok {
		return nil
	}
	if n <= 0 && part != record.Hour && part != record.Minute {
		return nil
	}
	return record.Compare(cmp, &record.Expr{Op: part, Args: []*record.Expr{record.F(c.path)}}, record.C(record.IntValue(n)))
}
