package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// The encoding of units and outcomes, for hub and backend and for stored outcomes. It is the fields of the structs in the
// order of their declaration: integers as varints, texts and lists by their length, pointers by one byte. Both ends must
// run versions of weir with the same [Layout], which the caller checks.
//
// What a unit holds many times (values, assignments, names) is encoded without reflection, in the same form.

// AppendUnit appends the encoding of u.
func AppendUnit(dst []byte, u *Unit) []byte { return Append(dst, u) }

// AppendOp appends the encoding of op.
func AppendOp(dst []byte, op *Op) []byte { return Append(dst, op) }

// AppendOutcomes appends the encoding of outcomes. Streaming rows must be materialised before. Of an error the private
// cause is kept as text.
func AppendOutcomes(dst []byte, out []Outcome) []byte { return Append(dst, &out) }

// Append appends the encoding of what v points to: a struct, list or plain value made of the types that units and outcomes are
// made of.
func Append(dst []byte, v any) []byte { return appendAny(dst, reflect.ValueOf(v).Elem()) }

// DecodeUnit reads what AppendUnit wrote. The error is an Invalid.
func DecodeUnit(b []byte) (*Unit, error) {
	u := &Unit{}
	return u, Decode(b, u)
}

// DecodeOutcomes reads what AppendOutcomes wrote. The error is an Invalid.
func DecodeOutcomes(b []byte) ([]Outcome, error) {
	var out []Outcome
	return out, Decode(b, &out)
}

// Decode reads what Append wrote into what v points to, which must be zero. Nothing of b is kept. Equal lists of names may share
// their memory. The error is an Invalid.
func Decode(b []byte, v any) error {
	rest, err := DecodeFirst(b, v)
	if err == nil && len(rest) > 0 {
		p := reflect.ValueOf(v).Elem()
		p.SetZero()
		err = Errorf(Invalid, "", "not a valid encoding of %s: %d bytes too many", p.Type(), len(rest))
	}
	return err
}

// DecodeFirst is Decode for the beginning of b: it returns what follows.
func DecodeFirst(b []byte, v any) (rest []byte, err error) {
	p := reflect.ValueOf(v).Elem()
	d := &decoder{b: b}
	if !d.decode(p) {
		p.SetZero()
		return nil, Errorf(Invalid, "", "not a valid encoding of %s", p.Type())
	}
	return d.b, nil
}

// AppendRow appends the encoding of the values of a row, without their number.
func AppendRow(dst []byte, row []Value) []byte {
	for i := range row {
		dst = appendValue(dst, &row[i])
	}
	return dst
}

// DecodeRow fills row with what AppendRow wrote and returns what follows it. Texts are views of b: they hold as long as b does. The
// error is an Invalid.
func DecodeRow(b []byte, row []Value) (rest []byte, err error) {
	d := decoder{b: b}
	for i := range row {
		n, text, ok := d.value(&row[i])
		if !ok {
			return nil, Errorf(Invalid, "", "not a valid encoding of a row")
		}
		row[i].N, row[i].S = n, unsafe.String(unsafe.SliceData(text), len(text))
	}
	return d.b, nil
}

