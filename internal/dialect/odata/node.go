package odata

import (
	"slices"

	"weir/internal/edm"
	"weir/internal/record"
)

// shape says what is written of each entity of one type, and in which column of the rows it stands. It is made once for a selection
// and shared by all requests that select alike, so that writing an entity is a loop over properties whose names are quoted already.
type shape struct {
	set   *edm.Set
	props []shapeProp // in the order of the type
	navs  []*edm.Nav  // written as deferred links (V2), or as navigation links (V4, full metadata)
	links []int       // columns of the key, in the order of the type's key
	etag  int         // column of the version, -1: none
	paths []string    // what Return names: the columns

	name    string   // of the type, with its namespace
	select4 string   // what the context of V4 says of the selection: "", or "(ProductID,Name)"
	nav     []string // by Nav.Index: `,"ToItems":`
}

// shapeProp is one property to write.
type shapeProp struct {
	prop  *edm.Property
	col   int         // -1: complex
	parts []shapeProp // the members of a complex property
	json  string      // `,"Name":`
	typ   string      // its type as documents name it: Edm.String, or the complex type with its namespace
}

// column is the column of a path, -1 if it is not read.
func (s *shape) column(path string) int { return slices.Index(s.paths, path) }

// node is entities of one type to be written: rows, and for each expanded navigation property the node that holds its entities.
// Only the root's rows may stream, and only when nothing is expanded.
type node struct {
	shape  *shape
	rows   *record.Rows
	branch []branch
	cids   []string // V4: the @Core.ContentID of each entity, as a deep insert gave it; nil: none has one
	page   *page    // of the root: where the answer ends before the rows do; nil: with them
}

// branch is one expanded navigation property of all entities of a node.
type branch struct {
	exp  *expansion
	node *node
	// of[i] are the rows of node that belong to entity i, in order.
	of [][]int32
	// bare[i] says that entity i is not expanded here after all, as a deep insert nested nothing in it; nil: all are.
	bare []bool
	// totals[i], if counted, is how many there are without regard to top and skip.
	totals []int64
}

// next is the next row to write. It stops at the end of the page, having noted where that is and whether more rows follow.
func (n *node) next() ([]record.Value, bool) {
	row, ok := n.rows.Next()
	p := n.page
	if !ok || p == nil {
		return row, ok
	}
	if p.left == 0 {
		p.more = true
		return nil, false
	}
	if p.left--; p.left == 0 {
		p.mark(row)
	}
	return row, true
}

// entity is one entry of a request body: what it sets, and the entries nested in it.
type entity struct {
	typ   *edm.Type
	props []propValue
	keys  []propValue // of a new entity whose key the server makes: what the body says of it all the same
	navs  []navValue
	etag  string // of the metadata; no precondition, but echoed by delta payloads
	id    string // @odata.id, @id
	cid   string // @Core.ContentID, echoed with the nested entity
	gone  bool   // @removed of a delta payload

	up  *entity  // that it is nested in; nil at the root
	via *edm.Nav // of up
	nth int      // its position among the entities of via or of a delta payload; -1: it is the only one
}

// propValue is a property with its value. Parts of complex properties stand alone.
type propValue struct {
	prop  *edm.Property
	value record.Value
}

// navValue is what a body holds of a navigation property: entries nested in it, or links to others.
type navValue struct {
	nav   *edm.Nav
	list  []*entity
	binds []string // V4 Nav@odata.bind, addresses of entities; V2 __metadata.uri of an entry with nothing else
	delta bool     // V4 Nav@delta
	none  bool     // V4: null, no entity
}
