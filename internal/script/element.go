package script

import (
	"github.com/dop251/goja"

	"weir/internal/catalog"
	"weir/internal/record"
)

// element is a field of a GlideRecord as an object. It stands for the field's text wherever a script wants a text, has the
// methods that scripts ask fields for, and beyond them, if it is a reference, the fields of the record referred to, else
// what strings have. It keeps the value that the field had when the script asked for it.
type element struct {
	g    *glideRecord
	root *catalog.Field // of the record at hand; the walk begins with it
	from record.Value   // value of root
	walk string         // path from the record that root refers to; "" is root itself
	f    *catalog.Field // at the end of the walk

	value *record.Value // of a walked field, nil until it is wanted
}

// member is a field with its value as scripts see it: a boolean for booleans, an element for references. Any other is an
// element too, but "" when it is empty: scripts test for that as if it were a text, which an object cannot answer to.
func (e *element) member() goja.Value {
	switch vm := e.g.c.vm; {
	case e.f.Type == record.TypeReference:
		return vm.NewDynamicObject(e)
	case e.f.Type == record.TypeBoolean:
		return vm.ToValue(e.of().Truth())
	case e.of().Empty():
		return vm.ToValue("")
	default:
		return vm.NewDynamicObject(e)
	}
}

// of is the value of the field.
func (e *element) of() record.Value {
	if e.walk == "" {
		return e.from
	}
	if e.value == nil {
		v := e.walked(e.walk)
		e.value = &v
	}
	return *e.value
}

// walked is the value at the end of a path from the record that root refers to.
func (e *element) walked(path string) record.Value {
	if row := e.g.referred(e.root, e.from, []string{path}); row != nil {
		return row[0]
	}
	return record.Value{}
}

// display is what is shown of the field.
func (e *element) display() string {
	v := e.of()
	if e.f.Type == record.TypeReference && !v.Empty() {
		if t, err := e.g.c.snap.Table(e.f.Reference); err == nil && t.Display != "" {
			path := t.Display
			if e.walk != "" {
				path = e.walk + "." + path
			}
			if shown := e.walked(path); !shown.Empty() {
				return shown.Text()
			}
		}
	}
	if label := e.f.ChoiceLabel(v.Text()); label != "" {
		return label
	}
	return v.Text()
}

// elementMethods are the methods of fields.
var elementMethods = map[string]func(e *element) goja.Value{
	"toString":        func(e *element) goja.Value { return e.g.c.vm.ToValue(e.of().Text()) },
	"valueOf":         func(e *element) goja.Value { return e.g.c.vm.ToValue(e.of().Text()) },
	"toJSON":          func(e *element) goja.Value { return e.g.c.vm.ToValue(e.of().Text()) },
	"getValue":        func(e *element) goja.Value { return e.g.c.vm.ToValue(e.of().Text()) },
	"getDisplayValue": func(e *element) goja.Value { return e.g.c.vm.ToValue(e.display()) },
	"getName":         func(e *element) goja.Value { return e.g.c.vm.ToValue(e.f.Name) },
	"getLabel":        func(e *element) goja.Value { return e.g.c.vm.ToValue(e.f.Label) },
	"nil":             func(e *element) goja.Value { return e.g.c.vm.ToValue(e.of().Empty()) },
	"getReferenceTable": func(e *element) goja.Value {
		if e.f.Type != record.TypeReference {
			return goja.Null()
		}
		return e.g.c.vm.ToValue(e.f.Reference)
	},
	"getRefRecord": func(e *element) goja.Value {
		t, err := e.g.c.snap.Table(e.f.Reference)
		if err != nil {
			e.g.c.throw(err)
		}
		ref := e.g.c.recordOf(t)
		if k := t.SingleKey(); k != nil {
			ref.fetch(k, e.of().Text())
		}
		return ref.object
	},
}

// Get is a method, a field of the record referred to, or a member of the text.
func (e *element) Get(key string) goja.Value {
	vm := e.g.c.vm
	if m, ok := elementMethods[key]; ok {
		return vm.ToValue(func(goja.FunctionCall) goja.Value { return m(e) })
	}
	if e.f.Type != record.TypeReference {
		return vm.ToValue(e.of().Text()).ToObject(vm).Get(key)
	}
	path := key
	if e.walk != "" {
		path = e.walk + "." + key
	}
	f := e.target(path)
	if f == nil {
		return nil
	}
	return (&element{g: e.g, root: e.root, from: e.from, walk: path, f: f}).member()
}

// target is the field at the end of a path from the record that the walk began with, nil if there is none.
func (e *element) target(path string) *catalog.Field {
	t, err := e.g.c.snap.Table(e.root.Reference)
	if err != nil {
		return nil
	}
	steps, err := e.g.c.snap.Resolve(t, path)
	if err != nil {
		return nil
	}
	return steps[len(steps)-1].Field
}

// Set refuses: the record referred to is changed through a GlideRecord of its own.
func (e *element) Set(string, goja.Value) bool { return false }

// Has reports whether there is such a member, without reading it.
func (e *element) Has(key string) bool {
	if _, ok := elementMethods[key]; ok {
		return true
	}
	if e.f.Type != record.TypeReference {
		return e.Get(key) != nil
	}
	t, err := e.g.c.snap.Table(e.f.Reference)
	return err == nil && t.Field(key) != nil
}

// Delete refuses.
func (e *element) Delete(string) bool { return false }

// Keys is empty.
func (e *element) Keys() []string { return nil }

// emptyMethods are what scripts may ask an empty field, which is the text "", like any other.
var emptyMethods = map[string]func(s string) any{
	"nil":             func(s string) any { return s == "" },
	"getValue":        func(s string) any { return s },
	"getDisplayValue": func(s string) any { return s },
}

// teachStrings gives strings the methods of empty fields. Like the methods that strings have by themselves they are not
// enumerable.
func (c *call) teachStrings() {
	proto := c.vm.Get("String").ToObject(c.vm).Get("prototype").ToObject(c.vm)
	for name, m := range emptyMethods {
		f := c.vm.ToValue(func(f goja.FunctionCall) goja.Value { return c.vm.ToValue(m(f.This.String())) })
		// It fails for no object that a script has not touched.
		_ = proto.DefineDataProperty(name, f, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
}
