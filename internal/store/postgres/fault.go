package postgres

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/record"
	"weir/internal/store"
)

// infrastructure is the classes of codes that say nothing about a statement.
var infrastructure = []string{"08", "53", "57", "58", "28", "3D", "40", "55"}

func infra(code string) bool {
	for _, class := range infrastructure {
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

// sqlError is what the server says of a statement.
func sqlError(sql string, pg *pgconn.PgError) *store.SQLError {
	e := &store.SQLError{Msg: pg.Message, Code: pg.Code, Pos: -1}
	if pg.Position > 0 && pg.InternalQuery == "" {
		e.Pos = byteAt(sql, int(pg.Position))
	}
	switch pg.Code {
	case "42703", "42P01", "42883": // column, table, function
		// The server's message may be in any language; the name stands where it points.
		if e.Pos >= 0 {
			e.Missing = nameAt(sql[e.Pos:])
		}
	}
	return e
}

// byteAt is the byte of the n-th character, from 1.
func byteAt(s string, n int) int {
	at := 0
	for ; n > 1 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

// nameAt is the name that s begins with, qualified as it stands there.
func nameAt(s string) string {
	i := 0
	for i < len(s) {
		if s[i] == '"' {
			end := strings.IndexByte(s[i+1:], '"')
			if end < 0 {
				return s[:i]
			}
			i += end + 2
		} else {
			n := strings.IndexFunc(s[i:], func(r rune) bool { return r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				return s
			}
			i += n
		}
		if i >= len(s) || s[i] != '.' {
			break
		}
		i++
	}
	return s[:i]
}

// faulty is the error of a statement that cannot be prepared: a *store.SQLError, unless the statement is not to blame.
func faulty(ctx context.Context, err error, sql string) error {
	var pg *pgconn.PgError
	if asPgError(err, &pg) && !infra(pg.Code) {
		return sqlError(sql, pg)
	}
	return translate(ctx, err, nil)
}

// rejected is the error of a call whose endpoint's statement the database refuses: the fault is the operator's.
func rejected(err error) *record.Error {
	return record.Errorf(record.Rejected, "", "the database refuses the statement of the endpoint").Because(err)
}

// parameter finds the parameter in the context of an error: "unnamed portal parameter $2 = 'x'".
var parameter = regexp.MustCompile(`\$[0-9]+`)

// fault is the error of an operator's statement on a connection. A right that a caller's own user lacks is the caller's.
func (l lease) fault(ctx context.Context, err error, sql string) *record.Error {
	e := translatePlain(ctx, err, sql)
	var cause *store.SQLError
	if l.pooled == nil && errors.As(e, &cause) && cause.Code == "42501" {
		return record.Errorf(record.Forbidden, "", "the database does not allow this to its user").Because(cause)
	}
	return e
}

// translatePlain makes a domain error of what became of an operator's statement. Data that the database does not take is the
// caller's; whatever else it says of the statement is the operator's, a Rejected with the *store.SQLError.
func translatePlain(ctx context.Context, err error, sql string) *record.Error {
	var pg *pgconn.PgError
	if !asPgError(err, &pg) {
		return translate(ctx, err, nil)
	}
	if infra(pg.Code) || pg.Code == "25006" || pg.Code == "0A000" && pg.Routine == "RevalidateCachedQuery" {
		return translate(ctx, err, nil)
	}
	cause := sqlError(sql, pg)
	switch {
	case pg.Code == "P0001", strings.HasPrefix(pg.Code, "23"), strings.HasPrefix(pg.Code, "44"), strings.HasPrefix(pg.Code, "54"):
		return translate(ctx, err, nil).Because(cause)
	case strings.HasPrefix(pg.Code, "22"):
		e := record.Errorf(record.Invalid, "", "the database cannot use a value: %s", pg.Message).Because(cause)
		if at := parameter.FindString(pg.Where); at != "" && strings.Contains(pg.Where, "portal") {
			e.Field = at
		}
		return e
	}
	return rejected(cause)
}
