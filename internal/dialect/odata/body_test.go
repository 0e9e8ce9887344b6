package odata

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/internal/edm"
	"weir/internal/record"
)

func TestReadEntity_V2JSON(t *testing.T) {
	f := func(set, body, want string) {
		t.Helper()
		checkBody(t, v2, "application/json", set, body, want)
	}
	f("ProductSet", `{"ID":"HT-1","Name":"Stuhl","Price":"9.50"}`, `{ID=HT-1 Name=Stuhl Price=9.50}`)
	f("ProductSet", "\ufeff \r\n{ \"ID\" : \"HT-1\" }\r\n", `{ID=HT-1}`)
	f("ProductSet", `{"d":{"ID":"HT-1"}}`, `{ID=HT-1}`)
	f("ProductSet", `{}`, `{}`)
	f("ProductSet", `{"__metadata":{"type":"SHOP.Product","uri":"http://h/ProductSet('1')","etag":"W/\"1\"","x":[{}]},"ID":"1","ToSupplier":{"__deferred":{"uri":"x"}},"ToItems":{"__deferred":{"uri":"x"}}}`,
		`{ID=1 etag:W/"1" id:http://h/ProductSet('1')}`)
	// numbers as numbers and as texts
	f("ProductSet", `{"Price":9.5,"Stock":5,"Weight":1.5e2}`, `{Price=9.5 Stock=5 Weight=150}`)
	f("ProductSet", `{"Price":"1.5E+02","Stock":"-5","Weight":"2.5E+00"}`, `{Price=150 Stock=-5 Weight=2.5}`)
	f("ProductSet", `{"Price":"1.5e-2"}`, `{Price=0.015}`)
	f("ProductSet", `{"Price":12345e-3}`, `{Price=12.345}`)
	f("ProductSet", `{"Price":-0.5}`, `{Price=-0.5}`)
	f("ProductSet", `{"Price":"+7"}`, `{Price=7}`)
	f("ProductSet", `{"Price":"9.5000"}`, `{Price=9.5000}`) // zeros beyond the scale are no digits lost
	f("ProductSet", `{"Price":null,"Active":true}`, `{Price=null Active=true}`)
	// times
	f("ProductSet", `{"Since":"/Date(1706695200000)/"}`, `{Since=2024-01-31 10:00:00}`)
	f("ProductSet", `{"Since":"\/Date(1706695200123)\/"}`, `{Since=2024-01-31 10:00:00.123}`)
	f("ProductSet", `{"Since":"/Date(1706695200000+0060)/"}`, `{Since=2024-01-31 10:00:00}`)
	f("ProductSet", `{"Since":"/Date(-1000)/"}`, `{Since=1969-12-31 23:59:59}`)
	f("ProductSet", `{"Since":"2024-01-31T10:00:00"}`, `{Since=2024-01-31 10:00:00}`)
	f("ProductSet", `{"Since":"2024-01-31T10:00:00.1234567Z"}`, `{Since=2024-01-31 10:00:00.123456}`)
	f("ProductSet", `{"Since":"2024-01-31T10:00:00+02:00"}`, `{Since=2024-01-31 08:00:00}`)
	f("ProductSet", `{"Day":"/Date(1706695200000)/"}`, `{Day=2024-01-31}`)
	f("ProductSet", `{"Day":"2024-02-29"}`, `{Day=2024-02-29}`)
	f("ProductSet", `{"Opens":"PT10H30M15S","Takes":"PT1H"}`, `{Opens=10:30:15 Takes=3600}`)
	f("ProductSet", `{"Batch":"0E984725-C51C-4BF4-9960-E1C80E27ABA0"}`, `{Batch=0e984725c51c4bf49960e1c80e27aba0}`)
	f("ProductSet", `{"Image":"/w8="}`, "{Image=\xff\x0f}")
	// texts
	f("ProductSet", `{"Name":"a\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"}`, "{Name=a\"\\/\b\f\n\r\tä😀}")
	f("ProductSet", `{"Name":"12345678901234567\u00e4\u00e4\u00e4"}`, "{Name=12345678901234567äää}")
	f("ProductSet", `{"Name":""}`, "{Name=}")
	// what cannot be set is passed over, whatever it is
	f("ProductSet", `{"SupplierName":"x","Version":null,"Big":{"a":[1,"}"]}}`, `{}`)
	f("PartnerSet", `{"ID":"77","Name":"n"}`, `{Name=n}`)
	// complex
	f("PartnerSet", `{"Address":{"__metadata":{"type":"SHOP.Address"},"City":"Ulm","Zip":null}}`, `{Address/City=Ulm Address/Zip=null}`)
	// nested: both forms, any depth, several side by side, nothing
	f("OrderSet", `{"ToItems":[{"Position":"1"},{"Position":"2"}],"Note":"n"}`, `{Note=n ToItems=[{Position=1} {Position=2}]}`)
	f("OrderSet", `{"ToItems":{"__count":"2","results":[{"Position":"1"}],"__next":"x"}}`, `{ToItems=[{Position=1}]}`)
	f("OrderSet", `{"ToItems":[]}`, `{ToItems=[]}`)
	f("OrderSet", `{"ToItems":{"results":[]}}`, `{ToItems=[]}`)
	f("OrderSet", `{"ToItems":null,"ToCustomer":null}`, `{}`)
	f("OrderSet", `{"ToItems":[{"Position":"1","ToRemarks":{"results":[{"Text":"a"},{"Text":"b"}]}},{"ToRemarks":[]}],"ToCustomer":{"Name":"c"}}`,
		`{ToItems=[{Position=1 ToRemarks=[{Text=a} {Text=b}]} {ToRemarks=[]}] ToCustomer=[{Name=c}]}`)
	f("OrderSet", `{"ToCustomer":{"__metadata":{"uri":"PartnerSet('1')"}}}`, `{ToCustomer=[->PartnerSet('1')]}`)
	f("CarrierSet", `{"ID":"","ToProducts":[{"ID":"1"}]}`, `{ID= ToProducts=[{ID=1}]}`)
	f("CarrierSet", `{"ID":null,"Text":"t"}`, `{Text=t}`)
}

