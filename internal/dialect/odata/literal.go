package odata

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
)

// literal is a literal of a URL with the kind that its spelling has by itself, which need not be that of the property beside
// it: 5 is an Int64, 2.5 a Decimal, 1e3 a Double; datetime'…' is a DateTimeOffset, time'…' a Duration; a GUID is 32 hex digits. A
// duration that is no whole number of seconds is a Num. null is a Null of any kind.
type literal struct {
	kind  edm.Kind
	value record.Value
}

func (l literal) null() bool { return l.value.IsNull() }

// parseLiteral reads the text of a literal, percent-encoding removed, as a value of kind (protocol notes, section 2, "Literals"; in
// V4 the bare literals of its ABNF). null is the null value. The error is an Invalid without a field.
//
// A GUID is 32 lower-case hex digits: what a field stores is up to storedValue.
func parseLiteral(ver version, kind edm.Kind, text string) (record.Value, error) {
	l, err := readLiteral(ver, text)
	if err != nil {
		return record.Value{}, err
	}
	return l.as(ver, kind, text)
}

func noLiteral(text string) error {
	return record.Errorf(record.Invalid, "", "%.80s is no literal", text)
}

// readLiteral reads a literal by its spelling alone.
func readLiteral(ver version, s string) (literal, error) {
	if s == "" {
		return literal{}, record.Errorf(record.Invalid, "", "a literal is missing")
	}
	switch s {
	case "null":
		return literal{}, nil
	case "true":
		return literal{edm.Boolean, record.BoolValue(true)}, nil
	case "false":
		return literal{edm.Boolean, record.BoolValue(false)}, nil
	}
	if s[0] == '\'' {
		text, ok := unquote(s)
		if !ok {
			return literal{}, record.Errorf(record.Invalid, "", "the string %.80s is not closed, or goes on after its end", s)
		}
		return literal{edm.String, record.TextValue(text)}, nil
	}
	if i := strings.IndexByte(s, '\''); i > 0 {
		return readPrefixed(ver, s[:i], s[i:])
	}
	if ver == v4 {
		if l, ok := readBare(s); ok {
			return l, nil
		}
	}
	return readNumber(ver, s)
}

// unquote is the text between single quotes, doubled ones made single. It is false if the first quote that is not doubled is
// not the last character.
func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '\'' || s[len(s)-1] != '\'' {
		return "", false
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\'') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		b = append(b, s[i])
		if s[i] == '\'' {
			if i++; i >= len(s) || s[i] != '\'' {
				return "", false
			}
		}
	}
	return string(b), true
}

// readPrefixed reads a literal such as datetime'2024-01-31T10:00:00'.
func readPrefixed(ver version, prefix, quoted string) (literal, error) {
	whole := prefix + quoted
	text, ok := unquote(quoted)
	if !ok {
		return literal{}, record.Errorf(record.Invalid, "", "the literal %.80s is not closed, or goes on after its end", whole)
	}
	switch name := strings.ToLower(prefix); {
	case name == "guid":
		if id, ok := readGUID(text); ok {
			return literal{edm.GUID, record.TextValue(id)}, nil
		}
	case ver == v2 && (name == "datetime" || name == "datetimeoffset"):
		if at, ok := readTime(text, name == "datetimeoffset"); ok {
			return literal{edm.DateTimeOffset, at}, nil
		}
	case ver == v2 && name == "time", ver == v4 && name == "duration":
		if d, ok := readDuration(text); ok {
			return literal{edm.Duration, d}, nil
		}
	case ver == v2 && (name == "binary" || name == "x"):
		if b, ok := readHex(text); ok {
			return literal{edm.Binary, record.TextValue(b)}, nil
		}
	case ver == v4 && name == "binary":
		if b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "=")); err == nil {
			return literal{edm.Binary, record.TextValue(string(b))}, nil
		}
	default:
		return literal{}, record.Errorf(record.Invalid, "", "%.40s'…' is no kind of literal", prefix)
	}
	return literal{}, record.Errorf(record.Invalid, "", "%.80s is malformed", whole)
}

