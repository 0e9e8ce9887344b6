package dialect

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/record"
	"weir/internal/wire"
)

// scan finds the values that references name.
type scan struct {
	byID  map[string]int
	found map[string]jsontext.Value // by reference
	read  int                       // bytes of answers searched so far
}

const (
	maxSearched = 1 << 20   // an answer larger than this cannot be referred to
	maxScan     = 256 << 20 // bytes searched for one batch
	maxSteps    = 16        // of a reference's path
)

// eachReference calls f with the inside of every "${…}" in s.
func eachReference(s string, f func(ref string)) {
	for {
		at := strings.Index(s, "${")
		if at < 0 {
			return
		}
		end := strings.IndexByte(s[at:], '}')
		if end < 0 {
			return
		}
		if at == 0 || s[at-1] != '$' {
			f(s[at+2 : at+end])
		}
		s = s[at+2:]
	}
}

// split cuts a reference into the id of an item of the batch and a path; the longest id wins, since ids may hold dots.
func (r *run) split(ref string) (id, path string, ok bool) {
	for at := len(ref); at > 0; {
		at = strings.LastIndexByte(ref[:at], '.')
		if at < 0 {
			return "", "", false
		}
		if _, known := r.scan.byID[ref[:at]]; known {
			return ref[:at], ref[at+1:], true
		}
	}
	return "", "", false
}

// substitute puts values of answers into URL and body of item i.
func (r *run) substitute(i int) error {
	it, c := &r.items[i], &r.work[i].call
	target, err := r.substituteURL(i, it.URL)
	if err != nil {
		return err
	}
	it.URL = target
	if len(it.Depends) == 0 || !bytes.Contains(it.Body, []byte("${")) {
		return nil
	}
	kind := strings.ToLower(c.Header.Get("Content-Type"))
	put := putJSON
	switch {
	case strings.Contains(kind, "xml"):
		put = putXML
	case kind != "" && !strings.Contains(kind, "json"):
		return record.Errorf(record.Invalid, "body", "a reference can stand in a JSON or XML body alone, not in %.80q", kind)
	}
	body, err := r.substituteBody(i, it.Body, put)
	if err != nil {
		return err
	}
	c.Body = body
	return nil
}

// value is the JSON scalar that ref names for item i. It is nil if ref names no item, which in an item that depends on
// others is an error.
func (r *run) value(i int, ref string) (jsontext.Value, error) {
	id, path, ok := r.split(ref)
	if !ok {
		if len(r.items[i].Depends) == 0 {
			return nil, nil
		}
		return nil, record.Errorf(record.Invalid, ref, "the reference names no item of the batch")
	}
	p := r.scan.byID[id]
	if p == twice || !slices.Contains(r.parents[i], p) {
		return nil, record.Errorf(record.Invalid, ref, "the item does not depend on %.80q; name it in depends_on", id)
	}
	if v, ok := r.scan.found[ref]; ok {
		return v, nil
	}
	body := r.parts[p].Body
	r.scan.read += len(body)
	if len(body) > maxSearched || r.scan.read > maxScan {
		return nil, record.Errorf(record.TooLarge, ref, "the answer of item %.80q is too large to be referred to", id)
	}
	steps := strings.Split(path, ".")
	if len(steps) > maxSteps {
		return nil, record.Errorf(record.Invalid, ref, "the path has more than %d steps", maxSteps)
	}
	v, err := find(body, steps)
	if err != nil {
		return nil, record.Errorf(record.Invalid, ref, "the answer of item %.80q is no JSON", id)
	}
	if v == nil {
		return nil, record.Errorf(record.Invalid, ref, "the answer of item %.80q has no such value", id)
	}
	if r.scan.found == nil {
		r.scan.found = map[string]jsontext.Value{}
	}
	r.scan.found[ref] = v
	return v, nil
}

