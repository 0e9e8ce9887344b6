// Package edm is the entity data model: a service's definition, resolved against the catalog into sets, types, properties and
// navigation that point at tables and fields. It knows no wire format; the odata dialect writes and reads it in V2 and V4.
package edm

import (
	"weir/internal/catalog"
)

// Kind is a primitive type. The names are those of V4; a V2 document calls Date and DateTimeOffset Edm.DateTime and TimeOfDay
// and Duration Edm.Time.
type Kind uint8

// The primitive types, and the form of their values in records.
const (
	String         Kind = iota // Text
	Boolean                    // Bool
	Byte                       // Int
	SByte                      // Int
	Int16                      // Int
	Int32                      // Int
	Int64                      // Int
	Decimal                    // Text, canonical decimal digits
	Single                     // Num
	Double                     // Num
	DateTimeOffset             // Time
	Date                       // Text, YYYY-MM-DD
	TimeOfDay                  // Text, hh:mm:ss
	Duration                   // Int, seconds
	GUID                       // Text, as the field stores it: 32 hex digits or with hyphens
	Binary                     // Text holding bytes
	ComplexKind                // the property has Parts, and no value of its own
)

// Container is the name of the entity container in V4 documents; no type or function has it.
const Container = "EntityContainer"

// Service is one service, resolved. It never changes.
type Service struct {
	Def       *catalog.ServiceDef
	Name      string
	Namespace string // of the path
	Schema    string // namespace of the types
	Sets      []*Set
	Types     []*Type // entity types, in the order of their sets
	Complex   []*Complex
	Functions []*Function
	Assocs    []*Association

	sets      map[string]*Set
	functions map[string]*Function
}

// Set finds an entity set by name, nil if there is none.
func (s *Service) Set(name string) *Set { return s.sets[name] }

// Function finds a function import by name, nil if there is none.
func (s *Service) Function(name string) *Function { return s.functions[name] }

// Set is one entity set.
type Set struct {
	Name  string
	Type  *Type
	Label string
	// What clients may do here at all; access rules of the table narrow it.
	Readable, Creatable, Updatable, Deletable bool
	Search                                    []*Property // what a search looks into; empty: the set is not searchable
	MaxPage                                   int         // 0: the service's page size
	Annotations                               map[string]string
}

// Type is one entity type over one table.
type Type struct {
	Name       string
	Table      *catalog.Table // nil: a transport shell, which stores nothing
	Properties []*Property    // in the order of the definition
	Key        []*Property    // in the order of Table.Key; a shell's own order
	Navs       []*Nav
	ETag       *Property // its value is the version; nil: entities have no ETag
	Set        *Set      // the first set of the type

	properties map[string]*Property
	navs       map[string]*Nav
}

// Property finds a property by name, nil if there is none.
func (t *Type) Property(name string) *Property { return t.properties[name] }

// Nav finds a navigation property by name, nil if there is none.
func (t *Type) Nav(name string) *Nav { return t.navs[name] }

// Property is one property. A complex one has Parts and neither Path nor Field.
type Property struct {
	Name      string
	Kind      Kind
	Path      string         // record path to read: a field or a dot-walk; "" in a transport shell
	Field     *catalog.Field // to write and filter; nil for dot-walks and in shells
	Complex   *Complex
	Parts     []*Property // of a complex property, in the order of its type; their Name is the member's
	Parent    *Property   // of a part
	IsKey     bool
	Nullable  bool
	MaxLength int // 0: none
	Precision int
	Scale     int
	// Creatable and Updatable say whether clients may set it; what they send otherwise is ignored, as Gateway does.
	Creatable, Updatable bool
	Label                string
	Annotations          map[string]string
	Index                int // position in Type.Properties
}

// Part finds a member of a complex property, nil if there is none.
func (p *Property) Part(name string) *Property {
	for _, part := range p.Parts {
		if part.Name == name {
			return part
		}
	}
	return nil
}

// Complex is a complex type. The properties say names and kinds only: Path and Field are those of the property that uses it.
type Complex struct {
	Name       string
	Properties []*Property
}

// Nav is one navigation property.
type Nav struct {
	Name    string
	Owner   *Type
	Target  *Set
	Many    bool
	On      []Link // own property equals the target's; empty below a transport shell
	Partner *Nav   // the way back, nil if there is none
	Assoc   *Association
	Back    bool // it leads from the To end of its association to the From end
	Index   int  // position in Type.Navs
}

// Link is one pair of properties that a navigation compares. Their kinds are the same, but where a reference field, whose value
// is always a text, leads to a key that is none.
type Link struct{ Own, Other *Property }

// Association is what V2 makes of a navigation property and its partner. One is the end with multiplicity 0..1 or 1.
type Association struct {
	Name      string // Assoc_BusinessPartner_Products
	SetName   string // Assoc_BusinessPartner_Products_AssocSet, cut to 40 characters
	From, To  End
	Principal []*Property // of the referential constraint, in From's type; empty: none
	Dependent []*Property // in To's type
}

// The multiplicities of an end.
const (
	ExactlyOne = "1"
	Optional   = "0..1"
	Several    = "*"
)

// End is one end of an association.
type End struct {
	Role         string // FromRole_Assoc_BusinessPartner_Products
	Set          *Set
	Multiplicity string // ExactlyOne, Optional or Several
}

// Function is a function or action import.
type Function struct {
	Name        string
	Post        bool
	Parameters  []*Property
	Set         *Set     // of the entities returned, nil for other results
	Complex     *Complex // of the objects returned
	Kind        Kind     // of the values returned, where Set and Complex are nil
	Collection  bool
	Void        bool // returns nothing
	Endpoint    string
	ActionFor   *Type
	Label       string
	Annotations map[string]string
}