func TestReadEntity_V4JSON(t *testing.T) {
	f := func(set, body, want string) {
		t.Helper()
		checkBody(t, v4, "application/json;IEEE754Compatible=true", set, body, want)
	}
	f("ProductSet", `{"@odata.context":"$metadata#ProductSet/$entity","@odata.etag":"W/\"3\"","@odata.type":"#SHOP.Product","ID":"1","Price@odata.type":"#Decimal","Price":"2.50","ToItems@odata.navigationLink":"x"}`,
		`{ID=1 Price=2.50 etag:W/"3"}`)
	f("ProductSet", `{"@etag":"e","@id":"ProductSet('1')","@x.y":{"a":[null]},"Stock":3}`, `{Stock=3 etag:e id:ProductSet('1')}`)
	f("ProductSet", `{"Since":"2024-01-31T10:00:00Z","Day":"2024-01-31","Opens":"10:30:15","Takes":"P1DT2H","Image":"_w8"}`,
		"{Since=2024-01-31 10:00:00 Day=2024-01-31 Opens=10:30:15 Takes=93600 Image=\xff\x0f}")
	f("ProductSet", `{"Opens":"10:30:00.000"}`, `{Opens=10:30:00}`)
	f("OrderSet", `{"ToCustomer@odata.bind":"PartnerSet('1')","ToItems@bind":["ItemSet(1)","ItemSet(2)"]}`,
		`{ToCustomer=[->PartnerSet('1')] ToItems=[->ItemSet(1)->ItemSet(2)]}`)
	f("OrderSet", `{"ToCustomer":null}`, `{ToCustomer=none[]}`)
	f("OrderSet", `{"ToCustomer":{"@id":"PartnerSet('1')"},"ToItems":[{"@odata.id":"ItemSet(1)"},{"Position":"2"}]}`,
		`{ToCustomer=[->PartnerSet('1')] ToItems=[{Position=2}->ItemSet(1)]}`)
	f("OrderSet", `{"ToItems":[{"@Core.ContentID":"7","Position":"1"},{"@Org.OData.Core.V1.ContentID":"8"}]}`,
		`{ToItems=[{Position=1 cid:7} {cid:8}]}`)
	f("OrderSet", `{"ToItems@delta":[{"Position":"1"},{"@removed":{"reason":"deleted"},"@id":"ItemSet(2)"}]}`,
		`{ToItems=delta[{Position=1} {id:ItemSet(2) gone}]}`)
	f("OrderSet", `{"ToItems@odata.delta":[{"@odata.context":"#ItemSet/$deletedEntity","id":"ItemSet(3)","reason":"deleted"}]}`,
		`{ToItems=delta[{id:ItemSet(3) gone}]}`)
}

