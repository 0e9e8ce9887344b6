package odata

import "weir/internal/record"

// page is where an answer ends before the rows do.
type page struct {
	left int64 // rows that may still be written
	more bool  // there are rows beyond
	last []byte
}

// mark notes the last row that is written.
func (p *page) mark(s *shape, row []record.Value) {}
