package odata

import (
	"bytes"
	"strings"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
)

// annotation is one annotation of a V4 document. Exactly one of the values counts, by form.
type annotation struct {
	term   string // with the alias of its vocabulary: Common.Label
	form   annotationForm
	text   string            // formText, formPath
	flag   bool              // formFlag
	paths  []string          // formPaths, formStrings
	record []annotationField // formRecord
}

type annotationForm uint8

const (
	formFlag   annotationForm = iota // true or false
	formText                         // a text
	formPath                         // the value of another property
	formPaths                        // names of properties
	formRecord                       // fields
)

// annotationField is a field of a record; its term is the field's name.
type annotationField = annotation

// vocabulary is a vocabulary whose terms a document uses.
type vocabulary struct{ alias, namespace, uri string }

// vocabularies are all that annotations of ours come from.
var vocabularies = []vocabulary{
	{"Core", "Org.OData.Core.V1", "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Core.V1.xml"},
	{"Capabilities", "Org.OData.Capabilities.V1", "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Capabilities.V1.xml"},
	{"Measures", "Org.OData.Measures.V1", "https://oasis-tcs.github.io/odata-vocabularies/vocabularies/Org.OData.Measures.V1.xml"},
	{"Common", "com.sap.vocabularies.Common.v1", "https://sap.github.io/odata-vocabularies/vocabularies/Common.xml"},
	{"Communication", "com.sap.vocabularies.Communication.v1", "https://sap.github.io/odata-vocabularies/vocabularies/Communication.xml"},
	{"UI", "com.sap.vocabularies.UI.v1", "https://sap.github.io/odata-vocabularies/vocabularies/UI.xml"},
}

// semanticTerms are the terms that say what sap:semantics says, where the terms are tags.
var semanticTerms = map[string]string{
	"currency-code": "Common.IsCurrency", "unit-of-measure": "Common.IsUnit", "email": "Communication.IsEmailAddress",
	"tel": "Communication.IsPhoneNumber", "url": "Core.IsURL",
}

// propertyAnnotations are the annotations of a property of t, nil for a member of a complex type: those that follow from the model, and
// those that say what the sap: attributes of the definition say.
func propertyAnnotations(t *edm.Type, p *edm.Property) []annotation {
	var list []annotation
	text := func(term, value string) {
		if value != "" {
			list = append(list, annotation{term: term, form: formText, text: value})
		}
	}
	tag := func(term string, is bool) {
		if is {
			list = append(list, annotation{term: term, flag: true})
		}
	}
	path := func(term, value string) {
		if value != "" {
			list = append(list, annotation{term: term, form: formPath, text: value})
		}
	}
	text("Common.Label", p.Label)
	text("Common.Heading", p.Annotations["heading"])
	text("Common.QuickInfo", p.Annotations["quickinfo"])
	path("Common.Text", p.Annotations["text"])
	if unit := p.Annotations["unit"]; unit != "" {
		term := "Measures.Unit"
		if t != nil {
			if of := t.Property(unit); of != nil && of.Annotations["semantics"] == "currency-code" {
				term = "Measures.ISOCurrency"
			}
		}
		path(term, unit)
	}
	if term := semanticTerms[p.Annotations["semantics"]]; term != "" {
		tag(term, true)
	}
	tag("Common.IsUpperCase", p.Annotations["display-format"] == "UpperCase")
	tag("Common.IsDigitSequence", p.Annotations["display-format"] == "NonNegative")
	tag("Common.ValueListWithFixedValues", p.Annotations["value-list"] == "fixed-values")
	tag("UI.Hidden", p.Annotations["visible"] == "false")
	if t != nil && t.Table != nil {
		tag("Core.Computed", !p.Creatable && !p.Updatable)
		tag("Core.Immutable", p.Creatable && !p.Updatable)
		tag("Core.ComputedDefaultValue", p.Creatable && computedDefault(t, p.Field))
	}
	return list
}