// Layout names the form in which values of the given types, and units and outcomes, are encoded: it is another one when a field was
// added, moved or given another type.
func Layout(types ...reflect.Type) string {
	sum := sha256.New()
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		fmt.Fprintf(sum, "%s %s;", t.Kind(), t.Name())
		if seen[t] {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Slice, reflect.Pointer:
			walk(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				fmt.Fprintf(sum, "%s ", t.Field(i).Name)
				walk(t.Field(i).Type)
			}
			fmt.Fprint(sum, "}")
		}
	}
	fmt.Fprintf(sum, "%d %d %d %v;", NumKinds, numExprOps, numTypes, verbNames)
	for _, t := range append([]reflect.Type{reflect.TypeFor[Unit](), reflect.TypeFor[Outcome]()}, types...) {
		walk(t)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// cause is a private cause that came over the wire.
type cause string

func (c cause) Error() string { return string(c) }

var errorType = reflect.TypeFor[error]()

func appendValue(dst []byte, v *Value) []byte {
	dst = binary.AppendVarint(append(dst, byte(v.Form)), v.N)
	return appendText(dst, v.S)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendCommon appends what units hold many times; false if v is none of it.
func appendCommon(dst []byte, v reflect.Value) ([]byte, bool) {
	if !v.CanAddr() {
		return dst, false
	}
	switch p := v.Addr().Interface().(type) {
	case *Value:
		return appendValue(dst, p), true
	case *[]Value:
		if *p == nil {
			return append(dst, 0), true
		}
		return AppendRow(binary.AppendUvarint(dst, uint64(len(*p))+1), *p), true
	case *[]Assign:
		if *p == nil {
			return append(dst, 0), true
		}
		dst = binary.AppendUvarint(dst, uint64(len(*p))+1)
		for i := range *p {
			a := &(*p)[i]
			dst = appendValue(appendText(dst, a.Field), &a.Value)
		}
		return dst, true
	case *[]string:
		if *p == nil {
			return append(dst, 0), true
		}
		dst = binary.AppendUvarint(dst, uint64(len(*p))+1)
		for _, s := range *p {
			dst = appendText(dst, s)
		}
		return dst, true
	case *Rows:
		for _, part := range [...]any{&p.Fields, &p.Types, &p.cells} {
			dst = Append(dst, part)
		}
		return dst, true
	}
	return dst, false
}

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
		return appendText(dst, v.String())
	case reflect.Slice:
		if dst, ok := appendCommon(dst, v); ok {
			return dst
		}
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
		return appendText(dst, text)
	case reflect.Struct:
		if dst, ok := appendCommon(dst, v); ok {
			return dst
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
	room  []byte // where texts are kept, block by block

	// Names that were read, so that each is kept once. Ops of one kind give theirs in the same order, so what comes next is known
	// most of the time.
	names []string
	place map[string]int // in names
	next  int
	// Lists of names and of types that were read: ops and rows of one kind share theirs.
	lists kept[string]
	types kept[Type]
}

// kept is the lists that were read last, with their encodings.
type kept[T any] struct {
	at   int
	last [4]struct {
		raw  []byte
		list []T
	}
}

// find is the list that b begins with, if it is one of those that were read last.
func (k *kept[T]) find(b []byte) (list []T, size int) {
	for i := range k.last {
		if l := &k.last[i]; l.raw != nil && bytes.HasPrefix(b, l.raw) {
			return l.list, len(l.raw)
		}
	}
	return nil, 0
}

func (k *kept[T]) add(raw []byte, list []T) {
	l := &k.last[k.at]
	l.raw, l.list = raw, list[:len(list):len(list)]
	k.at = (k.at + 1) % len(k.last)
}

// textBlock is how many bytes of texts are kept together at most. Whoever keeps one text keeps its block.
const textBlock = 8 << 10

// The least bytes that an encoding takes.
const (
	leastValue  = 3
	leastAssign = 1 + leastValue
)

func (d *decoder) uvarint() (uint64, bool) {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		return 0, false
	}
	d.b = d.b[size:]
	return n, true
}

func (d *decoder) varint() (int64, bool) {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		return 0, false
	}
	d.b = d.b[size:]
	return n, true
}

