package odata

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/dialect/dialecttest"
	"weir/internal/edm"
	"weir/internal/record"
)

func printSort(list []record.Sort) string {
	var keys []string
	for _, s := range list {
		key := s.Path
		if s.Agg != nil {
			key = dialecttest.PrintAgg(*s.Agg)
		}
		if s.Desc {
			key += " desc"
		}
		keys = append(keys, key)
	}
	return strings.Join(keys, ", ")
}

// printQuery is a query as text: what is not at its default.
func printQuery(q *query) string {
	var b strings.Builder
	word := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, format, args...)
	}
	if q.filter != nil {
		word("where %s", printed(q.filter))
	}
	if q.sort != nil {
		word("by %s", printSort(q.sort))
	}
	if q.skip > 0 {
		word("skip %d", q.skip)
	}
	if q.top >= 0 {
		word("top %d", q.top)
	}
	if q.count {
		word("counted")
	}
	if q.token != "" {
		word("from %s", q.token)
	}
	if !q.all {
		names := []string{}
		for _, p := range q.props {
			names = append(names, p.Name)
		}
		word("select %s", strings.Join(names, ","))
	}
	for _, n := range q.navs {
		word("link %s", n.Name)
	}
	for _, e := range q.expand {
		text := e.nav.Name
		if e.refs {
			text += "/$ref"
		}
		if e.only {
			text += "/$count"
		}
		if e.depth != 0 {
			text += fmt.Sprintf("*%d", e.depth)
		}
		if inner := printQuery(&e.query); inner != "" {
			text += "(" + inner + ")"
		}
		word("expand %s", text)
	}
	if ap := q.apply; ap != nil {
		word("apply")
		if ap.filter != nil {
			word("where %s", printed(ap.filter))
		}
		for i, path := range ap.groupPaths {
			word("group %s as %s", path, strings.Join(ap.groupNames[i], "/"))
			if ap.group[i].Name != ap.groupNames[i][len(ap.groupNames[i])-1] {
				word("MISNAMED")
			}
		}
		for _, a := range ap.aggs {
			word("%s as %s %s", dialecttest.PrintAgg(a.agg), a.alias, a.kind)
		}
		for _, h := range ap.having {
			word("having %s", printed(record.Compare(h.Cmp, record.F(dialecttest.PrintAgg(h.Agg)), record.C(h.Value))))
		}
		if ap.sort != nil {
			word("by %s", printSort(ap.sort))
		}
		if ap.skip > 0 {
			word("skip %d", ap.skip)
		}
		if ap.top >= 0 {
			word("top %d", ap.top)
		}
	}
	return b.String()
}

