package odata

import (
	"weir/internal/edm"
	"weir/internal/record"
)

// targetKind is what the end of a path asks for.
type targetKind uint8

const (
	serviceTarget  targetKind = iota // the root: the service document
	metadataTarget                   // $metadata
	batchTarget                      // $batch
	setTarget                        // a collection of entities
	entityTarget                     // one entity
	propertyTarget                   // a property of one entity
	functionTarget                   // a function or action import
)

// target is what a path addresses: a set, perhaps one of its entities, navigation from there, and what is wanted of the end.
type target struct {
	kind targetKind
	set  *edm.Set        // where the path begins
	key  []record.Value  // of the first segment in the order of the type's key, Refs allowed; nil: the whole set
	path []step          // navigation from there
	prop []*edm.Property // propertyTarget: the property, or a complex property and its member

	value bool // …/$value
	count bool // …/$count
	links bool // V2 …/$links/Nav, V4 …/Nav/$ref: the addresses instead of the entities
	each  bool // V4 /Set/$each or /Set/$filter(…)/$each

	function *edm.Function
	args     []record.Value // of the function, in the order of its parameters; V2 takes them from the query, V4 from parentheses

	filter *record.Expr // V4 /Set/$filter(…)
}

// step is one navigation property in a path, with the key that follows it, if any.
type step struct {
	nav *edm.Nav
	key []record.Value
}

// end is the set that the path ends in.
func (t *target) end() *edm.Set {
	if n := len(t.path); n > 0 {
		return t.path[n-1].nav.Target
	}
	return t.set
}

// query is what the system query options ask of a collection or entity: at the root, or inside $expand.
type query struct {
	filter *record.Expr // with $search and $filter ANDed
	sort   []record.Sort
	skip   int64
	top    int64  // -1: not given
	count  bool   // $inlinecount=allpages, $count=true
	token  string // $skiptoken

	all    bool            // no $select, or *
	props  []*edm.Property // selected otherwise, in the order of the type
	navs   []*edm.Nav      // selected and not expanded: V2 writes them deferred
	expand []*expansion
	apply  *apply // V4 $apply; nil: none
}

// expansion is one navigation property to be expanded, with the options inside it (V4).
type expansion struct {
	nav   *edm.Nav
	query query
	refs  bool // Nav/$ref
	only  bool // Nav/$count: the number alone
	depth int  // $levels: how many more levels of the same property; -1: max
}

// apply is what $apply makes of a set: one aggregate over it.
type apply struct {
	filter *record.Expr // before the aggregation
	group  []*edm.Property
	// groupPaths are the record paths of group, which may lead over to-one navigation; groupNames how the answer nests them.
	groupPaths []string
	groupNames [][]string
	aggs       []aggregate
	having     []record.Having // a filter after the aggregation
	sort       []record.Sort
	top, skip  int64 // topcount and the like, $top and $skip; -1: none
}

// aggregate is one aggregate of $apply under its alias.
type aggregate struct {
	agg   record.Agg
	alias string
	kind  edm.Kind
}
