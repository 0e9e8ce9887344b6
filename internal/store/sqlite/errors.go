package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/catalog"
	"weir/internal/record"
)

// translate makes a domain error of what the driver returned. It reads codes; only the columns of a constraint, which
// SQLite has no code for, come from its message ("UNIQUE constraint failed: incident.number").
func (c *conn) translate(ctx context.Context, err error, t *catalog.Table) *record.Error {
	var domain *record.Error
	if errors.As(err, &domain) {
		return domain
	}
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return record.AsError(err)
	}
	var ext sqlite3.ExtendedErrorCode
	errors.As(err, &ext)
	switch code {
	case sqlite3.INTERRUPT:
		if ctx.Err() != nil {
			return ended(ctx.Err())
		}
		return record.Errorf(record.Timeout, "", "the statement ran longer than %s; see database.statement_timeout", c.until.timeout).Because(err)
	case sqlite3.CONSTRAINT:
		return constraint(err, ext, t)
	case sqlite3.BUSY, sqlite3.LOCKED:
		return record.Errorf(record.Unavailable, "", "another process holds the lock of the database file; see database.pool.wait").Because(err)
	case sqlite3.TOOBIG:
		return record.Errorf(record.TooLarge, "", "a value is larger than the database can hold").Because(err)
	case sqlite3.FULL:
		return record.Errorf(record.Unavailable, "", "the disk of the database file is full").Because(err)
	case sqlite3.READONLY, sqlite3.PERM:
		return record.Errorf(record.Unavailable, "", "the database file cannot be written").Because(err)
	case sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.PROTOCOL, sqlite3.NOLFS:
		c.broken = true
		return record.Errorf(record.Unavailable, "", "the database file cannot be read").Because(err)
	case sqlite3.MISMATCH:
		return record.Errorf(record.Invalid, "", "the value does not fit its column").Because(err)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "integer overflow"):
		return record.Errorf(record.Invalid, "", "a number is out of range").Because(err)
	case strings.Contains(text, "Expression tree is too large"), strings.Contains(text, "Recursion limit"), strings.Contains(text, "tables in a join"):
		return record.Errorf(record.Invalid, "", "the condition is nested too deep for the database").Because(err)
	}
	return record.AsError(err)
}

// constraint is the error of a constraint that a row broke.
func constraint(err error, ext sqlite3.ExtendedErrorCode, t *catalog.Table) *record.Error {
	field := constrained(err, t)
	switch ext {
	case sqlite3.CONSTRAINT_UNIQUE, sqlite3.CONSTRAINT_PRIMARYKEY, sqlite3.CONSTRAINT_ROWID:
		return record.Errorf(record.Conflict, field, "the value exists already").Because(err)
	case sqlite3.CONSTRAINT_FOREIGNKEY:
		return record.Errorf(record.Restricted, field, "the record refers to one that does not exist, or others refer to it").Because(err)
	case sqlite3.CONSTRAINT_NOTNULL:
		return record.Errorf(record.Invalid, field, "must not be empty").Because(err)
	case sqlite3.CONSTRAINT_TRIGGER:
		return record.Errorf(record.Rejected, field, "%s", message(err))
	}
	return record.Errorf(record.Invalid, field, "breaks a check of the database").Because(err)
}

func message(err error) string {
	_, msg, _ := strings.Cut(err.Error(), "constraint failed: ")
	if msg == "" {
		msg = "a trigger of the database refused the write"
	}
	return msg
}

// constrained is the fields that a constraint's message names, comma-separated, "" if it names none.
func constrained(err error, t *catalog.Table) string {
	if t == nil {
		return ""
	}
	_, list, _ := strings.Cut(err.Error(), "constraint failed: ")
	var fields []string
	for _, name := range strings.Split(list, ", ") {
		column := name[strings.LastIndexByte(name, '.')+1:]
		for _, f := range t.Fields {
			if f.Column == column {
				fields = append(fields, f.Name)
				break
			}
		}
	}
	return strings.Join(fields, ", ")
}
