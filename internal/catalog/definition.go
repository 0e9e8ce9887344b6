package catalog

// Definitions is everything a project defines, as its files spell it.
type Definitions struct {
	Tables    []TableDef    `yaml:"tables"`
	Endpoints []EndpointDef `yaml:"endpoints"`
	Services  []ServiceDef  `yaml:"services"`
}

// TableDef is one table file.
type TableDef struct {
	Name     string `yaml:"name"`
	Label    string `yaml:"label,omitempty"`
	Extends  string `yaml:"extends,omitempty"`   // the table it inherits from; both are stored in the root's table
	Display  string `yaml:"display,omitempty"`   // field whose value names a record; defaults to name, number or the key
	Audit    *bool  `yaml:"audit,omitempty"`     // sys_id key and sys_created_on … sys_mod_count are added; defaults to true
	Stored   string `yaml:"stored,omitempty"`    // the stored table, "schema.table" or "table" (".table" if its name has a dot, and a schema that has one in quotes); defaults to the root's name
	External bool   `yaml:"external,omitempty"`  // the stored table was not created by weir: its schema is never changed
	ReadOnly bool   `yaml:"read_only,omitempty"` // callers may not write; weir and its rules may

	Key      []string           `yaml:"key,omitempty"` // defaults to sys_id with audit; an external table without key is read-only
	Fields   []FieldDef         `yaml:"fields"`
	Indexes  [][]string         `yaml:"indexes,omitempty"`
	Uniques  [][]string         `yaml:"uniques,omitempty"`
	Matrices map[string][][]any `yaml:"matrices,omitempty"` // lookup tables for expressions: the last column is the result
	Rules    []RuleDef          `yaml:"rules,omitempty"`
	Access   AccessDef          `yaml:"access,omitempty"`
}

// FieldDef is one field of a table file.
type FieldDef struct {
	Name       string         `yaml:"name"`
	Label      string         `yaml:"label,omitempty"`
	Type       string         `yaml:"type"`
	Column     string         `yaml:"column,omitempty"`     // stored column; defaults to the name
	Native     string         `yaml:"native,omitempty"`     // the database's own type, for columns weir did not create
	MaxLength  int            `yaml:"max_length,omitempty"` // characters; 0: no limit
	Mandatory  bool           `yaml:"mandatory,omitempty"`  // must not be empty after a write
	ReadOnly   bool           `yaml:"read_only,omitempty"`  // callers' values are ignored; rules may set it
	Generated  bool           `yaml:"generated,omitempty"`  // the database computes it: never written, read back after writes
	Identity   bool           `yaml:"identity,omitempty"`   // the database numbers it when no value is given
	Unique     bool           `yaml:"unique,omitempty"`
	Reference  string         `yaml:"reference,omitempty"`   // table referred to by reference and list fields
	OnDelete   string         `yaml:"on_delete,omitempty"`   // none (default), restrict, cascade, clear: when the record referred to goes
	ForeignKey bool           `yaml:"foreign_key,omitempty"` // also a constraint in the database
	DependsOn  string         `yaml:"depends_on,omitempty"`  // field whose value narrows the choices
	Choices    []Choice       `yaml:"choices,omitempty"`
	Default    any            `yaml:"default,omitempty"` // a literal, or an expression after "="
	Compute    string         `yaml:"compute,omitempty"` // expression evaluated at every write; implies read_only
	Sequence   *Sequence      `yaml:"sequence,omitempty"`
	Access     FieldAccessDef `yaml:"access,omitempty"`
}

// Choice is one allowed value of a field with its label.
type Choice struct {
	Value     string `yaml:"value"`
	Label     string `yaml:"label"`
	Dependent string `yaml:"dependent,omitempty"` // value of the depends_on field that this choice belongs to
}

// Sequence numbers new records: Prefix, then the number in at least Digits digits, from Start on.
type Sequence struct {
	Name   string `yaml:"name,omitempty"` // defaults to table.field of the table that defines it
	Prefix string `yaml:"prefix,omitempty"`
	Digits int    `yaml:"digits,omitempty"`
	Start  int64  `yaml:"start,omitempty"`
}

