package odata

import "weir/internal/wire"

// service writes {"d":{"EntitySets":["A","B"]}}.
func (f json2) service(q *request, a *wire.Answer) {
	f.begin(a)
	a.Body = append(a.Body, `{"EntitySets":[`...)
	for i, set := range q.svc.Sets {
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		a.Body = wire.AppendQuote(a.Body, set.Name)
	}
	a.Body = append(a.Body, "]}}"...)
}

// service writes the sets with their addresses.
func (f *json4) service(q *request, a *wire.Answer) {
	f.content(a)
	a.Body = f.context(q, append(a.Body, '{'), nil)
	a.Body = append(a.Body, `"value":[`...)
	for i, set := range q.svc.Sets {
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		name := wire.AppendQuote(nil, set.Name)
		a.Body = append(append(a.Body, `{"name":`...), name...)
		a.Body = append(append(append(a.Body, `,"kind":"EntitySet","url":`...), name...), '}')
	}
	a.Body = append(a.Body, "]}"...)
}

// service writes an Atom service document.
func (atom2) service(q *request, a *wire.Answer) {
	a.Header.Add("Content-Type", "application/atomsvc+xml;charset=utf-8")
	a.Body = append(a.Body, xmlHead+`<app:service xmlns:app="http://www.w3.org/2007/app" xmlns:atom="http://www.w3.org/2005/Atom" xml:base="`...)
	a.Body = wire.AppendXMLText(a.Body, q.address())
	a.Body = append(a.Body, `"><app:workspace><atom:title type="text">Data</atom:title>`...)
	for _, set := range q.svc.Sets {
		a.Body = append(append(append(a.Body, `<app:collection href="`...), set.Name...), `"><atom:title type="text">`...)
		a.Body = append(append(a.Body, set.Name...), "</atom:title></app:collection>"...)
	}
	a.Body = append(a.Body, "</app:workspace></app:service>"...)
}
