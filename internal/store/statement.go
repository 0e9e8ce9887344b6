package store

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Statement is the compiled text of one read or set. It depends on the table and the shape of what was asked, never on
// values or their number, and it never changes: a database keeps it prepared for as long as it likes, by its SQL or by
// its address.
type Statement struct {
	SQL    string
	Params []Param  // what $1, $2 … (?1, ?2 …) take
	Out    []Output // the columns that it returns

	// Ordinal says that a column "ord" before those of Out holds the 1-based number of the row in the set (updates and
	// deletes with arrays).
	Ordinal bool
	// Keys is how many columns of Out, from the first, are the key of the row that was written (inserts with arrays,
	// whose rows the database returns in an order of its own). They are no part of what the caller asked for.
	Keys int

	args []source
}

// Param is one parameter of a statement.
type Param struct {
	Type   record.Type
	Native string // the database's own type, "" for the one that weir gives columns of Type
	Array  bool   // takes a list: an array on PostgreSQL, a JSON array on SQLite
}

// Output is one column that a statement returns.
type Output struct {
	Type   record.Type
	Native string // as in Param
}

// Arg is the value of a parameter: one value, or for an array a list of them or one column of rows. It refers to memory
// of the request.
type Arg struct {
	Value record.Value
	List  []record.Value
	Rows  [][]record.Value
	Col   int // of Rows
	Fold  bool
}

// Len is the number of elements of an array's argument.
func (a *Arg) Len() int {
	if a.Rows != nil {
		return len(a.Rows)
	}
	return len(a.List)
}

// At is element i of an array's argument.
func (a *Arg) At(i int) record.Value {
	if a.Rows != nil {
		return a.Rows[i][a.Col]
	}
	v := a.List[i]
	if a.Fold && v.Form == record.Text {
		v.S = FoldText(v.S)
	}
	return v
}

// Fit gives a value the form that a parameter of type t takes. Numbers of another form are converted where no digit is
// lost in doubt, texts are read as record.Parse does; what cannot be read is Invalid. Text that is not UTF-8 or holds a
// zero byte is Invalid on both databases, since one of them cannot store it; TypeBytes takes any text.
func Fit(t record.Type, v record.Value) (record.Value, error) {
	switch v.Form {
	case record.Null:
		return v, nil
	case record.Ref:
		return v, record.Errorf(record.Internal, "", "a reference to another op reached the database")
	case record.Text:
		if t.Textual() && t != record.TypeDate || t == record.TypeDecimal && plainDecimal(v.S) {
			if t != record.TypeBytes {
				if i := badText(v.S); i >= 0 {
					return v, record.Errorf(record.Invalid, "", "the text is not valid UTF-8 or holds a zero byte (at byte %d)", i)
				}
			}
			return v, nil
		}
		if v.S == "" {
			return record.Value{}, nil
		}
		return record.Parse(t, v.S)
	case record.Int:
		switch t {
		case record.TypeInteger, record.TypeDuration:
			return v, nil
		case record.TypeFloat:
			return record.NumValue(float64(v.N)), nil
		}
	case record.Num:
		switch t {
		case record.TypeFloat:
			return v, nil
		case record.TypeInteger, record.TypeDuration:
			if f := v.Float(); f == float64(int64(f)) && f > -1<<63 && f < 1<<63 {
				return record.IntValue(int64(f)), nil
			}
		}
	case record.Bool:
		if t == record.TypeBoolean {
			return v, nil
		}
	case record.Time:
		if t == record.TypeDateTime {
			if v.N < minTime || v.N > maxTime {
				return v, record.Errorf(record.Invalid, "", "the time is not between the years 1 and 9999")
			}
			return v, nil
		}
	}
	if t.Textual() && t != record.TypeDate {
		return record.TextValue(v.Text()), nil
	}
	return record.Parse(t, decimalText(v))
}

// The times that both databases and their texts can hold: the years 1 to 9999, in microseconds since 1970.
const (
	minTime = -62135596800_000000
	maxTime = 253402300799_999999
)

// badText is the position of the first byte of s that is no text to both databases, -1 if there is none.
func badText(s string) int {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return i
	}
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// plainDecimal reports whether s is digits with an optional sign and point, as record.Parse leaves decimals.
func plainDecimal(s string) bool {
	digits, dot := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && !dot:
			dot = true
		case i == 0 && (c == '-' || c == '+'):
		default:
			return false
		}
	}
	return digits > 0
}

// decimalText is v as text, numbers without exponent.
func decimalText(v record.Value) string {
	if v.Form == record.Num {
		return formatFloat(v.Float())
	}
	return v.Text()
}

// FoldText is s as comparisons without regard to case see it. Only ASCII letters fold: that is what lower() does on
// both databases under binary collation, so an index on it serves.
func FoldText(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if c := b[i]; c >= 'A' && c <= 'Z' {
					b[i] = c + 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// source says where the argument of a parameter comes from.
type source struct {
	kind  sourceKind
	guard *catalog.Table // constants of this table's guard; nil: of Where, or the n of its kind
	n     int            // constant in tree order; column of the keys; aggregate condition
	form  argForm
}

type sourceKind uint8

const (
	fromConst  sourceKind = iota // constant n of Where or of guard
	fromList                     // the Values of expression n of Where or of guard
	fromHaving                   // the value of Having n
	fromKeys                     // column n of all Keys
	fromKey                      // column n of the only key
	fromLimit
	fromOffset
	fromEachFirst // the place, from 1, before the first record that Each leaves
	fromEachLast  // the place of the last one
	fromRows      // column n of Rows
	fromSetKeys
)

// argForm is what happens to a constant on its way into a parameter.
type argForm uint8

const (
	asIs   argForm = iota
	folded         // FoldText
	after          // the least text after all that begin with it
	foldedAfter
)

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
