package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"weir/internal/auth"
	"weir/internal/record"
	"weir/internal/telemetry"
)

// The messages are plain structs in record's encoding. The name of the service holds the form of all of them, so that hubs and
// backends of versions that would misunderstand each other do not understand each other at all.
var service = "weir.backend." + record.Layout(
	reflect.TypeFor[answered](), reflect.TypeFor[streamHead](), reflect.TypeFor[streamTail](), reflect.TypeFor[event](),
	reflect.TypeFor[request](), reflect.TypeFor[identified](), reflect.TypeFor[form](), reflect.TypeFor[formAnswer](),
	reflect.TypeFor[tokenWish](), reflect.TypeFor[tokenProof](), reflect.TypeFor[jobAsk](), reflect.TypeFor[jobSaid](),
)

// streamHead comes before the rows of a list.
type streamHead struct {
	Outcome record.Outcome // without rows
	Rows    bool           // rows follow
	Fields  []string
	Types   []record.Type
}

// streamTail comes after the last row.
type streamTail struct {
	Err     *record.Error
	Figures figures
}

// event is the state of a backend, sent when it changes and from time to time.
type event struct {
	Version  uint64 // of the definitions
	Ready    bool   // the database answers
	Draining bool   // about to stop: send nothing more
	Every    time.Duration
}

// request is the head of a request, as far as it tells who is calling.
type request struct {
	Method, Host, URL, Peer string
	TLS                     bool
	Header                  []string // name, value, name, value …
}

// identity is an [auth.Identity].
type identity struct {
	Actor                      record.Actor
	Method, Session, UserToken string
	Cookies                    []string
}

// identified is who is calling. An identity may come with an error.
type identified struct {
	Identity *identity
	Err      *record.Error
}

// form is a request to an endpoint of tokens.
type form struct {
	Request request
	Body    []byte
}

// formAnswer is an [auth.Answer] whose body is JSON.
type formAnswer struct {
	Status int
	Body   []byte
}

// tokenWish asks for a token against forged changes, tokenProof whether one holds.
type (
	tokenWish struct {
		Identity identity
		Age      time.Duration
	}
	tokenProof struct {
		Identity identity
		Token    string
	}
)

// figures is where a backend's time went: what the hub's recorder cannot see.
type figures struct {
	Hub, BE, App  time.Duration
	SQL, Borrow   time.Duration
	SQLCount      int64
	Trips         int64
	Login         time.Duration
	Access, Rules time.Duration
	RuleCount     int64
	Rows          int64
}

// figuresOf are the figures of a recorder.
func figuresOf(r *telemetry.Recorder) figures {
	return figures{
		Hub: r.Layer(telemetry.Hub), BE: r.Layer(telemetry.BE), App: r.Layer(telemetry.App),
		SQL: time.Duration(r.SQL.Load()), Borrow: time.Duration(r.Borrow.Load()), SQLCount: r.SQLCount.Load(),
		Trips: r.Trips.Load(), Login: time.Duration(r.Login.Load()),
		Access: time.Duration(r.Access.Load()), Rules: time.Duration(r.Rules.Load()), RuleCount: r.RuleCount.Load(), Rows: r.Rows.Load(),
	}
}

// book books them in the recorder of the caller, whose layer Wire holds the whole call.
func (f *figures) book(r *telemetry.Recorder) {
	if r == nil {
		return
	}
	r.Rebook(telemetry.Wire, telemetry.Hub, f.Hub)
	r.Rebook(telemetry.Wire, telemetry.BE, f.BE)
	r.Rebook(telemetry.Wire, telemetry.App, f.App)
	r.SQL.Add(int64(f.SQL))
	r.Borrow.Add(int64(f.Borrow))
	r.SQLCount.Add(f.SQLCount)
	r.Trips.Add(f.Trips)
	r.Login.Add(int64(f.Login))
	r.Access.Add(int64(f.Access))
	r.Rules.Add(int64(f.Rules))
	r.RuleCount.Add(f.RuleCount)
	r.Rows.Add(f.Rows)
}

func identityOf(id *auth.Identity) *identity {
	if id == nil {
		return nil
	}
	w := &identity{Actor: id.Actor, Method: id.Method, Session: id.Session, UserToken: id.UserToken}
	for _, c := range id.Cookies {
		w.Cookies = append(w.Cookies, c.String())
	}
	return w
}

