package store

import (
	"sync"

	"weir/internal/catalog"
)

// Compiler turns reads and sets into statements for one database. It is safe for concurrent use.
//
// Its methods append the arguments of the statement's parameters to args; they refer to the request's memory. With
// Flavor.Arrays a set is one statement whose parameters are arrays; without, the statement writes one row and is run in a
// loop, see [Statement.Row].
type Compiler struct {
	Flavor *Flavor

	mu     sync.RWMutex
	tables map[*catalog.Table]map[string]*compiled
	size   int
}

// NewCompiler is a compiler for one flavor.
func NewCompiler(f *Flavor) *Compiler {
	return &Compiler{Flavor: f, tables: map[*catalog.Table]map[string]*compiled{}}
}

// maxCompiled is how many shapes are kept. A workload has dozens; when there are more, a client makes them up and
// remembering has no use, so all are dropped together.
const maxCompiled = 2000

// compiled is what is remembered for one (table, shape). Without guards it is the statements; with guards it is only the
// list of tables that the statement touches, whose guards make part of a second shape.
type compiled struct {
	touched []*catalog.Table
	main    *Statement
	count   *Statement
}

// find looks up a shape. A table belongs to one snapshot, so its address stands for the snapshot's version too.
func (c *Compiler) find(t *catalog.Table, shape []byte) *compiled {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tables[t][string(shape)]
}

func (c *Compiler) keep(t *catalog.Table, shape []byte, e *compiled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size >= maxCompiled {
		clear(c.tables)
		c.size = 0
	}
	m := c.tables[t]
	if m == nil {
		m = map[string]*compiled{}
		c.tables[t] = m
	}
	m[string(shape)] = e
	c.size++
}