// RuleDef is one rule: what a table does by itself on a write. It works on the whole set. Exactly one of Set (with
// Require), Check, Transition, Lookup, Choose, Derive, Position and Total says what is done. When and all values are expressions.
type RuleDef struct {
	Name    string            `yaml:"name"`
	On      []string          `yaml:"on,omitempty"`   // insert, update, delete; defaults to insert and update
	When    string            `yaml:"when,omitempty"` // the rule applies to records for which this is true
	Require []string          `yaml:"require,omitempty"`
	Set     map[string]string `yaml:"set,omitempty"`

	Check   string `yaml:"check,omitempty"`   // the write is refused unless this is true
	Message string `yaml:"message,omitempty"` // of a failed check, or of a lookup that finds nothing
	Field   string `yaml:"field,omitempty"`   // the field that they name

	Transition *TransitionDef `yaml:"transition,omitempty"`
	Lookup     *LookupDef     `yaml:"lookup,omitempty"`
	Choose     *ChooseDef     `yaml:"choose,omitempty"`
	Derive     *DeriveDef     `yaml:"derive,omitempty"`
	Position   *PositionDef   `yaml:"position,omitempty"`
	Total      *TotalDef      `yaml:"total,omitempty"`
}

// TransitionDef allows changes of a field only From a value to the listed ones. Values not listed as keys may change to
// anything.
type TransitionDef struct {
	Field string              `yaml:"field"`
	From  map[string][]string `yaml:"from"`
}

// LookupDef copies fields of the record of another table whose Match fields equal the expressions.
type LookupDef struct {
	Table string            `yaml:"table"`
	Match map[string]string `yaml:"match"`          // their field: our expression
	Set   map[string]string `yaml:"set"`            // our field: their field
	None  string            `yaml:"none,omitempty"` // ignore (default) or error, when there is no such record
	Many  string            `yaml:"many,omitempty"` // first (default, by key) or error, when there are several
}

// ChooseDef copies fields of the best row of an assignment table: a row matches if each of its Match fields is empty or
// equals the expression; most equal fields win, then the lowest Order field, then the lowest key.
type ChooseDef struct {
	Table string            `yaml:"table"`
	Match map[string]string `yaml:"match"`
	Order string            `yaml:"order,omitempty"`
	Set   map[string]string `yaml:"set"`
}

// DeriveDef writes a record of another table in the same atom: a new one, or with Match the one whose Match field has the
// derived value (an upsert). Result copies outcomes back into our record: our field by "key" (the record's key) and
// "state" ("inserted", "updated").
type DeriveDef struct {
	Table  string            `yaml:"table"`
	Match  string            `yaml:"match,omitempty"`
	Values map[string]string `yaml:"values"` // their field: our expression
	Result *DeriveResult     `yaml:"result,omitempty"`

	// SkipEmpty leaves their field as it is where our expression gives nothing, as the transforms of imports do; else an
	// update empties it.
	SkipEmpty bool `yaml:"skip_empty,omitempty"`
}

// DeriveResult names our fields that receive the key and the state of a derived record. The state is inserted, updated, or
// ignored if the update changed nothing.
type DeriveResult struct {
	Key   string `yaml:"key,omitempty"`
	State string `yaml:"state,omitempty"`
}

// PositionDef numbers new records within the one that they belong to: each gets the highest number there plus Step. It is done
// when all other rules have run, so none of them sees the number; On and When do not apply. A value that is given stays, and so
// does that of a record which moves.
type PositionDef struct {
	Field  string `yaml:"field"`            // an integer, or a text of Digits digits
	Within string `yaml:"within"`           // our reference to the record that they belong to, which must exist
	Step   int64  `yaml:"step,omitempty"`   // defaults to 1
	Digits int    `yaml:"digits,omitempty"` // of a text: it is filled with zeros to so many
}