// message is what goes over the wire.
type message interface {
	append(dst []byte) []byte
	// decode reads b, which is gone when it returns.
	decode(b []byte) error
}

// plain is a message that is one value.
type plain[T any] struct{ v T }

func (m *plain[T]) append(dst []byte) []byte { return record.Append(dst, &m.v) }
func (m *plain[T]) decode(b []byte) error    { return record.Decode(b, &m.v) }

// answer is what a backend says, with the figures of its work. measure, at a backend, is asked for them when the value is encoded.
type answer[T any] struct {
	v       T
	err     *record.Error
	figures figures
	measure func() figures
}

// answered follows the value of an answer.
type answered struct {
	Err     *record.Error
	Figures figures
}

func (m *answer[T]) append(dst []byte) []byte {
	dst = record.Append(dst, &m.v)
	if m.measure != nil {
		m.figures = m.measure()
	}
	return record.Append(dst, &answered{m.err, m.figures})
}

func (m *answer[T]) decode(b []byte) error {
	rest, err := record.DecodeFirst(b, &m.v)
	if err != nil {
		return err
	}
	var last answered
	err = record.Decode(rest, &last)
	m.err, m.figures = last.Err, last.Figures
	return err
}

// frame is a piece of a list that streams: the head comes with the first, the tail with the last, and a short list is one frame.
type frame struct {
	head *streamHead
	rows []byte // as record.AppendRow writes them
	tail *streamTail

	measure func() figures // at a backend, asked when the tail is written
	buf     []byte         // at a hub, what rows is a view of
}

// The parts of a frame.
const (
	frameHead = 1 << iota
	frameTail
)

func (f *frame) append(dst []byte) []byte {
	var parts byte
	if f.head != nil {
		parts |= frameHead
	}
	if f.tail != nil {
		parts |= frameTail
	}
	dst = append(dst, parts)
	if f.head != nil {
		dst = record.Append(dst, f.head)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(f.rows))), f.rows...)
	if f.tail != nil {
		f.tail.Figures = f.measure()
		dst = record.Append(dst, f.tail)
	}
	return dst
}

func (f *frame) decode(b []byte) (err error) {
	f.buf = append(f.buf[:0], b...)
	f.head, f.tail, f.rows = nil, nil, nil
	if len(b) == 0 {
		return errFrame
	}
	parts, rest := f.buf[0], f.buf[1:]
	if parts&frameHead != 0 {
		f.head = &streamHead{}
		if rest, err = record.DecodeFirst(rest, f.head); err != nil {
			return err
		}
	}
	n, size := binary.Uvarint(rest)
	if size <= 0 || n > uint64(len(rest)-size) {
		return errFrame
	}
	f.rows, rest = rest[size:size+int(n)], rest[size+int(n):]
	if parts&frameTail != 0 {
		f.tail = &streamTail{}
		return record.Decode(rest, f.tail)
	}
	if len(rest) > 0 {
		return errFrame
	}
	return nil
}

var errFrame = errors.New("remote: a frame of rows cannot be read")

// codec makes bytes of messages.
type codec struct{}

func init() { encoding.RegisterCodecV2(codec{}) }

// Name is the content subtype.
func (codec) Name() string { return "weir" }

// Marshal writes a message.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(message)
	if !ok {
		return nil, fmt.Errorf("remote: %T is no message", v)
	}
	b := room.Get(0)
	*b = m.append(*b)
	return mem.BufferSlice{mem.NewBuffer(b, room)}, nil
}

// Unmarshal reads a message.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(message)
	if !ok {
		return fmt.Errorf("remote: %T is no message", v)
	}
	if len(data) == 1 {
		return m.decode(data[0].ReadOnlyData())
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return m.decode(b.ReadOnlyData())
}

// room is buffers for messages that grow as they are written.
var room = &buffers{}

type buffers struct{ sync.Pool }

// maxRoom is the largest buffer that is kept: one large message must not hold its memory for ever.
const maxRoom = 1 << 20

// Get is an empty buffer, or one of a length.
func (p *buffers) Get(length int) *[]byte {
	b, _ := p.Pool.Get().(*[]byte)
	if b == nil || cap(*b) < length {
		b = new(make([]byte, 0, max(length, 4<<10)))
	}
	*b = (*b)[:length]
	return b
}

// Put gives a buffer back.
func (p *buffers) Put(b *[]byte) {
	if cap(*b) <= maxRoom {
		p.Pool.Put(b)
	}
}
