package engine

import (
	"reflect"
	"sync"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
)

// JournalTable is the table that receives the entries of journal fields, if the project has one: element (the field),
// element_id (the record), name (its table), value, sys_created_by and sys_created_on.
const JournalTable = "sys_journal_field"

// model is what the engine works out once for each snapshot.
type model struct {
	snap   *catalog.Snapshot
	mu     sync.RWMutex
	tables map[*catalog.Table]*tableInfo
	ids    map[string]int // stored tables and other things whose order matters, numbered

	projects map[projectKey]*project
}

// tableInfo is one table as the engine sees it.
type tableInfo struct {
	t       *catalog.Table
	id      int // of its stored table
	program *rule.Program
	err     *record.Error // the rules do not compile

	positions []*rule.Position
	totals    []*rule.Total

	class, created, createdBy, updated, updatedBy, modCount int // indexes of audit fields, -1 if the table has none

	numbered  []*catalog.Field
	journals  []*catalog.Field
	passwords []*catalog.Field
	mandatory []*catalog.Field
	back      []string // fields that a write reads back: what the database may set by itself
	readBack  bool
	inUnique  []bool // by field index: part of a unique constraint
	all       []string

	mixed     bool // classes below it have read rules of their own
	drawsKeys bool // callers cannot choose its keys

	write, del footprint

	// Of an insert: see narrow.
	rows    map[int][]*catalog.Field // by stored table: the fields through which alone it is read
	touched []bool                   // by field index: rules or defaults may set it
	pure    bool                     // no other record of the table is changed by it
}

// models keeps the models of the snapshots in use. Snapshots follow each other, so a handful is enough.
type models struct {
	mu   sync.RWMutex
	list []*model
}

const keptModels = 4

func (ms *models) of(snap *catalog.Snapshot) *model {
	ms.mu.RLock()
	for _, m := range ms.list {
		if m.snap == snap {
			ms.mu.RUnlock()
			return m
		}
	}
	ms.mu.RUnlock()
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for _, m := range ms.list {
		if m.snap == snap {
			return m
		}
	}
	m := &model{snap: snap, tables: map[*catalog.Table]*tableInfo{}, ids: map[string]int{}}
	if len(ms.list) == keptModels {
		ms.list = append(ms.list[:0:0], ms.list[1:]...)
	}
	ms.list = append(ms.list, m)
	return m
}

func (m *model) table(t *catalog.Table) *tableInfo {
	m.mu.RLock()
	info := m.tables[t]
	m.mu.RUnlock()
	if info != nil {
		return info
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.locked(t)
}

func (m *model) locked(t *catalog.Table) *tableInfo {
	if info := m.tables[t]; info != nil {
		return info
	}
	info := &tableInfo{
		t: t, id: m.stored(t), inUnique: make([]bool, len(t.Fields)),
		class: -1, created: -1, createdBy: -1, updated: -1, updatedBy: -1, modCount: -1,
	}
	m.tables[t] = info
	info.drawsKeys = drawsKeys(t)
	at := func(name string) int {
		if f := t.Field(name); f != nil && f.Audit {
			return f.Index
		}
		return -1
	}
	if t.ClassField != "" {
		info.class = at(t.ClassField)
	}
	info.created, info.createdBy = at("sys_created_on"), at("sys_created_by")
	info.updated, info.updatedBy = at("sys_updated_on"), at("sys_updated_by")
	info.modCount = at("sys_mod_count")
	for _, name := range t.Classes {
		if c, err := m.snap.Table(name); err == nil && !reflect.DeepEqual(c.Access.Read, t.Access.Read) {
			info.mixed = true
		}
	}
	_, err := m.snap.Table(JournalTable)
	journaled := err == nil && t.Name != JournalTable
	for _, f := range t.Fields {
		info.all = append(info.all, f.Name)
		if f.Sequence != nil {
			info.numbered = append(info.numbered, f)
		}
		if f.Type == record.TypeJournal && journaled {
			info.journals = append(info.journals, f)
		}
		if f.Type == record.TypePassword && !t.System {
			info.passwords = append(info.passwords, f)
		}
		if f.Mandatory && !f.Generated && !f.Identity {
			info.mandatory = append(info.mandatory, f)
		}
		if f.Generated || f.Identity {
			info.readBack = true
		}
	}
	info.readBack = info.readBack || t.ReadBack()
	if info.readBack {
		info.back = info.all
	}
	for _, u := range t.Uniques {
		for _, name := range u {
			if f := t.Field(name); f != nil {
				info.inUnique[f.Index] = true
			}
		}
	}
	program, err := rule.Compile(m.snap, t)
	if err != nil {
		info.err = record.Errorf(record.Internal, "", "the rules of table %s cannot be used", t.Name).Because(err)
	}
	if info.program = program; program != nil {
		info.positions, info.totals = program.Positions(), program.Totals()
	}
	m.footprints(info, journaled)
	return info
}

// stored numbers the stored table of t: tables of one hierarchy, or two definitions of one stored table, are the same.
func (m *model) stored(t *catalog.Table) int {
	name := t.Schema + "." + t.Stored
	id, ok := m.ids[name]
	if !ok {
		id = len(m.ids)
		m.ids[name] = id
	}
	return id
}
