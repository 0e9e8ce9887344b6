package odata

import (
	"weir/internal/edm"
	"weir/internal/record"
)

// shape says what is written of each entity of one type, and in which column of the rows it stands.
type shape struct {
	set   *edm.Set
	props []shapeProp // in the order of the type
	navs  []*edm.Nav  // written as deferred links (V2)
	links []int       // columns of the key, in the order of the type's key
	etag  int         // column of the version, -1: none
	paths []string    // what Return names: the columns
}

// shapeProp is one property to write.
type shapeProp struct {
	prop  *edm.Property
	col   int   // -1: complex
	parts []int // columns of the members of a complex property
}

// node is entities of one type to be written: rows, and for each expanded navigation property the node that holds its entities.
// Only the root's rows may stream, and only when nothing is expanded.
type node struct {
	shape  *shape
	rows   *record.Rows
	branch []branch
	cids   []string // V4: the @Core.ContentID of each entity, as a deep insert gave it; nil: none has one
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

// entity is one entry of a request body: what it sets, and the entries nested in it.
type entity struct {
	typ   *edm.Type
	props []propValue
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
}