// readBare reads the literals of V4 that stand without quotes, numbers aside.
func readBare(s string) (literal, bool) {
	switch {
	case len(s) == 36 && s[8] == '-' && s[13] == '-':
		if id, ok := readGUID(s); ok {
			return literal{edm.GUID, record.TextValue(id)}, true
		}
	case len(s) == 10 && s[4] == '-':
		if isDate(s) {
			return literal{edm.Date, record.TextValue(s)}, true
		}
	case len(s) > 10 && s[4] == '-' && (s[10] == 'T' || s[10] == 't'):
		if at, ok := readTime(s, true); ok {
			return literal{edm.DateTimeOffset, at}, true
		}
	case len(s) >= 5 && s[2] == ':':
		if t, ok := readClock(s); ok {
			return literal{edm.TimeOfDay, record.TextValue(t)}, true
		}
	}
	switch strings.ToLower(s) {
	case "true":
		return literal{edm.Boolean, record.BoolValue(true)}, true
	case "false":
		return literal{edm.Boolean, record.BoolValue(false)}, true
	}
	return literal{}, false
}

// readNumber reads a number, maybe with the suffix of its type: V2's, which SAP Cloud SDK writes in V4 too.
func readNumber(ver version, s string) (literal, error) {
	text, kind := s, edm.ComplexKind
	switch last := s[len(s)-1]; {
	case len(s) < 2:
	case last == 'L' || last == 'l':
		kind = edm.Int64
	case last == 'M' || last == 'm':
		kind = edm.Decimal
	case last == 'D' || last == 'd':
		kind = edm.Double
	case last == 'F' && !strings.HasSuffix(s, "INF"), last == 'f':
		kind = edm.Single
	}
	if kind != edm.ComplexKind {
		text = s[:len(s)-1]
	}
	switch text {
	case "INF", "-INF", "NaN":
		if kind == edm.ComplexKind {
			kind = edm.Double
		}
		if kind == edm.Double || kind == edm.Single {
			f := math.NaN()
			if text != "NaN" {
				f = math.Inf(len("INF") - len(text))
			}
			return literal{kind, record.NumValue(f)}, nil
		}
		return literal{}, noLiteral(s)
	}
	whole, point, exponent := shapeOfNumber(text)
	switch {
	case !whole:
		return literal{}, noLiteral(s)
	case kind == edm.Int64, kind == edm.ComplexKind && !point && !exponent:
		if point || exponent {
			return literal{}, noLiteral(s)
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return literal{edm.Int64, record.IntValue(n)}, nil
		}
		if kind == edm.Int64 {
			return literal{}, record.Errorf(record.Invalid, "", "%.80s is no %s", s, kindName(ver, kind))
		}
		kind = edm.Decimal
	case kind == edm.ComplexKind && exponent:
		kind = edm.Double
	case kind == edm.ComplexKind:
		kind = edm.Decimal
	}
	if kind == edm.Decimal {
		digits, ok := plainDigits(text)
		if !ok {
			return literal{}, record.Errorf(record.Invalid, "", "%.80s has more than %d digits", s, maxDigits)
		}
		return literal{kind, record.TextValue(digits)}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return literal{}, record.Errorf(record.Invalid, "", "%.80s is no %s", s, kindName(ver, kind))
	}
	return literal{kind, record.NumValue(f)}, nil
}

// shapeOfNumber reports whether s is a number of decimal digits, and what it has besides.
func shapeOfNumber(s string) (ok, point, exponent bool) {
	i := 0
	sign := func() {
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			i++
		}
	}
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	sign()
	ok = digits()
	if i < len(s) && s[i] == '.' {
		i++
		point = true
		ok = digits() || ok
	}
	if ok && i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		exponent = true
		sign()
		ok = digits()
	}
	return ok && i == len(s), point, exponent
}

