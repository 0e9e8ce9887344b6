package now

import (
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// decodeStats reads GET /stats/{table}, the Aggregate API.
func (d *Dialect) decodeStats(snap *catalog.Snapshot, c *dialect.Call, at address) (*dialect.Exchange, error) {
	if len(at.rest) > 1 {
		return nil, noPath()
	}
	q, err := d.begin(snap, c, at)
	if err != nil {
		return nil, err
	}
	if q.method != "GET" && q.method != "HEAD" {
		return nil, notAllowed()
	}
	return q.stats()
}

// stats is an aggregate being asked for.
type stats struct {
	*request
	query   *record.Query
	shown   shown
	count   int // index among the aggregates, -1 if not asked for
	figures []figures
	groups  []column // fields that the answer is grouped by; value and display are indexes among the query's groups
	ignored []string
	walks   walks
}

// figures are the aggregates of one function, as the answer nests them.
type figures struct {
	name   string // avg, min, max, sum
	fields []figure
}

// figure is one aggregate: index among the query's aggregates, -1 for a field that has none, which answers "".
type figure struct {
	path  string
	field *catalog.Field
	index int
}

var functions = []struct {
	name  string
	param string
	fn    record.AggFunc
}{
	{"avg", "sysparm_avg_fields", record.Avg},
	{"min", "sysparm_min_fields", record.Min},
	{"max", "sysparm_max_fields", record.Max},
	{"sum", "sysparm_sum_fields", record.Sum},
}

func (q *request) stats() (*dialect.Exchange, error) {
	s := &stats{request: q, query: &record.Query{Limit: -1}, shown: q.params.shown(), count: -1, walks: walks{max: q.d.opt.MaxWalks}}
	if q.params.truth("sysparm_count") {
		s.count = s.agg(record.Agg{Func: record.Count})
	}
	asked := s.count >= 0
	fields := 0
	for _, fn := range functions {
		names := q.params.list(fn.param)
		if len(names) == 0 {
			continue
		}
		asked = true
		if fields += len(names); fields > q.d.opt.MaxFields {
			return nil, record.Errorf(record.TooLarge, fn.param, "more than %d fields; see now.max_fields", q.d.opt.MaxFields)
		}
		f := figures{name: fn.name}
		for _, name := range names {
			f.fields = append(f.fields, s.figure(fn.fn, name))
		}
		s.figures = append(s.figures, f)
	}
	if !asked {
		return nil, record.Errorf(record.Invalid, "", "No request parameter for aggregate operation specified")
	}
	query, err := q.conditions()
	if err != nil {
		return nil, err
	}
	s.query.Where, s.ignored = query.where, query.ignored
	s.walks.join(query.walks)
	groups := q.params.list("sysparm_group_by")
	if groups == nil {
		groups = query.group
	}
	if err := s.groupBy(groups); err != nil {
		return nil, err
	}
	if err := s.having(); err != nil {
		return nil, err
	}
	if err := s.orderBy(query.sort); err != nil {
		return nil, err
	}
	if len(s.query.Aggs) == 0 {
		// No function has a meaning for what was named. Each figure is "", as beside others, and the rows that make the
		// groups are counted for nobody.
		s.agg(record.Agg{Func: record.Count})
	}
	x := q.exchange(record.Op{Verb: record.Aggregate, Table: q.table.Name, Query: s.query})
	x.Reply = s.reply
	return x, nil
}

// agg is the index of an aggregate among the query's.
func (s *stats) agg(a record.Agg) int {
	for i := range s.query.Aggs {
		if s.query.Aggs[i] == a {
			return i
		}
	}
	s.query.Aggs = append(s.query.Aggs, a)
	return len(s.query.Aggs) - 1
}

func (s *stats) figure(fn record.AggFunc, path string) figure {
	f := figure{path: path, index: -1}
	if field := s.aggregable(fn, path); field != nil {
		s.walks.add(path)
		f.field, f.index = field, s.agg(record.Agg{Func: fn, Path: path})
	}
	return f
}

// aggregable is the field of a path if the function has a meaning for it.
func (s *stats) aggregable(fn record.AggFunc, path string) *catalog.Field {
	steps, err := s.snap.Resolve(s.table, path)
	if err != nil {
		return nil
	}
	f := steps[len(steps)-1].Field
	switch f.Type {
	case record.TypeInteger, record.TypeDecimal, record.TypeFloat, record.TypeDuration:
		return f
	case record.TypePassword, record.TypeBytes, record.TypeJournal, record.TypeBoolean, record.TypeJSON:
		return nil
	}
	if fn == record.Min || fn == record.Max {
		return f
	}
	return nil
}

// groupBy adds the fields to group by, and for display values what is shown of references.
func (s *stats) groupBy(paths []string) error {
	if len(paths) > s.d.opt.MaxFields {
		return record.Errorf(record.TooLarge, "sysparm_group_by", "more than %d fields; see now.max_fields", s.d.opt.MaxFields)
	}
	for _, path := range paths {
		steps, err := s.snap.Resolve(s.table, path)
		if err != nil || !comparable(steps[len(steps)-1].Field) {
			return record.Errorf(record.Invalid, "sysparm_group_by", "table %s has no field %.80s to group by", s.table.Name, path)
		}
		last := steps[len(steps)-1]
		g := column{path: path, field: last.Field, kind: kindOf(last), value: s.groupIndex(path), display: -1}
		if g.kind == journal {
			g.kind = plain
		}
		s.walks.add(path)
		if g.kind == reference && s.shown != showValue {
			if shown, f := shownPath(s.snap, s.table, path, last.Field); f != nil {
				g.named, g.display = f, s.groupIndex(shown)
				s.walks.add(shown)
			}
		}
		s.groups = append(s.groups, g)
	}
	return s.walks.check("sysparm_group_by")
}

func (s *stats) groupIndex(path string) int {
	for i, p := range s.query.Group {
		if p == path {
			return i
		}
	}
	s.query.Group = append(s.query.Group, path)
	return len(s.query.Group) - 1
}

// aggregateNamed reads count, avg … with its field, as having and order name it. The count of a field is that of the rows.
func (s *stats) aggregateNamed(name, path string) (record.Agg, *catalog.Field, bool) {
	if strings.EqualFold(name, "count") {
		return record.Agg{Func: record.Count}, nil, true
	}
	for _, fn := range functions {
		if strings.EqualFold(fn.name, name) {
			f := s.aggregable(fn.fn, path)
			return record.Agg{Func: fn.fn, Path: path}, f, f != nil
		}
	}
	return record.Agg{}, nil, false
}

// having reads sysparm_having: aggregate^field^operator^value, several with commas between.
func (s *stats) having() error {
	for _, text := range s.params.list("sysparm_having") {
		bad := record.Errorf(record.Invalid, "sysparm_having", "%.80q is not aggregate^field^operator^value", text)
		parts := strings.Split(text, "^")
		if len(parts) != 4 {
			return bad
		}
		agg, field, ok := s.aggregateNamed(parts[0], parts[1])
		cmp := record.Const
		for _, c := range comparisons {
			if c.text == parts[2] {
				cmp = c.op
			}
		}
		if !ok || cmp == record.Const {
			return bad
		}
		typ := record.TypeFloat
		if agg.Func == record.Count {
			typ = record.TypeInteger
		} else if agg.Func == record.Min || agg.Func == record.Max {
			typ = field.Type
		}
		v, err := record.Parse(typ, parts[3])
		if err != nil || v.IsNull() {
			return bad
		}
		s.query.Having = append(s.query.Having, record.Having{Agg: agg, Cmp: cmp, Value: v})
	}
	return nil
}

// orderBy reads sysparm_order_by: AVG^field, COUNT, field, each with ^DESC or ^ASC. Without it the order is that of the
// query, then of the groups.
func (s *stats) orderBy(sort []record.Sort) error {
	if len(s.groups) == 0 {
		return nil // one row has no order
	}
	for _, text := range s.params.list("sysparm_order_by") {
		parts := strings.Split(text, "^")
		desc := false
		if n := len(parts); n > 1 && (strings.EqualFold(parts[n-1], "DESC") || strings.EqualFold(parts[n-1], "ASC")) {
			desc, parts = strings.EqualFold(parts[n-1], "DESC"), parts[:n-1]
		}
		if path := parts[0]; len(parts) == 1 && s.grouped(path) {
			s.query.Sort = append(s.query.Sort, record.Sort{Path: path, Desc: desc})
			continue
		}
		agg, _, ok := s.aggregateNamed(parts[0], strings.Join(parts[1:], "^"))
		if !ok {
			s.ignored = append(s.ignored, "ORDERBY"+text) // clients say "false" here
			continue
		}
		s.query.Sort = append(s.query.Sort, record.Sort{Agg: &agg, Desc: desc})
	}
	for _, k := range sort {
		if s.grouped(k.Path) {
			s.query.Sort = append(s.query.Sort, k)
		}
	}
	for _, path := range s.query.Group {
		known := false
		for _, k := range s.query.Sort {
			known = known || k.Agg == nil && k.Path == path
		}
		if !known {
			s.query.Sort = append(s.query.Sort, record.Sort{Path: path})
		}
	}
	return nil
}

func (s *stats) grouped(path string) bool {
	for _, p := range s.query.Group {
		if p == path {
			return true
		}
	}
	return false
}

// reply writes one object, or when grouped an array with one for each group.
func (s *stats) reply(out []record.Outcome, a *wire.Answer) {
	o := &out[0]
	if o.Err != nil {
		s.fail(a, o.Err)
		return
	}
	headers, body := len(a.Header), len(a.Body)
	head(a, 200, s.format)
	reportIgnored(a, s.ignored)
	if s.method == "HEAD" {
		return
	}
	w := statsWriter{stats: s, renderer: &renderer{projection: &projection{snap: s.snap, shown: s.shown}, format: s.format, location: s.d.opt.Location}}
	rows := o.Rows
	if rows == nil {
		rows = record.NewRows(nil, nil)
	}
	a.Body = append(a.Body, w.begin(len(s.groups) > 0)...)
	n := 0
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		a.Body = w.result(a.Body, row, n)
		if n++; len(s.groups) == 0 {
			break
		}
	}
	if err := rows.Err(); err != nil {
		a.Header, a.Body = a.Header[:headers], a.Body[:body]
		s.fail(a, err)
		return
	}
	if n == 0 && len(s.groups) == 0 {
		a.Body = w.result(a.Body, nil, 0)
	}
	a.Body = append(a.Body, w.end(len(s.groups) > 0)...)
}