func checkBody(t *testing.T, ver version, contentType, set, body, want string) {
	t.Helper()
	e, r, err := bodyRequest(ver, contentType, body).readEntity(shopType(t, set), creating)
	if err != nil {
		t.Errorf("%s: %v", body, err)
		return
	}
	if got := showEntity(e); got != want {
		t.Errorf("%s is read as\n%s, want\n%s", body, got, want)
	}
	r.release()
}

func TestReadEntity_RefusesWhatDoesNotFit(t *testing.T) {
	deep := func(n int) string {
		return strings.Repeat(`{"ToItems":[{"ToOrder":`, n) + "{}" + strings.Repeat("}]}", n)
	}
	f := func(ver version, set, body, field, msg string) {
		t.Helper()
		_, _, err := bodyRequest(ver, "application/json", body).readEntity(shopType(t, set), creating)
		e := record.AsError(err)
		if e == nil || e.Kind != record.Invalid || e.Field != field || !strings.Contains(e.Msg, msg) {
			t.Errorf("%.200s: %+v, want %s: %s", body, e, field, msg)
		}
	}
	both := func(set, body, field, msg string) {
		t.Helper()
		f(v2, set, body, field, msg)
		f(v4, set, body, field, msg)
	}
	// values: the property is named, and where it stands
	both("ProductSet", `{"Nme":"x"}`, "Nme", "type Product has no property Nme")
	both("ProductSet", `{"Name":7}`, "Name", "not a valid Edm.String")
	both("ProductSet", `{"Name":{}}`, "Name", "a single value of type Edm.String")
	both("ProductSet", `{"Name":"123456789012345678901"}`, "Name", "21 characters are more than the 20 allowed")
	both("ProductSet", `{"Name":null}`, "Name", "null is not allowed")
	both("ProductSet", `{"Name":"a","Name":"b"}`, "Name", "twice")
	both("ProductSet", `{"Price":"abc"}`, "Price", "not a valid Edm.Decimal")
	both("ProductSet", `{"Price":true}`, "Price", "not a valid Edm.Decimal")
	both("ProductSet", `{"Price":"1.2345"}`, "Price", "more than 3 digits after the point")
	both("ProductSet", `{"Price":1234567}`, "Price", "more than 6 digits before the point")
	both("ProductSet", `{"Price":"1e999999"}`, "Price", "not a valid Edm.Decimal")
	both("ProductSet", `{"Price":""}`, "Price", "not a valid Edm.Decimal")
	both("ProductSet", `{"Price":"INF"}`, "Price", "not a valid Edm.Decimal")
	both("ProductSet", `{"Stock":2147483648}`, "Stock", "not a valid Edm.Int32")
	both("ProductSet", `{"Stock":1.5}`, "Stock", "not a valid Edm.Int32")
	both("ProductSet", `{"Weight":"NaN"}`, "Weight", "not a valid Edm.Double")
	both("ProductSet", `{"Weight":"0x1p2"}`, "Weight", "not a valid Edm.Double")
	both("ProductSet", `{"Active":1}`, "Active", "not a valid Edm.Boolean")
	both("ProductSet", `{"Active":"true"}`, "Active", "not a valid Edm.Boolean")
	both("ProductSet", `{"Since":"31.01.2024"}`, "Since", "not a valid")
	both("ProductSet", `{"Since":"2023-02-29T10:00:00Z"}`, "Since", "not a valid")
	both("ProductSet", `{"Since":"/Date(1e5)/"}`, "Since", "not a valid")
	both("ProductSet", `{"Since":"/Date()/"}`, "Since", "not a valid")
	both("ProductSet", `{"Since":5}`, "Since", "not a valid")
	both("ProductSet", `{"Day":"2024-13-01"}`, "Day", "not a valid Edm.Date")
	both("ProductSet", `{"Opens":"25:00:00"}`, "Opens", "not a valid Edm.Time")
	both("ProductSet", `{"Opens":"PT24H"}`, "Opens", "not a valid Edm.Time")
	both("ProductSet", `{"Takes":"PT1.5S"}`, "Takes", "whole seconds")
	both("ProductSet", `{"Takes":"P1Y"}`, "Takes", "not a valid Edm.")
	both("ProductSet", `{"Batch":"0e984725-c51c"}`, "Batch", "not a valid Edm.Guid")
	both("ProductSet", `{"Image":"?"}`, "Image", "base64")
	both("PartnerSet", `{"Address":null}`, "Address", "null is not allowed")
	both("PartnerSet", `{"Address":"x"}`, "Address", "an object of type Address")
	both("PartnerSet", `{"Address":{"Zip":"123456"}}`, "Address/Zip", "6 characters")
	both("PartnerSet", `{"Address":{"Street":"x"}}`, "Address/Street", "type Address has no property Street")
	both("PartnerSet", `{"Address":{"Zip":"1","Zip":"1"}}`, "Address/Zip", "twice")
	both("OrderSet", `{"ToItems":[{},{"Position":"1","Quantity":"x"}]}`, "ToItems(1)/Quantity", "not a valid Edm.Decimal")
	both("OrderSet", `{"ToItems":[{"ToProduct":{"Nope":1}}]}`, "ToItems(0)/ToProduct/Nope", "no property")
	both("OrderSet", `{"ToItems":[1]}`, "ToItems(0)", "an object is expected")
	both("OrderSet", `{"ToItems":[],"ToItems":[]}`, "ToItems", "twice")
	both("OrderSet", `{"ToItems":"x"}`, "ToItems", "")
	both("OrderSet", `{"ToCustomer":[{}]}`, "ToCustomer", "one entity is expected")
	both("OrderSet", deep(15), strings.Repeat("ToItems(0)/ToOrder/", 10)[:len("ToItems(0)/ToOrder/")*10-1], "nest more than 20 deep")
	f(v2, "OrderSet", `{"ToItems":{"Position":"1"}}`, "ToItems", "an array of entities is expected")
	f(v4, "OrderSet", `{"ToItems":{"results":[]}}`, "ToItems", "an array of entities is expected")
	f(v4, "OrderSet", `{"__metadata":{}}`, "__metadata", "no property")
	f(v4, "OrderSet", `{"ToItems@odata.bind":"x"}`, "ToItems@odata.bind", "an array of addresses")
	f(v4, "OrderSet", `{"ToItems@odata.bind":[1]}`, "ToItems@odata.bind", "the address of an entity")
	f(v4, "OrderSet", `{"ToCustomer@odata.bind":["x"]}`, "ToCustomer@odata.bind", "the address of an entity")
	f(v4, "OrderSet", `{"ToItems":[],"ToItems@delta":[]}`, "ToItems", "twice")

	// texts that are no JSON: the byte is named
	both("ProductSet", ``, "", "no object, at byte 0")
	both("ProductSet", `[]`, "", "no object, at byte 0")
	both("ProductSet", `{"Name":"x"`, "", "the body ends before its JSON does, at byte 11")
	both("ProductSet", `{"Name":"x`, "", "a text does not end, at byte 10")
	both("ProductSet", `{"Name" "x"}`, "", "':' is expected, at byte 8")
	both("ProductSet", `{"Name":"x" "Price":1}`, "", "',' is expected, at byte 12")
	both("ProductSet", `{"Name":"x",}`, "", "a name in quotes is expected, at byte 12")
	both("ProductSet", `{"Name":"x"}}`, "", "more follows after the JSON, at byte 12")
	both("ProductSet", `{"Price":01}`, "", "a number is malformed, at byte 9")
	both("ProductSet", `{"Price":1.}`, "", "a number is malformed")
	both("ProductSet", `{"Price":-}`, "", "a number is malformed")
	both("ProductSet", `{"Active":yes}`, "", "a value is expected, at byte 10")
	both("ProductSet", "{\"Name\":\"a\nb\"}", "", "a control character stands in a text, at byte 10")
	both("ProductSet", `{"Name":"\x"}`, "", "an escape is none that JSON has")
	both("ProductSet", `{"Name":"\u12"}`, "", `an escape is not \u and four digits`)
	both("ProductSet", `{"Name":"\ud83d"}`, "", "half of a surrogate pair")
	both("ProductSet", `{"Name":"\ude00\ud83d"}`, "", "half of a surrogate pair")
	both("ProductSet", "{\"Name\":\"\xff\"}", "", "not valid UTF-8, at byte 9")
	both("ProductSet", `{"Version":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`, "", "values nest too deep")
}

