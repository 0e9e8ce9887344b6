package store

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Relation is a stored table: what definitions ask for, or what a database has. One relation stores a whole hierarchy,
// with the columns of all its classes.
type Relation struct {
	Schema   string // "" for the default one
	Name     string
	External bool // weir did not create it
	Columns  []Column
	Key      []string // columns, in order
	Uniques  []Index
	Indexes  []Index
	Foreign  []ForeignKey

	View   bool // what a database has: rows come from a query
	Checks int  // what a database has: constraints that weir leaves to the database
}

// Column is one column of a [Relation]. Default and the fields after it describe what a database has.
type Column struct {
	Name      string
	Type      string // the database's own type, as it spells it: "text", "numeric(10,2)"
	NotNull   bool
	Default   bool     // the database has a default
	Generated bool     // the database computes it
	Identity  bool     // the database numbers it
	Base      string   // the base type of a domain, else Type
	Enum      []string // the labels of an enumerated type
	Array     bool
	Length    int // characters, of a text type with a bound
}

// Index is an index or unique constraint over columns.
type Index struct {
	Name    string
	Columns []string
}

// ForeignKey is a constraint that one column refers to the key of another relation.
type ForeignKey struct {
	Name   string
	Column string
	Schema string
	Table  string
	Key    string
}

// Column finds a column by name, nil if the relation has none.
func (r *Relation) Column(name string) *Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	return nil
}

// Spelling is how one database spells definitions. Everything else about them is common.
type Spelling struct {
	// Types is the column type of each field type.
	Types map[record.Type]string
	// Table is the quoted name of a stored table.
	Table func(schema, name string) string
	// InlineForeign says that foreign keys can only be given with their column.
	InlineForeign bool
	// Retype is the statements that give a column of a relation, as the database has it, another type.
	Retype func(have *Relation, c Column) []string
}

// Quote quotes an identifier.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func quoteAll(names []string) string { return strings.Join(quoted(names), ", ") }

