package now

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"sync"

	jsonopts "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/dialect"
	"weir/internal/record"
)

// given is one field of a request body.
type given struct {
	name    string
	text    string
	display bool // text is a display value
}

const maxBodyDepth = 50

// byteOrderMark begins what some Windows clients send.
var byteOrderMark = []byte("\ufeff")

// readBody reads the record in a body: JSON or XML, leniently, as the vendor's own samples need it. Of several records the
// first counts, of several values of one name the last. Numbers and booleans become text, null becomes "". A value may be
// an object as answers show it: its value counts, else the end of its link, else its display_value. An empty body is an
// empty record.
func readBody(contentType string, body []byte) ([]given, error) {
	body = bytes.TrimPrefix(body, byteOrderMark)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	f, err := bodyFormat(contentType, body)
	if err != nil {
		return nil, err
	}
	var list []given
	if f.xml() {
		list, err = readXML(body)
	} else {
		list, err = readJSON(body)
		if err != nil && bytes.IndexByte(body, '\'') >= 0 {
			if again, errAgain := readJSON(requote(body)); errAgain == nil {
				list, err = again, nil
			}
		}
	}
	if err != nil {
		return nil, record.Errorf(record.Invalid, "", "%.200s", err.Error()).Because(dialect.ErrBody)
	}
	return lastWins(list), nil
}

// lastWins drops all but the last value of each name.
func lastWins(list []given) []given {
	if len(list) <= 16 && !repeats(list) {
		return list
	}
	last := make(map[string]int, len(list))
	for i := range list {
		last[list[i].name] = i
	}
	if len(last) == len(list) {
		return list
	}
	kept := list[:0]
	for i := range list {
		if last[list[i].name] == i {
			kept = append(kept, list[i])
		}
	}
	return kept
}

// repeats reports whether a name comes twice in a short list.
func repeats(list []given) bool {
	for i := range list {
		for j := range list[:i] {
			if list[i].name == list[j].name {
				return true
			}
		}
	}
	return false
}

// decoders are kept, since a batch reads thousands of small bodies.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

var lenient = jsonopts.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func readJSON(body []byte) ([]given, error) {
	// A bytes.Buffer is read in place; any other reader would cost a copy of the body and a buffer for it.
	dec := decoders.Get().(*jsontext.Decoder)
	defer func() {
		dec.Reset(bytes.NewBuffer(nil)) // no body is held on to
		decoders.Put(dec)
	}()
	dec.Reset(bytes.NewBuffer(body), lenient)
	list := make([]given, 0, 8)
	first, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if first.Kind() == '[' {
		if dec.PeekKind() == ']' {
			return nil, nil
		}
		if first, err = dec.ReadToken(); err != nil {
			return nil, err
		}
	}
	if first.Kind() != '{' {
		return nil, errors.New("the body is no JSON object")
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		g := given{name: name.String()}
		if err := readJSONValue(dec, &g); err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	// Read on to the end: what follows must be well formed too, or a cut body would pass for a whole one.
	for {
		if _, err := dec.ReadToken(); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		if dec.StackDepth() > maxBodyDepth {
			return nil, errTooDeep
		}
	}
}

var errTooDeep = errors.New("the body is nested too deeply")

// readJSONValue reads the value of a field.
func readJSONValue(dec *jsontext.Decoder, g *given) error {
	switch dec.PeekKind() {
	case '{':
		return readJSONObject(dec, g)
	case '[':
		return readJSONArray(dec, g)
	}
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != 'n' {
		g.text = tok.String()
	}
	return nil
}

// readJSONObject reads {"value":…, "display_value":…, "link":…}; any other object is taken as its own JSON text, which JSON
// fields hold.
func readJSONObject(dec *jsontext.Decoder, g *given) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	var parts shownParts
	inner := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := inner.ReadToken(); err != nil {
		return err
	}
	for inner.PeekKind() != '}' {
		name, err := inner.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		v, err := inner.ReadValue()
		if err != nil {
			return err
		}
		var text string
		switch v.Kind() {
		case '"':
			unquoted, err := jsontext.AppendUnquote(nil, v)
			if err != nil {
				return err
			}
			text = string(unquoted)
		case 'n':
		default:
			text = string(v)
		}
		parts.set(key, text)
	}
	if !parts.into(g) {
		g.text = string(raw)
	}
	return nil
}