// TotalDef keeps, in the record that ours belong to, sums over all those that belong to it, after every write and delete of
// ours. The sums are part of our write: the rules of the other table do not run for them, and its audit fields stay. On
// and When do not apply.
type TotalDef struct {
	In  string            `yaml:"in"`  // our reference to the record that holds the sums
	Set map[string]string `yaml:"set"` // their field: our field, integers or decimals; 0 where there is nothing to add up
}

// AccessDef says who may do what. An absent list means: read by anybody authenticated, write by admin. The role admin may
// always do everything.
type AccessDef struct {
	Read   []GrantDef `yaml:"read,omitempty"`
	Create []GrantDef `yaml:"create,omitempty"`
	Update []GrantDef `yaml:"update,omitempty"`
	Delete []GrantDef `yaml:"delete,omitempty"`
}

// GrantDef allows actors with any of Roles (none named: anybody authenticated) the records for which Where is true.
type GrantDef struct {
	Roles []string `yaml:"roles,omitempty"`
	Where string   `yaml:"where,omitempty"` // a condition over the record and user; absent: all records
}

// FieldAccessDef narrows who may read and write a field: any of the roles. Absent: whoever may read or write the record.
type FieldAccessDef struct {
	Read  []string `yaml:"read,omitempty"`
	Write []string `yaml:"write,omitempty"`
}

// EndpointDef is a scripted or a SQL endpoint.
type EndpointDef struct {
	Name   string   `yaml:"name"`
	Path   string   `yaml:"path"` // template, "/api/snc/orders/{id}"; of a SQL endpoint what it is called in logs: its parts stand in SQL
	Method string   `yaml:"method"`
	Roles  []string `yaml:"roles,omitempty"`  // any of; none: anybody authenticated
	Public bool     `yaml:"public,omitempty"` // no authentication needed
	File   string   `yaml:"file,omitempty"`   // in the project, for error positions
	Script string   `yaml:"script,omitempty"`
	SQL    *SQLDef  `yaml:"sql,omitempty"` // of a SQL endpoint, whose Script is empty
}

// ServiceDef is one file of services/: tables under the names by which a protocol's clients know them.
type ServiceDef struct {
	Name      string `yaml:"name"`                // as it stands in paths: GWSAMPLE_BASIC
	Protocol  string `yaml:"protocol,omitempty"`  // odata (default) or ords
	Namespace string `yaml:"namespace,omitempty"` // of the path: IWBEP; defaults to sap
	Schema    string `yaml:"schema,omitempty"`    // namespace of the types; defaults to the name
	Label     string `yaml:"label,omitempty"`
	// Extends names a service that this one redefines: it has all that the other one has, and what stands here besides, or in
	// place of what has the same name there.
	Extends   string        `yaml:"extends,omitempty"`
	Roles     []string      `yaml:"roles,omitempty"`     // any of; none: anybody authenticated, within the tables' own access
	CSRF      *bool         `yaml:"csrf,omitempty"`      // changes need the token of the handshake; defaults to the setting odata.csrf
	PageSize  int           `yaml:"page_size,omitempty"` // entries of a page when the client names none; defaults to the setting odata.page_size
	Expose    []string      `yaml:"expose,omitempty"`    // tables whose sets, properties and navigation follow from the catalog
	Complex   []ComplexDef  `yaml:"complex,omitempty"`
	Sets      []SetDef      `yaml:"sets,omitempty"`
	Functions []FunctionDef `yaml:"functions,omitempty"`

	// Associations are further ones in V2 documents, which no navigation property uses: those of value helps.
	Associations []AssociationDef `yaml:"associations,omitempty"`
}

// ComplexDef is a complex type: its members have no fields of their own, each property that uses it maps them.
type ComplexDef struct {
	Name       string        `yaml:"name"`
	Properties []PropertyDef `yaml:"properties"`
}

