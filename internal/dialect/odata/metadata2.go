package odata

import (
	"slices"
	"strconv"
	"strings"

	"weir/internal/edm"
	"weir/internal/wire"
)

// markup appends XML.
type markup []byte

// tag begins an element.
func (m *markup) tag(name string) { *m = append(append(*m, '<'), name...) }

// attr appends an attribute.
func (m *markup) attr(name, value string) {
	*m = append(append(append(*m, ' '), name...), `="`...)
	*m = append(wire.AppendXMLText(*m, value), '"')
}

func (m *markup) number(name string, n int) { m.attr(name, strconv.Itoa(n)) }

// open ends the tag of an element that holds others, empty that of one that does not.
func (m *markup) open()            { *m = append(*m, '>') }
func (m *markup) empty()           { *m = append(*m, "/>"...) }
func (m *markup) end(name string)  { *m = append(append(append(*m, "</"...), name...), '>') }
func (m *markup) text(text string) { *m = wire.AppendXMLText(*m, text) }

// metadata2 is the metadata document of V2: EDMX with the sap: attributes that depart from their defaults, as SAP Gateway writes
// it (protocol notes, section 8).
func metadata2(svc *edm.Service) []byte {
	m := &metadataV2{svc: svc}
	m.markup = append(m.markup, xmlHead...)
	m.tag("edmx:Edmx")
	m.attr("Version", "1.0")
	m.attr("xmlns:edmx", "http://schemas.microsoft.com/ado/2007/06/edmx")
	m.attr("xmlns:m", nsMetadata)
	m.attr("xmlns:sap", nsSAP)
	m.open()
	m.tag("edmx:DataServices")
	m.attr("m:DataServiceVersion", "2.0")
	m.open()
	m.tag("Schema")
	m.attr("Namespace", svc.Schema)
	m.attr("xml:lang", "en")
	m.attr("sap:schema-version", "1")
	m.attr("xmlns", "http://schemas.microsoft.com/ado/2008/09/edm")
	m.open()
	for _, t := range svc.Types {
		m.entityType(t)
	}
	for _, x := range svc.Complex {
		m.tag("ComplexType")
		m.attr("Name", x.Name)
		m.open()
		for _, p := range x.Properties {
			m.property(p, false)
		}
		m.end("ComplexType")
	}
	for _, a := range svc.Assocs {
		m.association(a)
	}
	m.container()
	for _, rel := range []string{"self", "latest-version"} {
		m.tag("atom:link")
		m.attr("rel", rel)
		m.markup = append(m.markup, ` href="`+rootMark+`$metadata"`...)
		m.attr("xmlns:atom", "http://www.w3.org/2005/Atom")
		m.empty()
	}
	m.end("Schema")
	m.end("edmx:DataServices")
	m.end("edmx:Edmx")
	return m.markup
}

// nsSAP is the namespace of the sap: attributes.
const nsSAP = "http://www.sap.com/Protocols/SAPData"

type metadataV2 struct {
	markup
	svc *edm.Service
}

// qualified is the name of a type with its namespace.
func (m *metadataV2) qualified(name string) string { return m.svc.Schema + "." + name }

// version is the attribute that SAP Gateway gives to all that a service defines.
func (m *metadataV2) version() { m.attr("sap:content-version", "1") }

func (m *metadataV2) entityType(t *edm.Type) {
	m.tag("EntityType")
	m.attr("Name", t.Name)
	m.version()
	m.open()
	m.tag("Key")
	m.open()
	for _, p := range t.Key {
		m.ref(p)
	}
	m.end("Key")
	for _, p := range t.Properties {
		m.property(p, p == t.ETag)
	}
	for _, n := range t.Navs {
		from, to := n.Assoc.From.Role, n.Assoc.To.Role
		if n.Back {
			from, to = to, from
		}
		m.tag("NavigationProperty")
		m.attr("Name", n.Name)
		m.attr("Relationship", m.qualified(n.Assoc.Name))
		m.attr("FromRole", from)
		m.attr("ToRole", to)
		m.empty()
	}
	m.end("EntityType")
}

