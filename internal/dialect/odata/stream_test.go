package odata

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/record"
	"weir/internal/wire"
)

// counting is a cursor of n rows of text, then err.
type counting struct {
	n, at int
	row   []record.Value
	err   error
}

func (c *counting) Next() ([]record.Value, bool) {
	if c.at == c.n {
		return nil, false
	}
	c.at++
	for i := range c.row {
		c.row[i] = record.TextValue(strings.Repeat("x", 100))
	}
	return c.row, true
}

func (c *counting) Err() error {
	if c.at == c.n {
		return c.err
	}
	return nil
}
func (c *counting) Close() error { return nil }

// streamed answers a feed of n rows through an answer that flushes, and gives what was sent with the number of pieces.
func streamed(t *testing.T, m *market, path, accept string, n int, broken error, flush func() error) (*wire.Answer, []byte, int) {
	t.Helper()
	c := &dialect.Call{Method: "GET", Path: path, Base: dialecttest.Base, Actor: dialecttest.Actors["admin"]}
	c.Header.Add("Accept", accept)
	x, err := m.d.Decode(m.snap, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Ops) != 1 || x.Next != nil {
		t.Fatalf("%s does not stream", path)
	}
	var sent bytes.Buffer
	pieces := 0
	a := &wire.Answer{}
	a.Flush = func(a *wire.Answer) error {
		pieces++
		sent.Write(a.Body)
		a.Body = a.Body[:0]
		if flush != nil {
			return flush()
		}
		return nil
	}
	paths := x.Ops[0].Return
	rows := record.StreamRows(paths, make([]record.Type, len(paths)), &counting{n: n, row: make([]record.Value, len(paths)), err: broken})
	x.Reply([]record.Outcome{{Rows: rows, Total: -1}}, a)
	sent.Write(a.Body)
	return a, sent.Bytes(), pieces
}

var streams = []struct{ path, accept string }{
	{"/odata/v2/MARKET/ItemSet", "application/json"},
	{"/odata/v2/MARKET/ItemSet", "application/atom+xml"},
	{"/odata/v4/MARKET/ItemSet", "application/json"},
	{"/odata/v4/MARKET/ItemSet/$ref", "application/json"},
}

func TestFeed_IsSentAsItComes(t *testing.T) {
	m := marketSnapshot(t)
	for _, s := range streams {
		a, body, pieces := streamed(t, m, s.path, s.accept, 5000, nil, nil)
		if a.Err != nil || a.Status != 200 || pieces < 3 {
			t.Errorf("%s as %s: %d in %d pieces (%v)", s.path, s.accept, a.Status, pieces, a.Err)
		}
		if strings.HasSuffix(s.accept, "json") {
			if !json.Valid(body) {
				t.Errorf("%s is no JSON", s.path)
			}
			continue
		}
		for d := xml.NewDecoder(bytes.NewReader(body)); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s is no XML: %v", s.path, err)
				break
			}
		}
	}
}

func TestFeed_ThatBreaksIsNoWholeFeed(t *testing.T) {
	m := marketSnapshot(t)
	for _, s := range streams {
		a, body, _ := streamed(t, m, s.path, s.accept, 5000, errors.New("disk"), nil)
		if a.Err == nil {
			t.Errorf("%s as %s: the connection is not broken: …%s", s.path, s.accept, body[len(body)-100:])
		}
		a, body, pieces := streamed(t, m, s.path, s.accept, 3, record.Errorf(record.Unavailable, "", "no disk"), nil)
		if a.Err != nil || a.Status != 503 || pieces > 0 || bytes.Contains(body, []byte("xxx")) || len(a.Header) > 4 {
			t.Errorf("%s as %s: nothing was sent yet: %d %v %.300s (%v)", s.path, s.accept, a.Status, a.Header, body, a.Err)
		}
		gone := errors.New("gone")
		if a, _, pieces = streamed(t, m, s.path, s.accept, 5000, nil, func() error { return gone }); !errors.Is(a.Err, gone) || pieces != 1 {
			t.Errorf("%s as %s: the client is gone: %v after %d pieces", s.path, s.accept, a.Err, pieces)
		}
	}
}

// An answer that is expanded has its rows in memory, but not its text.
func TestFeed_ThatIsExpandedIsSentInLargePieces(t *testing.T) {
	m := marketSnapshot(t)
	q := &request{d: m.d, snap: m.snap, svc: m.svc, ver: v2, call: &dialect.Call{Base: dialecttest.Base}, root: "/odata/v2/MARKET", format: json2{}}
	n := &node{shape: q.shape(m.svc.Set("ItemSet"), nil)}
	n.rows = record.NewRows(n.shape.paths, make([]record.Type, len(n.shape.paths)))
	row := make([]record.Value, len(n.shape.paths))
	for i := range row {
		row[i] = record.TextValue(strings.Repeat("x", 100))
	}
	for range 4000 {
		n.rows.Append(row)
	}
	var sent bytes.Buffer
	pieces, largest := 0, 0
	a := &wire.Answer{}
	a.Flush = func(a *wire.Answer) error {
		pieces, largest = pieces+1, max(largest, cap(a.Body))
		sent.Write(a.Body)
		a.Body = a.Body[:0]
		return nil
	}
	q.format.feed(q, a, n, -1, func() string { return "" })
	sent.Write(a.Body)
	if !json.Valid(sent.Bytes()) || pieces < 3 || largest > 2*flushRead {
		t.Errorf("%d bytes in %d pieces with room for %d", sent.Len(), pieces, largest)
	}
}
