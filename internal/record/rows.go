package record

import "unsafe"

// Rows is the result of a read: a table of values with named columns. It is either held in memory or a cursor that is
// still open (Streaming); Next serves both. A streaming Rows must be closed.
type Rows struct {
	Fields []string // the paths asked for
	Types  []Type

	cells []Value
	next  int // rows that Next has given
	arena []byte
	src   Source
	err   error
}

// Source feeds a streaming Rows. The row and its texts are valid until the next call.
type Source interface {
	Next() ([]Value, bool)
	Err() error
	Close() error
}

// NewRows is an empty table in memory.
func NewRows(fields []string, types []Type) *Rows { return &Rows{Fields: fields, Types: types} }

// StreamRows is a cursor over src.
func StreamRows(fields []string, types []Type, src Source) *Rows {
	return &Rows{Fields: fields, Types: types, src: src}
}

// Streaming reports whether rows still come from the database.
func (r *Rows) Streaming() bool { return r.src != nil }

// Len is the number of rows held in memory.
func (r *Rows) Len() int {
	if len(r.Fields) == 0 {
		return 0
	}
	return len(r.cells) / len(r.Fields)
}

// At is row i of those held in memory.
func (r *Rows) At(i int) []Value {
	w := len(r.Fields)
	return r.cells[i*w : (i+1)*w : (i+1)*w]
}

// Of is a table in memory over cells, row after row, which belong to it from then on.
func Of(fields []string, types []Type, cells []Value) *Rows {
	return &Rows{Fields: fields, Types: types, cells: cells}
}

// Append copies row into memory. Its texts are copied into one arena, so views of a cursor may be passed.
func (r *Rows) Append(row []Value) {
	if r.cells == nil {
		// Most results have one row, so the first gets the memory that it needs and no more.
		size := 0
		for i := range row {
			size += len(row[i].S)
		}
		r.cells, r.arena = make([]Value, 0, len(row)), make([]byte, 0, size)
	}
	for _, v := range row {
		if v.S != "" {
			v.S = r.keep(v.S)
		}
		r.cells = append(r.cells, v)
	}
}

// AppendShared adds row without copying its texts, which must stay unchanged.
func (r *Rows) AppendShared(row []Value) { r.cells = append(r.cells, row...) }

func (r *Rows) keep(s string) string {
	if cap(r.arena)-len(r.arena) < len(s) {
		r.arena = make([]byte, 0, max(2*cap(r.arena), len(s), 512))
	}
	at := len(r.arena)
	r.arena = append(r.arena, s...)
	return unsafe.String(&r.arena[at], len(s))
}

// Next is the next row, valid until the following call; false at the end or after an error.
func (r *Rows) Next() ([]Value, bool) {
	if r.src != nil {
		row, ok := r.src.Next()
		if ok {
			r.next++
		} else {
			r.err = r.src.Err()
		}
		return row, ok
	}
	if r.next >= r.Len() {
		return nil, false
	}
	r.next++
	return r.At(r.next - 1), true
}

// Taken is how many rows Next has given so far.
func (r *Rows) Taken() int { return r.next }

// Err is what ended a streaming Rows early.
func (r *Rows) Err() error { return r.err }

// Close ends a streaming Rows; closing twice, or one in memory, does nothing.
func (r *Rows) Close() error {
	if r.src == nil {
		return nil
	}
	src := r.src
	r.src = nil
	return src.Close()
}

// Materialise reads a streaming Rows to its end into memory and closes it. It fails with TooLarge beyond limit bytes
// (as Size counts); 0 is no limit.
func (r *Rows) Materialise(limit int64) error {
	if r.src == nil {
		return nil
	}
	defer r.Close()
	var size int64
	for {
		row, ok := r.src.Next()
		if !ok {
			return r.src.Err()
		}
		for i := range row {
			size += int64(len(row[i].S)) + valueSize
		}
		if limit > 0 && size > limit {
			return Errorf(TooLarge, "", "the answer is larger than %d bytes; see engine.max_result", limit)
		}
		r.Append(row)
	}
}

const valueSize = int64(unsafe.Sizeof(Value{}))

// Size is about how many bytes the rows in memory take.
func (r *Rows) Size() int64 {
	if r == nil {
		return 0
	}
	size := int64(cap(r.cells)) * valueSize
	for i := range r.cells {
		size += int64(len(r.cells[i].S))
	}
	return size
}

// Col is the index of the column named path, or -1.
func (r *Rows) Col(path string) int {
	for i, f := range r.Fields {
		if f == path {
			return i
		}
	}
	return -1
}