func TestParseQuery(t *testing.T) {
	snap := urlSnapshot(t)
	for _, c := range []struct {
		ver  version // 0: both
		in   string  // blanks are encoded
		want string
	}{
		// Options as such.
		{0, "ProductSet", ""},
		{0, "ProductSet?", ""},
		{0, "ProductSet?sap-client=100&sap-language=EN&foo=bar&$format=json", ""},
		{0, "ProductSet?$foo=1", "!unknown query option $foo"},
		{0, "ProductSet?%24top=5", "top 5"},
		{0, "ProductSet?$top=5&$top=5", "!the query option $top stands there twice"},
		{v4, "ProductSet?top=5&$skip=3&COUNT=true&Filter=ID eq 'x'", `where id = "x" skip 3 top 5 counted`},
		{v4, "ProductSet?top=5&$top=5", "!the query option $top stands there twice"},
		{v2, "ProductSet?top=5&filter=Foo", ""},
		{v2, "ProductSet?$count=true", "!unknown query option $count"},
		{v4, "ProductSet?$inlinecount=allpages", "!unknown query option $inlinecount"},
		{v4, "ProductSet?$compute=1", "501 $compute is not supported"},
		{v4, "ProductSet?$deltatoken=1", "501 $deltatoken is not supported"},
		{v4, "ProductSet?$id=x", "!$id is for paths that end in $ref"},
		{v4, "ProductSet?$levels=1", "!$levels stands within $expand"},
		{0, "ProductSet('A')?$select=ID&$expand=ToSupplier", "select ID expand ToSupplier"},
		{0, "ProductSet('A')?$filter=ID eq 'x'", "!$filter is for collections"},
		{0, "ProductSet('A')/ToItems?$top=1", "top 1"},
		{0, "ProductSet('A')/ToSupplier?$top=1", "!$top is for collections"},
		{0, "ProductSet('A')/Name?$select=ID", "!$select is for entities"},
		{0, "ProductSet('A')/Name?$format=json", ""},
		{0, "ProductSet/$count?$filter=ID eq 'x'", `where id = "x"`},
		{v2, "Top?N=3&$top=2&$select=ID", "top 2 select ID"},
		{v4, "Top(N=3)?$filter=Stock gt 5", "where stock > 5"},

		// Bounds.
		{0, "ProductSet?$top=0", "top 0"},
		{0, "ProductSet?$top=7&$skip=14", "skip 14 top 7"},
		{0, "ProductSet?$top= 7 ", "top 7"},
		{0, "ProductSet?$top=-1", "!$top, position 1: a number that is whole and not negative expected, '-' found"},
		{0, "ProductSet?$top=", "!$top, position 1: a number that is whole and not negative expected, the end found"},
		{0, "ProductSet?$top=1.5", "!$top, position 1: a number that is whole"},
		{0, "ProductSet?$top=x", "!'x' found"},
		{0, "ProductSet?$skip=5x", "!$skip, position 1"},
		{0, "ProductSet?$skip=5 5", "!$skip, position 3: an operator or the end expected"},
		{0, "ProductSet?$top=99999999999999999999", "!$top, position 1: the number is too large"},
		{0, "ProductSet?$skiptoken=abc%20d", "from abc d"},
		{v2, "ProductSet?$top=0&$inlinecount=allpages", "top 0 counted"},
		{v2, "ProductSet?$inlinecount=none", ""},
		{v2, "ProductSet?$inlinecount=all", `!$inlinecount is allpages or none, not "all"`},
		{v4, "ProductSet?$count=true", "counted"},
		{v4, "ProductSet?$count=false", ""},
		{v4, "ProductSet?$count=yes", "!$count, position 1: true or false expected, 'yes' found"},

		// Sorting.
		{0, "ProductSet?$orderby=", ""},
		{0, "ProductSet?$orderby=Name", "by name"},
		{0, "ProductSet?$orderby=Name desc,Price asc, Stock", "by name desc, price, stock"},
		{0, "ProductSet?$orderby=ToSupplier/Name desc,ToSupplier/Address/City", "by supplier.name desc, supplier.city"},
		{0, "PartnerSet?$orderby=Address/City,ToParent/ToParent/ID", "by city, parent.parent.id"},
		{0, "ProductSet?$orderby=Name DESC", "by name desc"},
		{0, "ProductSet?$orderby=Foo", "!$orderby, position 1: unknown property 'Foo' of Product"},
		{0, "ProductSet?$orderby=Name,", "!$orderby, position 6: a property, a literal or a function expected, the end found"},
		{0, "ProductSet?$orderby=Name up", "!$orderby, position 6: an operator or the end expected, 'up' found"},
		{0, "ProductSet?$orderby=5", "!a property expected, 5 found"},
		{0, "ProductSet?$orderby=ToSupplier", "!ToSupplier is an entity"},
		{0, "PartnerSet?$orderby=Address", "!Address of Partner is complex"},
		{0, "ProductSet?$orderby=tolower(Name)", "501 sorting by expressions is not supported"},
		{0, "ProductSet?$orderby=ToCurrency/Name", "501 sorting over navigation that is no reference"},
		{v4, "ProductSet?$orderby=ToItems/$count", "501 sorting by expressions is not supported"},
		{v2, "ProductSet?$orderby=ToItems/Note", "!ToItems leads to many entities"},

		// Selection.
		{0, "ProductSet?$select=", ""},
		{0, "ProductSet?$select=*", ""},
		{0, "ProductSet?$select=Price,ID,Price", "select ID,Price"},
		{0, "ProductSet?$select= ID , Name ", "select ID,Name"},
		{0, "ProductSet?$select=ID,*", ""},
		{0, "ProductSet?$select=ID,ToItems,ToSupplier", "select ID link ToSupplier link ToItems"},
		{0, "ProductSet?$select=ID,ToSupplier/Name", "select ID link ToSupplier"},
		{0, "ProductSet?$select=ID,ToSupplier/Name,ToSupplier/ID&$expand=ToSupplier", "select ID expand ToSupplier(select ID,Name)"},
		{0, "ProductSet?$select=ID,ToSupplier&$expand=ToSupplier", "select ID expand ToSupplier"},
		{0, "ProductSet?$select=ID,ToSupplier,ToSupplier/ID&$expand=ToSupplier", "select ID expand ToSupplier"},
		{0, "ProductSet?$select=ID&$expand=ToSupplier", "select ID expand ToSupplier"},
		{0, "ProductSet?$select=ToSupplier/ToOrders/Note,ToSupplier/*&$expand=ToSupplier/ToOrders", "select  expand ToSupplier(expand ToOrders(select Note))"},
		{0, "PartnerSet?$select=Address,ID", "select ID,Address"},
		{0, "PartnerSet?$select=Address/City", "select Address"},
		{0, "PartnerSet?$select=Address/Land", "!$select, position 9: unknown property 'Land' of Address"},
		{0, "ProductSet?$select=Foo", "!$select, position 1: unknown property 'Foo' of Product"},
		{0, "ProductSet?$select=ID,,Name", "!$select, position 4: a property expected, ',' found"},
		{0, "ProductSet?$select=ID;Name", "!$select, position 3: an operator or the end expected, ';' found"},
		{0, "ProductSet?$select=ID/Name", "!position 3"},
		{0, "ProductSet?$select=EPM.Product/ID", "select ID"},
		{v4, "ProductSet?$select=EPM.*,ID", "select ID"},
		{v4, "ProductSet?$select=Name($filter=x)", "501 options within $select"},

		// Expansion.
		{0, "ProductSet?$expand=", ""},
		{0, "ProductSet?$expand=ToSupplier,ToItems", "expand ToSupplier expand ToItems"},
		{0, "ProductSet?$expand=ToItems/ToOrder,ToItems/ToProduct,ToItems", "expand ToItems(expand ToOrder expand ToProduct)"},
		{0, "ItemSet?$expand=ToOrder/ToCustomer,ToProduct", "expand ToOrder(expand ToCustomer) expand ToProduct"},
		{0, "ProductSet?$expand=Foo", "!$expand, position 1: unknown navigation property 'Foo' of Product"},
		{0, "ProductSet?$expand=Name", "!Name of Product is no navigation property"},
		{0, "ProductSet?$expand=ToItems/Foo", "!$expand, position 9: unknown navigation property 'Foo' of Item"},
		{0, "ProductSet?$expand=ToItems,", "!$expand, position 9: a navigation property expected, the end found"},
		{0, "ShellSet?$expand=ToProducts/ToSupplier", "expand ToProducts(expand ToSupplier)"},
		{v2, "ProductSet?$expand=*", "!a navigation property expected, '*' found"},
		{v2, "ProductSet?$expand=ToItems($top=1)", "!position 8: an operator or the end expected, '(' found"},
		{v4, "ItemSet?$expand=*", "expand ToOrder expand ToProduct"},
		{v4, "ItemSet?$expand=*/$ref", "expand ToOrder/$ref expand ToProduct/$ref"},
		{v4, "ItemSet?$expand=*($levels=2)", "expand ToOrder(expand ToCustomer expand ToItems) expand ToProduct(expand ToSupplier expand ToCurrency expand ToItems expand ToBins)"},
		{v4, "ItemSet?$expand=ToOrder($select=ID),*", "expand ToOrder(select ID) expand ToProduct"},
		{v4, "ItemSet?$expand=*($levels=max)", "!more than 100 navigation properties; see odata.max_expand"},
		{v4, "ItemSet?$expand=*($top=1)", "!$levels is the only option of *"},
		{v4, "ItemSet?$expand=*/x", "!$ref expected behind '*/'"},
		{v4, "ProductSet?$expand=ToItems/$ref,ToSupplier/$ref", "expand ToItems/$ref expand ToSupplier/$ref"},
		{v4, "ProductSet?$expand=ToItems/$count", "expand ToItems/$count"},
		{v4, "ProductSet?$expand=ToItems/$count($filter=Note eq 'x')", `expand ToItems/$count(where note = "x")`},
		{v4, "ProductSet?$expand=ToItems/$ref($top=2;$orderby=Note)", "expand ToItems/$ref(by note top 2)"},
		{v4, "ProductSet?$expand=ToSupplier/$count", "!$ref or, of many entities, $count expected"},
		{v4, "ProductSet?$expand=ToItems/$value", "!$ref or, of many entities, $count expected, '$' found"},
		{
			v4, "ProductSet?$expand=ToItems($select=Pos,Note;$filter=Quantity gt 5 and Note ne ')';$top=3;$skip=1;$orderby=Note desc,Pos;$count=true;$expand=ToOrder($expand=ToCustomer)),ToSupplier",
			`expand ToItems(where quantity > "5" and note != ")" by note desc, pos skip 1 top 3 counted select Pos,Note expand ToOrder(expand ToCustomer)) expand ToSupplier`,
		},
		{v4, "ProductSet?$expand=ToItems( select = Pos ; TOP = 3 )", "expand ToItems(top 3 select Pos)"},
		{v4, "ProductSet?$expand=ToSupplier($select=Name,ToOrders;$expand=ToOrders($select=ID))", "expand ToSupplier(select Name expand ToOrders(select ID))"},
		{v4, "PartnerSet?$expand=ToChildren($levels=3)", "expand ToChildren*2"},
		{v4, "PartnerSet?$expand=ToChildren($levels=max;$select=ID)", "expand ToChildren*-1(select ID)"},
		{v4, "PartnerSet?$expand=ToChildren($levels=1)", "expand ToChildren"},
		{v4, "PartnerSet?$expand=ToChildren($levels=0)", "!$levels is max or a number from 1 to 20; see odata.max_depth"},
		{v4, "PartnerSet?$expand=ToChildren($levels=21)", "!$levels is max or a number from 1 to 20"},
		{v4, "PartnerSet?$expand=ToOrders($levels=2)", "!ToOrders leads to another type"},
		{v4, "PartnerSet?$expand=ToProducts($search=book)", `expand ToProducts(where name contains~ "book" or category contains~ "book")`},
		{v4, "ProductSet?$expand=ToSupplier($top=1)", "!$expand, position 12: $top is for collections, and ToSupplier leads to one entity"},
		{v4, "ProductSet?$expand=ToSupplier($filter=Name eq 'x')", `expand ToSupplier(where name = "x")`},
		{v4, "ProductSet?$expand=ToItems($top=1;$top=2)", "!$expand, position 16: $top stands there twice"},
		{v4, "ProductSet?$expand=ToItems($foo=1)", "!unknown option $foo of $expand"},
		{v4, "ProductSet?$expand=ToItems($top)", "!'=' expected, ')' found"},
		{v4, "ProductSet?$expand=ToItems($top=1", "!';' or ')' expected, the end found"},
		{v4, "ProductSet?$expand=ToItems($filter=Foo eq 1)", "!$expand, position 17: unknown property 'Foo' of Item"},
		{v4, "ProductSet?$expand=ToItems/$ref($select=Pos)", "!$select is for entities, and here are none"},
		{v4, "ProductSet?$expand=ToItems/$count($top=1)", "!$top means nothing beside $count"},
		{v4, "ProductSet?$expand=ToItems($apply=x)", "501 $apply within $expand"},
		{v4, "ProductSet?$expand=ToItems,ToItems($top=1)", "!ToItems is expanded twice"},
		{v4, "ProductSet?$expand=ToItems/$ref,ToItems", "!ToItems is expanded twice"},
		{0, "PartnerSet?$expand=ToParent" + strings.Repeat("/ToParent", 20), "!nested deeper than 20; see odata.max_depth"},
		{v4, "PartnerSet?$expand=" + strings.Repeat("ToParent($expand=", 20) + "ToParent" + strings.Repeat(")", 20), "!nested deeper than 20"},

		// Search.
		{v4, "ProductSet?$search=book", `where name contains~ "book" or category contains~ "book"`},
		{v4, "PartnerSet?$search=a b", `where (name contains~ "a" or role contains~ "a") and (name contains~ "b" or role contains~ "b")`},
		{v4, "PartnerSet?$search=a AND b&$filter=ID eq '1'", `where (name contains~ "a" or role contains~ "a") and (name contains~ "b" or role contains~ "b") and id = "1"`},
		{v4, `PartnerSet?$search="a b" OR NOT c`, `where name contains~ "a b" or role contains~ "a b" or not (name contains~ "c" or role contains~ "c")`},
		{v4, `PartnerSet?$search=(a OR b) c`, `where (name contains~ "a" or role contains~ "a" or name contains~ "b" or role contains~ "b") and (name contains~ "c" or role contains~ "c")`},
		{v4, `PartnerSet?$search="a \"b\" \\"`, `where name contains~ "a \"b\" \\" or role contains~ "a \"b\" \\"`},
		{v4, "PartnerSet?$search=ORDER NOTE", `where (name contains~ "ORDER" or role contains~ "ORDER") and (name contains~ "NOTE" or role contains~ "NOTE")`},
		{v4, "PartnerSet?$search=", ""},
		{v4, "PartnerSet?$search=AND a", "!$search, position 1: a word expected before AND"},
		{v4, "PartnerSet?$search=a OR", "!$search, position 5: a word or a phrase in quotes expected, the end found"},
		{v4, "PartnerSet?$search=a NOT", "!a word or a phrase in quotes expected"},
		{v4, `PartnerSet?$search="a`, "!$search, position 1: the phrase is not closed"},
		{v4, "PartnerSet?$search=(a", "!')' expected, the end found"},
		{v4, "PartnerSet?$search=a)", "!$search, position 2: ')' without '('"},
		{v4, "OrderSet?$search=a", "!$search, position 1: OrderSet cannot be searched"},
		{v2, "PartnerSet?search=a OR", `where (name contains~ "a" or role contains~ "a") and (name contains~ "OR" or role contains~ "OR")`},
		{v2, `PartnerSet?search="a b" c`, `where (name contains~ "a b" or role contains~ "a b") and (name contains~ "c" or role contains~ "c")`},
		{v2, `PartnerSet?search="a`, `where name contains~ "\"a" or role contains~ "\"a"`},
		{v2, "OrderSet?search=a", "!search, position 1: OrderSet cannot be searched"},
		{v2, "PartnerSet?$search=a", "!unknown query option $search"},

		// Aliases.
		{v4, "ProductSet?$filter=Name eq @p&@p='x'", `where name = "x"`},
		{v4, "ProductSet?$filter=@c and Stock gt @n&@c=Name eq 'x' or Stock eq 1&@n=5", `where (name = "x" or stock = 1) and stock > 5`},
		{v4, "ProductSet?$filter=Name eq @p&@p='x", "!@p, position 1: the string 'x is not closed"},
		{v4, "ProductSet?$filter=Name eq @p&@p=Foo", "!@p, position 1: unknown property 'Foo' of Product"},
		{v4, "ProductSet?$filter=Name eq @p&@p=@q&@q=@p", "!@q, position 1: the alias @p names itself"},
		{v4, "ProductSet?$filter=@a&@a=@b or @b&@b=@c or @c&@c=@d or @d&@d=@e or @e&@e=@f or @f&@f=@g or @g&@g=@h or @h&@h=@i or @i&@i=@j or @j&@j=Stock lt 1", "!more than 1000 comparisons"},
		{v4, "ProductSet?$orderby=@p&@p=Name", "by name"},

		// $apply.
		{v4, "ProductSet?$apply=", ""},
		{v4, "ProductSet?$apply=aggregate($count as N)", "apply count as N Edm.Int64"},
		{
			v4, "ProductSet?$apply=filter(Stock gt 0)/groupby((Category,ToSupplier/Name),aggregate(Price with sum as Total,Stock with sum as Pieces,Weight with average as Mean,CreatedAt with max as Last,Name with countdistinct as Names,$count as N))",
			`apply where stock > 0 group category as Category group supplier.name as ToSupplier/Name sum(price) as Total Edm.Decimal sum(stock) as Pieces Edm.Int64 avg(weight) as Mean Edm.Double max(created) as Last Edm.DateTimeOffset count distinct(name) as Names Edm.Int64 count as N Edm.Int64`,
		},
		{v4, "ProductSet?$apply=groupby((Category))", "apply group category as Category"},
		{v4, "PartnerSet?$apply=groupby((Address/City))", "apply group city as Address/City"},
		{v4, "ProductSet?$apply= groupby( ( Category , Currency ) , aggregate( $count as N ) )", "apply group category as Category group currency as Currency count as N Edm.Int64"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(N gt 1 and Category ne 'x')/orderby(N desc,Category)/skip(1)/top(2)", `apply where category != "x" group category as Category count as N Edm.Int64 having count > 1 by count desc, category skip 1 top 2`},
		{v4, "ProductSet?$apply=groupby((Category),aggregate(Price with sum as T))&$filter=T ge 5.50 and 10 gt T&$orderby=T&$top=5&$skip=2&$count=true", `counted apply group category as Category sum(price) as T Edm.Decimal having sum(price) >= "5.50" having sum(price) < "10" by sum(price) skip 2 top 5`},
		{v4, "ProductSet?$apply=groupby((Category),aggregate(Price with sum as T))/topcount(5,T)", "apply group category as Category sum(price) as T Edm.Decimal by sum(price) desc top 5"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate(Price with sum as T))/bottomcount(5,T)&$top=3&$skip=1", "apply group category as Category sum(price) as T Edm.Decimal by sum(price) skip 1 top 3"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate(Price with sum as T))/topcount(2,T)&$skip=1", "apply group category as Category sum(price) as T Edm.Decimal by sum(price) desc skip 1 top 1"},
		{v4, "ProductSet?$apply=filter(Stock gt 0)", "where stock > 0"},
		{v4, "ProductSet?$apply=filter(Stock gt 0)/identity/search(x)/topcount(3,Price)", `where stock > 0 and (name contains~ "x" or category contains~ "x") by price desc top 3`},
		{v4, "ProductSet?$apply=orderby(Name)/skip(2)/top(2)&$expand=ToItems", "501 $expand beside $apply"},
		{v4, "ProductSet?$apply=aggregate(Price with sum as T)&$select=T", "501 $select beside $apply"},
		{v4, "ProductSet?$apply=aggregate(Price with sum as T)&$search=x", "501 a search beside $apply"},
		{v4, "ProductSet?$apply=aggregate(Price with sum as T)&$skiptoken=x", "501 $skiptoken beside an aggregation"},
		{v4, "ProductSet?$apply=concat(aggregate($count as N),aggregate($count as M))", "501 $apply, position 1: the transformation concat is not supported"},
		{v4, "ProductSet?$apply=compute(Price as P)", "501 the transformation compute"},
		{v4, "ProductSet?$apply=foo(x)", "!$apply, position 1: a transformation such as filter, groupby or aggregate expected, 'foo' found"},
		{v4, "ProductSet?$apply=aggregate(Price with sum)", "!'as' and a name for the result expected, ')' found"},
		{v4, "ProductSet?$apply=aggregate(Price sum as T)", "!'with' and a function such as sum expected, 'sum' found"},
		{v4, "ProductSet?$apply=aggregate(Price with total as T)", "!sum, min, max, average or countdistinct expected, 'total' found"},
		{v4, "ProductSet?$apply=aggregate(Price with Custom.x as T)", "501 the aggregation Custom.x"},
		{v4, "ProductSet?$apply=aggregate(Price mul 2 with sum as T)", "501 aggregation of expressions"},
		{v4, "ProductSet?$apply=aggregate(Name with sum as T)", "!there is no sum of the Edm.String property Name"},
		{v4, "ProductSet?$apply=aggregate(Price with sum as Name)", "!Name is a property of Product and cannot name a result"},
		{v4, "ProductSet?$apply=aggregate(Price with sum as T,$count as T)", "!T stands there twice"},
		{v4, "ProductSet?$apply=aggregate(ToItems/Quantity with sum as T)", "501 aggregation over ToItems"},
		{v4, "ProductSet?$apply=aggregate(ToCurrency/Digits with sum as T)", "501 aggregation over navigation that is no reference"},
		{v4, "ProductSet?$apply=groupby((Category,Category))", "!Category stands there twice"},
		{v4, "ProductSet?$apply=groupby((rollup(Category,Name)))", "501 rollup within $apply"},
		{v4, "ProductSet?$apply=groupby((Foo))", "!$apply, position 10: unknown property 'Foo' of Product"},
		{v4, "ProductSet?$apply=groupby(Category)", "!'(' expected, 'Category' found"},
		{v4, "ProductSet?$apply=groupby((Category),topcount(1,Price))", "501 'topcount' within groupby"},
		{v4, "ProductSet?$apply=groupby((Category))/groupby((Category))", "501 groupby behind an aggregation"},
		{v4, "ProductSet?$apply=topcount(3,Price)/aggregate($count as N)", "501 aggregate behind a transformation that cuts"},
		{v4, "ProductSet?$apply=orderby(Name)/aggregate($count as N)", "501 aggregation of a sorted result"},
		{v4, "ProductSet?$apply=topcount(3,Price)/filter(Stock gt 0)", "501 filter behind a transformation that cuts"},
		{v4, "ProductSet?$apply=topcount(3,Price)&$filter=Stock gt 0", "501 a filter behind a transformation that cuts"},
		{v4, "ProductSet?$apply=topcount(3,Price)&$orderby=Name", "501 sorting again"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(N gt 1 or Category eq 'x')", "501 conditions on aggregates can be joined by and alone"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(not (N gt 1))", "501 a condition on an aggregate cannot be negated"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(N gt Stock)", "!Stock is not there any more: it was neither grouped by nor aggregated"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(N gt N)", "501 an aggregate can be compared with a constant alone"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(N gt 'x')", "!the Edm.Int64 property N cannot be compared with the Edm.String 'x'"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))/filter(N add 1 gt 2)", "!cannot be computed with"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate($count as N))&$orderby=Name", "!Name is not there any more"},
		{v4, "ProductSet?$apply=groupby((Category),aggregate(CreatedAt with max as L))/filter(L gt 2024-01-31)", "apply group category as Category max(created) as L Edm.DateTimeOffset having max(created) > 2024-01-31 00:00:00"},
		{v4, "ProductSet?$apply=filter(Stock gt 0", "!')' expected, the end found"},
		{v4, "ProductSet?$apply=filter(Stock gt 0)x", "!$apply, position 19: an operator or the end expected, 'x' found"},
		{v2, "ProductSet?$apply=aggregate($count as N)", "!unknown query option $apply"},
	} {
		for _, ver := range []version{v2, v4} {
			if c.ver != 0 && c.ver != ver {
				continue
			}
			q := urlRequest(t, snap, ver, strings.ReplaceAll(c.in, " ", "%20"))
			target, err := q.parsePath()
			if err != nil {
				t.Fatalf("%s: %v", c.in, err)
			}
			var got string
			query, err := q.parseQuery(target)
			if err == nil {
				got = printQuery(query)
			}
			if got = outcomeOf(got, err); !fitsWanted(got, c.want) {
				t.Errorf("V%d %s\n got %s\nwant %s", ver, cut(c.in), got, c.want)
			}
		}
	}
}

