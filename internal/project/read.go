package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/endpoint"
	"weir/internal/record"
)

// Project is a project folder that has been read.
type Project struct {
	Name        string // of weir.yaml, "" if it has none
	Definitions catalog.Definitions
	Settings    []byte // weir.yaml as it stands, nil if there is none: its keys are the server's
	Data        []Data // records to load once, by name of the file

	folder fs.FS // where faults find their lines; nil for a project made in memory
}

// Data is one file of records for one table.
type Data struct {
	File  string // in the project: "data/incident.csv"
	Table string
	Open  func() (io.ReadCloser, error)
}

// Read reads the project whose weir.yaml stands at the root of folder. It looks at tables/*.yaml,
// services/*.yaml, endpoints/**/*.js and *.sql, data/*.csv and weir.yaml, all of which may be missing; other files in these folders are faults, unless their names begin
// with a dot or they are README.md. The error joins all faults, each with its file and line. That tables fit together is
// for [Project.Build] to say.
func Read(folder fs.FS) (*Project, error) {
	p := &Project{folder: folder}
	var faults []error
	settings, err := fs.ReadFile(folder, "weir.yaml")
	switch {
	case err == nil:
		p.Settings = settings
		var head struct{ Name string }
		if err := yaml.Unmarshal(settings, &head); err != nil {
			faults = append(faults, yamlFaults("weir.yaml", err)...)
		}
		p.Name = head.Name
	case !errors.Is(err, fs.ErrNotExist):
		faults = append(faults, err)
	}
	each := func(dir, exts string, nested bool, read func(file string) []error) {
		err := fs.WalkDir(folder, dir, func(file string, e fs.DirEntry, err error) error {
			switch {
			case err != nil && file == dir && errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case file != dir && strings.HasPrefix(e.Name(), "."), e.Name() == "README.md":
				if e.IsDir() {
					return fs.SkipDir
				}
			case e.IsDir():
				if file != dir && !nested {
					faults = append(faults, fmt.Errorf("%s: %s holds no folders", file, dir))
					return fs.SkipDir
				}
			case !slices.Contains(strings.Split(exts, " or "), path.Ext(file)):
				faults = append(faults, fmt.Errorf("%s: files in %s end in %s", file, dir, exts))
			default:
				faults = append(faults, read(file)...)
			}
			return nil
		})
		if err != nil {
			faults = append(faults, err)
		}
	}
	each("tables", ".yaml", false, p.readTable)
	each("services", ".yaml", false, p.readService)
	each("endpoints", ".js or .sql", true, p.readEndpoint)
	each("data", ".csv", false, func(file string) []error {
		p.Data = append(p.Data, Data{
			File: file, Table: strings.TrimSuffix(path.Base(file), ".csv"),
			Open: func() (io.ReadCloser, error) { return folder.Open(file) },
		})
		return nil
	})
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return p, nil
}

func (p *Project) readTable(file string) []error {
	text, err := fs.ReadFile(p.folder, file)
	if err != nil {
		return []error{err}
	}
	var def catalog.TableDef
	if faults := decodeFile(file, "table", text, &def); len(faults) > 0 {
		return faults
	}
	faults := misnamed(file, "table", text, def.Name)
	at := func(names ...string) string { return place(file, text, names...) }
	var ok bool
	for i := range def.Fields {
		f := &def.Fields[i]
		if f.Default, ok = plain(f.Default); !ok {
			faults = append(faults, fmt.Errorf("%s: default of %s is not one value", at("fields", f.Name), f.Name))
		}
	}
	for name, rows := range def.Matrices {
		for _, row := range rows {
			for i := range row {
				if row[i], ok = plain(row[i]); !ok {
					faults = append(faults, fmt.Errorf("%s: a cell of matrix %s is not one value", at("matrices", name), name))
				}
			}
		}
	}
	p.Definitions.Tables = append(p.Definitions.Tables, def)
	return faults
}

func (p *Project) readService(file string) []error {
	text, err := fs.ReadFile(p.folder, file)
	if err != nil {
		return []error{err}
	}
	var def catalog.ServiceDef
	if faults := decodeFile(file, "service", text, &def); len(faults) > 0 {
		return faults
	}
	p.Definitions.Services = append(p.Definitions.Services, def)
	return misnamed(file, "service", text, def.Name)
}

// decodeFile reads the one document of a YAML file strictly.
func decodeFile(file, what string, text []byte, def any) []error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(def); errors.Is(err, io.EOF) {
		return []error{fmt.Errorf("%s:1: the file is empty", file)}
	} else if err != nil {
		return yamlFaults(file, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return []error{fmt.Errorf("%s: a %s file holds one document", file, what)}
	}
	return nil
}

