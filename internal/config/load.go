package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Sources are where settings come from, in rising precedence.
type Sources struct {
	File     []byte // weir.yaml; may be empty
	FileName string // as messages show it
	Environ  []string
	Flags    []Setting
}

// Setting is one setting by name.
type Setting struct {
	Path  string // "gate.session.waiting"
	Value string // a YAML value; a list may also be text with commas between
	From  string // "--listen"
}

// Effective is the settings with where each came from.
type Effective struct {
	Config
	origin map[string]string
}

// prefix is what the names of environment variables begin with. WEIR_TEST_… belongs to the tests.
const (
	prefix     = "WEIR_"
	testPrefix = "WEIR_TEST_"
)

// Load reads all sources and checks the result. The error joins all faults.
func Load(src Sources) (*Effective, error) {
	// The profile decides what the gate's settings start from, so it is found first.
	profile := ProfileAuto
	first := &Effective{Config: Defaults(profile), origin: map[string]string{}}
	if err := first.read(src); err != nil {
		return nil, err
	}
	if first.Profile == ProfileServiceNow {
		profile = first.Profile
	}
	e := &Effective{Config: Defaults(profile), origin: map[string]string{}}
	if err := e.read(src); err != nil {
		return nil, err
	}
	return e, e.Validate()
}

func (e *Effective) read(src Sources) error {
	if err := e.file(src); err != nil {
		return err
	}
	var faults []error
	for _, s := range src.settings(e.leaves()) {
		if s.fault == nil {
			s.fault = e.set(s.Setting)
		}
		faults = append(faults, s.fault)
	}
	return errors.Join(faults...)
}

func (e *Effective) file(src Sources) error {
	if len(bytes.TrimSpace(src.File)) == 0 {
		return nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(src.File, &doc); err != nil {
		return told(err, src.FileName+":")
	}
	root := &yaml.Node{}
	if len(doc.Content) > 0 {
		root = doc.Content[0]
	}
	others := foreigners(root)
	if err := without(decode(src.File, &e.Config), others); err != nil {
		return told(err, src.FileName+":")
	}
	e.lines(root, "", src.FileName)
	for _, f := range others {
		delete(e.origin, f.path)
	}
	return errors.Join(e.adopt(others, src.FileName)...)
}

// without is err less what it says of keys that are known after all.
func without(err error, known []foreign) error {
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(typed.Errors), func(text string) bool {
		m := unknownKey.FindStringSubmatch(text)
		return m != nil && slices.ContainsFunc(known, func(f foreign) bool { return m[2] == f.key.Value && m[1] == strconv.Itoa(f.key.Line) })
	})
	if len(rest) == 0 {
		return nil
	}
	return &yaml.TypeError{Errors: rest}
}

// lines notes the line of each setting of the file.
func (e *Effective) lines(n *yaml.Node, path, file string) {
	if n.Kind != yaml.MappingNode {
		e.origin[path] = fmt.Sprintf("%s:%d", file, n.Line)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		e.lines(n.Content[i+1], join(path, n.Content[i].Value), file)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

type found struct {
	Setting
	fault error
}

// settings are the environment's settings, then the flags'.
func (src *Sources) settings(known map[string]reflect.Type) []found {
	byName := map[string]string{}
	for path := range known {
		byName[prefix+strings.ToUpper(strings.ReplaceAll(path, ".", "_"))] = path
	}
	var list []found
	for _, kv := range src.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, testPrefix) {
			continue
		}
		path, ok := byName[name]
		if a, fault := aliasOf(strings.TrimPrefix(name, prefix), true); !ok && a != nil {
			s, err := a.setting(value, name)
			list = append(list, found{Setting: s, fault: err})
			continue
		} else if !ok && fault != nil {
			list = append(list, found{fault: fmt.Errorf("environment variable %s: %w", name, fault)})
			continue
		}
		if !ok {
			list = append(list, found{fault: fmt.Errorf("environment variable %s: no such setting; `weir config` lists all", name)})
			continue
		}
		list = append(list, found{Setting: Setting{path, value, name}})
	}
	for _, f := range src.Flags {
		switch a, fault := aliasOf(f.Path, false); {
		case a != nil:
			s, err := a.setting(f.Value, f.From)
			list = append(list, found{Setting: s, fault: err})
		case fault != nil:
			list = append(list, found{fault: fmt.Errorf("%s: %w", f.From, fault)})
		default:
			list = append(list, found{Setting: f})
		}
	}
	return list
}

