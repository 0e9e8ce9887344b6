package odata

import (
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// The shop is what the tests of writing work on: partners with numbers of their own, products with keys that clients choose and versions,
// orders with items, notes below items, and a carrier that stores nothing.
const shopTables = `
tables:
  - name: partner
    audit: false
    key: [id]
    fields:
      - {name: id, type: string, max_length: 10, read_only: true, sequence: {digits: 10, start: 100}}
      - {name: name, type: string, max_length: 20, mandatory: true}
      - {name: city, type: string, max_length: 20}
      - {name: zip, type: string, max_length: 5}
  - name: product
    audit: false
    key: [id]
    fields:
      - {name: id, type: string, max_length: 10, mandatory: true}
      - {name: name, type: string, max_length: 20, mandatory: true}
      - {name: price, type: decimal}
      - {name: supplier, type: reference, reference: partner, foreign_key: true}
      - {name: stock, type: integer, default: 7}
      - {name: active, type: boolean}
      - {name: weight, type: float}
      - {name: since, type: datetime}
      - {name: day, type: date}
      - {name: opens, type: string, max_length: 8}
      - {name: takes, type: duration}
      - {name: image, type: bytes}
      - {name: batch, type: guid}
      - {name: version, type: integer, read_only: true, default: 1}
    rules:
      - {name: version, on: [update], set: {version: 'version + 1'}}
      - {name: price, check: 'price == nil || price >= 0', message: the price must not be negative, field: price}
  - name: order
    audit: false
    key: [id]
    fields:
      - {name: id, type: string, max_length: 10, read_only: true, sequence: {digits: 10, start: 500}}
      - {name: customer, type: reference, reference: partner, foreign_key: true}
      - {name: note, type: string, max_length: 40}
  - name: item
    audit: false
    key: [order, position]
    fields:
      - {name: order, type: reference, reference: order, foreign_key: true, mandatory: true, on_delete: cascade}
      - {name: position, type: string, max_length: 10, mandatory: true}
      - {name: product, type: reference, reference: product, foreign_key: true}
      - {name: quantity, type: decimal}
  - name: remark
    key: [sys_id]
    fields:
      - {name: order, type: string, max_length: 10}
      - {name: position, type: string, max_length: 10}
      - {name: text, type: string, max_length: 40}
services:
  - name: SHOP
    complex:
      - name: Address
        properties:
          - {name: City, type: Edm.String, max_length: 20}
          - {name: Zip, type: Edm.String, max_length: 5}
    sets:
      - name: PartnerSet
        table: partner
        properties:
          - {name: ID, field: id}
          - {name: Name, field: name}
          - {name: Address, type: Address, members: {City: city, Zip: zip}}
        navigation:
          - {name: ToProducts, target: ProductSet, many: true, on: {ID: Supplier}}
          - {name: ToOrders, target: OrderSet, many: true, on: {ID: Customer}}
      - name: ProductSet
        table: product
        etag: Version
        properties:
          - {name: ID, field: id}
          - {name: Name, field: name}
          - {name: Price, field: price, precision: 9, scale: 3}
          - {name: Supplier, field: supplier}
          - {name: SupplierName, field: supplier.name}
          - {name: Stock, field: stock, type: Edm.Int32}
          - {name: Big, field: stock, type: Edm.Int64, creatable: false, updatable: false}
          - {name: Active, field: active}
          - {name: Weight, field: weight}
          - {name: Since, field: since}
          - {name: Day, field: day}
          - {name: Opens, field: opens, type: Edm.TimeOfDay}
          - {name: Takes, field: takes}
          - {name: Image, field: image}
          - {name: Batch, field: batch}
          - {name: Version, field: version}
        navigation:
          - {name: ToSupplier, target: PartnerSet, on: {Supplier: ID}}
          - {name: ToItems, target: ItemSet, many: true, on: {ID: Product}}
      - name: OrderSet
        table: order
        etag: none
        properties:
          - {name: ID, field: id}
          - {name: Customer, field: customer}
          - {name: Note, field: note}
        navigation:
          - {name: ToCustomer, target: PartnerSet, on: {Customer: ID}}
          - {name: ToItems, target: ItemSet, many: true, on: {ID: Order}}
      - name: ItemSet
        table: item
        properties:
          - {name: Order, field: order}
          - {name: Position, field: position}
          - {name: Product, field: product}
          - {name: Quantity, field: quantity}
        navigation:
          - {name: ToOrder, target: OrderSet, on: {Order: ID}}
          - {name: ToProduct, target: ProductSet, on: {Product: ID}}
          - {name: ToRemarks, target: RemarkSet, many: true, on: {Order: Order, Position: Position}}
      - name: RemarkSet
        table: remark
        etag: none
        properties:
          - {name: ID, field: sys_id}
          - {name: Order, field: order}
          - {name: Position, field: position}
          - {name: Text, field: text}
      - name: ReadOnlySet
        type: Fixed
        table: partner
        allow: [read]
        properties:
          - {name: ID, field: id}
          - {name: Name, field: name}
      - name: CarrierSet
        key: [ID]
        properties:
          - {name: ID, type: Edm.String, max_length: 20}
          - {name: Text, type: Edm.String}
        navigation:
          - {name: ToProducts, target: ProductSet, many: true}
          - {name: ToOrders, target: OrderSet, many: true}
    functions:
      - {name: Echo, method: POST, endpoint: echo, returns: Edm.String, parameters: [{name: Text, type: Edm.String}, {name: Number, type: Edm.Int32}, {name: When, type: Edm.DateTime, nullable: true}]}
      - {name: Partner_Find, method: POST, endpoint: find, returns: Partner, set: PartnerSet, action_for: Partner, parameters: [{name: ID, type: Edm.String, max_length: 10}]}
      - {name: Sum, endpoint: sum, returns: Edm.Int32, parameters: [{name: A, type: Edm.Int32}, {name: B, type: Edm.Int32}]}
      - {name: Numbers, endpoint: numbers, returns: Collection(Edm.Decimal), parameters: [{name: Most, type: Edm.Byte}]}
      - {name: Partners, endpoint: partners, returns: Collection(Partner), parameters: [{name: IDs, type: Edm.String}]}
      - {name: Pass, method: POST, endpoint: nothing}
      - {name: Fails, method: POST, endpoint: fails, returns: Edm.String, parameters: [{name: Status, type: Edm.Int32}]}
      - {name: Place, endpoint: place, returns: Address}
      - {name: Places, endpoint: places, returns: Collection(Address)}
endpoints:
  - {name: echo, path: /api/x/echo, method: POST, script: 'response.setHeader("sap-message", "{\"code\":\"X/1\",\"message\":\"done\"}"); response.setBody(JSON.stringify(request.body.data) + (request.getHeader("Authorization") || ""));'}
  - {name: find, path: /api/x/find, method: POST, script: 'response.setBody({ID: request.body.data.ID, Name: "not read"});'}
  - {name: sum, path: /api/x/sum, method: GET, script: 'response.setBody(request.body.data.A + request.body.data.B);'}
  - {name: numbers, path: /api/x/numbers, method: GET, script: 'var list = []; for (var i = 1; i <= request.body.data.Most; i++) { list.push(i / 2); } response.setBody(list);'}
  - {name: partners, path: /api/x/partners, method: GET, script: 'response.setBody(request.body.data.IDs ? request.body.data.IDs.split(",").map(function (id) { return {ID: id}; }) : []);'}
  - {name: nothing, path: /api/x/nothing, method: POST, script: 'response.setHeader("sap-message", "Größe geändert");'}
  - name: fails
    path: /api/x/fails
    method: POST
    script: |
      var status = request.body.data.Status;
      if (status == 0) {
        response.setBody({not: "a text"});
      } else if (status == 404) {
        throw new sn_ws_err.NotFoundError("there is no such thing");
      } else {
        throw new Error("a bug of the script");
      }
  - {name: place, path: /api/x/place, method: GET, script: 'response.setBody({City: "Ulm"});'}
  - {name: places, path: /api/x/places, method: GET, script: 'response.setBody([{City: "Ulm", Zip: "89073"}, {Zip: "1"}]);'}
`

func shop(t testing.TB) *catalog.Snapshot {
	t.Helper()
	var defs catalog.Definitions
	if err := yaml.Unmarshal([]byte(shopTables), &defs); err != nil {
		t.Fatal(err)
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// shopType is a type of the shop's service.
func shopType(t testing.TB, set string) *edm.Type {
	t.Helper()
	snap := shop(t)
	svc, err := edm.Compile(snap, &snap.Services()[0])
	if err != nil {
		t.Fatal(err)
	}
	return svc.Set(set).Type
}

// shopClock is the time of the tests.
var shopClock = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func shopDialect() *Dialect {
	d := New(Options{})
	d.now = func() time.Time { return shopClock }
	return d
}

// bodyRequest is a call with nothing but a body.
func bodyRequest(ver version, contentType, body string) *request {
	return &request{d: shopDialect(), ver: ver, call: &dialect.Call{
		Method: "POST", Body: []byte(body), Header: wire.Header{{Name: "Content-Type", Value: contentType}},
	}}
}

// showEntity is an entity as text.
func showEntity(e *entity) string {
	b := []byte("{")
	sep := func() {
		if len(b) > 1 {
			b = append(b, ' ')
		}
	}
	for _, p := range e.props {
		sep()
		if p.prop.Parent != nil {
			b = append(append(b, p.prop.Parent.Name...), '/')
		}
		b = append(append(b, p.prop.Name...), '=')
		b = append(b, showValue(p.value)...)
	}
	for _, n := range e.navs {
		sep()
		b = append(append(b, n.nav.Name...), '=')
		if n.delta {
			b = append(b, "delta"...)
		}
		if n.none {
			b = append(b, "none"...)
		}
		b = append(b, '[')
		for i, c := range n.list {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(b, showEntity(c)...)
		}
		for _, u := range n.binds {
			b = append(append(b, "->"...), u...)
		}
		b = append(b, ']')
	}
	for _, s := range [][2]string{{"etag", e.etag}, {"id", e.id}, {"cid", e.cid}} {
		if s[1] != "" {
			sep()
			b = append(append(append(b, s[0]...), ':'), s[1]...)
		}
	}
	if e.gone {
		sep()
		b = append(b, "gone"...)
	}
	return string(append(b, '}'))
}

func showValue(v record.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Text()
}