// misnamed is the fault of a file that is not named for what it defines.
func misnamed(file, what string, text []byte, name string) []error {
	if want := strings.TrimSuffix(path.Base(file), ".yaml"); name != want {
		return []error{fmt.Errorf("%s: name is %q, but the file is named for %s %q", place(file, text, "name"), name, what, want)}
	}
	return nil
}

// plain is a value of a table file in the form that it also has after its way through the database: nil, text, bool, int,
// or a float64 that is no whole number. It is false for lists and mappings.
func plain(v any) (any, bool) {
	const exact = 1 << 53
	switch v := v.(type) {
	case nil, string, bool:
		return v, true
	case int:
		if v < -exact || v > exact {
			return fmt.Sprint(v), true // JSON keeps 53 bits
		}
		return v, true
	case uint64:
		return fmt.Sprint(v), true
	case float64:
		if v == float64(int(v)) && v > -exact && v < exact {
			return int(v), true
		}
		return v, true
	case time.Time: // YAML takes 2026-01-31 for a time
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return v.Format(time.DateOnly), true
		}
		return v.UTC().Format(record.TimeLayout), true
	}
	return v, false
}

var (
	yamlLine    = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?((?s).*)$`)
	yamlUnknown = regexp.MustCompile(`^field (\S+) not found in type .*$`)
)

// yamlFaults are the faults of a YAML file with its name and their lines.
func yamlFaults(file string, err error) []error {
	list := []string{err.Error()}
	if te := (*yaml.TypeError)(nil); errors.As(err, &te) {
		list = te.Errors
	}
	faults := make([]error, len(list))
	for i, s := range list {
		m := yamlLine.FindStringSubmatch(s)
		line, what := m[1], m[2]
		if line == "" {
			line = "1"
		}
		if u := yamlUnknown.FindStringSubmatch(what); u != nil {
			what = fmt.Sprintf("unknown key %q", u[1])
		}
		faults[i] = fmt.Errorf("%s:%s: %s", file, line, strings.TrimPrefix(what, "yaml: "))
	}
	return faults
}

// Build compiles the project's definitions into a snapshot of a version, and its services against that. The error joins all faults, each with its file
// and line where it has one.
func (p *Project) Build(version uint64) (*catalog.Snapshot, error) {
	s, err := catalog.Build(version, sorted(p.Definitions))
	if err != nil {
		return nil, errors.Join(append(p.sameRoute(), p.locate(err))...)
	}
	faults := p.sameRoute()
	services := s.Services()
	for i := range services {
		if err := checkService(s, &services[i]); err != nil {
			faults = append(faults, p.locate(err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

// checkService resolves a service as its protocol does.
func checkService(s *catalog.Snapshot, def *catalog.ServiceDef) (err error) {
	if def.Protocol == autorest.Protocol {
		_, err = autorest.Compile(s, def)
		return err
	}
	_, err = edm.Compile(s, def)
	return err
}

var parameter = regexp.MustCompile(`\{[^/]*\}`)

// sameRoute lists endpoints that no request can reach, since another one has the same method and path.
func (p *Project) sameRoute() []error {
	var faults []error
	first := map[string]string{}
	for _, e := range p.Definitions.Endpoints {
		if e.SQL != nil {
			continue
		}
		route := e.Method + " " + parameter.ReplaceAllString(strings.TrimSuffix(e.Path, "/"), "{}")
		if other, ok := first[route]; ok {
			faults = append(faults, fmt.Errorf("%s:1: %s %s is the path of %s already", e.File, e.Method, e.Path, other))
			continue
		}
		first[route] = e.File
	}
	return append(faults, endpoint.Collisions(p.Definitions.Endpoints)...)
}

// sorted is definitions in the order that they have in the database, so that a snapshot is the same from both.
func sorted(d catalog.Definitions) catalog.Definitions {
	return catalog.Definitions{
		Tables:    slices.SortedFunc(slices.Values(d.Tables), func(a, b catalog.TableDef) int { return strings.Compare(a.Name, b.Name) }),
		Endpoints: slices.SortedFunc(slices.Values(d.Endpoints), func(a, b catalog.EndpointDef) int { return strings.Compare(a.Name, b.Name) }),
		Services:  slices.SortedFunc(slices.Values(d.Services), func(a, b catalog.ServiceDef) int { return strings.Compare(a.Name, b.Name) }),
	}
}
