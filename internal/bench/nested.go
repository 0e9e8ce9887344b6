package bench

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// countNested counts the entities below navigation property nav of an answer: an array (V4), or an object with results (V2, inside d).
func countNested(answer []byte, nav string) (int, bool) {
	d := jsontext.NewDecoder(bytes.NewReader(answer))
	depth := 0
	if err := enter(d); err != nil {
		return 0, false
	}
	for {
		t, err := d.ReadToken()
		if err != nil || t.Kind() == '}' {
			return 0, false
		}
		switch name := t.String(); {
		case name == "d" && depth == 0:
			depth++
			if err := enter(d); err != nil {
				return 0, false
			}
		case name == nav && d.PeekKind() == '{':
			if err := enter(d); err != nil {
				return 0, false
			}
			nav = "results"
		case name == nav && d.PeekKind() == '[':
			return countArray(d)
		default:
			if err := d.SkipValue(); err != nil {
				return 0, false
			}
		}
	}
}

// enter reads the beginning of an object.
func enter(d *jsontext.Decoder) error {
	_, err := d.ReadToken()
	return err
}

func countArray(d *jsontext.Decoder) (int, bool) {
	if err := enter(d); err != nil {
		return 0, false
	}
	n := 0
	for d.PeekKind() != ']' {
		if err := d.SkipValue(); err != nil {
			return 0, false
		}
		n++
	}
	return n, true
}
