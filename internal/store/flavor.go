package store

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Flavor is how one database spells what the compiler says. The two of them differ in nothing else.
//
// Texts compare by their bytes on both, which is also the order of code points: SQLite does so by itself, PostgreSQL under
// the collation "C", which every comparison that orders and every ORDER BY names, so that it does not matter how a column
// was declared. A column declared with that collation can use its index. Folding is of ASCII letters, see [FoldText].
type Flavor struct {
	Name string
	// Arrays says that parameters can be arrays: sets are one statement. Otherwise lists come as JSON arrays and sets are
	// written by a loop.
	Arrays bool
	// Lock says that rows can be locked one by one.
	Lock bool

	param  func(n int, p Param) string
	table  func(schema, name string) string
	same   [2]string                                           // equal, both null included; and the opposite
	in     func(x, list string) string                         // x is an element of list
	tuple  func(columns, lists []string) string                // columns are an element of parallel lists
	order  func(x string, t record.Type) string                // x in an order that both databases share
	sorted func(x string, desc, nulls bool) string             // one term of ORDER BY, nulls smallest
	plain  func(x string, t record.Type, native string) string // x of a native type as a value of t
	text   func(x string, t record.Type) string                // x as text
	float  func(x string, t record.Type) string                // x as a floating-point number
	lower  string                                              // formats of one argument
	upper  string
	instr  string // position of the second in the first argument, from 1; 0 if absent
	// replace has each second argument in the first be the third, null if any of them is.
	replace string
	suffix  string // the first argument ends with the second
	like    func(x, pattern string) string
	moment  string // a Date as DateTime
	shift   string // the first, a DateTime, plus the second, seconds
	since   string // seconds from the second to the first DateTime
	round   string
	// Operands stand once in what follows: a text that doubled them would grow without bound with the depth of an expression.
	mod    string                   // the remainder of two floating-point numbers, null if the second is 0
	within string                   // a whole number as a position, from 0 to a billion
	parts  map[record.ExprOp]string // parts of a DateTime or Date
	sum    func(x string, t record.Type) string
	avg    func(x string, t record.Type) string
	bool   func(agg, x string) string // min or max of a boolean
}

// shown is a column as results return it: in its own type, which the database's package reads, but arrays as JSON.
func (f *Flavor) shown(x string, t record.Type, native string) string {
	if strings.HasSuffix(native, "[]") {
		return f.plain(x, t, native)
	}
	return x
}

