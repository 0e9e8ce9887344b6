package dialect

import (
	"slices"
	"strings"

	"weir/internal/record"
)

// stages sorts the items into rounds: each round holds what depends only on earlier ones. Items that cannot be placed get
// an error. A batch without dependencies is one round.
func (r *run) stages() [][]int {
	all := make([]int, len(r.items))
	linked := false
	for i := range r.items {
		all[i] = i
		linked = linked || len(r.items[i].Depends) > 0 || len(r.items[i].After) > 0 || r.opt.Decode == nil && strings.Contains(r.items[i].URL, "${")
	}
	if !linked {
		return [][]int{all}
	}
	var level []int
	if r.opt.Decode == nil {
		r.link()
		r.breakCycles()
		level = r.levels()
	} else {
		level = r.levelsAfter()
	}
	if r.opt.Ordered {
		for i := 1; i < len(level); i++ {
			level[i] = max(level[i], level[i-1])
		}
	}
	stages := make([][]int, slices.Max(level)+1)
	for i, l := range level {
		stages[l] = append(stages[l], i)
	}
	return stages
}

// levels says how many items each one depends on in a row. Chains that are too long are cut off with an error.
func (r *run) levels() []int {
	level := make([]int, len(r.items))
	pending := make([]int, len(r.items))
	for i := range pending {
		pending[i] = i
	}
	for depth := 0; len(pending) > 0; depth++ {
		var later []int
		for _, i := range pending {
			level[i] = -1
		}
		for _, i := range pending {
			if slices.ContainsFunc(r.parents[i], func(p int) bool { return level[p] < 0 || level[p] == depth }) {
				later = append(later, i)
			} else {
				level[i] = depth
			}
		}
		if depth == r.Config.MaxChain {
			for _, i := range later {
				r.spoil(i, record.Errorf(record.TooLarge, "depends_on", "more than %d items depend on each other in a row; see now.batch.max_chain", r.Config.MaxChain))
				level[i] = depth
			}
			later = nil
		}
		pending = later
	}
	return level
}

// levelsAfter is levels for items that name earlier ones by index. A group is on the level of its last member.
func (r *run) levelsAfter() []int {
	level := make([]int, len(r.items))
	r.parents = make([][]int, len(r.items))
	for n := 0; n < len(r.items); {
		first, l := n, 0
		for {
			for _, p := range r.items[n].After {
				l = max(l, level[p]+1)
			}
			r.parents[n] = r.items[n].After
			n++
			if g := r.items[first].Group; g == 0 || n == len(r.items) || r.items[n].Group != g {
				break
			}
		}
		for i := first; i < n; i++ {
			level[i] = l
		}
	}
	return level
}

// spoil gives item i an error; it then depends on nothing.
func (r *run) spoil(i int, err error) {
	if r.items[i].Err == nil {
		r.items[i].Err = err
	}
	r.parents[i] = nil
}

const twice = -1

// link finds the items that each item depends on.
func (r *run) link() {
	r.scan.byID = make(map[string]int, len(r.items))
	for i := range r.items {
		if _, ok := r.scan.byID[r.items[i].ID]; ok {
			r.scan.byID[r.items[i].ID] = twice
		} else {
			r.scan.byID[r.items[i].ID] = i
		}
	}
	r.parents = make([][]int, len(r.items))
	for i := range r.items {
		it := &r.items[i]
		if it.Err != nil {
			continue
		}
		ids := it.Depends
		eachReference(it.URL, func(ref string) {
			if id, _, ok := r.split(ref); ok {
				ids = append(slices.Clip(ids), id)
			} else if len(it.Depends) > 0 {
				ids = append(slices.Clip(ids), ref)
			}
		})
		for _, id := range ids {
			p, ok := r.scan.byID[id]
			switch {
			case !ok:
				r.spoil(i, record.Errorf(record.Invalid, "depends_on", "the batch has no item %.80q", id))
			case p == twice:
				r.spoil(i, record.Errorf(record.Invalid, "depends_on", "the batch has several items %.80q", id))
			case p == i:
				r.spoil(i, record.Errorf(record.Invalid, "depends_on", "item %.80q depends on itself", id))
			case r.opt.Ordered && p > i:
				r.spoil(i, record.Errorf(record.Invalid, "depends_on", "item %.80q comes later in a batch whose order is enforced", id))
			case !slices.Contains(r.parents[i], p):
				r.parents[i] = append(r.parents[i], p)
				continue
			default:
				continue
			}
			break
		}
	}
}

// breakCycles gives the items of a cycle an error. What merely depends on them is left to fail by its dependency.
func (r *run) breakCycles() {
	n := len(r.items)
	children := make([][]int, n)
	waits := make([]int, n) // parents not placed yet
	needs := make([]int, n) // children not placed yet
	for i, ps := range r.parents {
		waits[i] = len(ps)
		for _, p := range ps {
			children[p] = append(children[p], i)
		}
	}
	for i := range needs {
		needs[i] = len(children[i])
	}
	gone := make([]bool, n)
	trim := func(count []int, neighbours, other [][]int, otherCount []int) {
		var queue []int
		for i := range count {
			if !gone[i] && count[i] == 0 {
				queue = append(queue, i)
				gone[i] = true
			}
		}
		for len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			for _, c := range neighbours[i] {
				if count[c]--; count[c] == 0 && !gone[c] {
					gone[c] = true
					queue = append(queue, c)
				}
			}
			for _, o := range other[i] {
				otherCount[o]--
			}
		}
	}
	trim(waits, children, r.parents, needs)
	trim(needs, r.parents, children, waits)
	for i := range gone {
		if !gone[i] {
			r.spoil(i, record.Errorf(record.Invalid, "depends_on", "the dependencies of item %.80q form a cycle", r.items[i].ID))
		}
	}
}