func TestReadEntity_UpdateTakesWhatCanBeChanged(t *testing.T) {
	e, r, err := bodyRequest(v2, "", `{"ID":"1","Name":"n","Version":9,"Big":"1"}`).readEntity(shopType(t, "ProductSet"), updating)
	if err != nil {
		t.Fatal(err)
	}
	defer r.release()
	if got := showEntity(e); got != "{ID=1 Name=n}" {
		t.Error(got)
	}
}

func TestMediaOf(t *testing.T) {
	f := func(contentType, body string, want media, fails bool) {
		t.Helper()
		m, err := mediaOf(contentType, []byte(body))
		if m != want || (err != nil) != fails || fails && record.KindOf(err) != record.Unsupported {
			t.Errorf("%q %q: %d, %v", contentType, body, m, err)
		}
	}
	f("application/json", "", jsonMedia, false)
	f("application/json; charset=UTF-8", "", jsonMedia, false)
	f("application/json;IEEE754Compatible=true", "", jsonMedia, false)
	f("application/atom+xml;type=entry", "", xmlMedia, false)
	f("application/xml", "", xmlMedia, false)
	f("", "\r\n {}", jsonMedia, false)
	f("", "<a/>", xmlMedia, false)
	f("", "hello", otherMedia, true)
	f("text/plain", "{}", otherMedia, true)
	f("application/json;charset=iso-8859-1", "{}", jsonMedia, true)
}

