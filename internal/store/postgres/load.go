package postgres

import (
	"context"
	"encoding/hex"
	"io"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// Load writes new records by COPY, in its text form: that is the one form that columns of all types have, and the server
// reads it as fast as it does CSV.
func (t *tx) Load(ctx context.Context, table *catalog.Table, fields []string, rows [][]record.Value) error {
	if len(rows) == 0 {
		return nil
	}
	columns := make([]string, len(fields))
	source := &copySource{rows: rows, bytes: make([]bool, len(fields))}
	for i, name := range fields {
		f := table.Field(name)
		if f == nil {
			return record.Errorf(record.Internal, name, "table %s has no such field", table.Name)
		}
		columns[i], source.bytes[i] = store.Quote(f.Column), f.Type == record.TypeBytes
	}
	began := time.Now()
	defer func() { telemetry.From(ctx).Statement(time.Since(began)) }()
	if err := t.flush(ctx); err != nil {
		return translate(ctx, err, table)
	}
	sql := "COPY " + tableName(table.Schema, table.Stored) + " (" + strings.Join(columns, ", ") + ") FROM STDIN"
	if _, err := t.session.pg.CopyFrom(ctx, source, sql); err != nil {
		return translate(ctx, err, table)
	}
	return nil
}

// flush sends what is pending.
func (t *tx) flush(ctx context.Context) error {
	if t.done {
		return record.Errorf(record.Internal, "", "the transaction is over")
	}
	before := t.before()
	if len(before) == 0 {
		return nil
	}
	err := t.session.pg.Exec(ctx, strings.Join(before, "; ")).Close()
	if err != nil && !t.begun && t.conn.pooled != nil && broken(ctx, t.conn) {
		t.store.release(t.conn)
		conn, again := t.store.acquire(ctx)
		if again != nil {
			t.done = true
			return again
		}
		t.conn, t.session = conn, sessionOf(conn)
		err = t.session.pg.Exec(ctx, strings.Join(t.before(), "; ")).Close()
	}
	if err != nil {
		return err
	}
	t.pending, t.begun = t.pending[:0], true
	return nil
}

// copySource writes rows in the text form of COPY as they are read from it: columns end with a tab, rows with a line feed,
// null is \N.
type copySource struct {
	rows  [][]record.Value
	bytes []bool // by column: holds bytes
	next  int
	buf   []byte
	at    int
}

// copyChunk is about how many bytes are made at a time.
const copyChunk = 64 << 10

// Read fills p.
func (c *copySource) Read(p []byte) (int, error) {
	if c.at == len(c.buf) {
		if c.next == len(c.rows) {
			return 0, io.EOF
		}
		c.buf, c.at = c.buf[:0], 0
		for ; c.next < len(c.rows) && len(c.buf) < copyChunk; c.next++ {
			c.row(c.rows[c.next])
		}
	}
	n := copy(p, c.buf[c.at:])
	c.at += n
	return n, nil
}

func (c *copySource) row(row []record.Value) {
	for i, v := range row {
		if i > 0 {
			c.buf = append(c.buf, '\t')
		}
		switch {
		case v.IsNull():
			c.buf = append(c.buf, `\N`...)
		case c.bytes[i] && v.Form == record.Text:
			c.buf = append(c.buf, `\\x`...)
			c.buf = hex.AppendEncode(c.buf, []byte(v.S))
		case v.Form == record.Text:
			c.text(v.S)
		default:
			c.buf = v.AppendText(c.buf)
		}
	}
	c.buf = append(c.buf, '\n')
}

// text appends s with what has a meaning to COPY escaped.
func (c *copySource) text(s string) {
	from := 0
	for i := 0; i < len(s); i++ {
		var e byte
		switch s[i] {
		case '\\':
			e = '\\'
		case '\t':
			e = 't'
		case '\n':
			e = 'n'
		case '\r':
			e = 'r'
		default:
			continue
		}
		c.buf = append(append(c.buf, s[from:i]...), '\\', e)
		from = i + 1
	}
	c.buf = append(c.buf, s[from:]...)
}