// computedDefault reports whether a new record gets a value of the field that no one can foresee if the client gives none: a key, a
// number, the result of an expression.
func computedDefault(t *edm.Type, f *catalog.Field) bool {
	return f != nil && (f.Sequence != nil || f.Identity || f.Type == record.TypeGUID && f == t.Table.SingleKey() || strings.HasPrefix(f.Default, "="))
}

// setAnnotations are the annotations of an entity set: what it cannot do, and what makes up the ETag of its entities.
func setAnnotations(s *edm.Set) []annotation {
	var list []annotation
	if s.Label != "" {
		list = append(list, annotation{term: "Common.Label", form: formText, text: s.Label})
	}
	if s.Type.ETag != nil {
		list = append(list, annotation{term: "Core.OptimisticConcurrency", form: formPaths, paths: []string{s.Type.ETag.Name}})
	}
	restrict := func(term string, fields ...annotationField) {
		kept := fields[:0]
		for _, f := range fields {
			if f.form == formPaths && len(f.paths) == 0 || f.term == "" {
				continue
			}
			kept = append(kept, f)
		}
		if len(kept) > 0 {
			list = append(list, annotation{term: "Capabilities." + term, form: formRecord, record: kept})
		}
	}
	never := func(name string, never bool) annotationField {
		if !never {
			return annotationField{}
		}
		return annotationField{term: name}
	}
	those := func(name string, is func(*edm.Property) bool) annotationField {
		f := annotationField{term: name, form: formPaths}
		for _, p := range s.Type.Properties {
			if is(p) {
				f.paths = append(f.paths, p.Name)
			}
		}
		return f
	}
	says := func(name, value string) func(*edm.Property) bool {
		return func(p *edm.Property) bool { return p.Annotations[name] == value }
	}
	restrict("ReadRestrictions", never("Readable", !s.Readable))
	restrict("InsertRestrictions", never("Insertable", !s.Creatable),
		those("NonInsertableProperties", func(p *edm.Property) bool { return s.Creatable && !p.Creatable && p.Updatable }))
	restrict("UpdateRestrictions", never("Updatable", !s.Updatable))
	restrict("DeleteRestrictions", never("Deletable", !s.Deletable))
	if s.Readable {
		required := annotationField{}
		if s.Annotations["requires-filter"] == "true" {
			required = annotationField{term: "RequiresFilter", flag: true}
		}
		restrict("FilterRestrictions", required, those("RequiredProperties", says("required-in-filter", "true")),
			those("NonFilterableProperties", says("filterable", "false")))
		restrict("SortRestrictions", those("NonSortableProperties", says("sortable", "false")))
		restrict("SearchRestrictions", never("Searchable", len(s.Search) == 0))
		restrict("CountRestrictions", never("Countable", s.Annotations["countable"] == "false"))
		for _, does := range [...][2]string{{"topable", "TopSupported"}, {"pageable", "SkipSupported"}} {
			if s.Annotations[does[0]] == "false" {
				list = append(list, annotation{term: "Capabilities." + does[1]})
			}
		}
	}
	return list
}

// used is the vocabularies of the annotations that text, a document without its references, holds.
func used(text []byte) []vocabulary {
	var list []vocabulary
	for _, v := range vocabularies {
		if bytes.Contains(text, []byte(`"`+v.alias+".")) || bytes.Contains(text, []byte(`"@`+v.alias+".")) {
			list = append(list, v)
		}
	}
	return list
}

// operation is a function or action of a V4 document: unbound, with an import of its own, or bound to the entity that it acts on,
// whose key then is no parameter.
type operation struct {
	*edm.Function
	bound bool
	// parameters without the binding one.
	parameters []*edm.Property
}

// operations are the unbound and the bound form of a function.
func operations(f *edm.Function) []operation {
	list := []operation{{f, false, f.Parameters}}
	if f.ActionFor == nil {
		return list
	}
	bound := operation{f, true, nil}
	for _, p := range f.Parameters {
		if k := f.ActionFor.Property(p.Name); k == nil || !k.IsKey {
			bound.parameters = append(bound.parameters, p)
		}
	}
	return append(list, bound)
}

// bindingParameter is the name of the parameter that a bound operation's entity is passed as.
const bindingParameter = "_it"