func TestReadDelta(t *testing.T) {
	q := bodyRequest(v4, "application/json", `{"@context":"#$delta","value":[{"ID":"1","Name":"a"},{"@removed":{"reason":"deleted"},"@id":"ProductSet('2')"},{"@removed":{},"ID":"3"}],"@nextLink":"x"}`)
	r := q.reader(upserting)
	defer r.release()
	list := r.readDelta(shopType(t, "ProductSet"))
	if r.err != nil {
		t.Fatal(r.err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.place()+showEntity(e))
	}
	want := "value(0){ID=1 Name=a} value(1){id:ProductSet('2') gone} value(2){ID=3 gone}"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	for body, field := range map[string]string{
		`{"value":[{"ID":"1","Price":"x"}]}`: "value(0)/Price", `{"value":[7]}`: "value(0)", `{}`: "value", `{"x":1}`: "x", `[]`: "",
		`{"value":[{"ID":"1"}`: "",
	} {
		r := bodyRequest(v4, "application/json", body).reader(upserting)
		r.readDelta(shopType(t, "ProductSet"))
		if r.err == nil || r.err.Field != field {
			t.Errorf("%s: %v, want an error in %q", body, r.err, field)
		}
		r.release()
	}
}

// Entities of one body may have their members in another order, or other members: what is read does not depend on what was before.
func TestReadEntity_OrderOfMembersIsFree(t *testing.T) {
	typ := shopType(t, "OrderSet")
	var items, want []string
	for i := range 200 {
		members := []string{fmt.Sprintf(`"Position":"%d"`, i), fmt.Sprintf(`"Quantity":%d`, i), `"Product":"p"`}
		shown := []string{fmt.Sprintf("Position=%d", i), fmt.Sprintf("Quantity=%d", i), "Product=p"}
		n := i % 3
		members, shown = append(members[n:], members[:n]...), append(shown[n:], shown[:n]...)
		if i%5 == 0 {
			members, shown = members[:2], shown[:2]
		}
		items, want = append(items, "{"+strings.Join(members, ",")+"}"), append(want, "{"+strings.Join(shown, " ")+"}")
	}
	e, r, err := bodyRequest(v2, "", `{"ToItems":[`+strings.Join(items, ",")+`]}`).readEntity(typ, creating)
	if err != nil {
		t.Fatal(err)
	}
	defer r.release()
	if got := showEntity(e); got != "{ToItems=["+strings.Join(want, " ")+"]}" {
		t.Error(got)
	}
}

// Reading leaves nothing behind but the texts: a batch of thousands of bodies costs no memory for each.
func TestReadEntity_AllocatesNothing(t *testing.T) {
	typ := shopType(t, "ProductSet")
	q := bodyRequest(v2, "application/json", `{"ID":"HT-1000","Name":"Notebook","Price":"956.000","Supplier":"0100000000","Stock":12,"Active":true,"Since":"/Date(1706695200000)/"}`)
	n := testing.AllocsPerRun(100, func() {
		_, r, err := q.readEntity(typ, creating)
		if err != nil {
			t.Fatal(err)
		}
		r.release()
	})
	if n > 0 {
		t.Errorf("%v allocations for an entity", n)
	}
}

