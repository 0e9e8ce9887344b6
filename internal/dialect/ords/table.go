package ords

import (
	"weir/internal/dialect"
)

// tables are the tables and views of a schema that are open as they are.
type tables struct{}

// addTables adds the schemas of tables to a model.
func (m *model) addTables() {}

// decodeReserved reads a call of what no endpoint or table can be called: catalogs. Nil is none of them.
func (q *request) decodeReserved() (*dialect.Exchange, error) { return nil, nil }

// decodeTable reads a call of a table or view. Nil means that the path leads to none.
func (q *request) decodeTable() (*dialect.Exchange, error) { return nil, nil }

// nameTable names the table or view that a path leads to.
func (s *schema) nameTable(at *address) (name string, known bool) { return "", false }
