package ords

import (
	"bytes"
	"errors"
	"io"

	"weir/internal/record"
)

// csvFormat is how a file of rows is written (protocol notes, section 10).
type csvFormat struct {
	delimiter   []byte
	left, right byte   // enclosures; 0: none
	end         []byte // of a row; nil: \n, \r\n or \r
	most        int    // bytes that a row may have
}

// csvReader reads rows. Unlike encoding/csv it takes the enclosures, delimiters and terminators that batch loads allow, tells an
// enclosed empty field from one that is not there, and keeps the text of each row, which answers echo.
type csvReader struct {
	csvFormat
	from       io.Reader
	buf        []byte
	start, end int // of what is in buf and not yet read
	eof        bool
	arena      []byte // texts of the rows at hand
	fields     []csvField
}

// csvField is one field. Text is valid until [csvReader.reset] and two rows on.
type csvField struct {
	text     []byte
	enclosed bool
}

const csvBuffer = 256 << 10

func newCSVReader(from io.Reader, f csvFormat) *csvReader {
	return &csvReader{csvFormat: f, from: from, buf: make([]byte, csvBuffer)}
}

// reset begins a new arena: what has been read before stays as it is, with whoever holds it.
func (r *csvReader) reset(size int) { r.arena = make([]byte, 0, size) }

// errRowTooLong is a row that does not end within the bytes allowed.
var errRowTooLong = errors.New("row too long")

// next reads a row: its fields, and its text without the terminator. Rows without any text are left out. At the end the error is io.EOF.
func (r *csvReader) next() (fields []csvField, text []byte, err error) {
	for {
		text, err = r.row()
		if err != nil {
			return nil, nil, err
		}
		if len(text) > 0 {
			return r.split(text), text, nil
		}
	}
}

// row takes the text of the next row into the arena.
func (r *csvReader) row() ([]byte, error) {
	s := rowScan{csvFormat: &r.csvFormat, fresh: true}
	for {
		n, size, ok := s.find(r.buf[r.start:r.end], r.eof)
		if n > r.most {
			return nil, errRowTooLong
		}
		if ok {
			at := len(r.arena)
			r.arena = append(r.arena, r.buf[r.start:r.start+n]...)
			r.start += n + size
			return r.arena[at:len(r.arena):len(r.arena)], nil
		}
		if r.eof {
			if r.start == r.end {
				return nil, io.EOF
			}
			if s.inside {
				return nil, record.Errorf(record.Invalid, "", "the body ends within an enclosed field")
			}
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads more into the buffer, which grows with the row that does not fit in it.
func (r *csvReader) fill() error {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.start, r.end = 0, r.end-r.start
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	n, err := r.from.Read(r.buf[r.end:])
	r.end += n
	if err == io.EOF {
		r.eof, err = true, nil
	}
	return err
}

// rowScan looks for the end of a row, and goes on where it stopped when more has come.
type rowScan struct {
	*csvFormat
	at     int  // bytes that have been looked at
	inside bool // an enclosure is open
	fresh  bool // a field begins here
}

// find is the length of the row that b begins with, and of its terminator. False: b ends before the row does.
func (s *rowScan) find(b []byte, eof bool) (n, size int, ok bool) {
	if s.at == 0 && s.end == nil {
		// Most rows have no enclosures and end with \n.
		if n := bytes.IndexByte(b, '\n'); n >= 0 && (s.left == 0 || bytes.IndexByte(b[:n], s.left) < 0) {
			if r := bytes.IndexByte(b[:n], '\r'); r < 0 {
				return n, 1, true
			} else if r == n-1 {
				return r, 2, true
			}
		}
	}
	for s.at < len(b) {
		c := b[s.at]
		switch {
		case s.inside:
			i := bytes.IndexByte(b[s.at:], s.right)
			if i < 0 {
				s.at = len(b)
				return s.at, 0, false
			}
			s.at += i
			if s.at+1 == len(b) && !eof {
				return s.at, 0, false // it may be a doubled one
			}
			if s.at+1 < len(b) && b[s.at+1] == s.right {
				s.at += 2
				continue
			}
			s.at++
			s.inside, s.fresh = false, false
			continue
		case s.fresh && s.left != 0 && c == s.left:
			s.inside, s.fresh = true, false
		case s.end != nil:
			if c == s.end[0] {
				if len(b)-s.at < len(s.end) && !eof {
					return s.at, 0, false
				}
				if bytes.HasPrefix(b[s.at:], s.end) {
					return s.at, len(s.end), true
				}
			}
			s.fresh = false
		case c == '\n':
			return s.at, 1, true
		case c == '\r':
			if s.at+1 == len(b) && !eof {
				return s.at, 0, false
			}
			if s.at+1 < len(b) && b[s.at+1] == '\n' {
				return s.at, 2, true
			}
			return s.at, 1, true
		default:
			s.fresh = false
		}
		if c == s.delimiter[0] && !s.inside {
			if len(b)-s.at < len(s.delimiter) && !eof {
				return s.at, 0, false
			}
			if bytes.HasPrefix(b[s.at:], s.delimiter) {
				s.at += len(s.delimiter)
				s.fresh = true
				continue
			}
		}
		s.at++
	}
	return s.at, 0, eof && len(b) > 0 && !s.inside
}

// split cuts the text of a row into its fields.
func (r *csvReader) split(text []byte) []csvField {
	r.fields = r.fields[:0]
	for {
		var f csvField
		var n int
		if r.left != 0 && len(text) > 0 && text[0] == r.left {
			f.text, n = r.enclosed(text)
			f.enclosed = true
		}
		// What follows the enclosure belongs to the field, as most programs read it.
		i := bytes.Index(text[n:], r.delimiter)
		rest := text[n:]
		if i >= 0 {
			rest = rest[:i]
		}
		if !f.enclosed {
			f.text = rest[:len(rest):len(rest)]
		} else if len(rest) > 0 {
			f.text = append(f.text[:len(f.text):len(f.text)], rest...)
		}
		r.fields = append(r.fields, f)
		if i < 0 {
			return r.fields
		}
		text = text[n+i+len(r.delimiter):]
	}
}

// enclosed is the field that text begins with, without its enclosures, and how many bytes it takes.
func (r *csvReader) enclosed(text []byte) (field []byte, n int) {
	var out []byte
	from := 1
	for at := 1; ; {
		i := bytes.IndexByte(text[at:], r.right)
		if i < 0 { // not closed: the row scan does not let this through
			return append(out, text[from:]...), len(text)
		}
		at += i
		if at+1 < len(text) && text[at+1] == r.right {
			out = append(out, text[from:at+1]...)
			at += 2
			from = at
			continue
		}
		if out == nil {
			return text[from:at:at], at + 1
		}
		return append(out, text[from:at]...), at + 1
	}
}
