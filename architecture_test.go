package weir_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed is the direction of imports: what each package may import of ours. The reason stands with each line; a package
// that is not listed may not exist. Test files are free.
var allowed = map[string][]string{
	"internal/record":    {},            // the vocabulary: everything speaks it, it knows nobody
	"internal/telemetry": {},            // a recorder is carried through all layers
	"internal/wire":      {"record"},    // bytes know no protocol
	"internal/catalog":   {"record"},    // definitions in terms of the vocabulary
	"internal/gate":      {"telemetry"}, // admission knows no HTTP and no SQL
	"internal/store":     {"record", "catalog", "telemetry"},
	// A database holds only what differs; everything above sees the interface.
	"internal/store/sqlite":    {"record", "catalog", "telemetry", "store", "wire"}, // values as JSON, by a function
	"internal/store/postgres":  {"record", "catalog", "telemetry", "store"},
	"internal/store/storetest": {"record", "catalog", "telemetry", "store"},
	"internal/rule":            {"record", "catalog"},                                                                                                       // rules read through an interface that the engine hands in
	"internal/script":          {"record", "catalog"},                                                                                                       // so do scripts
	"internal/engine":          {"record", "catalog", "telemetry", "store", "rule", "script"},                                                               // no dialect, no HTTP
	"internal/auth":            {"record", "catalog", "store"},                                                                                              // who is calling
	"internal/job":             {"record", "catalog", "store"},                                                                                              // durable work, whatever it is
	"internal/dialect":         {"record", "catalog", "wire", "telemetry"},                                                                                  // no engine: it gets an Executor
	"internal/dialect/now":     {"record", "catalog", "wire", "telemetry", "dialect"},                                                                       // never another dialect
	"internal/endpoint":        {"record", "catalog", "telemetry", "wire", "store"},                                                                         // SQL endpoints below the protocol: the engine and projects use it
	"internal/autorest":        {"record", "catalog"},                                                                                                       // tables under the aliases of ORDS; no wire format
	"internal/dialect/ords":    {"record", "catalog", "wire", "telemetry", "dialect", "autorest"},                                                           // never another dialect
	"internal/edm":             {"record", "catalog"},                                                                                                       // services in terms of tables; no wire format
	"internal/dialect/odata":   {"record", "catalog", "wire", "telemetry", "dialect", "edm"},                                                                // never another dialect
	"internal/importer":        {"catalog", "endpoint"},                                                                                                     // definitions of others to files of a project
	"internal/project":         {"record", "catalog", "store", "edm", "endpoint", "autorest"},                                                               // files to definitions to the database
	"internal/remote":          {"record", "catalog", "telemetry", "dialect", "auth", "job", "project"},                                                     // the executor and the authority over the network; it knows no protocol and no engine
	"internal/config":          {"gate", "engine", "auth", "store", "dialect/now", "dialect/odata", "dialect/ords", "server", "record", "script", "remote"}, // settings of all parts
	"internal/server": {
		"record", "catalog", "store", "telemetry", "wire", "gate", "auth", "job", "engine", "dialect", "dialect/now", "script", "project",
	},
	"internal/bench":     {"wire"}, // a client: it must be able to measure any server
	"internal/e2e":       {},       // talks to the built command over sockets and imports nothing of it
	"internal/yardstick": {},       // hand-written programs that share no code with what they are compared to
	"demo":               {},
}

func TestArchitecture_ImportsPointDownwards(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "weir/")
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "demo/") || name == "weir" || strings.HasSuffix(name, "test") {
			continue // commands wire everything; test support may look anywhere
		}
		seen++
		may, ok := allowed[name]
		if !ok {
			t.Errorf("package %s is not in the table: say what it may import, and why it exists", name)
			continue
		}
		for _, imp := range p.Imports {
			if dep, ours := strings.CutPrefix(imp, "weir/internal/"); ours && !slices.Contains(may, dep) {
				t.Errorf("%s imports %s, which points upwards or sideways; it may import %v", name, dep, may)
			}
			if name == "internal/engine" || name == "internal/gate" || strings.HasPrefix(name, "internal/store") {
				if imp == "net/http" {
					t.Errorf("%s imports net/http: nobody below the dialects knows HTTP", name)
				}
			}
		}
	}
	if seen < 8 {
		t.Fatalf("only %d packages were seen", seen)
	}
}
