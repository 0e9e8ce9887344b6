package odata

import (
	"slices"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// totals lets the answer of a deep insert show the totals that its entities keep over those below them, as the rules of their tables say.
// What came back of them was written before there was anything to add up, so they are read again when the change is
// committed: in one statement for all entities of a set.
func (w *writing) totals(x *dialect.Exchange) {
	nodes := summed(w.root, nil)
	if len(nodes) == 0 || x.Next != nil {
		return
	}
	reply := x.Reply
	x.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		if guilty(out) >= 0 {
			return nil, nil
		}
		next := &dialect.Exchange{}
		var written []int
		for _, n := range nodes {
			for _, op := range n.ops {
				if hasRow(&out[op]) {
					next.Ops = append(next.Ops, record.Op{Verb: record.Get, Table: n.set.Type.Table.Name, Key: out[op].Key, Return: n.shape.paths})
					written = append(written, op)
				}
			}
		}
		next.Reply = func(read []record.Outcome, a *wire.Answer) {
			for i, op := range written {
				if hasRow(&read[i]) { // else it is gone already
					copy(out[op].Rows.At(0), read[i].Rows.At(0))
				}
			}
			reply(out, a)
		}
		return next, nil
	}
}

// summed adds to list n, and those below it, whose entities keep totals over entities planned below them.
func summed(n *planned, list []*planned) []*planned {
	keeps := false
	for i := range n.branches {
		child := n.branches[i].node
		list = summed(child, list)
		keeps = keeps || len(child.ops) > 0 && addsUpIn(child.set.Type.Table, n.set.Type.Table)
	}
	if keeps {
		list = append(list, n)
	}
	return list
}

// addsUpIn reports whether records of t are added up in those of owner.
func addsUpIn(t, owner *catalog.Table) bool {
	return t != nil && owner != nil && slices.ContainsFunc(t.Rules, func(r catalog.RuleDef) bool {
		if r.Total == nil {
			return false
		}
		in := t.Field(r.Total.In)
		return in != nil && owner.Is(in.Reference)
	})
}
