package server

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/record"
)

// loads runs a call whose body is worked on while it comes, and answers it. It reports whether the call is one. The slot is entered
// before the body: it is held while the client sends, which is why the client must keep on sending.
func (v *Visit) loads(ctx context.Context, snap *catalog.Snapshot, info gate.RequestInfo) bool {
	l, ok := v.d.(dialect.Loader)
	if !ok {
		return false
	}
	memory, ok := l.Loads(snap, &v.call)
	if !ok {
		return false
	}
	if err := v.load(ctx, snap, l, info, memory); err != nil {
		v.fail(err)
	}
	return true
}

func (v *Visit) load(ctx context.Context, snap *catalog.Snapshot, l dialect.Loader, info gate.RequestInfo, memory int64) error {
	if v.login != nil {
		return record.Errorf(record.Unauthenticated, "", "a database user may call SQL endpoints only")
	}
	limit := v.s.cfg.Limits.Load
	if v.r.ContentLength > limit {
		return loadTooLarge(limit)
	}
	zipped, err := v.encoding()
	if err != nil {
		return err
	}
	if v.hold, err = v.s.o.Gate.Bytes.Reserve(ctx, memory); err != nil {
		return v.refused(err)
	}
	if err := v.enter(ctx, info); err != nil {
		return err
	}
	u := &upload{v: v, left: limit}
	defer func() {
		if u.ended {
			v.control.SetReadDeadline(time.Time{})
		}
	}()
	u.from = v.r.Body
	if zipped {
		v.Gzipped = true
		v.control.SetReadDeadline(time.Now().Add(v.s.cfg.Limits.BodyTime))
		z, err := inflater(v.r.Body)
		if err != nil {
			return v.unread(err)
		}
		defer inflaters.Put(z)
		u.from = z
	}
	a := answer()
	defer release(a)
	l.Load(ctx, &dialect.LoadRun{
		Snapshot: snap, Exec: v.s.exec, Public: func(err error) error { return v.s.public(v.Recorder, err) },
	}, &v.call, u, a)
	v.In = int(limit - u.left)
	if !u.ended {
		// What is left of the body is nobody's request, and net/http would wait for it before it answers.
		v.w.Header().Set("Connection", "close")
		v.control.SetReadDeadline(time.Unix(1, 0))
	}
	v.release()
	v.send(a)
	return nil
}

func loadTooLarge(limit int64) error {
	return record.Errorf(record.TooLarge, "", "the body is larger than %d bytes; see limits.load", limit)
}

// upload is a body that is read while it is worked on. The time that it waits for us is not the client's.
type upload struct {
	v      *Visit
	from   io.Reader
	left   int64 // bytes that may come
	since  int64 // bytes since the client had all of its time
	time   time.Duration
	ended  bool
	closed atomic.Bool
}

// each is how many bytes a client must send within limits.body_time.
const each = 64 << 10

// Read reads what has come. Errors are what a client may see.
func (u *upload) Read(b []byte) (int, error) {
	if u.since >= each || u.time == 0 {
		u.since, u.time = 0, u.v.s.cfg.Limits.BodyTime
	}
	began := time.Now()
	u.v.control.SetReadDeadline(began.Add(u.time))
	if u.closed.Load() { // after the deadline was set, which closing takes back
		return 0, os.ErrClosed
	}
	n, err := u.from.Read(b)
	u.since += int64(n)
	u.time = max(u.time-time.Since(began), 1)
	if u.left -= int64(n); u.left < 0 {
		return 0, loadTooLarge(u.v.s.cfg.Limits.Load)
	}
	switch {
	case err == io.EOF:
		u.ended = true
		u.v.control.SetReadDeadline(time.Time{}) // from here on the connection is only watched for the client's going away
	case err != nil && u.closed.Load():
		err = os.ErrClosed
	case err != nil:
		if e := (*record.Error)(nil); !errors.As(err, &e) {
			err = u.v.unread(err)
		}
	}
	return n, err
}

// Close ends a Read that waits, and all later ones.
func (u *upload) Close() error {
	u.closed.Store(true)
	return u.v.control.SetReadDeadline(time.Unix(1, 0))
}