// statsWriter writes the rows of an aggregate: the group paths, then the aggregates.
type statsWriter struct {
	*stats
	*renderer
}

func (w *statsWriter) isXML() bool { return w.stats.format.xml() }

func (w *statsWriter) begin(grouped bool) string {
	switch {
	case w.isXML():
		return xmlHead + "<response>"
	case grouped:
		return `{"result":[`
	}
	return `{"result":`
}

func (w *statsWriter) end(grouped bool) string {
	switch {
	case w.isXML():
		return "</response>"
	case grouped:
		return "]}"
	}
	return "}"
}

func (w *statsWriter) result(dst []byte, row []record.Value, n int) []byte {
	if w.isXML() {
		dst = append(dst, "<result><stats>"...)
		if w.count >= 0 {
			dst = appendElement(dst, "count", func(b []byte) []byte { return wire.AppendXMLText(b, w.countText(row)) })
		}
		for _, f := range w.figures {
			dst = appendElement(dst, f.name, func(b []byte) []byte {
				for _, fig := range f.fields {
					if isXMLName(fig.path) {
						b = appendElement(b, fig.path, func(b []byte) []byte { return wire.AppendXMLText(b, w.figureText(row, f.name, fig)) })
					}
				}
				return b
			})
		}
		dst = append(dst, "</stats>"...)
		for i := range w.groups {
			dst = w.groupXML(dst, &w.groups[i], row)
		}
		return append(dst, "</result>"...)
	}
	if n > 0 {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"stats":{`...)
	comma := false
	if w.count >= 0 {
		dst = append(dst, `"count":`...)
		dst = wire.AppendQuote(dst, w.countText(row))
		comma = true
	}
	for _, f := range w.figures {
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = wire.AppendQuote(dst, f.name)
		dst = append(dst, ":{"...)
		for i, fig := range f.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = wire.AppendQuote(dst, fig.path)
			dst = append(dst, ':')
			dst = wire.AppendQuote(dst, w.figureText(row, f.name, fig))
		}
		dst = append(dst, '}')
	}
	dst = append(dst, '}')
	if len(w.groups) > 0 {
		dst = append(dst, `,"groupby_fields":[`...)
		for i := range w.groups {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.groupJSON(dst, &w.groups[i], row)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// aggregate is the value of an aggregate in a row.
func (w *statsWriter) aggregate(row []record.Value, index int) record.Value {
	if i := len(w.query.Group) + index; index >= 0 && i < len(row) {
		return row[i]
	}
	return record.Value{}
}

func (w *statsWriter) countText(row []record.Value) string {
	v := w.aggregate(row, w.count)
	if v.IsNull() {
		return "0"
	}
	return v.Text()
}

// figureText is an aggregate as text: averages with four decimals, "" when there is nothing to aggregate.
func (w *statsWriter) figureText(row []record.Value, name string, f figure) string {
	v := w.aggregate(row, f.index)
	if v.IsNull() {
		return ""
	}
	if f.field.Type == record.TypeDuration {
		return string(appendSeconds(nil, durationTime(int64(v.Float()))))
	}
	if name == "avg" {
		return strconv.FormatFloat(v.Float(), 'f', 4, 64)
	}
	if v.Form == record.Text {
		return v.S
	}
	return string(w.text(nil, f.field, v, false))
}

// groupJSON appends one field of the group. With display values the value is there too.
func (w *statsWriter) groupJSON(dst []byte, c *column, row []record.Value) []byte {
	dst = append(dst, `{"field":`...)
	dst = wire.AppendQuote(dst, c.path)
	if w.stats.shown != showValue {
		dst = append(dst, `,"display_value":`...)
		dst = wire.AppendQuote(dst, w.groupText(c, row, true))
	}
	dst = append(dst, `,"value":`...)
	dst = wire.AppendQuote(dst, w.groupText(c, row, false))
	return append(dst, '}')
}

func (w *statsWriter) groupXML(dst []byte, c *column, row []record.Value) []byte {
	dst = append(dst, "<groupby_fields>"...)
	dst = appendElement(dst, "field", func(b []byte) []byte { return wire.AppendXMLText(b, c.path) })
	if w.stats.shown != showValue {
		dst = appendElement(dst, "display_value", func(b []byte) []byte { return wire.AppendXMLText(b, w.groupText(c, row, true)) })
	}
	dst = appendElement(dst, "value", func(b []byte) []byte { return wire.AppendXMLText(b, w.groupText(c, row, false)) })
	return append(dst, "</groupby_fields>"...)
}

func (w *statsWriter) groupText(c *column, row []record.Value, display bool) string {
	if c.value >= len(row) {
		return ""
	}
	v := row[c.value]
	if display && c.kind == reference {
		if v.Empty() {
			return ""
		}
		v = referred(c, v, row)
		if v.Form == record.Text {
			return v.S
		}
		return string(w.text(nil, c.shownField(), v, true))
	}
	if s, ok := w.label(c, v, display); ok {
		return s
	}
	return string(w.text(nil, c.field, v, display))
}

// isXMLName reports whether a name that the caller made up can be an element; fields of a table always can.
func isXMLName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '.') {
			return false
		}
	}
	return s != ""
}