// SetDef is one entity set and its type.
type SetDef struct {
	Name       string        `yaml:"name"`
	Type       string        `yaml:"type,omitempty"`  // entity type; defaults to the set's name without "Set"
	Table      string        `yaml:"table,omitempty"` // absent: a transport shell, whose deep inserts carry records of other sets and which stores nothing
	Label      string        `yaml:"label,omitempty"`
	Allow      []string      `yaml:"allow,omitempty"`      // read, create, update, delete; defaults to what the table allows
	Key        []string      `yaml:"key,omitempty"`        // properties; defaults to those of the table's key
	Properties []PropertyDef `yaml:"properties,omitempty"` // defaults to one for each field, named as it
	Navigation []NavDef      `yaml:"navigation,omitempty"`
	ETag       string        `yaml:"etag,omitempty"`   // property whose value is the version (ConcurrencyMode Fixed); "none" for no version
	Search     []string      `yaml:"search,omitempty"` // properties that a search looks into; defaults to the texts of a searchable set
	MaxPage    int           `yaml:"max_page,omitempty"`
	// Annotations are further sap: attributes of the set, name to value: pageable: "false".
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// PropertyDef is one property of an entity or complex type.
type PropertyDef struct {
	Name      string `yaml:"name"`
	Field     string `yaml:"field,omitempty"` // field, or a dot-walk, which can only be read; defaults to the name
	Type      string `yaml:"type,omitempty"`  // Edm type, "Edm.String", or a complex type of the service; defaults to that of the field's type
	MaxLength int    `yaml:"max_length,omitempty"`
	Precision int    `yaml:"precision,omitempty"`
	Scale     int    `yaml:"scale,omitempty"`
	Nullable  *bool  `yaml:"nullable,omitempty"`  // defaults to true but for keys and mandatory fields
	Creatable *bool  `yaml:"creatable,omitempty"` // defaults to what the field allows
	Updatable *bool  `yaml:"updatable,omitempty"`
	// Members maps the members of a complex type to fields: City: address_city.
	Members     map[string]string `yaml:"members,omitempty"`
	Label       string            `yaml:"label,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"` // sap: attributes: unit, semantics, sortable …
}

// NavDef is one navigation property.
type NavDef struct {
	Name        string            `yaml:"name"`
	Target      string            `yaml:"target"` // entity set
	Many        bool              `yaml:"many,omitempty"`
	On          map[string]string `yaml:"on,omitempty"`          // own property: the target's; empty in a transport shell
	Association string            `yaml:"association,omitempty"` // V2 name; defaults to Assoc_{From}_{To}, which both directions share
	Partner     string            `yaml:"partner,omitempty"`     // the target's navigation back; found by itself when unambiguous
}

// AssociationDef is an association of V2 between one entity of a set and many of another.
type AssociationDef struct {
	Name string            `yaml:"name"`
	From string            `yaml:"from"`         // set of the one
	To   string            `yaml:"to"`           // set of the many
	On   map[string]string `yaml:"on,omitempty"` // property of the one, all of its key: property of the many
}

// FunctionDef is a function import of V2, a function (GET) or action (POST) import of V4. It runs a scripted endpoint, whose
// request body is the parameters as a JSON object and whose answer body is the result: a value, an object of the complex type,
// or for an entity type the key (an object of key properties, or an array of them), which is then read as the caller.
type FunctionDef struct {
	Name        string            `yaml:"name"`
	Method      string            `yaml:"method,omitempty"` // GET (default) or POST
	Parameters  []PropertyDef     `yaml:"parameters,omitempty"`
	Returns     string            `yaml:"returns,omitempty"`  // type, or Collection(type); absent: nothing
	Set         string            `yaml:"set,omitempty"`      // entity set of the entities returned
	Endpoint    string            `yaml:"endpoint,omitempty"` // name of the scripted endpoint
	Routine     string            `yaml:"routine,omitempty"`  // of protocol ords: function or procedure of the database, "schema.name" or "name"; defaults to the name
	ActionFor   string            `yaml:"action_for,omitempty"`
	Label       string            `yaml:"label,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}