// set gives one setting a value, as if a file held only that.
func (e *Effective) set(s Setting) error {
	if s.Path == "" {
		return nil
	}
	value := s.Value
	if t := e.leaves()[s.Path]; t != nil && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String && !strings.HasPrefix(value, "[") {
		list, err := yaml.Marshal(splitComma(value))
		if err != nil {
			return err
		}
		value = "\n" + string(list)
	} else if t != nil && t.Kind() == reflect.String {
		quoted, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		value = string(quoted)
	}
	parts := strings.Split(s.Path, ".")
	var doc strings.Builder
	for i, p := range parts {
		if p == "" {
			return fmt.Errorf("%s: %q is not the name of a setting", s.From, s.Path)
		}
		fmt.Fprintf(&doc, "%s%q:", strings.Repeat("  ", i), p)
		if i < len(parts)-1 {
			doc.WriteString("\n")
		}
	}
	indent := strings.Repeat("  ", len(parts))
	doc.WriteString(" " + strings.ReplaceAll(strings.TrimRight(value, "\n"), "\n", "\n"+indent) + "\n")
	if err := decode([]byte(doc.String()), &e.Config); err != nil {
		return told(err, s.From+": "+s.Path+":")
	}
	e.origin[s.Path] = s.From
	return nil
}

// decode reads YAML over what is there. Unknown keys are errors.
func decode(doc []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(doc))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

var (
	unknownKey = regexp.MustCompile(`^line (\d+): field (\S+) not found in type .+$`)
	atLine     = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
)

// told says YAML errors in the reader's words: file, line, what is wrong.
func told(err error, where string) error {
	var list []string
	var typed *yaml.TypeError
	if errors.As(err, &typed) {
		list = typed.Errors
	} else {
		list = []string{err.Error()}
	}
	file := !strings.Contains(where, ": ")
	var faults []error
	for _, text := range list {
		line, rest := "", text
		if m := unknownKey.FindStringSubmatch(text); m != nil {
			line, rest = m[1], "unknown key "+m[2]
		} else if m := atLine.FindStringSubmatch(text); m != nil {
			line, rest = m[1], m[2]
		}
		switch {
		case file && line != "":
			faults = append(faults, fmt.Errorf("%s%s: %s", where, line, rest))
		default:
			faults = append(faults, fmt.Errorf("%s %s", where, rest))
		}
	}
	return errors.Join(faults...)
}

// leaves are the names of all settings with their types. A map's entries are those that it has.
func (e *Effective) leaves() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	collect(reflect.ValueOf(e.Config), "", all)
	return all
}

func collect(v reflect.Value, path string, all map[string]reflect.Type) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			switch {
			case name == "-":
			case options == "inline":
				collect(v.Field(i), path, all)
			case name != "":
				collect(v.Field(i), join(path, name), all)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			collect(v.MapIndex(k), join(path, k.String()), all)
		}
	default:
		all[path] = v.Type()
	}
}

// Origin is where a setting came from: a file with its line, an environment variable, a flag, or "default".
func (e *Effective) Origin(path string) string {
	if o := e.origin[path]; o != "" {
		return o
	}
	if strings.HasPrefix(path, "gate.") && e.Profile != ProfileAuto {
		return "profile " + e.Profile
	}
	return "default"
}

// Paths are the names of all settings, sorted.
func (e *Effective) Paths() []string { return slices.Sorted(maps.Keys(e.leaves())) }

// Print writes all settings as YAML, secrets as ***, each with where it came from.
func (e *Effective) Print(w io.Writer) error {
	var n yaml.Node
	if err := n.Encode(e.Config); err != nil {
		return err
	}
	e.comment(&n, "")
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	defer enc.Close()
	return enc.Encode(&n)
}

func (e *Effective) comment(n *yaml.Node, path string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		switch {
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			e.comment(value, at)
		case value.Kind == yaml.SequenceNode && len(value.Content) > 0 && value.Content[0].Kind != yaml.ScalarNode:
			key.HeadComment = e.Origin(at)
		default:
			value.Style |= yaml.FlowStyle
			value.LineComment = e.Origin(at)
		}
	}
}
