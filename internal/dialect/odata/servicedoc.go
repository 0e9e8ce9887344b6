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

// service writes the sets and the functions without parameters with their addresses.
func (f *json4) service(q *request, a *wire.Answer) {
	f.content(a)
	a.Body = f.context(q, append(a.Body, '{'), nil)
	a.Body = append(a.Body, `"value":[`...)
	first := true
	entry := func(name, title, kind string) {
		if !first {
			a.Body = append(a.Body, ',')
		}
		first = false
		a.Body = append(wire.AppendQuote(append(a.Body, `{"name":`...), name), `,"kind":"`...)
		a.Body = append(append(a.Body, kind...), '"')
		if title != "" {
			a.Body = wire.AppendQuote(append(a.Body, `,"title":`...), title)
		}
		a.Body = append(wire.AppendQuote(append(a.Body, `,"url":`...), name), '}')
	}
	for _, set := range q.svc.Sets {
		entry(set.Name, set.Label, "EntitySet")
	}
	for _, fn := range q.svc.Functions {
		if !fn.Post && len(fn.Parameters) == 0 {
			entry(fn.Name, fn.Label, "FunctionImport")
		}
	}
	a.Body = append(a.Body, "]}"...)
}

// service writes an Atom service document with the sap: attributes of the sets (protocol notes, section 2).
func (atom2) service(q *request, a *wire.Answer) {
	a.Header.Add("Content-Type", "application/atomsvc+xml;charset=utf-8")
	m := &metadataV2{markup: append(a.Body, xmlHead...), svc: q.svc}
	m.tag("app:service")
	m.attr("xml:base", q.address())
	m.attr("xmlns:app", "http://www.w3.org/2007/app")
	m.attr("xmlns:atom", "http://www.w3.org/2005/Atom")
	m.attr("xmlns:sap", nsSAP)
	m.open()
	m.tag("app:workspace")
	m.open()
	m.title("Data")
	for _, s := range q.svc.Sets {
		m.tag("app:collection")
		m.sap(setAttributes(s), s.Annotations)
		m.version()
		m.attr("href", s.Name)
		m.open()
		m.title(s.Name)
		m.tag("sap:member-title")
		m.open()
		m.text(s.Type.Name)
		m.end("sap:member-title")
		m.end("app:collection")
	}
	m.end("app:workspace")
	for _, rel := range []string{"self", "latest-version"} {
		m.tag("atom:link")
		m.attr("rel", rel)
		m.attr("href", q.address())
		m.empty()
	}
	m.end("app:service")
	a.Body = m.markup
}

func (m *metadataV2) title(text string) {
	m.tag("atom:title")
	m.attr("type", "text")
	m.open()
	m.text(text)
	m.end("atom:title")
}
