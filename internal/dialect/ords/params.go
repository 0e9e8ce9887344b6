package ords

import (
	"net/url"
	"strconv"
	"strings"

	"weir/internal/record"
)

// params are the parameters of a query string or a form, in their order.
type params []param

type param struct{ name, value string }

// parseParams reads a query string. The error is an Invalid.
func parseParams(raw string) (params, error) {
	if raw == "" {
		return nil, nil
	}
	list := make(params, 0, strings.Count(raw, "&")+1)
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, ok := unescape(name)
		if !ok {
			return nil, record.Errorf(record.Invalid, "", "the query string has a name that is not percent-encoded as it should be")
		}
		if value, ok = unescape(value); !ok {
			return nil, record.Errorf(record.Invalid, name, "the value is not percent-encoded as it should be")
		}
		list = append(list, param{name, value})
	}
	return list, nil
}

func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s, true
	}
	s, err := url.QueryUnescape(s)
	return s, err == nil
}

// get is the first value of a name, whose case counts.
func (p params) get(name string) (string, bool) {
	for i := range p {
		if p[i].name == name {
			return p[i].value, true
		}
	}
	return "", false
}

// count reads a number that is not negative (protocol notes, section 7); absent or empty it is missing.
func (p params) count(name string) (n int64, given bool, err error) {
	text, ok := p.get(name)
	if !ok || text == "" {
		return 0, false, nil
	}
	n, bad := strconv.ParseInt(text, 10, 64)
	if bad != nil || n < 0 || n > maxCount {
		return 0, false, record.Errorf(record.Invalid, name, "%.40q is not a number from 0 to %d", text, int64(maxCount))
	}
	return n, true, nil
}

// maxCount bounds offsets, so that sums of them have room.
const maxCount = 1 << 53
