package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// fault is what a SQLSTATE means to a caller.
type fault struct {
	kind record.Kind
	msg  string
}

// faults is the one place where the server's codes are read (PostgreSQL documentation, appendix A). A whole code wins
// over its class, the first two characters.
var faults = map[string]fault{
	"23505": {record.Conflict, "the value exists already"},
	"23P01": {record.Conflict, "the value collides with another record's"},
	"23503": {record.Restricted, "the record refers to one that does not exist, or others refer to it"},
	"23001": {record.Restricted, "other records refer to it"},
	"23502": {record.Invalid, "must not be empty"},
	"23514": {record.Invalid, "breaks a check of the database"},
	"22":    {record.Invalid, "the value does not fit its column"},
	"428C9": {record.Invalid, "the database computes this column; it takes no value"},
	"44000": {record.Invalid, "the record is outside of the view that it is written through"},
	"54000": {record.Invalid, "the value is too large for an index of the database"},
	"54":    {record.TooLarge, "the statement passes a limit of the database"},
	"P0001": {record.Rejected, ""}, // raised by a trigger: its text is meant for the caller
	"42501": {record.Forbidden, "the database does not allow this to weir's login"},
	"55000": {record.NotAllowed, "the database cannot write to this table"},
	"40":    {record.Unavailable, "the database rolled back because of other writers; send it again"},
	"55P03": {record.Unavailable, "other writers hold the record; send it again (see database.lock_timeout)"},
	"57014": {record.Timeout, "the statement took too long; see database.statement_timeout"},
	"25006": {record.Unavailable, "the database is read-only now"},
	"25P03": {record.Timeout, "the transaction was idle for too long"},
	"53":    {record.Unavailable, "the database is out of resources"},
	"53300": {record.Unavailable, "the database takes no more connections; see database.pool.max and its max_connections"},
	"57P":   {record.Unavailable, "the database is shutting down or starting up"},
	"58":    {record.Unavailable, "the database has a fault of its system"},
	"28":    {record.Unavailable, "the database refuses weir's login; see database.url"},
	"3D":    {record.Unavailable, "there is no such database; see database.url"},
	"08":    {record.Unavailable, "the connection to the database was lost"},
}

// translate makes a domain error of what pgx returned. A constraint or column of table t, if given, names the field.
func translate(ctx context.Context, err error, t *catalog.Table) *record.Error {
	if err == nil {
		return nil
	}
	var e *record.Error
	if errors.As(err, &e) {
		return e
	}
	var pg *pgconn.PgError
	if asPgError(err, &pg) {
		f, known := faults[pg.Code]
		for _, n := range []int{3, 2} {
			if !known && len(pg.Code) == 5 {
				f, known = faults[pg.Code[:n]]
			}
		}
		switch {
		case pg.Code == "57014" && ctx.Err() != nil:
			return ended(ctx, err)
		case pg.Code == "0A000" && pg.Routine == "RevalidateCachedQuery":
			return record.Errorf(record.Unavailable, "", "a stored table has just changed; send it again").Because(err)
		case !known:
			return record.AsError(err)
		}
		e := record.Errorf(f.kind, fieldOf(t, pg), "%s", f.msg).Because(err)
		switch {
		case strings.HasPrefix(pg.Code, "28"):
			e.Rule = record.RuleLogin
		case strings.HasPrefix(pg.Code, "3D"), strings.HasPrefix(pg.Code, "08"), strings.HasPrefix(pg.Code, "57P"):
			e.Rule = record.RuleDown
		case pg.Code == "P0001":
			e.Msg, e.Rule = pg.Message, "database"
		case pg.Code == "23503" && e.Field != "":
			e.Msg = "it refers to a record that does not exist"
		case pg.Code == "23514" && pg.ConstraintName != "":
			e.Msg += " (" + pg.ConstraintName + ")"
		}
		return e
	}
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	var netErr net.Error
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		e := record.Errorf(record.Unavailable, "", "the database does not answer at %s", address(connect.Config)).Because(err)
		e.Rule = record.RuleDown
		return e
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &netErr) ||
		pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed") {
		return record.Errorf(record.Unavailable, "", "the connection to the database was lost").Because(err)
	}
	return record.AsError(err)
}

// ended is the error of work whose context is over.
func ended(ctx context.Context, err error) *record.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return record.Errorf(record.Timeout, "", "the time allowed for the work is over").Because(err)
	}
	return record.Errorf(record.Canceled, "", "the caller went away").Because(err)
}

func address(c *pgconn.Config) string {
	if c == nil {
		return "its address"
	}
	host, _ := pgconn.NetworkAddress(c.Host, c.Port)
	return strings.Trim(host+" "+c.Host, " ")
}

// fieldOf is the field that an error of the server is about, "" if it does not tell.
func fieldOf(t *catalog.Table, pg *pgconn.PgError) string {
	if t == nil {
		return pg.ColumnName
	}
	if pg.ColumnName != "" {
		for _, f := range t.Fields {
			if f.Column == pg.ColumnName {
				return f.Name
			}
		}
		return pg.ColumnName
	}
	if pg.ConstraintName == "" {
		return ""
	}
	for _, f := range t.Fields {
		if f.ForeignKey && store.IndexName(t.Stored, []string{f.Column}, "fkey") == pg.ConstraintName {
			return f.Name
		}
	}
	for _, u := range uniquesOf(t) {
		columns := make([]string, len(u))
		for i, name := range u {
			columns[i] = t.Field(name).Column
		}
		if store.IndexName(t.Stored, columns, "key") == pg.ConstraintName || pg.ConstraintName == t.Stored+"_pkey" && slices.Equal(u, t.Key) {
			return strings.Join(u, ", ")
		}
	}
	return ""
}

// uniquesOf is the key and all unique lists of a table.
func uniquesOf(t *catalog.Table) [][]string {
	list := make([][]string, 0, len(t.Uniques)+1)
	if len(t.Key) > 0 {
		list = append(list, t.Key)
	}
	return append(list, t.Uniques...)
}

func asPgError(err error, pg **pgconn.PgError) bool { return errors.As(err, pg) }
