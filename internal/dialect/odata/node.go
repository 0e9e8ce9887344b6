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
}

// branch is one expanded navigation property of all entities of a node.
type branch struct {
	exp  *expansion
	node *node
	// of[i] are the rows of node that belong to entity i, in order.
	of [][]int32
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
	at    string // position in the body: "ToProducts(3)"; "" at the root
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
