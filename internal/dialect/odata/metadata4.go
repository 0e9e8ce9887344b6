package odata

import (
	"weir/internal/edm"
)

// metadata4 is the metadata document of V4 in XML (CSDL XML 4.01, written so that clients of 4.0 read it).
func metadata4(svc *edm.Service) []byte {
	m := &metadataV4{svc: svc}
	for _, t := range svc.Types {
		m.entityType(t)
	}
	for _, x := range svc.Complex {
		m.tag("ComplexType")
		m.attr("Name", x.Name)
		m.open()
		for _, p := range x.Properties {
			m.property(nil, p)
		}
		m.end("ComplexType")
	}
	for _, f := range svc.Functions {
		for _, op := range operations(f) {
			m.operation(op)
		}
	}
	m.container()
	body := m.markup

	m.markup = append(markup(nil), xmlHead...)
	m.tag("edmx:Edmx")
	m.attr("Version", "4.0")
	m.attr("xmlns:edmx", "http://docs.oasis-open.org/odata/ns/edmx")
	m.open()
	for _, v := range used(body) {
		m.tag("edmx:Reference")
		m.attr("Uri", v.uri)
		m.open()
		m.tag("edmx:Include")
		m.attr("Namespace", v.namespace)
		m.attr("Alias", v.alias)
		m.empty()
		m.end("edmx:Reference")
	}
	m.tag("edmx:DataServices")
	m.open()
	m.tag("Schema")
	m.attr("Namespace", svc.Schema)
	m.attr("xmlns", "http://docs.oasis-open.org/odata/ns/edm")
	m.open()
	m.markup = append(m.markup, body...)
	m.end("Schema")
	m.end("edmx:DataServices")
	m.end("edmx:Edmx")
	return m.markup
}

type metadataV4 struct {
	markup
	svc *edm.Service
}

func (m *metadataV4) qualified(name string) string { return m.svc.Schema + "." + name }

// close ends an element: with its annotations in it, or without content.
func (m *metadataV4) close(name string, list []annotation) {
	if len(list) == 0 {
		m.empty()
		return
	}
	m.open()
	m.annotations(list)
	m.end(name)
}

func (m *metadataV4) entityType(t *edm.Type) {
	m.tag("EntityType")
	m.attr("Name", t.Name)
	m.open()
	m.tag("Key")
	m.open()
	for _, p := range t.Key {
		m.tag("PropertyRef")
		m.attr("Name", p.Name)
		m.empty()
	}
	m.end("Key")
	for _, p := range t.Properties {
		m.property(t, p)
	}
	for _, n := range t.Navs {
		m.navigation(n)
	}
	m.end("EntityType")
}

func (m *metadataV4) property(t *edm.Type, p *edm.Property) {
	m.tag("Property")
	m.attr("Name", p.Name)
	m.typed(p)
	m.close("Property", propertyAnnotations(t, p))
}

// typed writes the type of a property or parameter and what its values look like.
func (m *metadataV4) typed(p *edm.Property) {
	if p.Kind == edm.ComplexKind {
		m.attr("Type", m.qualified(p.Complex.Name))
	} else {
		m.attr("Type", p.Kind.Name())
	}
	if !p.Nullable {
		m.attr("Nullable", "false")
	}
	if p.MaxLength > 0 {
		m.number("MaxLength", p.MaxLength)
	}
	switch p.Kind {
	case edm.DateTimeOffset, edm.TimeOfDay, edm.Duration:
		if p.Precision > 0 {
			m.number("Precision", p.Precision)
		}
	case edm.Decimal:
		if p.Precision == 0 {
			m.attr("Scale", "variable")
			return
		}
		m.number("Precision", p.Precision)
		m.number("Scale", p.Scale)
	}
}

func (m *metadataV4) navigation(n *edm.Nav) {
	m.tag("NavigationProperty")
	m.attr("Name", n.Name)
	typ := m.qualified(n.Target.Type.Name)
	if n.Many {
		typ = "Collection(" + typ + ")"
	}
	m.attr("Type", typ)
	if n.Partner != nil {
		m.attr("Partner", n.Partner.Name)
	}
	links := constraint(n)
	if len(links) == 0 {
		m.empty()
		return
	}
	m.open()
	for _, l := range links {
		m.tag("ReferentialConstraint")
		m.attr("Property", l.Own.Name)
		m.attr("ReferencedProperty", l.Other.Name)
		m.empty()
	}
	m.end("NavigationProperty")
}