// find is the scalar at steps of the JSON document v, nil if there is none. A step is the name of a member or the index of
// an element; a name may hold dots. Of a reference object ({"link", "value"}) it is the value.
func find(v jsontext.Value, steps []string) (jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch dec.PeekKind() {
	case '{':
		if len(steps) == 0 {
			steps = []string{"value"}
		}
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		for dec.PeekKind() == '"' {
			token, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			taken := matched(token.String(), steps)
			member, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if taken > 0 {
				if got, err := find(member, steps[taken:]); got != nil || err != nil {
					return got, err
				}
			}
		}
		_, err := dec.ReadToken()
		return nil, err
	case '[':
		if len(steps) == 0 {
			return nil, nil
		}
		index, err := strconv.Atoi(steps[0])
		if err != nil || index < 0 {
			return nil, nil
		}
		if _, err := dec.ReadToken(); err != nil {
			return nil, err
		}
		for k := 0; dec.PeekKind() != ']'; k++ {
			element, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if k == index {
				return find(element, steps[1:])
			}
		}
		return nil, nil
	}
	got, err := dec.ReadValue()
	if err != nil || len(steps) > 0 {
		return nil, err
	}
	return got.Clone(), nil
}

// matched is how many steps the member name stands for, 0 if it is not the next one.
func matched(name string, steps []string) int {
	if name == steps[0] {
		return 1
	}
	for n := 2; n <= len(steps); n++ {
		if name == strings.Join(steps[:n], ".") {
			return n
		}
	}
	return 0
}

// text is a JSON scalar as plain text; null is "".
func text(v jsontext.Value) (string, error) {
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		return string(b), err
	case 'n':
		return "", nil
	}
	return string(v), nil
}

// place is where in a body the scanner stands: the quote of the JSON string it is in, or '<' inside an XML tag; 0 outside.
type place byte

// put appends a value for its place.
type put func(dst []byte, v jsontext.Value, at place) ([]byte, error)

func putJSON(dst []byte, v jsontext.Value, at place) ([]byte, error) {
	if at == 0 {
		return append(dst, v...), nil
	}
	s, err := text(v)
	if err != nil {
		return nil, err
	}
	quoted := wire.AppendQuote(nil, s)
	for _, c := range quoted[1 : len(quoted)-1] {
		if c == '\'' {
			dst = append(dst, `\u0027`...)
		} else {
			dst = append(dst, c)
		}
	}
	return dst, nil
}

func putXML(dst []byte, v jsontext.Value, at place) ([]byte, error) {
	if at != 0 {
		return nil, record.Errorf(record.Invalid, "body", "in XML a reference can stand in text alone")
	}
	s, err := text(v)
	if err != nil {
		return nil, err
	}
	return append(dst, strings.ReplaceAll(string(wire.AppendXMLText(nil, s)), "'", "&#39;")...), nil
}

// substituteBody is body with the values of its references, which put writes.
func (r *run) substituteBody(i int, body []byte, write put) ([]byte, error) {
	xml := len(bytes.TrimSpace(body)) > 0 && bytes.TrimSpace(body)[0] == '<'
	var at place
	out := make([]byte, 0, len(body)+64)
	for k := 0; k < len(body); k++ {
		c := body[k]
		switch {
		case c == '$' && bytes.HasPrefix(body[k:], []byte("$${")):
			out = append(out, "${"...)
			k += 2
			continue
		case c == '$' && bytes.HasPrefix(body[k:], []byte("${")):
			end := bytes.IndexByte(body[k:], '}')
			if end < 0 {
				return nil, record.Errorf(record.Invalid, "body", "a reference has no end")
			}
			v, err := r.value(i, string(body[k+2:k+end]))
			if err == nil {
				out, err = write(out, v, at)
			}
			if err != nil {
				return nil, err
			}
			if len(out) > r.Config.MaxInput {
				return nil, record.Errorf(record.TooLarge, "body", "with its references the body has more than %d bytes; see now.batch.max_input", r.Config.MaxInput)
			}
			k += end
			continue
		case xml && c == '<':
			at = '<'
		case xml && c == '>':
			at = 0
		case !xml && at != 0 && c == '\\' && k+1 < len(body):
			out = append(out, c)
			k++
			c = body[k]
		case !xml && (c == '"' || c == '\'') && at == 0:
			at = place(c)
		case !xml && at == place(c):
			at = 0
		}
		out = append(out, c)
	}
	return out, nil
}

