package odata

import (
	"strings"
	"testing"

	"weir/internal/record"
)

func TestParsePath(t *testing.T) {
	snap := urlSnapshot(t)
	both := []version{v2, v4}
	for _, c := range []struct {
		in   version
		path string
		want string // "!" and part of the message: Invalid; "404": NoPath
	}{
		{0, "", "service"},
		{0, "$metadata", "metadata"},
		{0, "$metadata/", "metadata"},
		{0, "$metadata/x", "404"},
		{0, "$batch", "batch"},
		{0, "$batch/", "batch"},
		{0, "%24batch", "batch"},
		{0, "ProductSet", "set ProductSet"},
		{0, "ProductSet/", "set ProductSet"},
		{0, "ProductSet()", "set ProductSet"},
		{0, "Nothing", "404"},
		{0, "productset", "404"},
		{0, "ProductSet//", "404"},
		{0, "ProductSet('HT-1000')", "entity ProductSet(HT-1000)"},
		{0, "ProductSet%28%27HT-1000%27%29", "entity ProductSet(HT-1000)"},
		{0, "ProductSet('HT-1000')/", "entity ProductSet(HT-1000)"},
		{0, "ProductSet(ID='x')", "entity ProductSet(x)"},
		{0, "ProductSet( ID = 'x' )", "entity ProductSet(x)"},
		{0, "ProductSet('O''Neil')", "entity ProductSet(O'Neil)"},
		{0, "ProductSet('O%27%27Neil')", "entity ProductSet(O'Neil)"},
		{0, "ProductSet('a%2Fb')", "entity ProductSet(a/b)"},
		{0, "ProductSet('a/b')/Name", "property ProductSet(a/b).Name"},
		{0, "ProductSet('a(b)=,c')", "entity ProductSet(a(b)=,c)"},
		{0, "ProductSet('a+b%20c')", "entity ProductSet(a+b c)"},
		{0, "ProductSet('%C3%A4')", "entity ProductSet(ä)"},
		{0, "ProductSet('')", "entity ProductSet()"},
		{0, "ProductSet('12345678901')", "!segment 'ProductSet('12345678901')': ID is longer than 10"},
		{0, "ProductSet('%C3%A4234567890')", "entity ProductSet(ä234567890)"},
		{0, "ProductSet('x)", "!ID: the string 'x is not closed"},
		{0, "ProductSet('x", "!the parenthesis is not closed"},
		{0, "ProductSet('x'y')", "!ID: the string 'x'y' is not closed"},
		{0, "ProductSet(5)", "!ID: 5 is no Edm.String"},
		{0, "ProductSet(null)", "!ID cannot be null"},
		{0, "ProductSet(Name='x')", "!Name is no key property of Product"},
		{0, "ProductSet(ID='x',ID='y')", "!ID stands there twice"},
		{0, "ProductSet('a','b')", "!the key of Product has 1 properties"},
		{0, "ProductSet('%zz')", "!has a bad escape"},
		{0, "ProductSet('%ff')", "!has a bad escape or is not UTF-8"},
		{0, "ProductSet('%00')", "!has a bad escape or is not UTF-8"},
		{0, "ProductSet('%2')", "!has a bad escape"},
		{0, "ItemSet(OrderID='1',Pos='10')", "entity ItemSet(1,10)"},
		{0, "ItemSet(Pos='10',OrderID='1')", "entity ItemSet(1,10)"},
		{0, "ItemSet(Pos='10')", "!the key property OrderID is missing"},
		{0, "ItemSet('10')", "!the key of Item has 2 properties, each with its name"},
		{v2, "MoveSet(5L)", "entity MoveSet(5)"},
		{0, "MoveSet(5)", "entity MoveSet(5)"},
		{0, "MoveSet(-5)", "entity MoveSet(-5)"},
		{0, "MoveSet(99999999999999999999)", "!ID: 99999999999999999999 is no Edm.Int64"},
		{0, "ProductSet/$count", "set ProductSet count"},
		{v2, "ProductSet/%24count", "set ProductSet count"},
		{0, "ProductSet/$count/x", "404"},
		{0, "ProductSet('1')/$count", "404"},
		{0, "ProductSet/$value", "404"},
		{0, "ProductSet('1')/$value", "entity ProductSet(1) value"},
		{0, "ProductSet('1')/Name", "property ProductSet(1).Name"},
		{0, "ProductSet('1')/Name/$value", "property ProductSet(1).Name value"},
		{0, "ProductSet('1')/Name/%24value", "property ProductSet(1).Name value"},
		{0, "ProductSet('1')/Name/x", "404"},
		{0, "ProductSet('1')/Name('x')", "404"},
		{0, "ProductSet('1')/Nothing", "404"},
		{0, "PartnerSet('1')/Address", "property PartnerSet(1).Address"},
		{0, "PartnerSet('1')/Address/City", "property PartnerSet(1).Address.City"},
		{0, "PartnerSet('1')/Address/City/$value", "property PartnerSet(1).Address.City value"},
		{0, "PartnerSet('1')/Address/Land", "404"},
		{0, "ProductSet('1')/ToSupplier", "entity ProductSet(1)/ToSupplier"},
		{0, "ProductSet('1')/ToSupplier/Name", "property ProductSet(1)/ToSupplier.Name"},
		{0, "ProductSet('1')/ToSupplier('1')", "!ToSupplier leads to one entity"},
		{0, "ProductSet('1')/ToSupplier/ToProducts", "set ProductSet(1)/ToSupplier/ToProducts"},
		{0, "ProductSet('1')/ToSupplier/ToProducts('2')/ToItems/$count", "set ProductSet(1)/ToSupplier/ToProducts(2)/ToItems count"},
		{0, "ProductSet('1')/ToItems(Pos='1',OrderID='2')/ToOrder/ToCustomer/Address/City", "property ProductSet(1)/ToItems(2,1)/ToOrder/ToCustomer.Address.City"},
		{0, "OrderSet('1')/ToItems(OrderID='1',Pos='2')", "entity OrderSet(1)/ToItems(1,2)"},
		{v4, "OrderSet('1')/ToItems(Pos='2')", "entity OrderSet(1)/ToItems(1,2)"},
		{v4, "OrderSet('1')/ToItems('2')", "entity OrderSet(1)/ToItems(1,2)"},
		{v2, "OrderSet('1')/ToItems(Pos='2')", "!the key property OrderID is missing"},
		{v2, "ProductSet('1')/$links/ToSupplier", "entity ProductSet(1)/ToSupplier links"},
		{v2, "ProductSet('1')/$links/ToItems", "set ProductSet(1)/ToItems links"},
		{v2, "PartnerSet('1')/$links/ToProducts('2')", "entity PartnerSet(1)/ToProducts(2) links"},
		{v2, "ProductSet('1')/$links/Name", "404"},
		{v2, "ProductSet('1')/$links", "404"},
		{v2, "ProductSet/$links/ToItems", "404"},
		{v4, "ProductSet('1')/$links/ToSupplier", "404"},
		{v4, "ProductSet('1')/ToSupplier/$ref", "entity ProductSet(1)/ToSupplier links"},
		{v4, "ProductSet('1')/ToItems/$ref", "set ProductSet(1)/ToItems links"},
		{v4, "ProductSet/$ref", "set ProductSet links"},
		{v2, "ProductSet('1')/ToSupplier/$ref", "404"},
		{v4, "ProductSet/$each", "set ProductSet each"},
		{v2, "ProductSet/$each", "404"},
		{v4, "ProductSet('1')/$each", "404"},
		{v4, "ProductSet/HT-1000", "entity ProductSet(HT-1000)"},
		{v4, "ProductSet/HT-1000/ToSupplier/ToProducts/x%2Fy/Name", "property ProductSet(HT-1000)/ToSupplier/ToProducts(x/y).Name"},
		{v4, "ProductSet/O'Neil", "entity ProductSet(O'Neil)"},
		{v4, "ProductSet/a(b", "entity ProductSet(a(b)"},
		{v4, "ProductSet/%24count", "entity ProductSet($count)"},
		{v4, "MoveSet/7", "entity MoveSet(7)"},
		{v4, "MoveSet/x", "!ID: x is no literal"},
		{v4, "ItemSet/1/2/Note", "property ItemSet(1,2).Note"},
		{v4, "ItemSet/1", "!the key property Pos is missing"},
		{v4, "OrderSet/1/ToItems/2", "entity OrderSet(1)/ToItems(1,2)"},
		{v2, "ProductSet/HT-1000", "404"},
		{0, "ProductSet/EPM.Product", "set ProductSet"},
		{0, "ProductSet('1')/EPM.Product/Name", "property ProductSet(1).Name"},
		{0, "ProductSet('1')/EPM.Partner/Name", "404"},
		{0, "$1", "entity OrderSet($0.id)"},
		{0, "$1/ToItems", "set OrderSet($0.id)/ToItems"},
		{0, "$id-17-2/ToCustomer/Name", "property OrderSet($0.id)/ToCustomer.Name"},
		{0, "$7", "!no earlier request"},
		{v4, "ProductSet(@k)?@k='x'", "entity ProductSet(x)"},
		{v4, "ProductSet(ID=@k)?@k='x'", "entity ProductSet(x)"},
		{v4, "ProductSet(@k)", "!the alias @k has no value"},
		{v2, "ProductSet(@k)?@k='x'", "!ID: @k is no literal"},
		{0, "ShellSet('x')/ToProducts", "set ShellSet(x)/ToProducts"},
		{v2, "Confirm?ID='5'&Times=2", "function Confirm(5,2)"},
		{v2, "Confirm?ID='5'&sap-client=100", "function Confirm(5,-)"},
		{v2, "Confirm?ID=5", "!segment 'Confirm': ID: 5 is no Edm.String"},
		{v2, "Confirm?ID='12345678901'", "!ID is longer than 10"},
		{v2, "Confirm", "!Confirm: the parameter ID is missing"},
		{v2, "Confirm(ID='5')", "!takes no parameters in parentheses"},
		{v2, "Confirm/x?ID='5'", "404"},
		{v4, "Confirm", "function Confirm(-,-)"},
		{v4, "OrderSet('7')/EPM.Confirm", "function Confirm(7,-)"},
		{v4, "ProductSet('7')/EPM.Confirm", "404"},
		{v4, "Top(N=3,Of='a,b')", "function Top(3,a,b)"},
		{v4, "Top(Of=null,N=@n)?@n=4", "function Top(4,-)"},
		{v4, "Top?N=3", "function Top(3,-)"},
		{v4, "Top(N=3,N=4)", "!N stands there twice"},
		{v4, "Top(M=3)", "!Top has no parameter M"},
		{v4, "Top()", "!the parameter N is missing"},
		{v4, "Top(N='3')", "!N: '3' is no Edm.Int32"},
		{v2, "Top?N=3&Of='x'", "function Top(3,x)"},
	} {
		in := []version{c.in}
		if c.in == 0 {
			in = both
		}
		for _, ver := range in {
			q := urlRequest(t, snap, ver, c.path)
			if strings.HasPrefix(c.path, "Confirm") {
				q.method = "POST" // the method that it is called by
			}
			target, err := q.parsePath()
			var got string
			switch {
			case err != nil && record.KindOf(err) == record.NoPath:
				got = "404"
			case err != nil && record.KindOf(err) == record.Invalid:
				got = "!" + record.AsError(err).Msg
			case err != nil:
				got = err.Error()
			default:
				got = showTarget(target)
			}
			if got != c.want && !(strings.HasPrefix(c.want, "!") && strings.HasPrefix(got, "!") && strings.Contains(got, c.want[1:])) {
				t.Errorf("V%d %s\n got %s\nwant %s", ver, c.path, got, c.want)
			}
		}
	}
}