// GlobOf is a pattern of LIKE as one of GLOB: SQLite's LIKE does not regard case. A text that is no constant, or a parameter, is made
// into it once.
func GlobOf(pattern string) string {
	for _, r := range [][2]string{{"[", "[[]"}, {"*", "[*]"}, {"?", "[?]"}, {"%", "*"}, {"_", "?"}} {
		pattern = "replace(" + pattern + ", '" + r[0] + "', '" + r[1] + "')"
	}
	return pattern
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// DecimalCollation is the collation by which SQLite orders decimals, which it stores as text; the database registers it.
const DecimalCollation = "weir_decimal"

// The functions that SQLite lacks; the database registers them.
const (
	ShiftFunction   = "weir_shift"   // a DateTime plus seconds
	SinceFunction   = "weir_since"   // seconds between two DateTimes
	ModFunction     = "weir_mod"     // the remainder of two floating-point numbers
	DecimalSum      = "weir_sum"     // exact sum of decimals
	DecimalFunction = "weir_decimal" // a number as decimal text
	JSONFunction    = "weir_json"    // a value of a type as JSON
)

// SQLite is the flavor of SQLite.
var SQLite = &Flavor{
	Name:  "sqlite",
	param: func(n int, p Param) string { return "?" + strconv.Itoa(n) },
	table: func(schema, name string) string {
		switch schema {
		case "":
			return quoteName(name)
		case catalog.SystemSchema:
			return quoteName(schema + "_" + name)
		}
		return quoteName(schema) + "." + quoteName(name)
	},
	same: [2]string{"IS", "IS NOT"},
	in:   func(x, list string) string { return x + " IN (SELECT value FROM json_each(" + list + "))" },
	tuple: func(columns, lists []string) string {
		var values, from strings.Builder
		for i, l := range lists {
			if i == 0 {
				fmt.Fprintf(&values, "j0.value")
				fmt.Fprintf(&from, "json_each(%s) AS j0", l)
				continue
			}
			fmt.Fprintf(&values, ", j%d.value", i)
			fmt.Fprintf(&from, " JOIN json_each(%s) AS j%d ON j%d.key = j0.key", l, i, i)
		}
		return fmt.Sprintf("(%s) IN (SELECT %s FROM %s)", strings.Join(columns, ", "), values.String(), from.String())
	},
	order: func(x string, t record.Type) string {
		if t == record.TypeDecimal {
			return x + " COLLATE " + DecimalCollation
		}
		return x
	},
	sorted: func(x string, desc, nulls bool) string {
		if desc {
			return x + " DESC"
		}
		return x
	},
	plain: func(x string, t record.Type, native string) string { return x },
	text: func(x string, t record.Type) string {
		switch {
		case t == record.TypeBoolean:
			return "CASE WHEN " + x + " THEN 'true' WHEN NOT " + x + " THEN 'false' END"
		case t.Textual(), t == record.TypeDateTime, t == record.TypeDecimal:
			return x
		}
		return "CAST(" + x + " AS TEXT)"
	},
	float: func(x string, t record.Type) string { return "CAST(" + x + " AS REAL)" },
	lower: "lower(%s)",
	upper: "upper(%s)",
	instr: "instr(%s, %s)",
	// SQLite looks for nothing, and not at the third argument, when the second is ''.
	replace: "(SELECT CASE WHEN z IS NOT NULL THEN replace(x, y, z) END FROM (SELECT %s AS x, %s AS y, %s AS z))",
	suffix:  "substr(%[1]s, length(%[1]s) - length(%[2]s) + 1) = %[2]s",
	like:    func(x, pattern string) string { return x + " GLOB " + GlobOf(pattern) },
	moment:  "(%s || ' 00:00:00')",
	shift:   ShiftFunction + "(%s, %s)",
	since:   SinceFunction + "(%s, %s)",
	round:   "round(%s)",
	mod:     ModFunction + "(%s, %s)",
	within:  "CAST(min(max(%s, 0), 1000000000) AS INTEGER)",
	parts: map[record.ExprOp]string{
		record.Year:    "CAST(substr(%s, 1, 4) AS INTEGER)",
		record.Month:   "CAST(substr(%s, 6, 2) AS INTEGER)",
		record.Day:     "CAST(substr(%s, 9, 2) AS INTEGER)",
		record.Hour:    "CAST(substr(%s, 12, 2) AS INTEGER)",
		record.Minute:  "CAST(substr(%s, 15, 2) AS INTEGER)",
		record.Second:  "CAST(substr(%s, 18, 2) AS INTEGER)",
		record.Weekday: "((CAST(strftime('%%w', %s) AS INTEGER) + 6) %% 7 + 1)",
		record.Quarter: "((CAST(substr(%s, 6, 2) AS INTEGER) + 2) / 3)",
		// The text of a DateTime ends in a point and digits, or with its seconds; that of a Date before them.
		record.Fraction: "CAST('0' || substr(%s, 20) AS REAL)",
	},
	sum: func(x string, t record.Type) string {
		if t == record.TypeDecimal {
			return DecimalSum + "(" + x + ")"
		}
		return "sum(" + x + ")"
	},
	avg:  func(x string, t record.Type) string { return "avg(CAST(" + x + " AS REAL))" },
	bool: func(agg, x string) string { return agg + "(" + x + ")" },
}

// PostgreSQL is the flavor of PostgreSQL and what speaks its language. Sessions run with TimeZone UTC and DateStyle ISO,
// so that a DateTime column may be timestamp or timestamptz.
var PostgreSQL = &Flavor{
	Name:   "postgres",
	Arrays: true,
	Lock:   true,
	param: func(n int, p Param) string {
		typ := postgresTypes[p.Type]
		if p.Native != "" && !postgresText(p.Native) {
			// A cast to a type with a length would cut a value silently; the column's own check must see it.
			typ = modifier.ReplaceAllString(p.Native, "")
		}
		if p.Array {
			typ += "[]"
		}
		return "$" + strconv.Itoa(n) + "::" + typ
	},
	table: func(schema, name string) string {
		if schema == "" {
			return quoteName(name)
		}
		return quoteName(schema) + "." + quoteName(name)
	},
	same: [2]string{"IS NOT DISTINCT FROM", "IS DISTINCT FROM"},
	in:   func(x, list string) string { return x + " = ANY(" + list + ")" },
	tuple: func(columns, lists []string) string {
		return fmt.Sprintf("(%s) IN (SELECT * FROM unnest(%s))", strings.Join(columns, ", "), strings.Join(lists, ", "))
	},
	order: func(x string, t record.Type) string {
		if t.Textual() && t != record.TypeDate && t != record.TypeBytes {
			return x + ` COLLATE "C"`
		}
		return x
	},
	sorted: func(x string, desc, nulls bool) string {
		switch {
		case desc && nulls:
			return x + " DESC NULLS LAST"
		case desc:
			return x + " DESC"
		case nulls:
			return x + " NULLS FIRST"
		}
		return x
	},
	plain: func(x string, t record.Type, native string) string {
		switch {
		case native == "":
			return x
		case t == record.TypeBytes:
			return x
		case strings.HasSuffix(native, "[]"):
			return "to_json(" + x + ")::text"
		case t.Textual() && t != record.TypeDate:
			if postgresText(native) {
				return x
			}
			return x + "::text"
		case t == record.TypeDecimal && !strings.HasPrefix(native, "numeric"):
			return x + "::numeric"
		case t == record.TypeFloat:
			return x + "::float8"
		}
		return x
	},
	text: func(x string, t record.Type) string {
		if t.Textual() && t != record.TypeDate {
			return x
		}
		return "(" + x + ")::text"
	},
	float:   func(x string, t record.Type) string { return "(" + x + ")::float8" },
	lower:   `lower(%s COLLATE "C")`,
	upper:   `upper(%s COLLATE "C")`,
	instr:   "strpos(%s, %s)",
	replace: "replace(%s, %s, %s)",
	suffix:  "right(%[1]s, length(%[2]s)) = %[2]s",
	like:    func(x, pattern string) string { return x + " LIKE " + pattern + " ESCAPE ''" },
	moment:  "(%s)::timestamp",
	shift:   "(%s + make_interval(secs => (%s)::float8))",
	since:   "extract(epoch FROM (%s) - (%s))::float8",
	// round(float8) rounds halves to even, and a cast to numeric keeps 15 digits; the text has them all.
	round: "round((%s)::float8::text::numeric)::float8",
	// OFFSET 0 keeps the planner from writing the operands out wherever they are named.
	mod:    "(SELECT x - y * trunc(x / nullif(y, 0)) FROM (SELECT %s AS x, %s AS y OFFSET 0) AS m)",
	within: "(SELECT CASE WHEN n < 0 THEN 0 WHEN n > 1000000000 THEN 1000000000 ELSE n END FROM (SELECT %s AS n OFFSET 0) AS w)::integer",
	parts: map[record.ExprOp]string{
		record.Year:    "extract(year FROM (%s)::timestamp)::bigint",
		record.Month:   "extract(month FROM (%s)::timestamp)::bigint",
		record.Day:     "extract(day FROM (%s)::timestamp)::bigint",
		record.Hour:    "extract(hour FROM (%s)::timestamp)::bigint",
		record.Minute:  "extract(minute FROM (%s)::timestamp)::bigint",
		record.Second:  "floor(extract(second FROM (%s)::timestamp))::bigint",
		record.Weekday: "extract(isodow FROM (%s)::timestamp)::bigint",
		record.Quarter: "extract(quarter FROM (%s)::timestamp)::bigint",
		// Divided as SQLite reads digits, so that both give the nearest number.
		record.Fraction: "((extract(microseconds FROM (%s)::timestamp)::bigint %% 1000000)::float8 / 1000000)",
	},
	sum: func(x string, t record.Type) string {
		if t == record.TypeInteger || t == record.TypeDuration {
			return "sum(" + x + ")::bigint"
		}
		return "sum(" + x + ")"
	},
	avg:  func(x string, t record.Type) string { return "avg((" + x + ")::float8)" },
	bool: func(agg, x string) string { return agg + "((" + x + ")::int)::boolean" },
}

var modifier = regexp.MustCompile(`\(\s*\d+\s*(,\s*-?\d+\s*)?\)`)

// postgresTypes are the types of parameters, and of the columns that weir creates.
var postgresTypes = map[record.Type]string{
	record.TypeString: "text", record.TypeInteger: "bigint", record.TypeDecimal: "numeric", record.TypeFloat: "float8",
	record.TypeBoolean: "boolean", record.TypeDateTime: "timestamp", record.TypeDate: "date", record.TypeDuration: "bigint",
	record.TypeReference: "text", record.TypeList: "text", record.TypeJournal: "text", record.TypePassword: "text",
	record.TypeJSON: "text", record.TypeGUID: "text", record.TypeBytes: "bytea",
}

// postgresText reports whether a native type behaves as text in comparisons and functions.
func postgresText(native string) bool {
	base, _, _ := strings.Cut(native, "(")
	switch strings.TrimSpace(base) {
	case "text", "character varying", "varchar", "character", "char", "bpchar":
		return !strings.HasSuffix(native, "[]")
	}
	return false
}
