package odata

import (
	"strconv"
	"strings"

	"weir/internal/edm"
	"weir/internal/wire"
)

// metadata4JSON is the metadata document of V4 in JSON (CSDL JSON 4.01).
func metadata4JSON(svc *edm.Service) []byte {
	m := &csdl{svc: svc}
	m.key(svc.Schema)
	m.begin('{')
	for _, t := range svc.Types {
		m.entityType(t)
	}
	for _, x := range svc.Complex {
		m.key(x.Name)
		m.begin('{')
		m.pair("$Kind", "ComplexType")
		for _, p := range x.Properties {
			m.property(nil, p)
		}
		m.end('}')
	}
	for _, f := range svc.Functions {
		m.key(f.Name)
		m.begin('[')
		for _, op := range operations(f) {
			m.operation(op)
		}
		m.end(']')
	}
	m.container()
	m.end('}')
	body := m.dst

	m = &csdl{svc: svc}
	m.begin('{')
	m.pair("$Version", "4.01")
	if list := used(body); len(list) > 0 {
		m.key("$Reference")
		m.begin('{')
		for _, v := range list {
			m.key(strings.TrimSuffix(v.uri, ".xml") + ".json")
			m.begin('{')
			m.key("$Include")
			m.begin('[')
			m.begin('{')
			m.pair("$Namespace", v.namespace)
			m.pair("$Alias", v.alias)
			m.end('}')
			m.end(']')
			m.end('}')
		}
		m.end('}')
	}
	m.pair("$EntityContainer", m.qualified(edm.Container))
	m.comma()
	m.dst = append(m.dst, body...)
	m.end('}')
	return m.dst
}

// csdl appends JSON.
type csdl struct {
	dst []byte
	svc *edm.Service
}

func (m *csdl) qualified(name string) string { return m.svc.Schema + "." + name }

// comma separates from what stands before at the same level.
func (m *csdl) comma() {
	if n := len(m.dst); n > 0 && m.dst[n-1] != '{' && m.dst[n-1] != '[' && m.dst[n-1] != ':' {
		m.dst = append(m.dst, ',')
	}
}

func (m *csdl) key(name string) {
	m.comma()
	m.dst = append(wire.AppendQuote(m.dst, name), ':')
}

func (m *csdl) begin(c byte) {
	m.comma()
	m.dst = append(m.dst, c)
}

func (m *csdl) end(c byte) { m.dst = append(m.dst, c) }

func (m *csdl) text(s string) {
	m.comma()
	m.dst = wire.AppendQuote(m.dst, s)
}

func (m *csdl) pair(name, value string) {
	m.key(name)
	m.text(value)
}

func (m *csdl) flag(name string, value bool) {
	m.key(name)
	m.dst = strconv.AppendBool(m.dst, value)
}

func (m *csdl) number(name string, n int) {
	m.key(name)
	m.dst = strconv.AppendInt(m.dst, int64(n), 10)
}

func (m *csdl) entityType(t *edm.Type) {
	m.key(t.Name)
	m.begin('{')
	m.pair("$Kind", "EntityType")
	m.key("$Key")
	m.begin('[')
	for _, p := range t.Key {
		m.text(p.Name)
	}
	m.end(']')
	for _, p := range t.Properties {
		m.property(t, p)
	}
	for _, n := range t.Navs {
		m.navigation(n)
	}
	m.end('}')
}

func (m *csdl) property(t *edm.Type, p *edm.Property) {
	m.key(p.Name)
	m.begin('{')
	m.typed(p)
	m.annotations(propertyAnnotations(t, p))
	m.end('}')
}

// typed writes the type of a property or parameter, Edm.String by default, and what its values look like.
func (m *csdl) typed(p *edm.Property) {
	switch p.Kind {
	case edm.String:
	case edm.ComplexKind:
		m.pair("$Type", m.qualified(p.Complex.Name))
	default:
		m.pair("$Type", p.Kind.Name())
	}
	if p.Nullable {
		m.flag("$Nullable", true)
	}
	if p.MaxLength > 0 {
		m.number("$MaxLength", p.MaxLength)
	}
	switch p.Kind {
	case edm.DateTimeOffset, edm.TimeOfDay, edm.Duration:
		if p.Precision > 0 {
			m.number("$Precision", p.Precision)
		}
	case edm.Decimal:
		if p.Precision > 0 { // else both vary
			m.number("$Precision", p.Precision)
			m.number("$Scale", p.Scale)
		}
	}
}