// bytes reads a text's length and the text, a view of the input.
func (d *decoder) bytes() ([]byte, bool) {
	n, ok := d.uvarint()
	if !ok || n > uint64(len(d.b)) {
		return nil, false
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b, true
}

// length reads the length of a list, -1 for nil, and checks it against what is left.
func (d *decoder) length(least int) (int, bool) {
	n, ok := d.uvarint()
	if !ok || n > uint64(len(d.b)/least)+1 {
		return 0, false
	}
	return int(n) - 1, true
}

// keep is b as a text of its own.
func (d *decoder) keep(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if cap(d.room)-len(d.room) < len(b) {
		if len(b) > textBlock/8 {
			return string(b)
		}
		d.room = make([]byte, 0, min(textBlock, len(b)+len(d.b)))
	}
	at := len(d.room)
	d.room = append(d.room, b...)
	return unsafe.String(&d.room[at], len(b))
}

// name is b as a text that many share.
func (d *decoder) name(b []byte) string {
	if d.next < len(d.names) && d.names[d.next] == string(b) {
		d.next++
		return d.names[d.next-1]
	}
	i, ok := d.place[string(b)]
	if !ok {
		if d.place == nil {
			d.place = map[string]int{}
		}
		i = len(d.names)
		d.names = append(d.names, string(b))
		d.place[d.names[i]] = i
	}
	d.next = i + 1
	return d.names[i]
}

// value reads the form of a value and returns its number and its text, a view of the input.
func (d *decoder) value(v *Value) (n int64, text []byte, ok bool) {
	if len(d.b) < leastValue {
		return 0, nil, false
	}
	v.Form = Form(d.b[0])
	if d.b[0] >= 0x80 { // as uvarint writes no byte
		return 0, nil, false
	}
	d.b = d.b[1:]
	if n, ok = d.varint(); !ok {
		return 0, nil, false
	}
	text, ok = d.bytes()
	return n, text, ok
}

func (d *decoder) kept(v *Value) bool {
	n, text, ok := d.value(v)
	if ok {
		v.N, v.S = n, d.keep(text)
	}
	return ok
}

// common reads what appendCommon wrote; known is false if v is none of it.
func (d *decoder) common(v reflect.Value) (ok, known bool) {
	switch p := v.Addr().Interface().(type) {
	case *Value:
		return d.kept(p), true
	case *[]Value:
		n, ok := d.length(leastValue)
		if !ok || n < 0 {
			return ok, true
		}
		*p = make([]Value, n)
		for i := range *p {
			if !d.kept(&(*p)[i]) {
				return false, true
			}
		}
		return true, true
	case *[]Assign:
		n, ok := d.length(leastAssign)
		if !ok || n < 0 {
			return ok, true
		}
		*p = make([]Assign, n)
		for i := range *p {
			a := &(*p)[i]
			b, ok := d.bytes()
			if !ok {
				return false, true
			}
			a.Field = d.name(b)
			if !d.kept(&a.Value) {
				return false, true
			}
		}
		return true, true
	case *[]string:
		begin := d.b
		if list, size := d.lists.find(begin); size > 0 {
			*p, d.b = list, begin[size:]
			return true, true
		}
		n, ok := d.length(1)
		if !ok || n < 0 {
			return ok, true
		}
		*p = make([]string, n)
		for i := range *p {
			b, ok := d.bytes()
			if !ok {
				return false, true
			}
			(*p)[i] = d.name(b)
		}
		d.lists.add(begin[:len(begin)-len(d.b)], *p)
		return true, true
	case *[]Type:
		begin := d.b
		if list, size := d.types.find(begin); size > 0 {
			*p, d.b = list, begin[size:]
			return true, true
		}
		if !d.slice(v) {
			return false, true
		}
		if *p != nil {
			d.types.add(begin[:len(begin)-len(d.b)], *p)
		}
		return true, true
	case *Rows:
		for _, part := range [...]any{&p.Fields, &p.Types, &p.cells} {
			if !d.decode(reflect.ValueOf(part).Elem()) {
				return false, true
			}
		}
		if len(p.Fields) == 0 {
			return len(p.cells) == 0, true
		}
		return len(p.cells)%len(p.Fields) == 0, true
	}
	return false, false
}

func (d *decoder) decode(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool:
		n, ok := d.uvarint()
		v.SetBool(n == 1)
		return ok && n <= 1
	case reflect.Int, reflect.Int64:
		n, ok := d.varint()
		if !ok || v.OverflowInt(n) {
			return false
		}
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
		b, ok := d.bytes()
		if ok {
			v.SetString(d.keep(b))
		}
		return ok
	case reflect.Slice:
		if ok, known := d.common(v); known {
			return ok
		}
		return d.slice(v)
	case reflect.Pointer:
		n, ok := d.uvarint()
		if !ok || n > 1 {
			return false
		}
		if n == 0 {
			return true
		}
		if d.depth == maxDepth {
			return false
		}
		v.Set(reflect.New(v.Type().Elem()))
		d.depth++
		ok = d.decode(v.Elem())
		d.depth--
		return ok
	case reflect.Interface:
		b, ok := d.bytes()
		if ok && v.Type() == errorType && len(b) > 0 {
			v.Set(reflect.ValueOf(cause(b)))
		}
		return ok && v.Type() == errorType
	case reflect.Struct:
		if ok, known := d.common(v); known {
			return ok
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
	n, ok := d.length(1)
	if !ok || n < 0 {
		return ok
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if n > len(d.b) {
			return false
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		d.b = d.b[copy(v.Bytes(), d.b):]
		return true
	}
	// Grown as it is read: what is allocated stays in proportion to the input, whatever length it claims.
	v.Set(reflect.MakeSlice(v.Type(), 0, min(n, 64)))
	for i := range n {
		if i == v.Cap() {
			v.Grow(min(i, n-i))
		}
		v.SetLen(i + 1)
		e := v.Index(i)
		e.SetZero()
		if !d.decode(e) {
			return false
		}
	}
	return true
}
