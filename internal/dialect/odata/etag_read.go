package odata

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
)

// versionField is the field that holds the version of a type's entities, nil if they have none that can be compared.
func versionField(t *edm.Type) *catalog.Field {
	if t.ETag == nil {
		return nil
	}
	return t.ETag.Field
}

// condition is what If-Match and If-None-Match ask of the entity at hand.
type condition struct {
	list   []record.Condition
	exists bool // If-Match is there, with * too: there must be such an entity
	absent bool // If-None-Match: *: there must be none
	never  bool // If-Match names a version of an entity that has none
}

// conditions reads the preconditions of a change (protocol notes, section 4, "ETag").
func (q *request) conditions(t *edm.Type) condition {
	var c condition
	f := versionField(t)
	if h := q.call.Header.Get("If-Match"); h != "" {
		c.exists = true
		switch values, any := q.versions(t, h); {
		case any:
		case f == nil:
			c.never = true
		default:
			c.list = append(c.list, record.Condition{Field: f.Name, Values: values})
		}
	}
	if h := q.call.Header.Get("If-None-Match"); h != "" {
		values, any := q.versions(t, h)
		switch {
		case any:
			c.absent = true
		case f != nil && len(values) > 0:
			c.list = append(c.list, record.Condition{Field: f.Name, Values: values, Negate: true})
		}
	}
	return c
}

// required is the error of a change without If-Match where entities have versions: 428.
func (c *condition) required(t *edm.Type) error {
	if versionField(t) == nil || c.exists {
		return nil
	}
	return unconditional()
}

// versions reads the values of a list of ETags; any says that one of them is *. An ETag that is none of ours is no version that an entity
// could have.
func (q *request) versions(t *edm.Type, header string) (values []record.Value, any bool) {
	for rest := header; ; {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" {
			return values, any
		}
		tag := strings.TrimPrefix(rest, "W/")
		if quoted, ok := strings.CutPrefix(tag, `"`); ok {
			tag, rest, _ = strings.Cut(quoted, `"`)
		} else {
			tag, rest, _ = strings.Cut(tag, ",")
			tag = strings.TrimSpace(tag)
		}
		if tag == "*" {
			any = true
			continue
		}
		if v, ok := parseETag(q.ver, t.ETag, tag); ok {
			values = append(values, v)
		}
	}
}

// parseETag reads what appendETag has written between the quotes.
func parseETag(ver version, p *edm.Property, tag string) (record.Value, bool) {
	text, ok := unescape(tag, false)
	if p == nil || !ok {
		return record.Value{}, false
	}
	v, err := parseLiteral(ver, p.Kind, text)
	if err != nil || v.IsNull() {
		return record.Value{}, false
	}
	return storedValue(p.Kind, p.Field, v), true
}
