package project

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Schemas are the JSON Schemas (draft 2020-12) of the YAML files of a project that this package reads, by name: "table"
// for tables/*.yaml, "service" for services/*.yaml. Editors complete and check files by them. They are made from the very types that files are read into.
func Schemas() map[string][]byte {
	return map[string][]byte{
		"table":   schemaOf(reflect.TypeFor[catalog.TableDef](), "A table of a weir project: tables/NAME.yaml"),
		"service": schemaOf(reflect.TypeFor[catalog.ServiceDef](), "A service of a weir project: services/NAME.yaml"),
	}
}

// node is a JSON Schema, as far as we need it.
type node struct {
	Schema      string           `json:"$schema,omitempty"`
	Title       string           `json:"title,omitempty"`
	Ref         string           `json:"$ref,omitempty"`
	Description string           `json:"description,omitempty"`
	Type        any              `json:"type,omitempty"` // a name or a list of names
	Enum        []string         `json:"enum,omitempty"`
	Properties  map[string]*node `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Items       *node            `json:"items,omitempty"`
	Additional  any              `json:"additionalProperties,omitempty"` // false, or the schema of each value
	Defs        map[string]*node `json:"$defs,omitempty"`
}

// scalar is the types of a value that YAML writes without quotes as it likes: 1, true, text.
var scalar = []string{"string", "number", "boolean", "null"}

func schemaOf(t reflect.Type, title string) []byte {
	defs := map[string]*node{}
	root := object(t, defs)
	root.Schema, root.Title, root.Defs = "https://json-schema.org/draft/2020-12/schema", title, defs
	delete(defs, t.Name())
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("project: schema of " + t.Name() + ": " + err.Error())
	}
	return append(text, '\n')
}

// object is the schema of a struct; the structs below it go to defs.
func object(t reflect.Type, defs map[string]*node) *node {
	n := &node{Type: "object", Properties: map[string]*node{}, Additional: false}
	defs[t.Name()] = n
	for i := range t.NumField() {
		key, opts, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		p := schemaNode(t.Field(i).Type, defs)
		name := t.Name() + "." + key
		p.Description = descriptions[name]
		if list, ok := enums[name]; ok {
			if p.Items != nil {
				p.Items.Enum = list
			} else {
				p.Enum = list
			}
		}
		n.Properties[key] = p
		if !strings.Contains(opts, "omitempty") && name != "TableDef.fields" { // a child may add none
			n.Required = append(n.Required, key)
		}
	}
	return n
}

func schemaNode(t reflect.Type, defs map[string]*node) *node {
	switch t.Kind() {
	case reflect.Pointer:
		return schemaNode(t.Elem(), defs)
	case reflect.String:
		// YAML reads a bare number or boolean as text where text is wanted.
		return &node{Type: []string{"string", "number", "boolean"}}
	case reflect.Bool:
		return &node{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &node{Type: "integer"}
	case reflect.Interface:
		return &node{Type: scalar}
	case reflect.Slice:
		return &node{Type: "array", Items: schemaNode(t.Elem(), defs)}
	case reflect.Map:
		return &node{Type: "object", Additional: schemaNode(t.Elem(), defs)}
	case reflect.Struct:
		if defs[t.Name()] == nil {
			object(t, defs)
		}
		return &node{Ref: "#/$defs/" + t.Name()}
	}
	panic(fmt.Sprintf("project: no schema for %s", t))
}

// enums are the values of keys that take only some.
var enums = map[string][]string{
	"FieldDef.type":      typeNames(),
	"FieldDef.on_delete": {"none", "restrict", "cascade", "clear"},
	"RuleDef.on":         {"insert", "update", "delete"},
	"LookupDef.none":     {"ignore", "error"},
	"LookupDef.many":     {"first", "error"},

	"ServiceDef.protocol": {"odata", "ords"},
	"SetDef.allow":        {"read", "create", "update", "delete"},
	"FunctionDef.method":  {"GET", "POST"},
}

func typeNames() (names []string) {
	for t := record.TypeString; t <= record.TypeBytes; t++ {
		names = append(names, t.String())
	}
	return names
}

// descriptions say what each key of a file means, by type and key.
var descriptions = map[string]string{
	"TableDef.name":      "The table's name, also that of its file: letters, digits and underscores, at most 80.",
	"TableDef.label":     "What people call a record of the table. Defaults to the name.",
	"TableDef.extends":   "The table it inherits fields, rules, indexes and access from. Both are stored in the root's table.",
	"TableDef.display":   "The field whose value names a record. Defaults to name, number or the key.",
	"TableDef.audit":     "Whether sys_id and sys_created_on to sys_mod_count are added and kept. Defaults to true, for external tables to false.",
	"TableDef.stored":    "The stored table, \"schema.table\" or \"table\". Defaults to the root's name.",
	"TableDef.external":  "The stored table was not created by weir: its columns are never changed.",
	"TableDef.read_only": "Nobody writes records of this table.",
	"TableDef.key":       "The fields of the key. Defaults to sys_id with audit; an external table without a key is read-only.",
	"TableDef.fields":    "The table's own fields, and inherited ones that it changes.",
	"TableDef.indexes":   "Lists of fields that the database finds records by.",
	"TableDef.uniques":   "Lists of fields that no two records have in common.",
	"TableDef.matrices":  "Small tables for lookup() in expressions: the last column is the result.",
	"TableDef.rules":     "What the table does by itself on a write, in this order.",
	"TableDef.access":    "Who may do what. Defaults to: read by anybody authenticated, write by admin.",

	"FieldDef.name":        "The field's name: letters, digits and underscores, at most 80.",
	"FieldDef.label":       "What people call it. Defaults to the name.",
	"FieldDef.type":        "How its values are read, stored and written.",
	"FieldDef.column":      "The stored column. Defaults to the name.",
	"FieldDef.native":      "The database's own type, for a column that weir did not create.",
	"FieldDef.max_length":  "The most characters of a value. Defaults to no limit.",
	"FieldDef.mandatory":   "It must not be empty after a write.",
	"FieldDef.read_only":   "Values that callers give are ignored; rules may set it.",
	"FieldDef.generated":   "The database computes it: it is never written and read back after writes.",
	"FieldDef.identity":    "The database numbers it when no value is given.",
	"FieldDef.unique":      "No two records have the same value.",
	"FieldDef.reference":   "The table that a reference or a list refers to.",
	"FieldDef.on_delete":   "What happens to this record when the one it refers to is deleted. Defaults to none.",
	"FieldDef.foreign_key": "The reference is also a constraint in the database.",
	"FieldDef.depends_on":  "The field whose value narrows the choices.",
	"FieldDef.choices":     "The values it takes, with their labels.",
	"FieldDef.default":     "The value of a new record that gives none: a literal, or an expression after \"=\".",
	"FieldDef.compute":     "An expression evaluated at every write. The field is then read-only.",
	"FieldDef.sequence":    "Numbers new records.",
	"FieldDef.access":      "Who may read and write the field. Defaults to whoever may read or write the record.",

	"Choice.value":     "The stored value.",
	"Choice.label":     "What people see.",
	"Choice.dependent": "The value of the depends_on field that this choice belongs to. Defaults to all.",

	"Sequence.name":   "The sequence's name; fields that share it share the numbers. Defaults to table.field.",
	"Sequence.prefix": "What stands before the number.",
	"Sequence.digits": "How many digits the number has at least.",
	"Sequence.start":  "The first number. Defaults to 1.",

	"RuleDef.name":       "What errors call the rule.",
	"RuleDef.on":         "The writes it applies to. Defaults to insert and update.",
	"RuleDef.when":       "The rule applies to records for which this expression is true. Defaults to all.",
	"RuleDef.require":    "Fields that must not be empty.",
	"RuleDef.set":        "Our field: expression.",
	"RuleDef.check":      "The write is refused unless this expression is true.",
	"RuleDef.message":    "What the caller of a refused write is told, by a check or a lookup that finds nothing.",
	"RuleDef.field":      "The field that a failed check, or such a lookup, names.",
	"RuleDef.transition": "Which changes of a field are legal.",
	"RuleDef.lookup":     "Copies fields of a record of another table.",
	"RuleDef.choose":     "Copies fields of the best record of an assignment table.",
	"RuleDef.derive":     "Writes a record of another table together with ours.",
	"RuleDef.position":   "Numbers new records within the one that they belong to.",
	"RuleDef.total":      "Keeps sums over our records in the one that they belong to.",

	"TransitionDef.field": "The field.",
	"TransitionDef.from":  "Old value: the new values it may change to. A value that is no key may change to anything.",

	"LookupDef.table": "The other table.",
	"LookupDef.match": "Their field: our expression.",
	"LookupDef.set":   "Our field: their field.",
	"LookupDef.none":  "What to do when there is no such record. Defaults to ignore.",
	"LookupDef.many":  "What to do when there are several. Defaults to first, by key.",

	"ChooseDef.table": "The assignment table.",
	"ChooseDef.match": "Their field: our expression. A field that is empty matches everything; most equal fields win.",
	"ChooseDef.order": "Their field that decides between equals: the lowest wins, then the lowest key.",
	"ChooseDef.set":   "Our field: their field.",

	"DeriveDef.table":      "The other table.",
	"DeriveDef.match":      "Their field that finds a record to update. Defaults to none: a new record each time.",
	"DeriveDef.values":     "Their field: our expression.",
	"DeriveDef.skip_empty": "Leaves their field as it is where our expression gives nothing. Defaults to false: an update empties it.",
	"DeriveDef.result":     "Our fields that receive what became of their record.",

	"DeriveResult.key":   "Our field that receives the key of their record.",
	"DeriveResult.state": "Our field that receives \"inserted\", \"updated\" or, when nothing changed, \"ignored\".",

	"PositionDef.field":  "The field that holds the number: an integer, or a text of as many digits as are given.",
	"PositionDef.within": "Our reference to the record that they belong to, which must exist.",
	"PositionDef.step":   "How far numbers are apart; the first is one step. Defaults to 1.",
	"PositionDef.digits": "How many digits a text has; it is filled with zeros.",

	"TotalDef.in":  "Our reference to the record that holds the sums.",
	"TotalDef.set": "Their field: our field, both integers or decimals.",

	"AccessDef.read":   "Grants to read records.",
	"AccessDef.create": "Grants to insert records.",
	"AccessDef.update": "Grants to change records.",
	"AccessDef.delete": "Grants to delete records.",

	"GrantDef.roles": "Any of these roles. Defaults to anybody authenticated.",
	"GrantDef.where": "A condition over the record and user. Defaults to all records.",

	"FieldAccessDef.read":  "Any of these roles may read it.",
	"FieldAccessDef.write": "Any of these roles may write it.",

	"ServiceDef.name":         "The service's name as it stands in paths, also that of its file: letters, digits and underscores.",
	"ServiceDef.protocol":     "The protocol it speaks: odata (the default, in V2 and V4), or ords: tables and views as collections of rows under /ords/NAME/.",
	"ServiceDef.namespace":    "The namespace in paths: /sap/opu/odata/NAMESPACE/NAME. Defaults to sap.",
	"ServiceDef.schema":       "The namespace of the types. Defaults to the name.",
	"ServiceDef.label":        "What people call it.",
	"ServiceDef.extends":      "A service that this one redefines: it has all that the other one has, and what stands here besides or in its place.",
	"ServiceDef.roles":        "Any of these roles may call it. Defaults to anybody authenticated, within the access of the tables.",
	"ServiceDef.csrf":         "Changes need the token that the handshake gives. Defaults to the setting odata.csrf.",
	"ServiceDef.page_size":    "Entries of a page when the client names no number. Defaults to the setting odata.page_size.",
	"ServiceDef.expose":       "Tables that become entity sets by themselves: all fields but passwords, searchable, with navigation along every reference between them, to_FIELD there and TABLE_by_FIELD back.",
	"ServiceDef.complex":      "Complex types.",
	"ServiceDef.sets":         "Entity sets, each with its type.",
	"ServiceDef.functions":    "Function imports: functions (GET) and actions (POST) that run a scripted endpoint.",
	"ServiceDef.associations": "Further associations in V2 documents, which no navigation property uses: those of value helps.",

	"ComplexDef.name":       "The type's name.",
	"ComplexDef.properties": "Its members. They name types and no fields: each property of the type maps them.",

	"SetDef.name":        "The set's name.",
	"SetDef.type":        "The entity type. Defaults to the set's name without \"Set\". A type that an earlier set of the same table has is shared.",
	"SetDef.table":       "The table. Without one the set is a shell that carries deep inserts into other sets and stores nothing itself.",
	"SetDef.label":       "What people call it. Defaults to the table's label.",
	"SetDef.allow":       "What clients may do. Defaults to what the table allows; without a table, create.",
	"SetDef.key":         "The properties of the key. Defaults to those over the table's key.",
	"SetDef.properties":  "The properties in order. Defaults to one for each field but passwords, named as it.",
	"SetDef.navigation":  "Navigation properties.",
	"SetDef.etag":        "The property whose value is the version of an entity, or none. Defaults to the one over sys_mod_count.",
	"SetDef.search":      "Properties that a search looks into. Defaults to all texts if the annotation searchable is true, else to none.",
	"SetDef.max_page":    "The most entries of a page. Defaults to the service's page size.",
	"SetDef.annotations": "Further sap: attributes of the set, name to value: pageable, requires-filter.",

	"PropertyDef.name":        "The property's name.",
	"PropertyDef.field":       "The field, or a walk over references (supplier.name), which can only be read. Defaults to the name.",
	"PropertyDef.type":        "An Edm type that fits the field's, or a complex type of the service. Defaults to that of the field's type.",
	"PropertyDef.max_length":  "The most characters. Defaults to the field's.",
	"PropertyDef.precision":   "How many digits a decimal has, or a time after the second.",
	"PropertyDef.scale":       "How many of a decimal's digits follow the point.",
	"PropertyDef.nullable":    "It may be null. Defaults to true but for keys, mandatory fields and complex types.",
	"PropertyDef.creatable":   "Clients may set it in a new entity. Defaults to what the field allows.",
	"PropertyDef.updatable":   "Clients may change it. Defaults to what the field allows.",
	"PropertyDef.members":     "The members of a complex type and the fields they stand over: City: address_city.",
	"PropertyDef.label":       "What people call it. Defaults to the field's label.",
	"PropertyDef.annotations": "Further sap: attributes, name to value: unit, semantics, sortable.",

	"NavDef.name":        "The navigation property's name.",
	"NavDef.target":      "The entity set it leads to.",
	"NavDef.many":        "It leads to many entities. Defaults to false: to one.",
	"NavDef.on":          "Own property: the target's property that has the same value. On the side of the one, its whole key. Empty in a set without a table.",
	"NavDef.association": "The association's name in V2 documents. Defaults to Assoc_ONE_MANY by the types; both directions share it.",
	"NavDef.partner":     "The target's navigation property that leads back. Found by itself when there is only one.",

	"FunctionDef.name":        "The function's name.",
	"FunctionDef.method":      "GET for a function, POST for an action. Defaults to GET.",
	"FunctionDef.parameters":  "Its parameters, each of a primitive type.",
	"FunctionDef.returns":     "An Edm type, a complex or an entity type of the service, or Collection(type). Defaults to nothing.",
	"FunctionDef.set":         "The set that the entities returned belong to. Defaults to the first one of their type.",
	"FunctionDef.endpoint":    "The name of the scripted endpoint. Its body is the parameters as a JSON object; it answers the value, the object, or the keys of the entities.",
	"FunctionDef.routine":     "Of protocol ords: the function or procedure of the database, schema.name or name. Defaults to the name.",
	"FunctionDef.action_for":  "The entity type that it acts on. The parameters then name its key.",
	"FunctionDef.label":       "What people call it.",
	"FunctionDef.annotations": "Further sap: attributes, name to value.",

	"AssociationDef.name": "The association's name.",
	"AssociationDef.from": "The set of the one.",
	"AssociationDef.to":   "The set of the many.",
	"AssociationDef.on":   "Property of the one: property of the many that has the same value. All of the key, or none.",
}