func (m *metadataV2) ref(p *edm.Property) {
	m.tag("PropertyRef")
	m.attr("Name", p.Name)
	m.empty()
}

// property writes a property of an entity or complex type.
func (m *metadataV2) property(p *edm.Property, fixed bool) {
	m.tag("Property")
	m.attr("Name", p.Name)
	if p.Kind == edm.ComplexKind {
		m.attr("Type", m.qualified(p.Complex.Name))
	} else {
		m.attr("Type", p.Kind.NameV2())
	}
	if !p.Nullable {
		m.attr("Nullable", "false")
	}
	m.facets(p)
	if fixed {
		m.attr("ConcurrencyMode", "Fixed")
	}
	derived := []sapAttribute{{"label", p.Label}}
	if !p.Creatable {
		derived = append(derived, sapAttribute{"creatable", "false"})
	}
	if !p.Updatable {
		derived = append(derived, sapAttribute{"updatable", "false"})
	}
	switch {
	case p.Kind == edm.Date:
		derived = append(derived, sapAttribute{"display-format", "Date"})
	case p.Kind == edm.Decimal && p.Precision == 0:
		derived = append(derived, sapAttribute{"variable-scale", "true"})
	}
	m.sap(derived, p.Annotations)
	m.empty()
}

// facets writes what values of a property look like. Times have seven digits after the second, as SAP Gateway says of them all.
func (m *metadataV2) facets(p *edm.Property) {
	if p.MaxLength > 0 {
		m.number("MaxLength", p.MaxLength)
	}
	switch p.Kind {
	case edm.DateTimeOffset:
		n := p.Precision
		if n == edm.TimePrecision {
			n = 7
		}
		m.number("Precision", n)
	case edm.Date, edm.TimeOfDay, edm.Duration:
		m.number("Precision", p.Precision)
	case edm.Decimal:
		if p.Precision > 0 {
			m.number("Precision", p.Precision)
			m.number("Scale", p.Scale)
		}
	}
}

// sapAttribute is a sap: attribute.
type sapAttribute struct{ name, value string }

// attributeOrder is the order in which SAP Gateway writes the attributes that most properties have; others follow by name.
var attributeOrder = []string{
	"unicode", "unit", "display-format", "text", "required-in-filter", "label", "heading", "quickinfo", "creatable", "updatable", "deletable",
	"sortable", "filterable",
}

