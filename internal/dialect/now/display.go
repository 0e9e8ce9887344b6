package now

import (
	"net/url"
	"strconv"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

// renderer writes rows of a projection. base is what links begin with, escaped for the format. Values are views of the
// row; nothing is kept.
type renderer struct {
	*projection
	format   format
	base     string
	location *time.Location
}

func (q *request) renderer(p *projection) *renderer {
	r := &renderer{projection: p, format: q.format, location: q.d.opt.Location}
	if q.format.xml() {
		r.base = string(wire.AppendXMLText(nil, q.base()))
	} else {
		quoted := wire.AppendQuote(nil, q.base())
		r.base = string(quoted[1 : len(quoted)-1])
	}
	return r
}

// record appends one record: a JSON object, or the elements inside <result>.
func (r *renderer) record(dst []byte, row []record.Value) []byte {
	if r.format.xml() {
		for i := range r.columns {
			dst = r.element(dst, &r.columns[i], row)
		}
		return dst
	}
	dst = append(dst, '{')
	for i := range r.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.columns[i].json...)
		dst = r.member(dst, &r.columns[i], row)
	}
	return append(dst, '}')
}

// member appends the JSON value of one column.
func (r *renderer) member(dst []byte, c *column, row []record.Value) []byte {
	v := c.valueIn(row)
	if c.kind == reference {
		return r.referenceJSON(dst, c, v, row)
	}
	switch r.shown {
	case showValue:
		return r.quoted(dst, c, v, false)
	case showDisplay:
		return r.quoted(dst, c, v, true)
	}
	dst = append(dst, `{"display_value":`...)
	dst = r.quoted(dst, c, v, true)
	dst = append(dst, `,"value":`...)
	dst = r.quoted(dst, c, v, false)
	return append(dst, '}')
}

// referenceJSON appends a reference: an object with a link unless links are excluded, "" when it is empty.
func (r *renderer) referenceJSON(dst []byte, c *column, v record.Value, row []record.Value) []byte {
	switch {
	case v.Empty() && r.shown == showBoth:
		return append(dst, `{"display_value":"","value":""}`...)
	case v.Empty():
		return append(dst, `""`...)
	case r.noLinks && r.shown == showValue:
		return quoteValue(dst, v)
	case r.noLinks && r.shown == showDisplay:
		return r.referredJSON(dst, c, v, row)
	}
	dst = append(dst, '{')
	if r.shown != showValue {
		dst = append(dst, `"display_value":`...)
		dst = r.referredJSON(dst, c, v, row)
		dst = append(dst, ',')
	}
	if !r.noLinks {
		dst = append(dst, `"link":"`...)
		dst = append(dst, r.base...)
		dst = append(dst, c.linkPath...)
		dst = appendSegment(dst, v)
		dst = append(dst, '"')
		if r.shown != showDisplay {
			dst = append(dst, ',')
		}
	}
	if r.shown != showDisplay {
		dst = append(dst, `"value":`...)
		dst = quoteValue(dst, v)
	}
	return append(dst, '}')
}

// referredJSON appends the display value of the record that a reference points at.
func (r *renderer) referredJSON(dst []byte, c *column, v record.Value, row []record.Value) []byte {
	d := referred(c, v, row)
	if d.Form == record.Text {
		return wire.AppendQuote(dst, d.S)
	}
	dst = append(dst, '"')
	dst = r.text(dst, c.shownField(), d, true)
	return append(dst, '"')
}

// referred is the value of the display field of the record that a reference points at; "" if there is no such record.
// The domain "global" is no record, but its name says it all. Where a path cannot walk so far the key must do.
func referred(c *column, v record.Value, row []record.Value) record.Value {
	if c.display < 0 || c.display >= len(row) || v.S == "global" && row[c.display].Empty() {
		return v
	}
	return row[c.display]
}

// quoted appends a value or its display value as a JSON string.
func (r *renderer) quoted(dst []byte, c *column, v record.Value, display bool) []byte {
	if s, ok := r.label(c, v, display); ok {
		return wire.AppendQuote(dst, s)
	}
	dst = append(dst, '"')
	dst = r.text(dst, c.field, v, display)
	return append(dst, '"')
}

