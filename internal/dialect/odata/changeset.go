package odata

import (
	"bytes"
	"slices"
	"strings"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// links are the references of operations to earlier ones, by Content-ID (protocol notes, section 5, "Execution"): $id as the first segment
// of a URL, in V4 in bodies and as If-Match too. Within a changeset the entity behind one is known at execution, its key is a Ref; across
// them the later operation is decoded when the earlier one is answered.
type links struct {
	env  *envelope
	byID map[string][]int // nil if no operation refers to another
	made []made           // by item
	seen []int            // by item, 1 more than the last item that was found to refer to it
	at   int              // the item being decoded

	bodies map[int][]byte // of answers that conditions may look into
}

// made is the entity that an operation makes or changes.
type made struct {
	reference
	op    int  // of the exchange, whose outcome has the key
	known bool // the key has no Refs, and the operation succeeded
}

// used reports whether any operation refers to another.
func (l *links) used() bool { return l.byID != nil }

// link finds out which operations refer to which, and lets those wait that cannot do with a Ref.
func (b *batch) link() {
	l := &b.links
	l.env = b.env
	index := func() {
		if l.byID != nil {
			return
		}
		l.byID, l.made, l.seen = map[string][]int{}, make([]made, len(b.env.items)), make([]int, len(b.env.items))
		for i := range b.env.items {
			if id := b.env.items[i].ID; id != "" {
				l.byID[id] = append(l.byID[id], i)
			}
		}
	}
	if b.env.refers {
		index()
	}
	root := len(b.svc.root) + 1
	for i := range b.env.items {
		it := &b.env.items[i]
		if len(it.URL) > root && it.URL[root] == '$' && strings.HasPrefix(it.URL, b.svc.root) {
			if id, ok := referred(it.URL[root:]); ok {
				index()
				if err := l.depend(i, id); err != nil && it.Err == nil {
					it.Err = err
				}
			}
		}
		if b.svc.ver == v4 {
			for body := it.Body; ; {
				at := bytes.Index(body, []byte(`"$`))
				if at < 0 {
					break
				}
				body = body[at+2:]
				index()
				end := bytes.IndexAny(body, `"/`)
				if end > 0 {
					l.depend(i, view(body[:end])) // text that looks like a reference and is none is text
				}
			}
		}
		if !b.env.refers {
			continue
		}
		for h := range it.Header {
			if id, ok := etagReference(it.Header[h].Name, it.Header[h].Value); ok {
				if err := l.depend(i, id); err != nil && it.Err == nil {
					it.Err = err
				}
			}
		}
	}
}

// referred is the Content-ID that a relative URL begins with. The names of system resources are none.
func referred(target string) (id string, ok bool) {
	end := strings.IndexAny(target, "/?")
	if end < 0 {
		end = len(target)
	}
	id = target[1:end]
	switch name, _, _ := strings.Cut(id, "("); name {
	case "", "batch", "crossjoin", "all", "entity", "root", "id", "metadata":
		return "", false
	}
	return id, true
}

// etagReference is the Content-ID in a header such as If-Match: $1.
func etagReference(name, value string) (id string, ok bool) {
	if len(value) < 2 || value[0] != '$' || !strings.EqualFold(name, "If-Match") && !strings.EqualFold(name, "If-None-Match") {
		return "", false
	}
	return value[1:], true
}

// source is the item that id means for item i: an earlier one, at best of the same changeset. -1: there is none.
func (l *links) source(i int, id string) int {
	list := l.byID[id]
	n, _ := slices.BinarySearch(list, i)
	if n == 0 {
		return -1
	}
	return list[n-1]
}

// together reports whether two items are of the same changeset.
func (l *links) together(i, p int) bool {
	g := l.env.items[i].Group
	return g != 0 && g == l.env.items[p].Group
}

// depend lets item i wait for the one that id means. In a JSON batch it must have said so.
func (l *links) depend(i int, id string) error {
	p := l.source(i, id)
	it := &l.env.items[i]
	switch {
	case p < 0:
		return record.Errorf(record.Invalid, "", "The reference $%.80s names no request before this one", id)
	case l.seen[p] == i+1 || l.together(i, p):
		return nil
	}
	l.seen[p] = i + 1
	switch {
	case slices.Contains(it.After, p):
		return nil
	case l.env.json && !l.covered(it, p):
		return record.Errorf(record.Invalid, "dependsOn", "The reference $%.80s needs dependsOn", id)
	}
	it.After = append(it.After, p)
	return nil
}

// covered reports whether item it waits for the group of item p.
func (l *links) covered(it *dialect.Item, p int) bool {
	return slices.ContainsFunc(it.After, func(a int) bool { return l.together(a, p) })
}

// find is the refs of a request.
func (l *links) find(id string) (reference, bool) {
	if l.byID == nil {
		return reference{}, false
	}
	p := l.source(l.at, id)
	if p < 0 {
		return reference{}, false
	}
	m := &l.made[p]
	return m.reference, m.set != nil && (m.known || l.together(l.at, p))
}

// note remembers what entity the exchange of item i makes or changes.
func (l *links) note(i int, q *request, e *dialect.Exchange) {
	m := &l.made[i]
	if m.reference = q.made; m.set == nil && q.target.kind == entityTarget && len(q.target.path) == 0 {
		m.set, m.key = q.target.set, q.target.key // one that was read
	}
	if m.set == nil || m.set.Type.Table == nil {
		m.set = nil
		return
	}
	m.op = slices.IndexFunc(e.Ops, func(op record.Op) bool {
		return op.Table == m.set.Type.Table.Name && (q.method != "POST" || op.Verb.Writes())
	})
	settle := func(out []record.Outcome) {
		if m.known || slices.ContainsFunc(out, func(o record.Outcome) bool { return o.Err != nil }) {
			return
		}
		constant := !slices.ContainsFunc(m.key, func(v record.Value) bool { return v.Form == record.Ref })
		if !constant && m.op >= 0 && m.op < len(out) && len(out[m.op].Key) == len(m.key) {
			m.key, constant = out[m.op].Key, true
		}
		m.known = constant
	}
	reply, next := e.Reply, e.Next
	if next != nil {
		e.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
			settle(out)
			return next(out)
		}
	}
	e.Reply = func(out []record.Outcome, a *wire.Answer) {
		settle(out)
		reply(out, a)
	}
}

