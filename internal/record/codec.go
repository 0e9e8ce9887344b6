package record

import (
	"encoding/binary"
	"math"
	"reflect"
)

// The encoding of units and outcomes, for hub and backend and for stored outcomes. It is the fields of the structs in the
// order of their declaration: integers as varints, texts and lists by their length, pointers by one byte. Both ends must
// run the same version of weir, which the caller checks.

// AppendUnit appends the encoding of u.
func AppendUnit(dst []byte, u *Unit) []byte { return appendAny(dst, reflect.ValueOf(u).Elem()) }

// AppendOp appends the encoding of op.
func AppendOp(dst []byte, op *Op) []byte { return appendAny(dst, reflect.ValueOf(op).Elem()) }

// AppendOutcomes appends the encoding of outcomes. Streaming rows must be materialised before. Of an error the private
// cause is kept as text.
func AppendOutcomes(dst []byte, out []Outcome) []byte { return appendAny(dst, reflect.ValueOf(out)) }

// DecodeUnit reads what AppendUnit wrote. The error is an Invalid.
func DecodeUnit(b []byte) (*Unit, error) {
	u := &Unit{}
	return u, decodeAll(b, reflect.ValueOf(u).Elem())
}

// DecodeOutcomes reads what AppendOutcomes wrote. The error is an Invalid.
func DecodeOutcomes(b []byte) ([]Outcome, error) {
	var out []Outcome
	return out, decodeAll(b, reflect.ValueOf(&out).Elem())
}

// cause is a private cause that came over the wire.
type cause string

func (c cause) Error() string { return string(c) }

var (
	rowsType  = reflect.TypeFor[Rows]()
	errorType = reflect.TypeFor[error]()
)

func appendAny(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(dst, v.Int())
	case reflect.Uint8, reflect.Uint64:
		return binary.AppendUvarint(dst, v.Uint())
	case reflect.String:
		dst = binary.AppendUvarint(dst, uint64(v.Len()))
		return append(dst, v.String()...)
	case reflect.Slice:
		if v.IsNil() {
			return append(dst, 0)
		}
		dst = binary.AppendUvarint(dst, uint64(v.Len())+1)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(dst, v.Bytes()...)
		}
		for i := range v.Len() {
			dst = appendAny(dst, v.Index(i))
		}
		return dst
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, 0)
		}
		return appendAny(append(dst, 1), v.Elem())
	case reflect.Interface: // Error.Err, the only one
		text := ""
		if !v.IsNil() {
			text = v.Interface().(error).Error()
		}
		return appendAny(dst, reflect.ValueOf(text))
	case reflect.Struct:
		if v.Type() == rowsType {
			r := v.Addr().Interface().(*Rows)
			dst = appendAny(dst, reflect.ValueOf(r.Fields))
			dst = appendAny(dst, reflect.ValueOf(r.Types))
			return appendAny(dst, reflect.ValueOf(r.cells))
		}
		for i := range v.NumField() {
			dst = appendAny(dst, v.Field(i))
		}
		return dst
	}
	panic("record: no encoding for " + v.Type().String())
}

// maxDepth bounds the nesting of what is decoded; expressions are the only thing that nests.
const maxDepth = 1000

type decoder struct {
	b     []byte
	depth int
}

func decodeAll(b []byte, v reflect.Value) error {
	d := &decoder{b: b}
	if !d.decode(v) || len(d.b) > 0 {
		v.SetZero()
		return Errorf(Invalid, "", "not a valid encoding of %s", v.Type())
	}
	return nil
}

func (d *decoder) uvarint() (uint64, bool) {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		return 0, false
	}
	d.b = d.b[size:]
	return n, true
}

// length reads a length and checks it against what is left: an element takes at least a byte.
func (d *decoder) length() (int, bool) {
	n, ok := d.uvarint()
	if !ok || n > uint64(len(d.b)) {
		return 0, false
	}
	return int(n), true
}

func (d *decoder) decode(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool:
		n, ok := d.uvarint()
		v.SetBool(n == 1)
		return ok && n <= 1
	case reflect.Int, reflect.Int64:
		n, size := binary.Varint(d.b)
		if size <= 0 || v.OverflowInt(n) {
			return false
		}
		d.b = d.b[size:]
		v.SetInt(n)
		return true
	case reflect.Uint8, reflect.Uint64:
		n, ok := d.uvarint()
		if !ok || v.OverflowUint(n) || v.Kind() == reflect.Uint8 && n > math.MaxUint8 {
			return false
		}
		v.SetUint(n)
		return true
	case reflect.String:
		n, ok := d.length()
		if ok {
			v.SetString(string(d.b[:n]))
			d.b = d.b[n:]
		}
		return ok
	case reflect.Slice:
		return d.slice(v)
	case reflect.Pointer:
		n, ok := d.uvarint()
		if !ok || n > 1 {
			return false
		}
		if n == 0 {
			return true
		}
		d.depth++
		defer func() { d.depth-- }()
		if d.depth > maxDepth {
			return false
		}
		v.Set(reflect.New(v.Type().Elem()))
		return d.decode(v.Elem())
	case reflect.Interface:
		var text string
		ok := v.Type() == errorType && d.decode(reflect.ValueOf(&text).Elem())
		if ok && text != "" {
			v.Set(reflect.ValueOf(cause(text)))
		}
		return ok
	case reflect.Struct:
		if v.Type() == rowsType {
			r := v.Addr().Interface().(*Rows)
			return d.decode(reflect.ValueOf(&r.Fields).Elem()) && d.decode(reflect.ValueOf(&r.Types).Elem()) &&
				d.decode(reflect.ValueOf(&r.cells).Elem()) && (len(r.Fields) == 0 && len(r.cells) == 0 || len(r.Fields) > 0 && len(r.cells)%len(r.Fields) == 0)
		}
		for i := range v.NumField() {
			if !d.decode(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return false
}

func (d *decoder) slice(v reflect.Value) bool {
	n, ok := d.uvarint()
	if !ok || n == 0 {
		return ok
	}
	n--
	if n > uint64(len(d.b)) {
		return false
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
		d.b = d.b[copy(v.Bytes(), d.b):]
		return true
	}
	// Grown as it is read: what is allocated stays in proportion to the input, whatever length it claims.
	v.Set(reflect.MakeSlice(v.Type(), 0, min(int(n), 64)))
	elem := reflect.New(v.Type().Elem()).Elem()
	for range n {
		elem.SetZero()
		if !d.decode(elem) {
			return false
		}
		v.Set(reflect.Append(v, elem))
	}
	return true
}