// plainDigits is a number without exponent, plus sign and zeros that say nothing in front. It is false if it has too many digits.
func plainDigits(s string) (string, bool) {
	negative := false
	if s[0] == '-' || s[0] == '+' {
		negative, s = s[0] == '-', s[1:]
	}
	shift := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n > maxDigits || n < -maxDigits {
			return "", false
		}
		s, shift = s[:i], n
	}
	whole, frac, _ := strings.Cut(s, ".")
	switch {
	case shift > 0:
		if n := shift - len(frac); n > 0 {
			frac += strings.Repeat("0", n)
		}
		whole, frac = whole+frac[:shift], frac[shift:]
	case shift < 0:
		if n := -shift - len(whole); n > 0 {
			whole = strings.Repeat("0", n) + whole
		}
		whole, frac = whole[:len(whole)+shift], whole[len(whole)+shift:]+frac
	}
	whole = strings.TrimLeft(whole, "0")
	if len(whole)+len(frac) > maxDigits {
		return "", false
	}
	if whole == "" {
		whole = "0"
	}
	if frac != "" {
		whole += "." + frac
	}
	if negative && strings.Trim(whole, "0.") != "" {
		whole = "-" + whole
	}
	return whole, true
}

// readGUID reads 36 characters of a GUID into 32 lower-case hex digits.
func readGUID(s string) (string, bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", false
	}
	return hexOfGUID(s)
}

// hexOfGUID is a GUID, with or without hyphens, as 32 lower-case hex digits.
func hexOfGUID(s string) (string, bool) {
	var b [32]byte
	n := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '-' {
			continue
		}
		if c >= 'A' && c <= 'F' {
			c += 'a' - 'A'
		}
		if hexDigit(c) < 0 || n == len(b) {
			return "", false
		}
		b[n] = c
		n++
	}
	return string(b[:]), n == len(b)
}

// storedValue is a value of kind as a field stores it: a GUID without hyphens in columns that weir creates, with them in the
// database's own type, and as parameters of functions, which have no field. Other kinds stay as they are.
func storedValue(kind edm.Kind, f *catalog.Field, v record.Value) record.Value {
	if kind != edm.GUID || v.Form != record.Text {
		return v
	}
	if f != nil && (f.Native == "" || f.MaxLength == 32) {
		if id, ok := hexOfGUID(v.S); ok {
			v.S = id
		}
		return v
	}
	v.S = string(appendGUID(nil, v.S))
	return v
}

func readHex(s string) (string, bool) {
	if len(s)%2 != 0 {
		return "", false
	}
	b := make([]byte, len(s)/2)
	for i := range b {
		hi, lo := hexDigit(s[2*i]), hexDigit(s[2*i+1])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b[i] = byte(hi<<4 | lo)
	}
	return string(b), true
}

// twoDigits reads two digits at s[i:], -1 if they are none.
func twoDigits(s string, i int) int {
	if i+2 > len(s) || s[i] < '0' || s[i] > '9' || s[i+1] < '0' || s[i+1] > '9' {
		return -1
	}
	return int(s[i]-'0')*10 + int(s[i+1]-'0')
}

// isDate reports whether s is YYYY-MM-DD and a day of the calendar.
func isDate(s string) bool {
	_, ok := dayOf(s)
	return ok
}

// dayOf is the beginning of a day.
func dayOf(s string) (time.Time, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return time.Time{}, false
	}
	century, year, month, day := twoDigits(s, 0), twoDigits(s, 2), twoDigits(s, 5), twoDigits(s, 8)
	if century < 0 || year < 0 || century+year == 0 || month < 1 || month > 12 || day < 1 {
		return time.Time{}, false
	}
	at := time.Date(century*100+year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return at, at.Day() == day
}

// clock is a time of day.
type clock struct{ hour, minute, second, nanos int }