// substituteURL is the URL of item i with the values of its references.
func (r *run) substituteURL(i int, s string) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	if strings.Contains(strings.SplitN(s, "${", 2)[0], "://") || !strings.HasPrefix(s, "/") {
		return "", record.Errorf(record.Invalid, "url", "a URL with references begins with /")
	}
	path, query, _ := strings.Cut(s, "?")
	now := false
	if d := r.Mux.Find(path); d != nil {
		now = d.Name() == "now"
	}
	out, err := r.substituteText(i, path, func(_, v string) (string, error) {
		if !plain(v) || v == "" || strings.Trim(v, ".") == "" {
			return "", record.Errorf(record.Invalid, "url", "%.80q cannot stand in a path", v)
		}
		return url.PathEscape(v), nil
	})
	if err != nil || query == "" {
		return out, err
	}
	for k, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.Contains(name, "${") {
			return "", record.Errorf(record.Invalid, "url", "a reference can stand for a value alone, not in the name of a parameter")
		}
		param, err := url.QueryUnescape(name)
		if err != nil {
			return "", record.Errorf(record.Invalid, "url", "the parameter %.80q has a bad escape", name)
		}
		value, err = r.substituteText(i, value, func(before, v string) (string, error) {
			switch {
			case plain(v) && param != "sysparm_query":
			case now && param == "sysparm_query":
				if before, err := url.QueryUnescape(before); err != nil || !valueStands(before, v) {
					return "", record.Errorf(record.Invalid, param, "%.80q cannot stand here: a reference is the value of a condition, behind its operator", v)
				}
				v = strings.ReplaceAll(v, "^", "^^")
			case now && !strings.HasPrefix(param, "sysparm_"):
			default:
				return "", record.Errorf(record.Invalid, param, "%.80q cannot stand here: letters, digits, blanks and _-.: may", v)
			}
			return url.QueryEscape(v), nil
		})
		if err != nil {
			return "", err
		}
		sep := "&"
		if k == 0 {
			sep = "?"
		}
		out += sep + name + "=" + value
	}
	return out, nil
}

// substituteText replaces the references of s by what escape makes of their values; before is what stands before, replaced.
func (r *run) substituteText(i int, s string, escape func(before, v string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		at := strings.Index(s, "${")
		end := -1
		if at >= 0 {
			end = strings.IndexByte(s[at:], '}')
		}
		if end < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		if at > 0 && s[at-1] == '$' {
			out.WriteString(s[:at-1] + "${")
			s = s[at+2:]
			continue
		}
		out.WriteString(s[:at])
		v, err := r.value(i, s[at+2:at+end])
		if err != nil {
			return "", err
		}
		if v == nil {
			out.WriteString(s[at : at+end+1])
		} else {
			plain, err := text(v)
			if err == nil {
				plain, err = escape(out.String(), plain)
			}
			if err != nil {
				return "", err
			}
			out.WriteString(plain)
			if out.Len() > r.Config.MaxInput {
				return "", record.Errorf(record.TooLarge, "url", "with its references the URL has more than %d bytes; see now.batch.max_input", r.Config.MaxInput)
			}
		}
		s = s[at+end+1:]
	}
}

// plain reports whether v holds nothing that any query language could take for more than a word.
func plain(v string) bool {
	for k := 0; k < len(v); k++ {
		c := v[k]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-.: ", c) >= 0) {
			return false
		}
	}
	return true
}

// condition is a term of an encoded query up to its operator.
var condition = regexp.MustCompile(`^(?:OR|NQ)?[a-z0-9_.]+(!=|<=|>=|=|<|>|NOT LIKE|NOTLIKE|LIKE|!\*|\*|STARTSWITH|ENDSWITH|%|DOES NOT CONTAIN|CONTAINS|NOT IN|NOTIN|IN|BETWEEN)`)

// valueStands reports whether v, put behind before, is the value or a part of the value of a condition of an encoded
// query, and can neither lengthen the operator nor call anything.
func valueStands(before, v string) bool {
	term := strings.ReplaceAll(before, "^^", "  ")
	term = term[strings.LastIndexByte(term, '^')+1:]
	m := condition.FindStringSubmatchIndex(term)
	if m == nil || strings.Contains(strings.ToLower(term+v), "javascript:") {
		return false
	}
	if m[1] < len(term) {
		return true
	}
	switch term[m[2]:m[3]] {
	case "<", ">":
		return !strings.HasPrefix(v, "=")
	case "IN":
		return !strings.HasPrefix(v, "STANCEOF") && !strings.HasPrefix(v, "_HIERARCHY")
	}
	return true
}
