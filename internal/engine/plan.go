package engine

import (
	"slices"
	"strings"

	"weir/internal/record"
)

// set is ops of one verb on one table that run as one statement.
type set struct {
	verb  record.Verb
	wave  int
	tasks []*task
	ids   map[string]bool // of the records at hand, when there are several tasks
}

// last is what has happened to one stored table so far in a plan: waves, -1 for none, and the sets of the last write, of the last look
// by key and of the last totals.
type last struct {
	read, write, seen, kept int
	row                     int // the same for looks at records alone that the unit inserts
	set, seenBy, keptBy     *set
}

// plan lays the ops of atoms into waves of sets. An op comes after every earlier op whose footprint it meets with one of
// them writing, and after those whose outcome it needs; it joins the set of the last write of its table when the two
// cannot see each other.
func plan(atoms []*atom) [][]*set {
	var p planner
	for _, a := range atoms {
		for _, t := range a.tasks {
			p.add(t)
		}
	}
	for _, wave := range p.waves {
		for _, s := range wave {
			if len(s.tasks) > 1 && (s.verb == record.Update || s.verb == record.Delete) {
				// Key order is lock order: two units that update the same records cannot wait for each other.
				slices.SortStableFunc(s.tasks, func(a, b *task) int { return strings.Compare(a.id, b.id) })
			}
		}
	}
	return p.waves
}

type planner struct {
	waves  [][]*set
	tables map[int]*last
	wave   map[int]int // by op
}

func (p *planner) add(t *task) {
	if p.tables == nil {
		p.tables, p.wave = map[int]*last{}, map[int]int{}
	}
	at := 0
	for _, d := range t.deps {
		if w, ok := p.wave[d]; ok {
			at = max(at, w+1)
		}
	}
	joined := p.joinable(t)
	own := func(s *set) bool { return joined != nil && s == joined }
	for _, id := range t.foot.reads {
		if l := p.tables[id]; l != nil {
			at = max(at, l.write+1, l.kept+1)
		}
	}
	for _, id := range t.foot.keyed {
		l := p.tables[id]
		if l == nil {
			continue
		}
		at = max(at, l.write+1)
		if !own(l.keptBy) {
			at = max(at, l.kept+1)
		}
	}
	for _, id := range t.foot.rows {
		if l := p.tables[id]; l != nil {
			at = max(at, l.write+1, l.kept+1)
		}
	}
	for _, id := range t.foot.writes {
		l := p.tables[id]
		if l == nil {
			continue
		}
		at = max(at, l.read+1)
		if !own(l.set) {
			at = max(at, l.write+1)
		}
		if !t.adds(id) {
			at = max(at, l.row+1)
		}
		if t.op.Verb == record.Insert && t.info != nil && id == t.info.id && t.info.drawsKeys {
			continue // nobody can have looked for it
		}
		if !own(l.seenBy) {
			at = max(at, l.seen+1)
		}
		if !own(l.keptBy) {
			at = max(at, l.kept+1)
		}
	}
	for _, id := range t.foot.keeps {
		l := p.tables[id]
		if l == nil {
			continue
		}
		at = max(at, l.read+1)
		if !own(l.set) {
			at = max(at, l.write+1)
		}
		if !own(l.seenBy) {
			at = max(at, l.seen+1)
		}
		at = max(at, l.row+1)
	}
	var s *set
	if joined != nil && at <= joined.wave {
		s = joined
	} else {
		if joined != nil {
			at = max(at, joined.wave+1)
		}
		s = p.open(t, at)
	}
	s.take(t)
	p.wave[t.i] = s.wave
	for _, id := range t.foot.reads {
		if l := p.at(id); !slices.Contains(t.foot.writes, id) {
			l.read = max(l.read, s.wave)
		}
	}
	for _, id := range t.foot.writes {
		l := p.at(id)
		l.write, l.set = s.wave, s
	}
	for _, id := range t.foot.rows {
		l := p.at(id)
		l.row = max(l.row, s.wave)
	}
	for _, id := range t.foot.keyed {
		if l := p.at(id); s.wave >= l.seen {
			l.seen, l.seenBy = s.wave, s
		}
	}
	for _, id := range t.foot.keeps {
		if l := p.at(id); s.wave >= l.kept {
			l.kept, l.keptBy = s.wave, s
		}
	}
}

// adds reports whether the task changes no record of a table that is there already.
func (t *task) adds(id int) bool {
	return t.op.Verb == record.Insert && t.info != nil && id == t.info.id && t.info.pure
}

func (p *planner) at(id int) *last {
	l := p.tables[id]
	if l == nil {
		l = &last{read: -1, write: -1, seen: -1, kept: -1, row: -1}
		p.tables[id] = l
	}
	return l
}

// joinable is the set of the last write of t's table, if t may share it. An op that reads what the set writes, by its own
// rules say, comes after it all the same: add sees to that.
func (p *planner) joinable(t *task) *set {
	if !t.op.Verb.Writes() || t.err != nil || t.info == nil {
		return nil
	}
	l := p.tables[t.info.id]
	if l == nil || l.set == nil {
		return nil
	}
	s, first := l.set, l.set.tasks[0]
	if s.verb != t.op.Verb || first.t != t.t || first.err != nil {
		return nil
	}
	if t.op.Verb != record.Insert && (t.id == "" || first.id == "" || s.ids[t.id]) {
		return nil
	}
	if t.op.Verb == record.Upsert && !slices.Equal(first.op.Match, t.op.Match) {
		return nil
	}
	for _, id := range t.foot.writes {
		if l := p.tables[id]; id < 0 && l != nil && l.set == s {
			return nil // the same idempotency token: the second op must find what the first one stored
		}
	}
	return s
}

func (p *planner) open(t *task, wave int) *set {
	for len(p.waves) <= wave {
		p.waves = append(p.waves, nil)
	}
	if t.op.Verb == record.Get && t.err == nil && len(t.deps) == 0 {
		for _, s := range p.waves[wave] {
			if t.reads(s.tasks[0]) && len(s.tasks[0].deps) == 0 {
				return s
			}
		}
	}
	s := &set{verb: t.op.Verb, wave: wave}
	p.waves[wave] = append(p.waves[wave], s)
	return s
}

func (s *set) take(t *task) {
	s.tasks = append(s.tasks, t)
	if t.id != "" && s.verb != record.Insert {
		if s.ids == nil {
			s.ids = map[string]bool{}
		}
		s.ids[t.id] = true
	}
}