// readTimeOfDay reads hh:mm[:ss[.f…]] at the beginning of s and returns what follows it.
func readTimeOfDay(s string) (c clock, rest string, ok bool) {
	c.hour, c.minute = twoDigits(s, 0), twoDigits(s, 3)
	if c.hour < 0 || c.hour > 23 || c.minute < 0 || c.minute > 59 || s[2] != ':' {
		return c, "", false
	}
	s = s[5:]
	if s == "" || s[0] != ':' {
		return c, s, true
	}
	if c.second = twoDigits(s, 1); c.second < 0 || c.second > 59 {
		return c, "", false
	}
	if s = s[3:]; s == "" || s[0] != '.' {
		return c, s, true
	}
	i, unit := 1, 100_000_000
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		c.nanos += int(s[i]-'0') * unit
		unit /= 10
	}
	return c, s[i:], i > 1
}

// readTime reads YYYY-MM-DDThh:mm[:ss[.f…]] with a zone, which a time of V2 lacks and then is UTC; zoned says that there must be
// one. Digits beyond the microseconds are cut.
func readTime(s string, zoned bool) (record.Value, bool) {
	if len(s) < 16 || s[10] != 'T' && s[10] != 't' {
		return record.Value{}, false
	}
	day, ok := dayOf(s[:10])
	if !ok {
		return record.Value{}, false
	}
	c, zone, ok := readTimeOfDay(s[11:])
	if !ok {
		return record.Value{}, false
	}
	at := day.Add(time.Duration(c.hour)*time.Hour + time.Duration(c.minute)*time.Minute + time.Duration(c.second)*time.Second)
	switch {
	case zone == "":
		if zoned {
			return record.Value{}, false
		}
	case zone == "Z" || zone == "z":
	case len(zone) == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':':
		hours, minutes := twoDigits(zone, 1), twoDigits(zone, 4)
		if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
			return record.Value{}, false
		}
		d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
		if zone[0] == '+' {
			d = -d
		}
		at = at.Add(d)
	default:
		return record.Value{}, false
	}
	if y := at.Year(); y < 1 || y > 9999 {
		return record.Value{}, false
	}
	v := record.TimeValue(at)
	v.N += int64(c.nanos / 1000)
	return v, true
}

// readClock reads a time of day as it is stored: hh:mm:ss, with a fraction if it has one.
func readClock(s string) (string, bool) {
	c, rest, ok := readTimeOfDay(s)
	if !ok || rest != "" {
		return "", false
	}
	return string(appendTimeOfDay(nil, c)), true
}

func appendTimeOfDay(dst []byte, c clock) []byte {
	two := func(n int) { dst = append(dst, byte('0'+n/10), byte('0'+n%10)) }
	two(c.hour)
	dst = append(dst, ':')
	two(c.minute)
	dst = append(dst, ':')
	two(c.second)
	return appendFraction(dst, c.nanos)
}

// appendFraction appends a point and the digits of nanos, zeros at the end left out; nothing for 0.
func appendFraction(dst []byte, nanos int) []byte {
	if nanos == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit := 100_000_000; nanos > 0; unit /= 10 {
		dst = append(dst, byte('0'+nanos/unit))
		nanos %= unit
	}
	return dst
}

// maxSeconds bounds durations, so that arithmetic on them stays exact.
const maxSeconds = 1 << 52

var secondsOf = map[byte]int64{'D': 86400, 'H': 3600, 'M': 60, 'S': 1}

