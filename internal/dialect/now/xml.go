package now

import (
	"weir/internal/record"
	"weir/internal/wire"
)

// The XML of an answer: root response, one result for each record, a child for each field. Empty elements are <f/>.
const (
	xmlHead      = `<?xml version="1.0" encoding="UTF-8"?>`
	xmlEmptyBody = xmlHead + `<response/>`
)

// element appends one field.
func (r *renderer) element(dst []byte, c *column, row []record.Value) []byte {
	v := c.valueIn(row)
	start := len(dst)
	dst = append(dst, c.open...)
	inside := len(dst)
	switch {
	case c.kind == reference:
		dst = r.referenceXML(dst, c, v, row)
	case r.shown == showBoth:
		dst = r.wrapped(dst, "display_value", c, v, true)
		dst = r.wrapped(dst, "value", c, v, false)
	default:
		dst = r.escaped(dst, c, v, r.shown == showDisplay)
	}
	if len(dst) == inside {
		dst = append(dst[:start], c.open[:len(c.open)-1]...)
		return append(dst, "/>"...)
	}
	return append(dst, c.close...)
}

// referenceXML appends what stands inside the element of a reference.
func (r *renderer) referenceXML(dst []byte, c *column, v record.Value, row []record.Value) []byte {
	switch {
	case v.Empty() && r.shown == showBoth:
		return append(dst, "<display_value/><value/>"...)
	case v.Empty():
		return dst
	case r.noLinks && r.shown == showValue:
		return r.xmlText(dst, v)
	case r.noLinks && r.shown == showDisplay:
		return r.referredXML(dst, c, v, row)
	}
	if r.shown != showValue {
		dst = appendElement(dst, "display_value", func(dst []byte) []byte { return r.referredXML(dst, c, v, row) })
	}
	if !r.noLinks {
		dst = append(dst, "<link>"...)
		dst = append(dst, r.base...)
		dst = append(dst, c.linkPath...)
		dst = wire.AppendXMLText(dst, string(appendSegment(nil, v))) // an escaped segment may still hold &
		dst = append(dst, "</link>"...)
	}
	if r.shown != showDisplay {
		dst = appendElement(dst, "value", func(dst []byte) []byte { return r.xmlText(dst, v) })
	}
	return dst
}

func (r *renderer) referredXML(dst []byte, c *column, v record.Value, row []record.Value) []byte {
	d := referred(c, v, row)
	if d.Form == record.Text {
		return wire.AppendXMLText(dst, d.S)
	}
	return r.text(dst, c.shownField(), d, true)
}

func (r *renderer) wrapped(dst []byte, name string, c *column, v record.Value, display bool) []byte {
	return appendElement(dst, name, func(dst []byte) []byte { return r.escaped(dst, c, v, display) })
}

func (r *renderer) escaped(dst []byte, c *column, v record.Value, display bool) []byte {
	if s, ok := r.label(c, v, display); ok {
		return wire.AppendXMLText(dst, s)
	}
	return r.text(dst, c.field, v, display)
}

func (r *renderer) xmlText(dst []byte, v record.Value) []byte {
	if v.Form == record.Text {
		return wire.AppendXMLText(dst, v.S)
	}
	return v.AppendText(dst)
}

// appendElement appends an element with what inside writes, <name/> if that is nothing.
func appendElement(dst []byte, name string, inside func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, '<')
	dst = append(dst, name...)
	dst = append(dst, '>')
	begin := len(dst)
	dst = inside(dst)
	if len(dst) == begin {
		dst = append(dst[:start], '<')
		dst = append(dst, name...)
		return append(dst, "/>"...)
	}
	dst = append(dst, "</"...)
	dst = append(dst, name...)
	return append(dst, '>')
}
