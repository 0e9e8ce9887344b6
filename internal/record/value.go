package record

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Type is the type of a field, as the catalog declares it. It says how a [Value] is read from text, stored and written.
type Type uint8

// The field types. The form of a non-null value is given with each.
const (
	TypeString    Type = iota // Text
	TypeInteger               // Int, 64 bit
	TypeDecimal               // Text, canonical decimal digits: weir moves decimals, the database computes with them
	TypeFloat                 // Num
	TypeBoolean               // Bool
	TypeDateTime              // Time, UTC, microseconds
	TypeDate                  // Text, YYYY-MM-DD
	TypeDuration              // Int, seconds
	TypeReference             // Text, the key of a record in the field's referenced table
	TypeList                  // Text, comma-separated keys
	TypeJournal               // Text; entries are appended, see the engine
	TypePassword              // Text; write-only, stored hashed outside the table
	TypeJSON                  // Text, one JSON value
	TypeGUID                  // Text, 32 lower-case hex digits in tables that weir creates
	TypeBytes                 // Text holding arbitrary bytes
	numTypes
)

var typeNames = [numTypes]string{
	"string", "integer", "decimal", "float", "boolean", "datetime", "date", "duration",
	"reference", "list", "journal", "password", "json", "guid", "bytes",
}

// String is the name of the type in table files.
func (t Type) String() string {
	if t < numTypes {
		return typeNames[t]
	}
	return "type(" + strconv.Itoa(int(t)) + ")"
}

// ParseType finds a type by its name in table files.
func ParseType(name string) (Type, bool) {
	for i, n := range typeNames {
		if n == name {
			return Type(i), true
		}
	}
	return 0, false
}

// Textual reports whether values of the type are held as Text and compare as text.
func (t Type) Textual() bool {
	switch t {
	case TypeString, TypeReference, TypeList, TypeJournal, TypePassword, TypeJSON, TypeGUID, TypeDate, TypeBytes:
		return true
	}
	return false
}

// Form says how a [Value] is held.
type Form uint8

// The forms. Ref is a value that is not known yet: the field S of the outcome of op N of the same unit.
const (
	Null Form = iota
	Bool
	Int
	Num
	Text
	Time
	Ref
)

// Value is one field's value. The zero Value is null. In tables that weir creates an empty text is null.
//
// N holds a Bool (0, 1), an Int, the bits of a Num (math.Float64bits), a Time (microseconds since 1970 UTC) or the op
// index of a Ref; S holds a Text or the field of a Ref.
type Value struct {
	Form Form
	N    int64
	S    string
}

// TextValue is a text value.
func TextValue(s string) Value { return Value{Form: Text, S: s} }

// IntValue is an integer value.
func IntValue(n int64) Value { return Value{Form: Int, N: n} }

// NumValue is a floating-point value.
func NumValue(f float64) Value { return Value{Form: Num, N: int64(math.Float64bits(f))} }

// BoolValue is a boolean value.
func BoolValue(b bool) Value {
	if b {
		return Value{Form: Bool, N: 1}
	}
	return Value{Form: Bool}
}

// TimeValue is a point in time, cut to microseconds.
func TimeValue(t time.Time) Value { return Value{Form: Time, N: t.UnixMicro()} }

// RefTo is the value of field of op's outcome, known when that op has run.
func RefTo(op int, field string) Value { return Value{Form: Ref, N: int64(op), S: field} }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.Form == Null }

// Empty reports whether v is null or the empty text.
func (v Value) Empty() bool { return v.Form == Null || v.Form == Text && v.S == "" }

// Truth reports whether v is the boolean true.
func (v Value) Truth() bool { return v.Form == Bool && v.N != 0 }

// Float is the number that v holds, 0 if it holds none.
func (v Value) Float() float64 {
	switch v.Form {
	case Num:
		return math.Float64frombits(uint64(v.N))
	case Int, Bool:
		return float64(v.N)
	case Text:
		f, _ := strconv.ParseFloat(v.S, 64)
		return f
	}
	return 0
}

// Time is the point in time that v holds.
func (v Value) Time() time.Time { return time.UnixMicro(v.N).UTC() }

// TimeLayout is the canonical text of a DateTime: UTC, without fraction when that is zero.
const TimeLayout = "2006-01-02 15:04:05"

