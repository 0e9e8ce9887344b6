package catalog

import (
	"slices"

	"weir/internal/record"
)

// OnDelete is what happens to a referring record when the record it refers to is deleted.
type OnDelete uint8

// The deletion rules of references.
const (
	OnDeleteNone     OnDelete = iota // nothing: the reference dangles
	OnDeleteRestrict                 // the delete is refused
	OnDeleteCascade                  // the referring record is deleted too
	OnDeleteClear                    // the reference becomes empty
)

// Field is one field of a table.
type Field struct {
	Name       string
	Label      string
	Column     string // stored column
	Native     string // the database's own type of a column that weir did not create, else ""
	Type       record.Type
	Index      int // position in Table.Fields
	MaxLength  int // characters; 0: no limit
	Mandatory  bool
	ReadOnly   bool // callers' values are ignored
	Generated  bool // the database computes it
	Identity   bool // the database numbers it
	Unique     bool
	Audit      bool   // sys_created_on and so on, kept by the engine
	Reference  string // table referred to, "" if none
	OnDelete   OnDelete
	ForeignKey bool
	DependsOn  string
	Choices    []Choice
	Default    string // literal in canonical text, or "=" and an expression; "": none
	Compute    string // expression; "": none
	Sequence   *Sequence
	Access     FieldAccessDef
	Owner      string // the table of the hierarchy that defines it
}

// ChoiceLabel is the label of the choice value, or "" if it is none.
func (f *Field) ChoiceLabel(value string) string {
	for i := range f.Choices {
		if f.Choices[i].Value == value {
			return f.Choices[i].Label
		}
	}
	return ""
}

// Table is one table with everything it inherits.
type Table struct {
	Name       string
	Label      string
	Extends    string   // the direct parent, "" for a root
	Root       string   // the root of the hierarchy, its own name if it inherits from nothing
	Parents    []string // from the direct parent up to the root
	Classes    []string // itself and all descendants: what a read of it returns
	Schema     string   // database schema of the stored table, "" for the default one
	Stored     string   // stored table
	External   bool     // weir did not create it
	System     bool     // weir's own; no dialect reaches it
	ReadOnly   bool
	Audit      bool   // has the audit fields
	ClassField string // field that holds the class in hierarchies, "" otherwise
	Key        []string
	Display    string
	Fields     []*Field
	Indexes    [][]string
	Uniques    [][]string // single unique fields included, the key not
	Matrices   map[string][][]any
	Rules      []RuleDef // inherited ones first
	Access     AccessDef

	byName map[string]*Field
	keys   []*Field
}

// Field finds a field by name, nil if the table has none.
func (t *Table) Field(name string) *Field { return t.byName[name] }

// KeyFields are the fields of the key, in order.
func (t *Table) KeyFields() []*Field { return t.keys }

// SingleKey is the key field if there is exactly one, else nil.
func (t *Table) SingleKey() *Field {
	if len(t.keys) == 1 {
		return t.keys[0]
	}
	return nil
}

// Writable reports whether callers may write records of the table: it has a key and is not read-only.
func (t *Table) Writable() bool { return !t.ReadOnly && len(t.Key) > 0 }

// Kept reports whether weir itself may write records of the table, which holds for read-only tables too: its logs are such.
func (t *Table) Kept() bool { return t.Writable() || !t.External && len(t.Key) > 0 }

// Is reports whether the table is name or inherits from it.
func (t *Table) Is(name string) bool { return t.Name == name || slices.Contains(t.Parents, name) }

// ReadBack reports whether a record may differ in the database from what was written: it has generated or identity
// columns, or a table that weir did not create may have triggers and defaults.
func (t *Table) ReadBack() bool { return t.External }

// Endpoint is a scripted endpoint or a SQL endpoint.
type Endpoint struct {
	EndpointDef
	Segments []string // of the path of a scripted one; "{name}" is a parameter
}