func TestReadEntity_DeepInsertAllocatesLittle(t *testing.T) {
	typ := shopType(t, "OrderSet")
	const items = 1000
	q := bodyRequest(v2, "application/json", `{"ToItems":[`+strings.TrimSuffix(strings.Repeat(`{"Position":"10","Product":"HT-1000","Quantity":"5"},`, items), ",")+`]}`)
	n := testing.AllocsPerRun(20, func() {
		_, r, err := q.readEntity(typ, creating)
		if err != nil {
			t.Fatal(err)
		}
		r.release()
	})
	if n > items/10 {
		t.Errorf("%v allocations for %d entities", n, items)
	}
}

func BenchmarkReadEntity(b *testing.B) {
	typ := shopType(b, "ProductSet")
	q := bodyRequest(v2, "application/json", `{"ID":"HT-1000","Name":"Notebook","Price":"956.000","Supplier":"0100000000","Stock":12,"Active":true,"Since":"/Date(1706695200000)/"}`)
	b.ReportAllocs()
	for b.Loop() {
		_, r, err := q.readEntity(typ, creating)
		if err != nil {
			b.Fatal(err)
		}
		r.release()
	}
}

// FuzzReadEntity2 reads bodies of V2: never a panic, no memory out of proportion, and what is read is what encoding/json finds.
func FuzzReadEntity2(f *testing.F) { fuzzJSON(f, v2) }

// FuzzReadEntity4 does the same for V4.
func FuzzReadEntity4(f *testing.F) { fuzzJSON(f, v4) }

func fuzzJSON(f *testing.F, ver version) {
	for _, s := range []string{
		`{"ID":"HT-1","Name":"Stuhl","Price":"9.50","Since":"\/Date(1706695200123)\/"}`, `{"d":{"ID":"\ud83d\ude00"}}`,
		`{"ToItems":{"results":[{"Position":"1","ToRemarks":[{"Text":"a"}]}]},"ToCustomer":{"__metadata":{"uri":"PartnerSet('1')"}}}`,
		`{"ToItems@odata.bind":["a"],"ToItems@delta":[{"@removed":{}}],"@odata.etag":"x","ToCustomer":null}`,
		`{"Takes":"P1DT2H3M4S","Opens":"10:00","Day":"2024-01-31","Batch":"0E984725-C51C-4BF4-9960-E1C80E27ABA0","Image":"_w8"}`,
		`{"Address":{"City":"Ulm"},"Weight":-1.5e-3,"Stock":[1,{"a":null}]}`, `{"Price":1e-400}`,
	} {
		f.Add("OrderSet", s)
		f.Add("ProductSet", s)
	}
	f.Fuzz(func(t *testing.T, set, body string) {
		if len(body) > 1<<14 {
			return
		}
		types := map[string]*edm.Type{"OrderSet": fuzzTypes["OrderSet"], "PartnerSet": fuzzTypes["PartnerSet"]}
		typ := types[set]
		if typ == nil {
			typ = fuzzTypes["ProductSet"]
		}
		e, r, err := bodyRequest(ver, "application/json", body).readEntity(typ, creating)
		if err != nil {
			if k := record.KindOf(err); k != record.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		defer r.release()
		var plain map[string]any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(body, "\ufeff")), &plain); err != nil {
			t.Fatalf("%q is read as %s, but it is no JSON: %v", body, showEntity(e), err)
		}
		if d, ok := plain["d"].(map[string]any); ok && ver == v2 {
			plain = d
		}
		for _, p := range e.props {
			if p.prop.Kind != edm.String || p.prop.Parent != nil || p.value.IsNull() {
				continue
			}
			if s, _ := plain[p.prop.Name].(string); s != p.value.S {
				t.Fatalf("%s is %q, want %q", p.prop.Name, p.value.S, s)
			}
		}
	})
}

var fuzzTypes = func() map[string]*edm.Type {
	t := &testing.B{}
	return map[string]*edm.Type{"OrderSet": shopType(t, "OrderSet"), "ProductSet": shopType(t, "ProductSet"), "PartnerSet": shopType(t, "PartnerSet")}
}()