// AppendText appends the canonical text of v: "" for null, "true"/"false", decimal digits, TimeLayout.
func (v Value) AppendText(dst []byte) []byte {
	switch v.Form {
	case Bool:
		return strconv.AppendBool(dst, v.N != 0)
	case Int:
		return strconv.AppendInt(dst, v.N, 10)
	case Num:
		return strconv.AppendFloat(dst, math.Float64frombits(uint64(v.N)), 'g', -1, 64)
	case Text:
		return append(dst, v.S...)
	case Time:
		return appendTime(dst, v.N)
	case Ref:
		dst = append(dst, '$')
		dst = strconv.AppendInt(dst, v.N, 10)
		dst = append(dst, '.')
		return append(dst, v.S...)
	}
	return dst
}

// Text is the canonical text of v, as AppendText writes it.
func (v Value) Text() string {
	if v.Form == Text {
		return v.S
	}
	return string(v.AppendText(nil))
}

// appendTime writes "YYYY-MM-DD hh:mm:ss[.ffffff]" by arithmetic; time.Format is four times slower and shows in lists.
func appendTime(dst []byte, micros int64) []byte {
	t := time.UnixMicro(micros).UTC()
	y, mo, d := t.Date()
	h, mi, s := t.Clock()
	if y < 0 || y > 9999 {
		return t.AppendFormat(dst, TimeLayout)
	}
	dst = append(dst, byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-',
		byte('0'+int(mo)/10), byte('0'+int(mo)%10), '-', byte('0'+d/10), byte('0'+d%10), ' ',
		byte('0'+h/10), byte('0'+h%10), ':', byte('0'+mi/10), byte('0'+mi%10), ':', byte('0'+s/10), byte('0'+s%10))
	if frac := t.Nanosecond() / 1000; frac != 0 {
		dst = append(dst, '.')
		for div := 100000; div > 0 && frac > 0; div /= 10 {
			dst = append(dst, byte('0'+frac/div))
			frac %= div
		}
	}
	return dst
}

// Parse reads the text of a value of type t, leniently as enterprise clients write it: blanks around numbers and times
// are ignored, booleans are true/false/1/0/yes/no in any case, times take a blank or a T, an optional fraction and an
// optional zone. The empty text is null for every type. The error is an Invalid without a field.
func Parse(t Type, s string) (Value, error) {
	if s == "" {
		return Value{}, nil
	}
	if t.Textual() && t != TypeDate {
		return TextValue(s), nil
	}
	s = strings.TrimSpace(s)
	if s == "" {
		return Value{}, nil
	}
	switch t {
	case TypeInteger, TypeDuration:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return IntValue(n), nil
		}
		if t == TypeDuration {
			return parseDuration(s)
		}
	case TypeDecimal:
		if isDecimal(s) {
			return TextValue(s), nil
		}
	case TypeFloat:
		if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return NumValue(f), nil
		}
	case TypeBoolean:
		switch strings.ToLower(s) {
		case "true", "1", "yes":
			return BoolValue(true), nil
		case "false", "0", "no":
			return BoolValue(false), nil
		}
	case TypeDateTime:
		if tm, ok := ParseTime(s); ok {
			return TimeValue(tm), nil
		}
	case TypeDate:
		if len(s) >= 10 {
			if _, err := time.Parse("2006-01-02", s[:10]); err == nil && (len(s) == 10 || s[10] == ' ' || s[10] == 'T') {
				return TextValue(s[:10]), nil
			}
		}
	}
	return Value{}, Errorf(Invalid, "", "%.60q is not a valid %s", s, t)
}

var timeLayouts = []string{
	"2006-01-02 15:04:05", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
}

// ParseTime reads a time as Parse does; without a zone it is UTC.
func ParseTime(s string) (time.Time, bool) {
	for _, layout := range timeLayouts {
		if tm, err := time.Parse(layout, s); err == nil {
			return tm.UTC(), true
		}
	}
	return time.Time{}, false
}

// parseDuration reads the vendors' text of a duration, a time counted from 1970-01-01 00:00:00.
func parseDuration(s string) (Value, error) {
	if tm, ok := ParseTime(s); ok {
		return IntValue(tm.Unix()), nil
	}
	return Value{}, Errorf(Invalid, "", "%.60q is not a valid duration", s)
}

func isDecimal(s string) bool {
	i, digits, dot := 0, 0, false
	if s[0] == '-' || s[0] == '+' {
		i++
	}
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && !dot:
			dot = true
		default:
			return false
		}
	}
	return digits > 0 && digits <= 1000
}