// shownParts collects what answers show of one value.
type shownParts struct {
	value, link, display          string
	hasValue, hasLink, hasDisplay bool
}

func (p *shownParts) set(key, text string) {
	switch key {
	case "value":
		p.value, p.hasValue = text, true
	case "link":
		p.link, p.hasLink = text, true
	case "display_value":
		p.display, p.hasDisplay = text, true
	}
}

// into gives g the most exact of the parts.
func (p *shownParts) into(g *given) bool {
	switch {
	case p.hasValue:
		g.text = p.value
	case p.hasLink && p.link != "":
		link := strings.TrimRight(p.link, "/")
		g.text = unescape(link[strings.LastIndexByte(link, '/')+1:])
	case p.hasDisplay:
		g.text, g.display = p.display, true
	default:
		return p.hasLink
	}
	return true
}

// readJSONArray reads the ids of a list field, joined by commas.
func readJSONArray(dec *jsontext.Decoder, g *given) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	inner := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := inner.ReadToken(); err != nil {
		return err
	}
	var ids []string
	for inner.PeekKind() != ']' {
		if k := inner.PeekKind(); k == '{' || k == '[' {
			g.text = string(raw)
			return nil
		}
		tok, err := inner.ReadToken()
		if err != nil {
			return err
		}
		ids = append(ids, tok.String())
	}
	g.text = strings.Join(ids, ",")
	return nil
}

// requote turns the single-quoted strings of the vendor's samples into JSON.
func requote(body []byte) []byte {
	out := make([]byte, 0, len(body)+16)
	var quote byte
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			out = append(out, '"')
		case quote == 0:
			out = append(out, c)
		case c == '\\' && i+1 < len(body):
			i++
			if body[i] == '\'' {
				out = append(out, '\'')
			} else {
				out = append(out, '\\', body[i])
			}
		case c == quote:
			quote = 0
			out = append(out, '"')
		case c == '"':
			out = append(out, '\\', '"')
		default:
			out = append(out, c)
		}
	}
	return out
}

// readXML reads <request><entry><field>value</field>…</entry></request>. The names of the two outer elements do not matter; without an
// inner one the root holds the fields. A document type is refused.
func readXML(body []byte) ([]given, error) {
	dec := xml.NewDecoder(bytes.NewReader(body))
	root, err := parseXML(dec)
	if err != nil {
		return nil, err
	}
	entry := root
	if len(root.children) > 0 && len(root.children[0].children) > 0 && isEntry(root.children[0].name) {
		entry = &root.children[0]
	} else if len(root.children) > 0 && isEntry(root.children[0].name) && strings.TrimSpace(root.children[0].text) == "" {
		return nil, nil // <request><entry/></request>
	}
	var list []given
	for i := range entry.children {
		e := &entry.children[i]
		g := given{name: e.name, text: e.text}
		if len(e.children) > 0 {
			var parts shownParts
			for j := range e.children {
				parts.set(e.children[j].name, e.children[j].text)
			}
			if !parts.into(&g) {
				g.text = ""
			}
		}
		list = append(list, g)
	}
	return list, nil
}

func isEntry(name string) bool { return name == "entry" || name == "result" }

// xmlNode is an element with its text. Attributes and comments carry nothing here.
type xmlNode struct {
	name     string
	text     string
	children []xmlNode
}

func parseXML(dec *xml.Decoder) (*xmlNode, error) {
	var root *xmlNode
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			if root == nil {
				return nil, errors.New("the body holds no XML element")
			}
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.Directive:
			return nil, errors.New("document types are not accepted")
		case xml.StartElement:
			if root != nil {
				return nil, errors.New("the body has more than one root element")
			}
			root = &xmlNode{name: t.Name.Local}
			if err := root.read(dec, 1); err != nil {
				return nil, err
			}
		}
	}
}

func (n *xmlNode) read(dec *xml.Decoder, depth int) error {
	if depth > maxBodyDepth {
		return errTooDeep
	}
	var text []byte
	for {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		switch t := tok.(type) {
		case xml.Directive:
			return errors.New("document types are not accepted")
		case xml.CharData:
			text = append(text, t...)
		case xml.StartElement:
			child := xmlNode{name: t.Name.Local}
			if err := child.read(dec, depth+1); err != nil {
				return err
			}
			n.children = append(n.children, child)
		case xml.EndElement:
			n.text = string(text)
			return nil
		}
	}
}
