package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/record"
)

// movingExec has the definitions of one version only; whoever asks it with others makes them known, if learn is set.
type movingExec struct {
	fakeExec
	cat     *catalog.Catalog
	version uint64
	learn   bool
	asked   atomic.Int64
}

func (m *movingExec) stale(snap *catalog.Snapshot) *record.Error {
	if m.asked.Add(1); snap.Version == m.version {
		return nil
	}
	if m.learn {
		next, _ := catalog.Build(m.version, catalog.Definitions{})
		m.cat.Swap(next)
	}
	return record.Errorf(record.Unavailable, "", "try again").Because(dialect.ErrStale)
}

func (m *movingExec) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	if e := m.stale(snap); e != nil {
		out := make([]record.Outcome, len(u.Ops))
		for i := range out {
			out[i] = record.Outcome{Err: e, Unserviced: true, Total: -1}
		}
		return out
	}
	return m.fakeExec.Execute(ctx, snap, u)
}

func (m *movingExec) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	if e := m.stale(snap); e != nil {
		return record.Outcome{Err: e, Unserviced: true, Total: -1}
	}
	return m.fakeExec.Stream(ctx, snap, u)
}

func TestLine_DecodesAgainWhenTheDefinitionsHaveChanged(t *testing.T) {
	for _, learn := range []bool{true, false} {
		for _, call := range []struct{ method, path, want string }{
			{"POST", "/x/table", "POST by eve, 3 bytes"}, {"GET", "/x/list", "a row\n"}, {"POST", "/x/batch", "2 items"},
		} {
			x := &movingExec{version: 2, learn: learn}
			x.rows = func() *record.Rows {
				r := record.NewRows([]string{"a"}, []record.Type{record.TypeString})
				r.Append([]record.Value{record.TextValue("a row")})
				return r
			}
			n := newNodeWith(t, &x.fakeExec, func(o *Options) {
				x.cat = catalog.New(testSnapshot(t))
				o.Exec = x
				o.Snapshot = func(context.Context) (*catalog.Snapshot, error) { return x.cat.Snapshot(), nil }
			}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.TxLog.Table = "" })
			got := n.as(t, "eve", "apple", call.method, call.path, "abc")
			switch {
			case learn && (got.status != 200 || !strings.HasPrefix(got.body, call.want) || x.asked.Load() != 2):
				t.Errorf("%s %s: %d %q, asked %d times", call.method, call.path, got.status, got.body, x.asked.Load())
			case !learn && (x.asked.Load() != 1 || call.path != "/x/batch" && got.status != 503):
				t.Errorf("%s %s: %d %q, asked %d times", call.method, call.path, got.status, got.body, x.asked.Load())
			}
		}
	}
}