// keep holds the answer of an item that a condition looks into.
func (l *links) keep(i int, p *dialect.Part) {
	if !l.env.looks {
		return
	}
	if l.bodies == nil {
		l.bodies = map[int][]byte{}
	}
	l.bodies[i] = bytes.Clone(p.Body)
}

// etags replaces If-Match: $1 by the ETag that request 1 answered. Within a changeset the entity is as that request left it, so any
// ETag will do.
func (b *batch) etags(i int, c *dialect.Call, parts []dialect.Part) error {
	for h := range c.Header {
		id, ok := etagReference(c.Header[h].Name, c.Header[h].Value)
		if !ok {
			continue
		}
		p := b.links.source(i, id)
		if p < 0 {
			continue
		}
		c.Header[h].Value = "*"
		if !b.links.together(i, p) {
			if c.Header[h].Value = parts[p].Header.Get("ETag"); c.Header[h].Value == "" {
				return record.Errorf(record.Invalid, "", "%s: the answer to request %.80q has no ETag", c.Header[h].Name, id)
			}
		}
	}
	return nil
}

// allowed reports why an operation is not run: the one that it depends on failed, or its condition does not hold.
func (b *batch) allowed(i int, parts []dialect.Part) error {
	it := &b.env.items[i]
	if cond := b.env.conditions[i]; cond != nil {
		holds, err := cond.holds(b, parts)
		if err == nil && !holds {
			err = record.Errorf(record.Dependency, "if", "not run, since its condition does not hold")
		}
		return err
	}
	for _, p := range it.After {
		if unsuccessful(&parts[p]) {
			return record.Errorf(record.Dependency, b.env.items[p].ID, "not run, since request %.80q, which it depends on, failed", b.env.items[p].ID)
		}
	}
	return nil
}

func unsuccessful(p *dialect.Part) bool { return p.Undone || p.Unserviced || p.Answer.Status >= 300 }