func (m *csdl) navigation(n *edm.Nav) {
	m.key(n.Name)
	m.begin('{')
	m.pair("$Kind", "NavigationProperty")
	if n.Many {
		m.flag("$Collection", true)
	} else {
		m.flag("$Nullable", true)
	}
	m.pair("$Type", m.qualified(n.Target.Type.Name))
	if n.Partner != nil {
		m.pair("$Partner", n.Partner.Name)
	}
	if links := constraint(n); len(links) > 0 {
		m.key("$ReferentialConstraint")
		m.begin('{')
		for _, l := range links {
			m.pair(l.Own.Name, l.Other.Name)
		}
		m.end('}')
	}
	m.end('}')
}

func (m *csdl) operation(op operation) {
	m.begin('{')
	kind := "Function"
	if op.Post {
		kind = "Action"
	}
	m.pair("$Kind", kind)
	if op.bound {
		m.flag("$IsBound", true)
		if op.Set != nil && !op.Collection && op.Set.Type == op.ActionFor {
			m.pair("$EntitySetPath", bindingParameter)
		}
	}
	if op.bound || len(op.parameters) > 0 {
		m.key("$Parameter")
		m.begin('[')
		if op.bound {
			m.begin('{')
			m.pair("$Name", bindingParameter)
			m.pair("$Type", m.qualified(op.ActionFor.Name))
			m.end('}')
		}
		for _, p := range op.parameters {
			m.begin('{')
			m.pair("$Name", p.Name)
			m.typed(p)
			m.annotations(propertyAnnotations(nil, p))
			m.end('}')
		}
		m.end(']')
	}
	if !op.Void {
		m.key("$ReturnType")
		m.begin('{')
		if op.Collection {
			m.flag("$Collection", true)
		} else {
			m.flag("$Nullable", true)
		}
		if typ := returnType(m.svc, op.Function); typ != edm.String.Name() {
			m.pair("$Type", typ)
		}
		m.end('}')
	}
	m.end('}')
}

func (m *csdl) container() {
	m.key(edm.Container)
	m.begin('{')
	m.pair("$Kind", "EntityContainer")
	for _, s := range m.svc.Sets {
		m.key(s.Name)
		m.begin('{')
		m.flag("$Collection", true)
		m.pair("$Type", m.qualified(s.Type.Name))
		if len(s.Type.Navs) > 0 {
			m.key("$NavigationPropertyBinding")
			m.begin('{')
			for _, n := range s.Type.Navs {
				m.pair(n.Name, n.Target.Name)
			}
			m.end('}')
		}
		m.annotations(setAnnotations(s))
		m.end('}')
	}
	for _, f := range m.svc.Functions {
		m.key(f.Name)
		m.begin('{')
		kind := "$Function"
		if f.Post {
			kind = "$Action"
		}
		m.pair(kind, m.qualified(f.Name))
		if f.Set != nil {
			m.pair("$EntitySet", f.Set.Name)
		}
		m.annotations(functionAnnotations(f))
		m.end('}')
	}
	m.end('}')
}

func (m *csdl) annotations(list []annotation) {
	for i := range list {
		m.key("@" + list[i].term)
		m.value(&list[i])
	}
}

func (m *csdl) value(a *annotation) {
	switch a.form {
	case formFlag:
		m.dst = strconv.AppendBool(m.dst, a.flag)
	case formText:
		m.text(a.text)
	case formPath:
		m.begin('{')
		m.pair("$Path", a.text)
		m.end('}')
	case formPaths:
		m.begin('[')
		for _, p := range a.paths {
			m.text(p)
		}
		m.end(']')
	case formRecord:
		m.begin('{')
		for i := range a.record {
			m.key(a.record[i].term)
			m.value(&a.record[i])
		}
		m.end('}')
	}
}
