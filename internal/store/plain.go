package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unsafe"

	"weir/internal/record"
)

// Plain runs the operator's own SQL, that of SQL endpoints. It runs without the rights of a superuser, reaches none of weir's
// own tables, and holds none but statements that read and write rows (see [FirstWord]).
//
// A statement is a [Statement], best made once and kept, since a connection remembers how it reads the columns of each. Out
// may be short or hold columns of unknown type (Untyped): on PostgreSQL the server tells their types, on SQLite each value
// says it itself. Arguments may have any form; the database converts them. One that it cannot convert is an Invalid whose
// Field is "$2" for the second parameter, or "" where the database does not tell which.
//
// What is the caller's doing is an error of that kind (Invalid, Conflict, Restricted, Timeout, Canceled, Unavailable …).
// Whatever else the database says of a statement is a Rejected whose cause is a *SQLError: the fault is the operator's.
type Plain interface {
	// Describe asks the database what a statement takes and gives, without running it. Parameters stand in it as $1 …
	// (PostgreSQL) or ?1 … (SQLite); natives are the database's own types of parameters that are known, "" for others. When the
	// statement is wrong the error is a *SQLError.
	Describe(ctx context.Context, sql string, natives []string) (*Described, error)
	// Select runs a statement that reads and streams its rows, as Query does.
	Select(ctx context.Context, st *Statement, args []record.Value, o SQLOptions) (*record.Rows, error)
	// BeginPlain is Begin for statements that Tx.Run runs.
	BeginPlain(ctx context.Context, o SQLOptions) (Tx, error)
	// Explain is the database's plan for a SELECT. With analyze it is run, in a transaction that can write nothing. Without args, for a
	// statement that takes some, it is a plan for any values, which tells none.
	Explain(ctx context.Context, st *Statement, args []record.Value, analyze bool, o SQLOptions) (*Explained, error)
	// Resize changes how many connections there may be and how long work waits for one; 0 leaves it. Connections in use are not
	// disturbed.
	Resize(limit int, wait time.Duration)
}

// SQLOptions say how a statement of the operator's runs.
type SQLOptions struct {
	Timeout time.Duration // of each statement; 0: the store's own
	Login   *record.Login // in a session of this user's own, opened for it (PostgreSQL); a wrong one is Unauthenticated
	ID      string        // of the request, for the database's own log; "" names none
	Memory  int64         // bytes that the rows of one Tx.Run may take; more is TooLarge; 0: no bound
}

// Untyped is the type of a column whose values say it themselves.
const Untyped record.Type = 255

// Described is what a statement takes and gives.
type Described struct {
	Params  []DescribedColumn // types only
	Columns []DescribedColumn // none: it gives no rows
}

// DescribedColumn is the type of a parameter or a column.
type DescribedColumn struct {
	Name   string
	Type   record.Type // Untyped when the database does not know
	Native string
	Table  string // the stored table that the column comes from, "" if computed or unknown
	Column string
}

// SQLError is what is wrong with a statement of the operator's.
type SQLError struct {
	Msg  string // the database's own
	Code string // SQLSTATE, or SQLite's name of the code
	Pos  int    // byte of the statement, from 0; -1 if the database does not say
	// Missing is the name of a column or table that the database does not know, as it spells it, "" for other faults.
	Missing string
}

// Error is the database's message.
func (e *SQLError) Error() string {
	if e.Code == "" {
		return e.Msg
	}
	return fmt.Sprintf("%s (%s)", e.Msg, e.Code)
}

// Explained is a plan.
type Explained struct {
	Text string
	JSON []byte
	SQL  string // what was explained
}

// verbs are the statements that endpoints may hold. What changes a session, a transaction or the shape of the database is
// none of them: the connection is shared with other calls.
var verbs = map[string]bool{
	"SELECT": true, "VALUES": true, "TABLE": true, "WITH": true, "INSERT": true, "UPDATE": true, "DELETE": true, "MERGE": true,
	"REPLACE": true, "CALL": true, "TRUNCATE": true, "LOCK": true, "NOTIFY": true,
}

// FirstWord is the word that a statement begins with, in upper case, without comments and parentheses before it, and where it stands.
func FirstWord(sql string) (word string, pos int) {
	i := 0
	for i < len(sql) {
		switch rest := sql[i:]; {
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				return "", len(sql)
			}
			i += n + 1
		case strings.HasPrefix(rest, "/*"):
			i += commentLen(rest)
		case strings.IndexByte(" \t\r\n\f\v(", rest[0]) >= 0:
			i++
		default:
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			return strings.ToUpper(rest[:n]), i
		}
	}
	return "", len(sql)
}

// commentLen is the length of the block comment that s begins with. PostgreSQL's nest.
func commentLen(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(s)
}

// CheckVerb is an error when a statement is none that endpoints may hold.
func CheckVerb(sql string) error {
	word, pos := FirstWord(sql)
	switch {
	case verbs[word]:
		return nil
	case word == "":
		return &SQLError{Msg: "there is no statement", Pos: min(pos, len(sql))}
	}
	return &SQLError{Msg: word + " is no statement that an endpoint may run: it may read and write rows, no more", Pos: pos}
}

// OneOf finds the first of names that stands in a statement as a word, in any case, and where.
func OneOf(sql string, names ...string) (name string, pos int) {
	lower := strings.ToLower(sql)
	word := func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 }
	for _, name := range names {
		for at := 0; ; {
			i := strings.Index(lower[at:], name)
			if i < 0 {
				break
			}
			i += at
			at = i + len(name)
			if (i == 0 || !word(lower[i-1])) && (at == len(lower) || !word(lower[at])) {
				return name, i
			}
		}
	}
	return "", -1
}

// RowSize is about how many bytes a row takes in memory.
func RowSize(row []record.Value) int64 {
	n := int64(len(row)) * int64(unsafe.Sizeof(record.Value{}))
	for i := range row {
		n += int64(len(row[i].S))
	}
	return n
}

// TooMany is the error of rows that take more than the memory allowed.
func TooMany(limit int64) error {
	return record.Errorf(record.TooLarge, "", "the rows of a statement take more than %d bytes", limit)
}

// CheckSelect is an error when a statement does more than read.
func CheckSelect(sql string) error {
	switch word, pos := FirstWord(sql); word {
	case "SELECT", "WITH", "VALUES", "TABLE":
		return nil
	default:
		return &SQLError{Msg: "only a SELECT has a plan to show", Pos: min(pos, len(sql))}
	}
}