func TestParsePath_FilterSegment(t *testing.T) {
	snap := urlSnapshot(t)
	for _, c := range []struct{ in, want string }{
		{"ProductSet/$filter(Stock gt 5)", "set ProductSet filter: stock > 5"},
		{"ProductSet/$filter(Name eq 'a/b)' and ToSupplier/Name eq 'x')/$each", `set ProductSet each filter: name = "a/b)" and supplier.name = "x"`},
		{"ProductSet/$filter(Stock gt 5)/$filter(Stock lt 9)/$count", "set ProductSet count filter: stock > 5 and stock < 9"},
		{"ProductSet/$filter(@f)/$each?@f=Stock%20eq%205", "set ProductSet each filter: stock = 5"},
		{"ProductSet/$filter(true)", "set ProductSet filter: always"},
		{"PartnerSet('1')/ToProducts/$filter(Stock gt 5)", "set PartnerSet(1)/ToProducts filter: stock > 5"},
		{"ProductSet/$filter(Foo gt 5)", "!$filter, position 9: unknown property 'Foo' of Product"},
		{"ProductSet/$filter(Stock gt 5)x", "!an operator or the end expected, 'x' found"},
		{"ProductSet/$filter(Stock gt 5", "!')' expected, the end found"},
		{"ProductSet/$filter(Stock gt 5)/A", "no path"},
		{"ProductSet('A')/$filter(Stock gt 5)", "no path"},
		{"ProductSet/$filter", "no path"},
	} {
		q := urlRequest(t, snap, v4, c.in)
		target, err := q.parsePath()
		var got string
		if err == nil {
			got = showTarget(target) + ": " + printed(target.filter)
		}
		if got = outcomeOf(got, err); !fitsWanted(got, c.want) && !(strings.HasPrefix(got, c.want) && err != nil) {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
	if _, err := urlRequest(t, snap, v2, "ProductSet/$filter(Stock gt 5)").parsePath(); record.KindOf(err) != record.NoPath {
		t.Errorf("V2: %v", err)
	}
}

// TestParseQuery_ManyValuesAreOneComparison: what a table with many rows selected sends.
func TestParseQuery_ManyValuesAreOneComparison(t *testing.T) {
	snap := urlSnapshot(t)
	var parts []string
	for i := range 3000 {
		parts = append(parts, fmt.Sprintf("ID eq '%d'", i))
	}
	q := urlRequest(t, snap, v2, "ProductSet?"+option("$filter", "("+strings.Join(parts, " or ")+")"))
	target, _ := q.parsePath()
	query, err := q.parseQuery(target)
	if err != nil {
		t.Fatal(err)
	}
	if e := query.filter; e.Op != record.In || len(e.Values) != 3000 {
		t.Errorf("op %d with %d values", e.Op, len(e.Values))
	}
}

func TestKindOfEveryProperty(t *testing.T) {
	for k := range edm.ComplexKind {
		if c := classOf(k); int(c) >= len(classNames) || classNames[c] == "" {
			t.Errorf("%s has no class", k)
		}
	}
}
