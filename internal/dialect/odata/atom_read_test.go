package odata

import (
	"strings"
	"testing"

	"weir/internal/record"
)

const atomHead = `<?xml version="1.0" encoding="utf-8"?><entry xmlns="http://www.w3.org/2005/Atom" xmlns:m="` + nsMetadata + `" xmlns:d="` + nsData + `">`

func atomBody(inside string) string { return atomHead + inside + "</entry>" }

func atomProps(inside string) string {
	return atomBody(`<content type="application/xml"><m:properties>` + inside + `</m:properties></content>`)
}

func atomLink(name, inside string) string {
	return `<link rel="` + relRelated + name + `" type="application/atom+xml;type=feed" href="OrderSet('1')/` + name + `">` + inside + `</link>`
}

func TestReadEntity_Atom(t *testing.T) {
	f := func(set, body, want string) {
		t.Helper()
		checkBody(t, v2, "application/atom+xml;type=entry", set, body, want)
	}
	f("ProductSet", atomBody(`<id>x</id><title/><updated>2024-01-01T00:00:00Z</updated><author/><category term="SHOP.Product"/><content type="application/xml"><m:properties><d:ID>HT-1</d:ID><d:Price m:type="Edm.Decimal">9.50</d:Price></m:properties></content>`),
		`{ID=HT-1 Price=9.50 id:x}`)
	f("ProductSet", atomBody(`<content type="image/png" src="x"/><m:properties><d:ID>1</d:ID></m:properties>`), `{ID=1}`)
	f("ProductSet", atomProps(`<d:Name> a &amp; b<![CDATA[<c>]]></d:Name><d:Price m:null="true"/><d:Stock/><d:Active>true</d:Active>`),
		`{Name= a & b<c> Price=null Stock=null Active=true}`)
	f("ProductSet", atomProps(`<d:Since>2010-02-27T21:36:47</d:Since><d:Day>2010-02-27T00:00:00</d:Day><d:Opens>PT8H</d:Opens><d:Weight> 1.5E+00 </d:Weight><d:Version>x</d:Version>`),
		`{Since=2010-02-27 21:36:47 Day=2010-02-27 Opens=08:00:00 Weight=1.5}`)
	f("PartnerSet", atomProps(`<d:Address m:type="SHOP.Address"><d:City>Ulm</d:City><d:Zip m:null="true"/></d:Address>`), `{Address/City=Ulm Address/Zip=null}`)
	// links of answers say nothing, others link
	f("OrderSet", atomBody(`<link rel="edit" href="x"/><link rel="`+relRelated+`ToItems" href="OrderSet('1')/ToItems"/><link rel="`+relRelated+`ToCustomer" href="PartnerSet('7')"/>`),
		`{ToCustomer=[->PartnerSet('7')]}`)
	// deep inserts
	entry := func(inside string) string {
		return `<entry><content type="application/xml"><m:properties>` + inside + `</m:properties></content></entry>`
	}
	f("OrderSet", atomBody(atomLink("ToItems", `<m:inline><feed><title/>`+entry("<d:Position>1</d:Position>")+entry("<d:Position>2</d:Position>")+`</feed></m:inline>`)+
		atomLink("ToCustomer", `<m:inline>`+entry("<d:Name>c</d:Name>")+`</m:inline>`)+
		`<content type="application/xml"><m:properties><d:Note>n</d:Note></m:properties></content>`),
		`{Note=n ToItems=[{Position=1} {Position=2}] ToCustomer=[{Name=c}]}`)
	f("OrderSet", atomBody(atomLink("ToItems", `<m:inline><feed/></m:inline>`)+atomLink("ToCustomer", `<m:inline/>`)), `{ToItems=[]}`)
}

