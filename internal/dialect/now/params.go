package now

import (
	"net/url"
	"strconv"
	"strings"

	"weir/internal/record"
)

// param is one name and value of a query string; raw is how it stood there.
type param struct{ name, value, raw string }

// params is a query string in its order. A parameter that is present but empty counts as absent: clients send
// sysparm_fields= and mean nothing by it. Of several values the first non-empty one counts.
type params []param

// parseParams reads a query string. A bad escape is taken literally, since people type LIKE50% into URLs.
func parseParams(raw string) params {
	if raw == "" {
		return nil
	}
	list := make(params, 0, strings.Count(raw, "&")+1)
	for more := true; more; {
		var piece string
		piece, raw, more = strings.Cut(raw, "&")
		if piece == "" {
			continue
		}
		name, value, _ := strings.Cut(piece, "=")
		list = append(list, param{unescape(name), unescape(value), piece})
	}
	return list
}

func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return strings.ReplaceAll(s, "+", " ")
}

// get is the value of a parameter, "" if it is absent.
func (p params) get(name string) string {
	for i := range p {
		if p[i].name == name && p[i].value != "" {
			return p[i].value
		}
	}
	return ""
}

// truth reads a boolean: true in any case, or 1. Anything else is false.
func (p params) truth(name string) bool { return isTrue(p.get(name)) }

func isTrue(s string) bool {
	s = strings.TrimSpace(s)
	return s == "1" || strings.EqualFold(s, "true")
}

// count reads a number that cannot be negative.
func (p params) count(name string, absent int64) (int64, error) {
	s := strings.TrimSpace(p.get(name))
	if s == "" {
		return absent, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, record.Errorf(record.Invalid, name, "%.40q is not a number from 0 on", s)
	}
	return n, nil
}

// list reads a comma list; blanks around the commas and empty pieces do not count.
func (p params) list(name string) []string { return splitList(p.get(name)) }

func splitList(s string) []string {
	if s == "" {
		return nil
	}
	var list []string
	for more := true; more; {
		var piece string
		piece, s, more = strings.Cut(s, ",")
		if piece = strings.TrimSpace(piece); piece != "" {
			list = append(list, piece)
		}
	}
	return list
}

// shown is which of value and display value an answer shows.
type shown uint8

const (
	showValue shown = iota
	showDisplay
	showBoth
)

func (p params) shown() shown {
	switch s := strings.TrimSpace(p.get("sysparm_display_value")); {
	case isTrue(s):
		return showDisplay
	case strings.EqualFold(s, "all"):
		return showBoth
	}
	return showValue
}

// shorthand are the parameters that stand for a condition: <field>=<value>. No name that begins with sysparm_ is a field.
func (p params) shorthand() params {
	var list params
	for i := range p {
		if p[i].value != "" && p[i].name != "" && !strings.HasPrefix(p[i].name, "sysparm_") {
			list = append(list, p[i])
		}
	}
	return list
}