// constraint is the referential constraint of a navigation property: it stands where the dependent properties are, and what they refer
// to is the key.
func constraint(n *edm.Nav) []edm.Link {
	if n.Many || !n.Back || len(n.Assoc.Principal) == 0 {
		return nil
	}
	return n.On
}

func (m *metadataV4) operation(op operation) {
	name := "Function"
	if op.Post {
		name = "Action"
	}
	m.tag(name)
	m.attr("Name", op.Name)
	if op.bound {
		m.attr("IsBound", "true")
	}
	if op.bound && op.Set != nil && !op.Collection && op.Set.Type == op.ActionFor {
		m.attr("EntitySetPath", bindingParameter)
	}
	if !op.bound && len(op.parameters) == 0 && op.Void {
		m.empty()
		return
	}
	m.open()
	if op.bound {
		m.tag("Parameter")
		m.attr("Name", bindingParameter)
		m.attr("Type", m.qualified(op.ActionFor.Name))
		m.attr("Nullable", "false")
		m.empty()
	}
	for _, p := range op.parameters {
		m.tag("Parameter")
		m.attr("Name", p.Name)
		m.typed(p)
		m.close("Parameter", propertyAnnotations(nil, p))
	}
	if !op.Void {
		typ := returnType(m.svc, op.Function)
		if op.Collection {
			typ = "Collection(" + typ + ")"
		}
		m.tag("ReturnType")
		m.attr("Type", typ)
		m.empty()
	}
	m.end(name)
}

// returnType is the qualified name of what a function returns, one of them if it returns several.
func returnType(svc *edm.Service, f *edm.Function) string {
	switch {
	case f.Set != nil:
		return svc.Schema + "." + f.Set.Type.Name
	case f.Complex != nil:
		return svc.Schema + "." + f.Complex.Name
	}
	return f.Kind.Name()
}

func (m *metadataV4) container() {
	m.tag("EntityContainer")
	m.attr("Name", edm.Container)
	m.open()
	for _, s := range m.svc.Sets {
		m.tag("EntitySet")
		m.attr("Name", s.Name)
		m.attr("EntityType", m.qualified(s.Type.Name))
		list := setAnnotations(s)
		if len(s.Type.Navs) == 0 {
			m.close("EntitySet", list)
			continue
		}
		m.open()
		for _, n := range s.Type.Navs {
			m.tag("NavigationPropertyBinding")
			m.attr("Path", n.Name)
			m.attr("Target", n.Target.Name)
			m.empty()
		}
		m.annotations(list)
		m.end("EntitySet")
	}
	for _, f := range m.svc.Functions {
		kind := "Function"
		if f.Post {
			kind = "Action"
		}
		m.tag(kind + "Import")
		m.attr("Name", f.Name)
		m.attr(kind, m.qualified(f.Name))
		if f.Set != nil {
			m.attr("EntitySet", f.Set.Name)
		}
		m.close(kind+"Import", functionAnnotations(f))
	}
	m.end("EntityContainer")
}

// functionAnnotations are the annotations of a function or action import.
func functionAnnotations(f *edm.Function) []annotation {
	if f.Label == "" {
		return nil
	}
	return []annotation{{term: "Common.Label", form: formText, text: f.Label}}
}

func (m *metadataV4) annotations(list []annotation) {
	for i := range list {
		m.tag("Annotation")
		m.attr("Term", list[i].term)
		m.value("Annotation", &list[i])
	}
}

// value writes the value of an annotation, or of a field of a record, and ends the element.
func (m *metadataV4) value(element string, a *annotation) {
	switch a.form {
	case formFlag:
		if !a.flag {
			m.attr("Bool", "false")
		} else if element != "Annotation" {
			m.attr("Bool", "true")
		}
		m.empty() // a tag is true by itself
	case formText:
		m.attr("String", a.text)
		m.empty()
	case formPath:
		m.attr("Path", a.text)
		m.empty()
	case formPaths:
		m.open()
		m.tag("Collection")
		m.open()
		for _, p := range a.paths {
			m.tag("PropertyPath")
			m.open()
			m.text(p)
			m.end("PropertyPath")
		}
		m.end("Collection")
		m.end(element)
	case formRecord:
		m.open()
		m.tag("Record")
		m.open()
		for i := range a.record {
			m.tag("PropertyValue")
			m.attr("Property", a.record[i].term)
			m.value("PropertyValue", &a.record[i])
		}
		m.end("Record")
		m.end(element)
	}
}
