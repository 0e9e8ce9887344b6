package edm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"weir/internal/catalog"
	"weir/internal/edm"
)

const shopTables = `
tables:
  - name: partner
    audit: false
    key: [id]
    fields:
      - {name: id, type: string, max_length: 10}
      - {name: name, type: string}
      - {name: number, type: integer, unique: true}
      - {name: pin, type: password}
  - name: item
    audit: false
    key: [orders, pos]
    fields:
      - {name: orders, type: string, max_length: 10}
      - {name: pos, type: integer}
      - {name: partner, type: reference, reference: partner}
      - {name: price, type: decimal}
      - {name: made, type: datetime, read_only: true}
      - {name: kind, type: string, mandatory: true, access: {read: [boss]}}
  - name: log
    audit: false
    key: [id]
    read_only: true
    fields: [{name: id, type: integer}]
  - name: heap
    external: true
    fields: [{name: text, type: string}]
endpoints:
  - {name: run, path: /api/x/run, method: POST, script: ''}
`

func build(t *testing.T, tables string) *catalog.Snapshot {
	t.Helper()
	var defs catalog.Definitions
	if err := yaml.Unmarshal([]byte(tables), &defs); err != nil {
		t.Fatal(err)
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func compile(t *testing.T, snap *catalog.Snapshot, text string) (*edm.Service, error) {
	t.Helper()
	var def catalog.ServiceDef
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&def); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return edm.Compile(snap, &def)
}

func TestCompile_NamesWhatIsWrong(t *testing.T) {
	snap := build(t, shopTables)
	f := func(text string, want ...string) {
		t.Helper()
		_, err := compile(t, snap, text)
		if err == nil {
			t.Errorf("no fault in %s", text)
			return
		}
		if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
	const partner = "{name: PartnerSet, table: partner, properties: [{name: ID, field: id}, {name: Name, field: name}, {name: Number, field: number}]}"
	const item = "{name: ItemSet, table: item, properties: [{name: Order, field: orders}, {name: Pos, field: pos}, {name: PartnerID, field: partner}, {name: Kind, field: kind}]"
	set := func(rest string) string { return "{name: S, sets: [{name: PartnerSet, " + rest + "}]}" }
	props := func(list string) string {
		return set("table: item, properties: [{name: O, field: orders}, {name: P, field: pos}, " + list + "]")
	}
	nav := func(rest string) string {
		return "{name: S, sets: [" + partner + ", " + item + ", navigation: [" + rest + "]}]}"
	}
	function := func(rest string) string {
		return "{name: S, complex: [{name: C, properties: [{name: X}]}], sets: [" + partner + "], functions: [{name: F, method: POST, endpoint: run, " + rest + "}]}"
	}

	// the service
	f("{name: S}", "service S: name: it has no sets and exposes no tables")
	f("{name: 1S, expose: [partner]}", "service 1S: name: a name is letters, digits and underscores, does not begin with a digit and has at most 128 of them")
	f("{name: S, expose: [partner], namespace: a/b, schema: 'a..b', page_size: -1, protocol: soap}",
		`service S: protocol: "soap" is not a protocol of services; there are odata and ords`,
		`service S: namespace: "a/b" is not a segment of a path`,
		`service S: schema: "a..b" is not a namespace: names of letters, digits and underscores, with dots between`,
		"service S: page_size: -1 is less than 0")
	f("{name: S, expose: [partner, partner, nothing]}", "service S: table partner: named twice", "service S: table nothing: not defined")
	f("{name: S, expose: [heap]}", "service S: table heap: table heap has no key")
	f("{name: S, expose: [partner], sets: [{name: partner, table: partner}]}", "service S: table partner: defined twice")

	// sets and types
	f(set("table: nothing"), "service S: set PartnerSet: table nothing is not defined")
	f("{name: S, sets: [{name: A, table: log}, {name: A, table: log}]}", "service S: set A: defined twice")
	f("{name: S, sets: [{name: A B, table: log}]}", "service S: set A B: a name is letters, digits and underscores, does not begin with a digit and has at most 128 of them")
	f("{name: S, sets: [{name: ASet, table: log}, {name: A, table: log}]}", "service S: set A: there is a type A already")
	f("{name: S, sets: [{name: ASet, table: log}, {name: B, type: A, table: partner}]}",
		"service S: set B: type A is that of set ASet; only there it has a table, properties, key, navigation and etag")
	f("{name: S, sets: [{name: EntityContainerSet, table: log}]}", "service S: set EntityContainerSet: EntityContainer is the name of what holds the sets")
	f(set("table: log, allow: [read, write, delete]"), `service S: set PartnerSet: allow: "write" is not read, create, update or delete`,
		"service S: set PartnerSet: allow: table log cannot be written, so there is no delete")
	f(set("table: log, max_page: -1"), "service S: set PartnerSet: max_page -1 is less than 0")
	f(set("table: log, annotations: {creatable: 'false', Odd: x}"),
		`service S: set PartnerSet: annotations: "Odd" is not the name of a sap: attribute, such as semantics`,
		"service S: set PartnerSet: annotations: creatable follows from other keys and is not written here")
	f(set("table: item, search: [price, nothing]"), "service S: set PartnerSet: search: there is no text property price over a field",
		"service S: set PartnerSet: search: there is no text property nothing over a field")
	f(set("table: item, etag: version"), "service S: set PartnerSet: etag: there is no property version over a field")
	f(set("table: item, key: [orders, price]"), "service S: set PartnerSet: key: no property of the key stands over item.pos",
		"service S: set PartnerSet: key: price is no property over a key field of table item")
	f(set("table: item, properties: [{name: O, field: orders}]"), "service S: set PartnerSet: key: no property of the key stands over item.pos")

	// transport shells
	f(set("properties: [{name: ID, field: id}]"), "service S: set PartnerSet: property ID: a set without a table has no field id",
		"service S: set PartnerSet: a set without a table names its key")
	f(set("key: [ID], allow: [read], etag: ID, properties: [{name: ID}]"), "service S: set PartnerSet: etag: a set without a table has no versions",
		"service S: set PartnerSet: allow: a set without a table can only be created in")
	f("{name: S, sets: [{name: Shell, key: [ID], properties: [{name: ID}]}, {name: ASet, table: log, navigation: [{name: N, target: Shell, on: {id: ID}}]}]}",
		"service S: set ASet: navigation N: Shell has no table, so nothing leads to it")
	f("{name: S, sets: ["+partner+", {name: Shell, key: [ID], properties: [{name: ID}], navigation: [{name: N, target: PartnerSet, on: {ID: ID}}]}]}",
		"service S: set Shell: navigation N: on: a set without a table has nothing to compare")

	// properties
	f(props("{name: O, field: kind}"), "service S: set PartnerSet: property O: defined twice")
	f(props("{name: X, field: nothing}"), "service S: set PartnerSet: property X: table item has no field nothing")
	f(props("{name: X, field: partner.nothing}"), "service S: set PartnerSet: property X: table partner has no field nothing")
	f(props("{name: X, field: partner.pin}"), "service S: set PartnerSet: property X: item.partner.pin is a password, which no service exposes")
	f(props("{name: X, field: price, type: Edm.Int32}"), `service S: set PartnerSet: property X: type "Edm.Int32" does not fit item.price, a decimal: Edm.Decimal`)
	f(props("{name: X, field: kind, type: string}"), `service S: set PartnerSet: property X: type "string" does not fit item.kind, a string: Edm.String, Edm.TimeOfDay`)
	f(props("{name: X, field: kind, type: C, members: {A: kind}}"), `service S: set PartnerSet: property X: members are for complex types, and "C" is none of this service`,
		`service S: set PartnerSet: property X: type "C" does not fit item.kind, a string: Edm.String, Edm.TimeOfDay`)
	f(props("{name: X, field: price, max_length: 3}"), "service S: set PartnerSet: property X: max_length is for texts and bytes, and more than 0")
	f(props("{name: X, field: price, scale: 3}"), "service S: set PartnerSet: property X: precision is how many digits there are, at least 1, and scale how many of them follow the point")
	f(props("{name: X, field: kind, precision: 3}"), "service S: set PartnerSet: property X: precision and scale are for decimals and times")
	f(props("{name: X, field: made, precision: 13}"), "service S: set PartnerSet: property X: precision of a time is 0 to 12 digits after the second, and it has no scale")
	f(props("{name: X, field: made, updatable: true}"), "service S: set PartnerSet: property X: it is read-only, so it cannot be set")
	f(props("{name: X, field: partner.name, creatable: true}"), "service S: set PartnerSet: property X: it is read through a reference or has no field, so it cannot be set")
	f(set("table: log, properties: [{name: ID, field: id, creatable: true}]"), "service S: set PartnerSet: property ID: it is read-only, so it cannot be set")
	f(set("table: partner, properties: [{name: ID, field: id, updatable: true}]"), "service S: set PartnerSet: property ID: it is part of the key, so it cannot be set")
	f(props("{name: X, field: price, annotations: {unit: Y, label: L}}"),
		"service S: set PartnerSet: property X: annotations: label follows from other keys and is not written here",
		"service S: set PartnerSet: property X: unit: there is no property Y")

	// complex types
	complexes := func(list string) string {
		return "{name: S, complex: [" + list + "], sets: [{name: ItemSet, table: item, properties: [{name: O, field: orders}, {name: P, field: pos}, {name: X, type: S.C, members: {A: kind, B: made, D: id}}]}]}"
	}
	f(complexes("{name: C, properties: [{name: A}, {name: E}]}"), "service S: set ItemSet: property X: member E of C has no field",
		"service S: set ItemSet: property X: C has no member B", "service S: set ItemSet: property X: C has no member D")
	f(complexes("{name: C, properties: [{name: A, type: Edm.Int32}, {name: B, type: Edm.DateTime}, {name: D}, {name: D, field: x}]}"),
		"service S: complex type C: property D: defined twice",
		`service S: set ItemSet: property X: type "Edm.Int32" does not fit item.kind, a string: Edm.String, Edm.TimeOfDay`,
		"service S: set ItemSet: property X: table item has no field id")
	f("{name: S, expose: [partner], complex: [{name: C, properties: []}, {name: C, properties: [{name: X}]}, {name: D, properties: [{name: X, field: y, type: C}]}]}",
		"service S: complex type C: it has no properties", "service S: complex type C: there is a type C already",
		"service S: complex type D: property X: members of a complex type have no fields; each property of that type maps them",
		`service S: complex type D: property X: "C" is not a primitive type, such as Edm.String`)

	// navigation
	f(nav("{name: N, target: Nothing}"), "service S: set ItemSet: navigation N: there is no set Nothing")
	f(nav("{name: Kind, target: PartnerSet, on: {PartnerID: ID}}"), "service S: set ItemSet: navigation Kind: type Item has a property of that name already")
	f(nav("{name: N, target: PartnerSet}"), "service S: set ItemSet: navigation N: on: it says which properties of Item and Partner are equal")
	f(nav("{name: N, target: PartnerSet, on: {X: ID, PartnerID: Y}}"), "service S: set ItemSet: navigation N: on: type Partner has no property Y over a field",
		"service S: set ItemSet: navigation N: on: type Item has no property X over a field")
	f(nav("{name: N, target: PartnerSet, on: {Pos: ID}}"), "service S: set ItemSet: navigation N: on: Pos is an Edm.Int64 and ID an Edm.String")
	f(nav("{name: N, target: PartnerSet, on: {Kind: Name}}"), "service S: set ItemSet: navigation N: on: a to-one navigation compares the whole key of Partner, or what is unique in it")
	f(nav("{name: N, target: PartnerSet, many: true, on: {PartnerID: ID}}"), "service S: set ItemSet: navigation N: on: a to-many navigation compares the whole key of Item, or what is unique in it")
	f(nav("{name: N, target: PartnerSet, on: {PartnerID: ID}, partner: M}"), "service S: set ItemSet: navigation N: partner: type Partner has no navigation M")
	f(nav("{name: N, target: ItemSet, on: {Order: Order, Pos: Pos}, partner: M}, {name: M, target: PartnerSet, on: {PartnerID: ID}}"),
		"service S: set ItemSet: navigation N: partner: M does not compare the same properties the other way round")
	f(nav("{name: N, target: PartnerSet, on: {PartnerID: ID}, association: A}, {name: M, target: PartnerSet, on: {PartnerID: ID}, association: A}"),
		"service S: set ItemSet: navigation M: association: A is the name of another one or of a type")
	const back = "{name: S, sets: [{name: PartnerSet, table: partner, properties: [{name: ID, field: id}], navigation: [{name: Items, target: ItemSet, many: true, on: {ID: PartnerID}, association: B}]}, " + item + ", navigation: ["
	f(back+"{name: N, target: PartnerSet, on: {PartnerID: ID}, partner: Items}, {name: M, target: PartnerSet, on: {PartnerID: ID}, partner: Items}]}]}",
		"service S: set ItemSet: navigation M: partner: Items is the way back of another navigation")
	f(back+"{name: N, target: PartnerSet, on: {PartnerID: ID}, partner: Items, association: A}]}]}",
		"service S: set PartnerSet: navigation Items: association: the way back, N, calls it A")
	f("{name: S, sets: ["+partner+", "+item+"}], associations: [{name: Item, from: PartnerSet, to: ItemSet}, {name: A, from: X, to: ItemSet}, {name: B, from: PartnerSet, to: ItemSet, on: {Name: Kind}}, {name: C, from: PartnerSet, to: ItemSet, on: {ID: Pos}}]}",
		"service S: association Item: it is the name of another one or of a type", "service S: association A: there is no set X, or none ItemSet",
		"service S: association B: on: it names the whole key of Partner",
		"service S: association C: on: ID of Partner and Pos of Item are no two properties of one type",
		"service S: association C: on: it names the whole key of Partner")

	// functions
	f(function("returns: Nothing"), "service S: function F: returns: there is no type Nothing")
	f(function("returns: Collection(Edm.Int128)"), "service S: function F: returns: there is no type Edm.Int128")
	f(function("returns: Partner, set: Nothing"), "service S: function F: set: there is no set Nothing")
	f(function("returns: C, set: PartnerSet"), "service S: function F: set: only entities come from a set")
	f(function("parameters: [{name: P, type: C}, {name: Q, field: x}, {name: Q}]"),
		`service S: function F: parameter P: "C" is not a primitive type, such as Edm.String`,
		"service S: function F: parameter Q: a parameter has a name, a type, and what its values look like",
		"service S: function F: parameter Q: defined twice")
	f(function("action_for: Partner, parameters: [{name: ID, type: Edm.Int32}]"),
		"service S: function F: action_for: it has no parameter ID of type Edm.String for the key of Partner")
	f(function("action_for: C"), "service S: function F: action_for: there is no entity type C")
	f("{name: S, expose: [partner], functions: [{name: F, endpoint: nowhere}, {name: F, endpoint: run}, {name: partner, endpoint: run}, {name: G, method: PUT, endpoint: run, returns: Edm.String}]}",
		`service S: function F: endpoint: there is no scripted endpoint "nowhere"`, "service S: function F: returns: a function that is called by GET returns something",
		"service S: function F: there is a function or set of that name already", "service S: function partner: there is a function or set of that name already",
		`service S: function G: method "PUT" is not GET or POST`)
}