func TestReadEntity_AtomRefusesWhatDoesNotFit(t *testing.T) {
	f := func(set, body, field, msg string) {
		t.Helper()
		_, _, err := bodyRequest(v2, "application/atom+xml", body).readEntity(shopType(t, set), creating)
		e := record.AsError(err)
		if e == nil || e.Kind != record.Invalid || e.Field != field || !strings.Contains(e.Msg, msg) {
			t.Errorf("%.200s: %+v, want %s: %s", body, e, field, msg)
		}
	}
	f("ProductSet", atomProps(`<d:Nope>1</d:Nope>`), "Nope", "no property")
	f("ProductSet", atomProps(`<d:Price>x</d:Price>`), "Price", "not a valid Edm.Decimal")
	f("ProductSet", atomProps(`<d:Name m:null="true"/>`), "Name", "null is not allowed")
	f("ProductSet", atomProps(`<d:Name>a</d:Name><d:Name>b</d:Name>`), "Name", "twice")
	f("ProductSet", atomProps(`<d:Name><d:X/></d:Name>`), "", "stands where a text is expected")
	f("PartnerSet", atomProps(`<d:Address><d:Zip>123456</d:Zip></d:Address>`), "Address/Zip", "6 characters")
	f("PartnerSet", atomProps(`<d:Address m:null="true"/>`), "Address", "null is not allowed")
	f("OrderSet", atomBody(atomLink("Nope", "")), "Nope", "no navigation property")
	f("OrderSet", atomBody(atomLink("ToItems", `<m:inline><entry/></m:inline>`)), "ToItems", "<entry> is not expected here")
	f("OrderSet", atomBody(atomLink("ToItems", `<m:inline><feed><entry><content><m:properties><d:Quantity>x</d:Quantity></m:properties></content></entry></feed></m:inline>`)), "ToItems(0)/Quantity", "not a valid")
	f("ProductSet", ``, "", "ends before its XML does")
	f("ProductSet", `<feed xmlns="http://www.w3.org/2005/Atom"/>`, "", "an Atom entry is expected, not <feed>")
	f("ProductSet", `<!DOCTYPE x [<!ENTITY a "b">]><entry xmlns="http://www.w3.org/2005/Atom"/>`, "", "document types are not accepted")
	f("ProductSet", atomBody("")+"<x/>", "", "more than one root")
	f("ProductSet", atomHead, "", "at byte")
	f("ProductSet", atomProps("<d:Name>\xff</d:Name>"), "", "not valid UTF-8")
	f("ProductSet", `<?xml version="1.0" encoding="iso-8859-1"?><entry xmlns="http://www.w3.org/2005/Atom"/>`, "", "is not UTF-8")
	f("ProductSet", atomBody(strings.Repeat("<x>", 1000)+strings.Repeat("</x>", 1000)), "", "nest too deep")
	deep := "<entry>"
	for range 30 {
		deep = "<entry>" + atomLink("ToOrder", "<m:inline>"+"<entry>"+atomLink("ToItems", "<m:inline><feed>"+deep)) // ends by themselves: never closed
	}
	_, _, err := bodyRequest(v2, "application/atom+xml", atomHead+atomLink("ToItems", "<m:inline><feed>"+deep)).readEntity(shopType(t, "OrderSet"), creating)
	if err == nil {
		t.Error("an entry without an end is read")
	}
}

// FuzzReadAtom reads entries of Atom: never a panic, and every error is the client's.
func FuzzReadAtom(f *testing.F) {
	f.Add(atomProps(`<d:ID>HT-1</d:ID><d:Price m:type="Edm.Decimal">9.50</d:Price><d:Stock m:null="true"/>`))
	f.Add(atomBody(atomLink("ToItems", `<m:inline><feed><entry><content><m:properties><d:Quantity>1</d:Quantity></m:properties></content></entry></feed></m:inline>`)))
	f.Add(atomBody(`<link rel="` + relRelated + `ToCustomer" href="PartnerSet('7')"/>`))
	f.Add(atomProps(`<d:Address><d:City>Ulm</d:City></d:Address>`))
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<14 {
			return
		}
		for _, typ := range fuzzTypes {
			_, r, err := bodyRequest(v2, "application/atom+xml", body).readEntity(typ, creating)
			if err == nil {
				r.release()
			} else if k := record.KindOf(err); k != record.Invalid {
				t.Fatalf("%v", err)
			}
		}
	})
}
