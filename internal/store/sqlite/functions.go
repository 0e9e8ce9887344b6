package sqlite

import (
	"bytes"
	"iter"
	"math"
	"math/big"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/record"
	"weir/internal/store"
)

// register gives a connection what the flavor of SQLite names and SQLite lacks.
func register(db *sqlite3.Conn) error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	if err := db.CreateCollation(store.DecimalCollation, compareDecimals); err != nil {
		return err
	}
	if err := db.CreateFunction(store.ShiftFunction, 2, flags, shift); err != nil {
		return err
	}
	if err := db.CreateFunction(store.SinceFunction, 2, flags, since); err != nil {
		return err
	}
	if err := db.CreateFunction(store.ModFunction, 2, flags, remainder); err != nil {
		return err
	}
	if err := db.CreateFunction(store.JSONFunction, 2, flags|sqlite3.RESULT_SUBTYPE, jsonValue); err != nil {
		return err
	}
	return db.CreateAggregateFunction(store.DecimalSum, 1, flags, sumDecimals)
}

// shift is a DateTime plus seconds.
func shift(ctx sqlite3.Context, arg ...sqlite3.Value) {
	n, ok := parseMicros(view(arg[0].RawText()))
	if !ok || arg[1].Type() == sqlite3.NULL {
		return
	}
	if arg[1].Type() == sqlite3.INTEGER {
		n += arg[1].Int64() * 1_000_000
	} else {
		n += int64(math.Round(arg[1].Float() * 1e6))
	}
	ctx.ResultText(record.Value{Form: record.Time, N: n}.Text())
}

// since is the seconds from the second DateTime to the first.
func since(ctx sqlite3.Context, arg ...sqlite3.Value) {
	a, ok := parseMicros(view(arg[0].RawText()))
	if !ok {
		return
	}
	if b, ok := parseMicros(view(arg[1].RawText())); ok {
		ctx.ResultFloat(float64(a-b) / 1e6)
	}
}

// remainder is the first number without as many of the second as fit into it; null if one is null or the second is 0.
func remainder(ctx sqlite3.Context, arg ...sqlite3.Value) {
	if arg[0].Type() == sqlite3.NULL || arg[1].Type() == sqlite3.NULL {
		return
	}
	if x, y := arg[0].Float(), arg[1].Float(); y != 0 {
		whole := y * math.Trunc(x/y)
		ctx.ResultFloat(x - whole)
	}
}

// decimal is the parts of a decimal's text, zeros that say nothing left out.
func decimal(s []byte) (negative bool, whole, frac []byte) {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	whole, frac, _ = bytes.Cut(s, []byte{'.'})
	whole = bytes.TrimLeft(whole, "0")
	frac = bytes.TrimRight(frac, "0")
	return negative && len(whole)+len(frac) > 0, whole, frac
}

// compareDecimals orders texts of decimals as numbers, exactly.
func compareDecimals(a, b []byte) int {
	an, aw, af := decimal(a)
	bn, bw, bf := decimal(b)
	switch {
	case an && !bn:
		return -1
	case bn && !an:
		return 1
	}
	order := len(aw) - len(bw)
	if order == 0 {
		order = bytes.Compare(aw, bw)
	}
	if order == 0 {
		order = bytes.Compare(af, bf)
	}
	if an {
		return -order
	}
	return order
}

// sumDecimals is the exact sum of decimals, with as many decimal places as the longest of them.
func sumDecimals(ctx *sqlite3.Context, rows iter.Seq[[]sqlite3.Value]) {
	var (
		sum, term, ten = new(big.Int), new(big.Int), big.NewInt(10)
		scale          int
		any            bool
	)
	raise := func(x *big.Int, n int) { x.Mul(x, new(big.Int).Exp(ten, big.NewInt(int64(n)), nil)) }
	for row := range rows {
		if row[0].Type() == sqlite3.NULL {
			continue
		}
		text := row[0].Text()
		whole, frac, _ := strings.Cut(text, ".")
		if _, ok := term.SetString(whole+frac, 10); !ok {
			continue
		}
		any = true
		if n := len(frac); n > scale {
			raise(sum, n-scale)
			scale = n
		} else if n < scale {
			raise(term, scale-n)
		}
		sum.Add(sum, term)
	}
	if any {
		ctx.ResultText(placed(sum, scale))
	}
}

// placed is n with scale decimal places.
func placed(n *big.Int, scale int) string {
	if scale == 0 {
		return n.String()
	}
	s := new(big.Int).Abs(n).String()
	if len(s) <= scale {
		s = strings.Repeat("0", scale-len(s)+1) + s
	}
	s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	if n.Sign() < 0 {
		s = "-" + s
	}
	return s
}