// label is the text that shows v when that is a stored or known text, false when text must format it.
func (r *renderer) label(c *column, v record.Value, display bool) (string, bool) {
	switch c.kind {
	case password:
		if display {
			return "********", true
		}
		return "", true
	case journal:
		if !display {
			return "", true
		}
		if s, ok := r.history[c.path]; ok {
			return s, true
		}
	case choice:
		if display && !v.IsNull() {
			if s := c.field.ChoiceLabel(choiceText(v)); s != "" {
				return s, true
			}
		}
	case class:
		if display {
			if t, err := r.snap.Table(v.S); v.S != "" && err == nil {
				return t.Label, true
			}
		}
	}
	return v.S, v.Form == record.Text
}

// choiceText is v.Text without an allocation for the small numbers that choices are.
func choiceText(v record.Value) string {
	if v.Form == record.Int {
		return strconv.FormatInt(v.N, 10)
	}
	return v.Text()
}

// text appends a value that is no Text: what it writes needs no escaping in JSON and XML. Times are cut to seconds and in
// UTC; a display value is in the zone of the settings. A duration is a time counted from 1970, and for display its parts
// in words.
func (r *renderer) text(dst []byte, f *catalog.Field, v record.Value, display bool) []byte {
	switch {
	case v.Form == record.Time:
		if display && r.location != time.UTC {
			_, offset := v.Time().In(r.location).Zone()
			v.N += int64(offset) * 1e6
		}
		return appendSeconds(dst, v)
	case v.Form == record.Int && f.Type == record.TypeDuration:
		if display {
			return appendDurationWords(dst, v.N)
		}
		return appendSeconds(dst, durationTime(v.N))
	}
	return v.AppendText(dst)
}

// maxDuration keeps a duration within the years that its text has: 9999-12-31 23:59:59.
const maxDuration = 253402300799

func durationTime(seconds int64) record.Value {
	seconds = max(-maxDuration, min(seconds, maxDuration))
	return record.Value{Form: record.Time, N: seconds * 1e6}
}

// appendSeconds appends a time without its fraction.
func appendSeconds(dst []byte, v record.Value) []byte {
	if frac := v.N % 1e6; frac < 0 {
		v.N -= frac + 1e6
	} else {
		v.N -= frac
	}
	return v.AppendText(dst)
}

var durationUnits = [...]struct {
	seconds int64
	name    string
}{{86400, " Day"}, {3600, " Hour"}, {60, " Minute"}, {1, " Second"}}

// appendDurationWords appends "1 Day 2 Hours 10 Minutes".
func appendDurationWords(dst []byte, seconds int64) []byte {
	if seconds == 0 {
		return append(dst, "0 Seconds"...)
	}
	start := len(dst)
	for _, u := range durationUnits {
		n := seconds / u.seconds
		if n == 0 {
			continue
		}
		seconds -= n * u.seconds
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(dst, n, 10)
		dst = append(dst, u.name...)
		if n != 1 {
			dst = append(dst, 's')
		}
	}
	return dst
}

// quoteValue appends a value's plain text as a JSON string.
func quoteValue(dst []byte, v record.Value) []byte {
	if v.Form == record.Text {
		return wire.AppendQuote(dst, v.S)
	}
	dst = append(dst, '"')
	dst = v.AppendText(dst)
	return append(dst, '"')
}

// appendSegment appends a key as a path segment; ids need no escaping and get none.
func appendSegment(dst []byte, v record.Value) []byte {
	if v.Form != record.Text {
		return v.AppendText(dst)
	}
	for i := range len(v.S) {
		if !unreserved[v.S[i]] {
			return append(dst, url.PathEscape(v.S)...)
		}
	}
	return append(dst, v.S...)
}

// unreserved are the characters that need no escaping in a path.
var unreserved = func() (set [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_" {
		set[c] = true
	}
	return set
}()

// valueIn is the value of the column in a row, null if it is not read.
func (c *column) valueIn(row []record.Value) record.Value {
	if c.value < 0 {
		return record.Value{}
	}
	return row[c.value]
}

// shownField is the field that display values of a reference are values of.
func (c *column) shownField() *catalog.Field {
	if c.named != nil {
		return c.named
	}
	return c.field
}