// sap writes sap: attributes: those that follow from the model, and those of the definition, which win.
func (m *metadataV2) sap(derived []sapAttribute, defined map[string]string) {
	list := derived[:0]
	for _, a := range derived {
		if _, ok := defined[a.name]; !ok && a.value != "" {
			list = append(list, a)
		}
	}
	for name, value := range defined {
		list = append(list, sapAttribute{name, value})
	}
	rank := func(name string) int {
		if i := slices.Index(attributeOrder, name); i >= 0 {
			return i
		}
		return len(attributeOrder)
	}
	slices.SortFunc(list, func(a, b sapAttribute) int {
		if d := rank(a.name) - rank(b.name); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	for _, a := range list {
		m.attr("sap:"+a.name, a.value)
	}
}

func (m *metadataV2) association(a *edm.Association) {
	m.tag("Association")
	m.attr("Name", a.Name)
	m.version()
	m.open()
	for _, e := range []*edm.End{&a.From, &a.To} {
		m.tag("End")
		m.attr("Type", m.qualified(e.Set.Type.Name))
		m.attr("Multiplicity", e.Multiplicity)
		m.attr("Role", e.Role)
		m.empty()
	}
	if len(a.Principal) > 0 {
		m.tag("ReferentialConstraint")
		m.open()
		m.side("Principal", a.From.Role, a.Principal)
		m.side("Dependent", a.To.Role, a.Dependent)
		m.end("ReferentialConstraint")
	}
	m.end("Association")
}

func (m *metadataV2) side(name, role string, props []*edm.Property) {
	m.tag(name)
	m.attr("Role", role)
	m.open()
	for _, p := range props {
		m.ref(p)
	}
	m.end(name)
}

func (m *metadataV2) container() {
	m.tag("EntityContainer")
	m.attr("Name", m.svc.Name+"_Entities")
	m.attr("m:IsDefaultEntityContainer", "true")
	m.attr("sap:supported-formats", "atom json")
	m.open()
	for _, s := range m.svc.Sets {
		m.tag("EntitySet")
		m.attr("Name", s.Name)
		m.attr("EntityType", m.qualified(s.Type.Name))
		m.sap(setAttributes(s), s.Annotations)
		m.version()
		m.empty()
	}
	for _, a := range m.svc.Assocs {
		m.tag("AssociationSet")
		m.attr("Name", a.SetName)
		m.attr("Association", m.qualified(a.Name))
		m.attr("sap:creatable", "false")
		m.attr("sap:updatable", "false")
		m.attr("sap:deletable", "false")
		m.version()
		m.open()
		for _, e := range []*edm.End{&a.From, &a.To} {
			m.tag("End")
			m.attr("EntitySet", e.Set.Name)
			m.attr("Role", e.Role)
			m.empty()
		}
		m.end("AssociationSet")
	}
	for _, f := range m.svc.Functions {
		m.function(f)
	}
	m.end("EntityContainer")
}

// setAttributes are the sap: attributes of a set that follow from the model.
func setAttributes(s *edm.Set) []sapAttribute {
	list := []sapAttribute{{"label", s.Label}}
	flag := func(name string, is, usual bool) {
		if is != usual {
			list = append(list, sapAttribute{name, strconv.FormatBool(is)})
		}
	}
	flag("creatable", s.Creatable, true)
	flag("updatable", s.Updatable, true)
	flag("deletable", s.Deletable, true)
	flag("searchable", len(s.Search) > 0, false)
	if s.MaxPage > 0 {
		list = append(list, sapAttribute{"maxpagesize", strconv.Itoa(s.MaxPage)})
	}
	return list
}

func (m *metadataV2) function(f *edm.Function) {
	m.tag("FunctionImport")
	m.attr("Name", f.Name)
	if returns := m.returns(f); returns != "" {
		if f.Collection {
			returns = "Collection(" + returns + ")"
		}
		m.attr("ReturnType", returns)
	}
	if f.Set != nil {
		m.attr("EntitySet", f.Set.Name)
	}
	method := "GET"
	if f.Post {
		method = "POST"
	}
	m.attr("m:HttpMethod", method)
	derived := []sapAttribute{{"label", f.Label}}
	if f.ActionFor != nil {
		derived = append(derived, sapAttribute{"action-for", m.qualified(f.ActionFor.Name)})
	}
	m.sap(derived, f.Annotations)
	if len(f.Parameters) == 0 {
		m.empty()
		return
	}
	m.open()
	for _, p := range f.Parameters {
		m.tag("Parameter")
		m.attr("Name", p.Name)
		m.attr("Type", p.Kind.NameV2())
		m.attr("Mode", "In")
		if p.Nullable {
			m.attr("Nullable", "true")
		}
		m.facets(p)
		m.sap([]sapAttribute{{"label", p.Label}}, p.Annotations)
		m.empty()
	}
	m.end("FunctionImport")
}

func (m *metadataV2) returns(f *edm.Function) string {
	switch {
	case f.Void:
		return ""
	case f.Set != nil:
		return m.qualified(f.Set.Type.Name)
	case f.Complex != nil:
		return m.qualified(f.Complex.Name)
	}
	return f.Kind.NameV2()
}
