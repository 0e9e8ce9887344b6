package endpoint

import (
	"weir/internal/catalog"
	"weir/internal/record"
)

// byRows compiles a SELECT with its nested ones as statements that are run for each row.
func (c *compiler) byRows(q *statement) (catalog.SQLStatement, bool) {
	c.fault(q.src, 0, "nested rows are not compiled yet")
	return catalog.SQLStatement{}, false
}

// nest reads the nested rows of each row.
func (x *run) nest(st *catalog.SQLStatement, p *prepared, rows *record.Rows, binds, outer []record.Value) (*record.Rows, error) {
	return rows, nil
}
