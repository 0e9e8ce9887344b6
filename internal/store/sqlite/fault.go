package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/record"
	"weir/internal/store"
)

// sqlError is what SQLite says of a statement, nil when the statement is not to blame.
func sqlError(sql string, err error) *store.SQLError {
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return nil
	}
	e := &store.SQLError{Pos: -1, Code: codeName(code)}
	switch code {
	case sqlite3.ERROR, sqlite3.AUTH, sqlite3.RANGE, sqlite3.MISMATCH, sqlite3.CONSTRAINT, sqlite3.READONLY:
	default:
		return nil
	}
	_, e.Msg, _ = strings.Cut(err.Error(), ": ") // sqlite3: SQL logic error: …
	_, e.Msg, _ = strings.Cut(e.Msg, ": ")
	e.Msg = strings.TrimSuffix(e.Msg, " in "+sql)
	if e.Msg == "" {
		e.Msg = err.Error()
	}
	var at *sqlite3.Error
	if errors.As(err, &at) && at.SQL() != "" && strings.HasSuffix(sql, at.SQL()) {
		e.Pos = len(sql) - len(at.SQL())
	}
	for _, kind := range []string{"no such column: ", "no such table: ", "no such function: "} {
		name, found := strings.CutPrefix(e.Msg, kind)
		if !found {
			continue
		}
		name, _, _ = strings.Cut(name, " - ") // "- should this be a string literal in single-quotes?"
		e.Missing = strings.Trim(name, `"`)
		if e.Pos < 0 {
			_, e.Pos = store.OneOf(sql, strings.ToLower(e.Missing))
		}
	}
	return e
}

// codeName is SQLite's own name of a primary code.
func codeName(code sqlite3.ErrorCode) string {
	switch code {
	case sqlite3.ERROR:
		return "SQLITE_ERROR"
	case sqlite3.AUTH:
		return "SQLITE_AUTH"
	case sqlite3.RANGE:
		return "SQLITE_RANGE"
	case sqlite3.MISMATCH:
		return "SQLITE_MISMATCH"
	case sqlite3.CONSTRAINT:
		return "SQLITE_CONSTRAINT"
	case sqlite3.READONLY:
		return "SQLITE_READONLY"
	}
	return ""
}

// rejected is the error of a call whose endpoint's statement the database refuses: the fault is the operator's.
func rejected(err error) *record.Error {
	return record.Errorf(record.Rejected, "", "the database refuses the statement of the endpoint").Because(err)
}

// translatePlain makes a domain error of what became of an operator's statement. Data that the database does not take is the
// caller's; whatever else it says of the statement is the operator's, a Rejected with the *store.SQLError.
func (c *conn) translatePlain(ctx context.Context, err error, sql string) *record.Error {
	var domain *record.Error
	if errors.As(err, &domain) {
		return domain
	}
	cause := sqlError(sql, err)
	if cause == nil {
		return c.translate(ctx, err, nil)
	}
	switch cause.Code {
	case "SQLITE_CONSTRAINT":
		return c.translate(ctx, err, nil).Because(cause)
	case "SQLITE_MISMATCH":
		return record.Errorf(record.Invalid, "", "the database cannot use a value: %s", cause.Msg).Because(cause)
	case "SQLITE_ERROR":
		// These come of values, whatever the statement: SQLite has no code for them.
		for _, text := range []string{"integer overflow", "malformed JSON", "bad JSON path", "LIKE or GLOB pattern too complex"} {
			if strings.HasPrefix(cause.Msg, text) {
				return record.Errorf(record.Invalid, "", "the database cannot use a value: %s", cause.Msg).Because(cause)
			}
		}
	}
	return rejected(cause)
}