// Relations are the stored tables that the tables of s need, in order of their names. Tables that are stored together
// must agree about their columns; the error joins all faults.
func (sp *Spelling) Relations(s *catalog.Snapshot) ([]*Relation, error) {
	var (
		list   []*Relation
		faults []error
		byName = map[[2]string]*Relation{}
	)
	for _, name := range s.Tables() {
		t, err := s.Table(name)
		if err != nil {
			return nil, err
		}
		at := [2]string{t.Schema, t.Stored}
		r := byName[at]
		if r == nil {
			r = &Relation{Schema: t.Schema, Name: t.Stored, External: t.External}
			for _, f := range t.KeyFields() {
				r.Key = append(r.Key, f.Column)
			}
			byName[at] = r
			list = append(list, r)
		}
		for _, f := range t.Fields {
			c := Column{Name: f.Column, Type: sp.Types[f.Type], NotNull: slices.Contains(r.Key, f.Column)}
			if f.Native != "" {
				c.Type = f.Native
			}
			if old := r.Column(c.Name); old == nil {
				r.Columns = append(r.Columns, c)
			} else if old.Type != c.Type {
				faults = append(faults, fmt.Errorf("%s.%s: column %s of %s is %s for another table stored there, not %s",
					t.Name, f.Name, c.Name, r.Name, old.Type, c.Type))
			}
			if f.ForeignKey && f.Type == record.TypeReference {
				ref, err := s.Table(f.Reference)
				if err != nil || ref.SingleKey() == nil {
					continue // Build has listed it
				}
				fk := ForeignKey{
					Name:   IndexName(r.Name, []string{f.Column}, "fkey"),
					Column: f.Column, Schema: ref.Schema, Table: ref.Stored, Key: ref.SingleKey().Column,
				}
				if !slices.Contains(r.Foreign, fk) {
					r.Foreign = append(r.Foreign, fk)
				}
			}
		}
		r.Uniques = addIndexes(r, r.Uniques, t, t.Uniques, "key")
		r.Indexes = addIndexes(r, r.Indexes, t, t.Indexes, "idx")
		if t.ClassField != "" && t.Name == t.Root {
			// Lists of one class in the order of keys, and their counts, must not read the records of all others.
			r.Indexes = addIndexes(r, r.Indexes, t, [][]string{append([]string{t.ClassField}, t.Key...)}, "idx")
		}
	}
	slices.SortFunc(list, func(a, b *Relation) int {
		return cmp.Or(strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
	})
	return list, errors.Join(faults...)
}

func addIndexes(r *Relation, list []Index, t *catalog.Table, fields [][]string, suffix string) []Index {
	for _, names := range fields {
		columns := make([]string, len(names))
		for i, n := range names {
			columns[i] = t.Field(n).Column
		}
		has := func(x Index) bool { return slices.Equal(x.Columns, columns) }
		if slices.Equal(columns, r.Key) || slices.ContainsFunc(list, has) {
			continue
		}
		list = append(list, Index{Name: IndexName(r.Name, columns, suffix), Columns: columns})
	}
	return list
}

// maxIdentifier is the longest identifier of PostgreSQL in bytes; longer ones are cut there, silently.
const maxIdentifier = 63

// IndexName is the same on every node and every run: table, columns and kind, with a hash in place of what is too long.
func IndexName(table string, columns []string, suffix string) string {
	name := table + "_" + strings.Join(columns, "_") + "_" + suffix
	if len(name) <= maxIdentifier {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	tail := "_" + strconv.FormatUint(uint64(h.Sum32()), 16) + "_" + suffix
	return strings.ToValidUTF8(name[:maxIdentifier-len(tail)], "") + tail
}

// Database is what planning asks of a database.
type Database interface {
	// Relation describes a stored table or view, nil if there is none.
	Relation(schema, name string) (*Relation, error)
	// Holds reports whether a query returns a row.
	Holds(query string) (bool, error)
}

// Plan compares the stored tables that s needs with what db has.
func (sp *Spelling) Plan(db Database, s *catalog.Snapshot) (*Plan, error) {
	want, err := sp.Relations(s)
	if err != nil {
		return nil, err
	}
	p := &planner{Spelling: sp, db: db}
	for _, r := range want {
		have, err := db.Relation(r.Schema, r.Name)
		if err != nil {
			return nil, err
		}
		switch {
		case r.External:
			p.compare(r, have)
		case have == nil:
			p.create(r)
		case have.View:
			p.refuse(r, "replace view "+r.Name+" by a table", "a view of that name exists; name another with stored, or say external: true", nil)
		default:
			if err := p.alter(r, have); err != nil {
				return nil, err
			}
		}
	}
	// Constraints that refer to other tables come when all tables are there.
	p.plan.Additive = append(p.plan.Additive, p.late...)
	return &p.plan, nil
}

type planner struct {
	*Spelling
	db   Database
	plan Plan
	late []Change
}

func (p *planner) add(r *Relation, what string, sql ...string) {
	p.plan.Additive = append(p.plan.Additive, Change{Table: r.Name, What: what, SQL: sql})
}

func (p *planner) refuse(r *Relation, what, reason string, sql []string) {
	p.plan.Destructive = append(p.plan.Destructive, Change{Table: r.Name, What: what, SQL: sql, Reason: reason})
}

func (p *planner) create(r *Relation) {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s (", p.Table(r.Schema, r.Name))
	for i, c := range r.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.column(r, c))
	}
	if len(r.Key) > 0 {
		fmt.Fprintf(&b, ", PRIMARY KEY (%s)", quoteAll(r.Key))
	}
	b.WriteString(")")
	sql := []string{b.String()}
	for _, x := range r.Uniques {
		sql = append(sql, p.index(r, x, "UNIQUE "))
	}
	for _, x := range r.Indexes {
		sql = append(sql, p.index(r, x, ""))
	}
	p.add(r, "create table "+r.Name, sql...)
	for _, fk := range r.Foreign {
		p.foreign(r, fk)
	}
}

func (p *planner) column(r *Relation, c Column) string {
	s := Quote(c.Name) + " " + c.Type
	if c.NotNull {
		s += " NOT NULL"
	}
	if p.InlineForeign {
		for _, fk := range r.Foreign {
			if fk.Column == c.Name {
				s += fmt.Sprintf(" REFERENCES %s (%s)", p.Table(fk.Schema, fk.Table), Quote(fk.Key))
			}
		}
	}
	return s
}

func (p *planner) index(r *Relation, x Index, unique string) string {
	return fmt.Sprintf("CREATE %sINDEX IF NOT EXISTS %s ON %s (%s)", unique, p.indexIn(r, x.Name), p.Table(r.Schema, r.Name), quoteAll(x.Columns))
}

// indexIn is the name of an index where it is created: indexes of one database file share one name space with those of
// weir's own tables, which have a prefix there.
func (p *planner) indexIn(r *Relation, name string) string {
	if p.InlineForeign && r.Schema == catalog.SystemSchema {
		return Quote(r.Schema + "_" + name)
	}
	return Quote(name)
}

func (p *planner) foreign(r *Relation, fk ForeignKey) {
	if p.InlineForeign {
		return // came with the column
	}
	p.late = append(p.late, Change{
		Table: r.Name, What: fmt.Sprintf("add foreign key %s → %s", fk.Column, fk.Table),
		SQL: []string{fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s FOREIGN KEY (%s) REFERENCES %s (%s)",
			p.Table(r.Schema, r.Name), Quote(fk.Name), Quote(fk.Column), p.Table(fk.Schema, fk.Table), Quote(fk.Key))},
	})
}

