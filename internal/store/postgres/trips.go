package postgres

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/telemetry"
)

// counted is a connection to the server that counts round trips: each time that something is sent after something was received is
// one more. How far away a database is costs as much as that, whatever the statements are.
type counted struct {
	net.Conn
	trips   atomic.Int64
	waiting atomic.Bool // something was sent since the last answer
}

// Write sends.
func (c *counted) Write(b []byte) (int, error) {
	if !c.waiting.Swap(true) {
		c.trips.Add(1)
	}
	return c.Conn.Write(b)
}

// Read receives.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.waiting.Store(false)
	}
	return n, err
}

// counting dials connections that count.
func counting(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &counted{Conn: conn}, nil
	}
}

// tripsOf is the count of a connection, nil for one that does not count.
func tripsOf(conn *pgx.Conn) *atomic.Int64 {
	raw := conn.PgConn().Conn()
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	if c, ok := raw.(*counted); ok {
		return &c.trips
	}
	return nil
}

// meter books the round trips of a connection in use to the request that uses it.
type meter struct {
	rec   *telemetry.Recorder
	trips *atomic.Int64
	from  int64
}

// newMeter begins at the count now.
func newMeter(ctx context.Context, conn *pgx.Conn) meter {
	m := meter{rec: telemetry.From(ctx)}
	if m.rec != nil {
		if m.trips = tripsOf(conn); m.trips != nil {
			m.from = m.trips.Load()
		}
	}
	return m
}

// stop books what has come since the meter began.
func (m *meter) stop() {
	if m.trips != nil {
		m.rec.Tripped(m.trips.Load() - m.from)
	}
}