// digitsAt is how many digits s begins with.
func digitsAt(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// readDuration reads [-]P[nD][T[nH][nM][n[.f]S]] as seconds: an Int if they are whole, else a Num.
func readDuration(s string) (record.Value, bool) {
	sign := int64(1)
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	if len(s) < 3 || s[0] != 'P' {
		return record.Value{}, false
	}
	s = s[1:]
	var seconds int64
	var fraction float64
	units, found, inTime := "D", false, false
	for s != "" {
		if s[0] == 'T' && !inTime && len(s) > 1 {
			units, s, inTime = "HMS", s[1:], true
			continue
		}
		i := digitsAt(s)
		n, err := strconv.ParseInt(s[:i], 10, 54)
		if err != nil {
			return record.Value{}, false
		}
		s = s[i:]
		part := ""
		if s != "" && s[0] == '.' {
			i = 1 + digitsAt(s[1:])
			part, s = s[:i], s[i:]
			if len(part) < 2 || s == "" || s[0] != 'S' {
				return record.Value{}, false
			}
		}
		if s == "" {
			return record.Value{}, false
		}
		at := strings.IndexByte(units, s[0])
		if at < 0 {
			return record.Value{}, false
		}
		size := secondsOf[s[0]]
		if n > maxSeconds/size {
			return record.Value{}, false
		}
		if seconds += n * size; seconds > maxSeconds {
			return record.Value{}, false
		}
		if part != "" {
			fraction, _ = strconv.ParseFloat("0"+part, 64)
		}
		units, s, found = units[at+1:], s[1:], true
	}
	if !found {
		return record.Value{}, false
	}
	if fraction != 0 {
		return record.NumValue(float64(sign) * (float64(seconds) + fraction)), true
	}
	return record.IntValue(sign * seconds), true
}

// ranges are the bounds of the whole numbers.
var ranges = map[edm.Kind][2]int64{
	edm.Byte: {0, math.MaxUint8}, edm.SByte: {math.MinInt8, math.MaxInt8}, edm.Int16: {math.MinInt16, math.MaxInt16},
	edm.Int32: {math.MinInt32, math.MaxInt32}, edm.Int64: {math.MinInt64, math.MaxInt64},
}

// as is the literal as a value of a property's kind; text is for the error.
func (l literal) as(ver version, kind edm.Kind, text string) (record.Value, error) {
	if l.null() {
		return l.value, nil
	}
	wrong := func() (record.Value, error) {
		return record.Value{}, record.Errorf(record.Invalid, "", "%.80s is no %s", text, kindName(ver, kind))
	}
	v := l.value
	switch kind {
	case edm.Byte, edm.SByte, edm.Int16, edm.Int32, edm.Int64:
		if !l.kind.Numeric() {
			return wrong()
		}
		n, ok := wholeNumber(v)
		if bound := ranges[kind]; !ok || n < bound[0] || n > bound[1] {
			return wrong()
		}
		return record.IntValue(n), nil
	case edm.Decimal:
		switch {
		case !l.kind.Numeric():
			return wrong()
		case v.Form == record.Int:
			return record.TextValue(v.Text()), nil
		case v.Form == record.Num:
			digits, ok := plainDigits(strconv.FormatFloat(v.Float(), 'g', -1, 64))
			if f := v.Float(); !ok || math.IsInf(f, 0) || math.IsNaN(f) {
				return wrong()
			}
			return record.TextValue(digits), nil
		}
		return v, nil
	case edm.Single, edm.Double:
		f := v.Float()
		if kind == edm.Single {
			f = float64(float32(f)) // what such a property holds
		}
		if !l.kind.Numeric() || math.IsInf(f, 0) || math.IsNaN(f) {
			return wrong()
		}
		if f == 0 && text[0] == '-' { // a whole number has no sign then
			f = math.Copysign(0, -1)
		}
		return record.NumValue(f), nil
	case edm.Boolean:
		if l.kind == edm.Int64 && ver == v2 && (v.N == 0 || v.N == 1) {
			return record.BoolValue(v.N == 1), nil
		}
	case edm.DateTimeOffset:
		if l.kind == edm.Date {
			day, _ := dayOf(v.S)
			return record.TimeValue(day), nil
		}
	case edm.Date:
		if l.kind == edm.DateTimeOffset {
			if v.N%int64(24*time.Hour/time.Microsecond) != 0 {
				return wrong()
			}
			return record.TextValue(v.Time().Format(time.DateOnly)), nil
		}
	case edm.TimeOfDay:
		if l.kind == edm.Duration {
			c, ok := clockOf(v.Float())
			if !ok {
				return wrong()
			}
			return record.TextValue(string(appendTimeOfDay(nil, c))), nil
		}
	case edm.Duration:
		if l.kind == edm.String && ver == v4 { // 4.01 may leave the prefix out
			var ok bool
			if v, ok = readDuration(v.S); !ok {
				return wrong()
			}
			l.kind = edm.Duration
		}
		if l.kind == edm.Duration && v.Form != record.Int {
			return record.Value{}, record.Errorf(record.Invalid, "", "%.80s: durations are whole seconds", text)
		}
	}
	if l.kind != kind {
		return wrong()
	}
	return v, nil
}

// wholeNumber is a number as an integer; false if it has a fraction or is too large.
func wholeNumber(v record.Value) (int64, bool) {
	switch v.Form {
	case record.Int:
		return v.N, true
	case record.Num:
		f := v.Float()
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<63
	case record.Text:
		whole, frac, _ := strings.Cut(v.S, ".")
		n, err := strconv.ParseInt(whole, 10, 64)
		return n, err == nil && strings.Trim(frac, "0") == ""
	}
	return 0, false
}

// clockOf is the time of day that is so many seconds after midnight.
func clockOf(seconds float64) (clock, bool) {
	if seconds < 0 || seconds >= 86400 {
		return clock{}, false
	}
	n := int(seconds)
	nanos := int(math.Round((seconds - float64(n)) * 1e9))
	if nanos > 999_999_999 {
		nanos = 999_999_999
	}
	return clock{n / 3600, n / 60 % 60, n % 60, nanos}, true
}

// appendLiteral appends a value as it stands in URLs of the version, percent-encoded: 'O%27%27Neil', datetime'2024-01-31T10%3A00%3A00'
// or 2024-01-31T10:00:00Z (protocol notes, sections 2 and 9). parseLiteral reads it back.
func appendLiteral(dst []byte, ver version, kind edm.Kind, v record.Value) []byte {
	if v.IsNull() {
		return append(dst, "null"...)
	}
	prop := edm.Property{Kind: kind}
	open, end := "", ""
	switch kind {
	case edm.String:
		open, end = "'", "'"
	case edm.GUID:
		if ver == v2 {
			open, end = "guid'", "'"
		}
	case edm.DateTimeOffset, edm.Date:
		if ver == v2 {
			open, end = "datetime'", "'"
		}
	case edm.TimeOfDay, edm.Duration:
		if ver == v2 {
			open, end = "time'", "'"
		} else if kind == edm.Duration {
			open, end = "duration'", "'"
		}
	case edm.Int64:
		if ver == v2 {
			end = "L"
		}
	case edm.Decimal:
		if ver == v2 {
			end = "M"
		}
	case edm.Single:
		if ver == v2 && v.Form == record.Num && unreal(v.Float()) == "" {
			end = "f"
		}
	case edm.Double:
		if ver == v2 && v.Form == record.Num && unreal(v.Float()) == "" {
			end = "d"
		}
	case edm.Binary:
		dst = append(dst, "binary'"...)
		if ver == v2 {
			return append(appendHexUpper(dst, v.S), '\'')
		}
		return append(base64.RawURLEncoding.AppendEncode(dst, []byte(v.S)), '\'')
	}
	dst = append(dst, open...)
	if kind == edm.String && v.Form == record.Text {
		dst = appendEscaped(dst, v.S, true)
	} else {
		var room [64]byte
		dst = appendEscaped(dst, string(appendRaw(room[:0], ver, &prop, v)), false)
	}
	return append(dst, end...)
}