func (p *planner) alter(r, have *Relation) error {
	table := p.Table(r.Schema, r.Name)
	if !slices.Equal(r.Key, have.Key) {
		p.refuse(r, fmt.Sprintf("change the key from (%s) to (%s)", strings.Join(have.Key, ", "), strings.Join(r.Key, ", ")),
			"every record would get another identity; move the records to a new table", nil)
	}
	isNew := map[string]bool{}
	for _, c := range r.Columns {
		switch old := have.Column(c.Name); {
		case old == nil && c.NotNull:
			// A key column that is missing is refused above.
		case old == nil:
			isNew[c.Name] = true
			p.add(r, fmt.Sprintf("add column %s %s", c.Name, c.Type), fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s", table, p.column(r, c)))
		case !sameType(old.Type, c.Type):
			p.refuse(r, fmt.Sprintf("change column %s from %s to %s", c.Name, old.Type, c.Type),
				"values that do not fit the new type are lost or stop the change", p.Retype(have, c))
		}
	}
	for _, old := range have.Columns {
		if r.Column(old.Name) == nil {
			var sql []string
			for _, x := range slices.Concat(have.Uniques, have.Indexes) {
				if slices.Contains(x.Columns, old.Name) {
					sql = append(sql, p.dropIndex(r, x))
				}
			}
			sql = append(sql, fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", table, Quote(old.Name)))
			p.refuse(r, "drop column "+old.Name, "its values are lost", sql)
		}
	}
	for _, x := range r.Uniques {
		if hasIndex(have.Uniques, x) {
			continue
		}
		what := fmt.Sprintf("add unique (%s)", strings.Join(x.Columns, ", "))
		if !slices.ContainsFunc(x.Columns, func(c string) bool { return isNew[c] }) {
			doubled, err := p.db.Holds(fmt.Sprintf("SELECT 1 FROM %s WHERE %s IS NOT NULL GROUP BY %s HAVING count(*) > 1 LIMIT 1",
				table, strings.Join(quoted(x.Columns), " IS NOT NULL AND "), quoteAll(x.Columns)))
			if err != nil {
				return err
			}
			if doubled {
				p.refuse(r, what, "records with equal values exist; make them differ first", nil)
				continue
			}
		}
		p.add(r, what, p.index(r, x, "UNIQUE "))
	}
	for _, x := range r.Indexes {
		if !hasIndex(have.Indexes, x) && !hasIndex(have.Uniques, x) {
			p.add(r, fmt.Sprintf("add index (%s)", strings.Join(x.Columns, ", ")), p.index(r, x, ""))
		}
	}
	for _, x := range have.Uniques {
		if slices.ContainsFunc(x.Columns, func(c string) bool { return r.Column(c) == nil }) {
			continue // goes with its column
		}
		if !hasIndex(r.Uniques, x) && x.Name == strings.Trim(p.indexIn(r, IndexName(r.Name, x.Columns, "key")), `"`) {
			p.refuse(r, fmt.Sprintf("drop unique (%s)", strings.Join(x.Columns, ", ")),
				"the database refuses equal values until it is gone", []string{p.dropIndex(r, x)})
		}
	}
	return p.alterForeign(r, have, isNew)
}

func (p *planner) alterForeign(r, have *Relation, isNew map[string]bool) error {
	for _, fk := range r.Foreign {
		same := func(o ForeignKey) bool { return o.Column == fk.Column && o.Table == fk.Table && o.Key == fk.Key }
		if slices.ContainsFunc(have.Foreign, same) {
			continue
		}
		what := fmt.Sprintf("add foreign key %s → %s", fk.Column, fk.Table)
		if isNew[fk.Column] {
			p.foreign(r, fk)
			continue
		}
		if p.InlineForeign {
			p.refuse(r, what, "this database takes a foreign key only with a new column", nil)
			continue
		}
		if target, err := p.db.Relation(fk.Schema, fk.Table); err != nil {
			return err
		} else if target != nil {
			dangling, err := p.db.Holds(fmt.Sprintf("SELECT 1 FROM %s a WHERE a.%s IS NOT NULL AND NOT EXISTS (SELECT 1 FROM %s b WHERE b.%s = a.%s) LIMIT 1",
				p.Table(r.Schema, r.Name), Quote(fk.Column), p.Table(fk.Schema, fk.Table), Quote(fk.Key), Quote(fk.Column)))
			if err != nil {
				return err
			}
			if dangling {
				p.refuse(r, what, "records refer to ones that do not exist; clear them first", nil)
				continue
			}
		}
		p.foreign(r, fk)
	}
	for _, fk := range have.Foreign {
		if fk.Name == "" || r.Column(fk.Column) == nil || fk.Name != IndexName(r.Name, []string{fk.Column}, "fkey") {
			continue // not one that weir made
		}
		if !slices.ContainsFunc(r.Foreign, func(o ForeignKey) bool { return o.Column == fk.Column && o.Table == fk.Table }) {
			p.refuse(r, fmt.Sprintf("drop foreign key %s → %s", fk.Column, fk.Table), "the database stops guarding this reference",
				[]string{fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", p.Table(r.Schema, r.Name), Quote(fk.Name))})
		}
	}
	return nil
}

func (p *planner) dropIndex(r *Relation, x Index) string {
	if p.InlineForeign || r.Schema == "" {
		return "DROP INDEX IF EXISTS " + Quote(x.Name)
	}
	return "DROP INDEX IF EXISTS " + Quote(r.Schema) + "." + Quote(x.Name)
}

// compare lists what an external table lacks. Nothing of it is ever changed, so there is no SQL.
func (p *planner) compare(r, have *Relation) {
	if have == nil {
		p.refuse(r, "external table "+r.Name, "it does not exist in the database, and weir does not create external tables", nil)
		return
	}
	for _, c := range r.Columns {
		if have.Column(c.Name) == nil {
			p.refuse(r, "column "+c.Name, "the external table has no such column", nil)
		}
	}
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = Quote(n)
	}
	return out
}

func hasIndex(list []Index, x Index) bool {
	return slices.ContainsFunc(list, func(o Index) bool { return slices.Equal(o.Columns, x.Columns) })
}

// sameType compares type names without what does not change the values: case and collation.
func sameType(a, b string) bool { return bareType(a) == bareType(b) }

func bareType(s string) string {
	s, _, _ = strings.Cut(strings.ToLower(s), " collate ")
	return s
}
