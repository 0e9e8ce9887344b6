package project

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/demo"
	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// onEach runs f on each database; open gives a node of its own over the same, at first empty, database.
func onEach(t *testing.T, f func(t *testing.T, open func() store.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "weir.db")
		f(t, func() store.Store {
			st, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			return st
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Postgres(t)
		if url == "" {
			return // SQLite alone was asked for
		}
		f(t, func() store.Store {
			st, err := postgres.Open(t.Context(), postgres.Options{URL: url, Max: 5})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			return st
		})
	})
}

func options(t *testing.T) Options {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	return Options{
		Check: check,
		Hash:  func(s string) (string, error) { return "hashed " + s, nil },
		Now:   func() time.Time { return now },
	}
}

func check(s *catalog.Snapshot) error {
	var faults []error
	for _, name := range s.Tables() {
		table, err := s.Table(name)
		if err != nil {
			return err
		}
		if _, err := rule.Compile(s, table); err != nil {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

func mustRead(t *testing.T, files fstest.MapFS) *Project {
	t.Helper()
	p, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustApply(t *testing.T, st store.Store, p *Project, o Options) *Report {
	t.Helper()
	r, err := Apply(t.Context(), st, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// texts reads fields of all records of a table as text.
func texts(t *testing.T, st store.Store, s *catalog.Snapshot, table string, fields ...string) [][]string {
	t.Helper()
	tab, err := s.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readAll(t.Context(), st, s, tab, fields, false)
	if err != nil {
		t.Fatal(err)
	}
	list := make([][]string, rows.Len())
	for i := range list {
		for _, v := range rows.At(i) {
			list[i] = append(list[i], v.Text())
		}
	}
	return list
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// shop is a small project: orders of customers, who may have been sent by another customer.
func shop() fstest.MapFS {
	return fstest.MapFS{
		"weir.yaml": file("name: shop\n"),
		"tables/customer.yaml": file(`name: customer
fields:
  - {name: name, type: string, max_length: 20}
  - {name: sent_by, type: reference, reference: customer, foreign_key: true}
  - {name: pin, type: password}
`),
		"tables/a_order.yaml": file(`name: a_order
label: Order
fields:
  - {name: number, type: string, unique: true, read_only: true, sequence: {prefix: ORD, digits: 5, start: 10}}
  - {name: customer, type: reference, reference: customer, foreign_key: true}
  - {name: total, type: decimal, default: 1000000}
  - {name: placed, type: datetime, default: '=now()'}
  - {name: open, type: boolean, compute: 'total > 5'}
`),
		"endpoints/hello.js": file("// @path /api/x/hello\nresponse.setBody(1);\n"),
		// Dora was sent by someone who stands further down.
		"data/customer.csv": file("sys_id,name,sent_by,pin\nc1,Dora,c2,1234\nc2,Emil,,\n"),
		"data/a_order.csv":  file("number,customer,open\nORD00007,c1,false\nORD00041,c2,true\n"),
	}
}

func TestApply_DemoLoadsAndReadsBack(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		begin := time.Now()
		p, err := Read(demo.Project())
		if err != nil {
			t.Fatal(err)
		}
		read := time.Since(begin)
		st, o := open(), options(t)
		begin = time.Now()
		r := mustApply(t, st, p, o)
		first := time.Since(begin)
		rows := 0
		for _, l := range r.Loaded {
			rows += l.Rows
			table, err := r.Snapshot.Table(l.Table)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(texts(t, st, r.Snapshot, l.Table, table.Key...)); got < l.Rows {
				t.Errorf("%s: %d records read back, want at least %d", l.File, got, l.Rows)
			}
		}
		if rows < 2700 || len(r.Loaded) != len(p.Data) || r.Snapshot.Version != 1 || !r.Changed {
			t.Fatalf("%d records in %d of %d files, version %d", rows, len(r.Loaded), len(p.Data), r.Snapshot.Version)
		}
		// The demo's generator and the mirror describe the same tables: there was nothing left to say.
		if r.Mirrored != 0 {
			t.Errorf("the mirror changed %d records", r.Mirrored)
		}
		if got := texts(t, st, r.Snapshot, "incident", "number", "sys_class_name", "sys_created_by", "priority", "opened_at")[0]; got[1] != "incident" || got[2] != "system" || got[3] == "" || got[4] == "" {
			t.Errorf("an incident reads %q", got)
		}

		begin = time.Now()
		again := mustApply(t, open(), p, o)
		second := time.Since(begin)
		if again.Changed || len(again.Loaded) != 0 || again.Snapshot.Version != 1 {
			t.Errorf("the second start did something: %+v", again)
		}
		begin = time.Now()
		loaded, err := Load(t.Context(), st)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("read %v, first apply %v, second %v, load %v", read, first, second, time.Since(begin))
		if diff := diffSnapshots(r.Snapshot, loaded); diff != "" {
			t.Errorf("Load differs from Build:\n%s", diff)
		}
	})
}

// diffSnapshots compares all that a snapshot shows.
func diffSnapshots(a, b *catalog.Snapshot) string {
	tables := func(s *catalog.Snapshot) (list []*catalog.Table) {
		for _, name := range s.Tables() {
			t, _ := s.Table(name)
			list = append(list, t)
		}
		return list
	}
	return cmp.Diff(a.Version, b.Version) +
		cmp.Diff(tables(a), tables(b), cmpopts.IgnoreUnexported(catalog.Table{}), cmpopts.EquateEmpty()) +
		cmp.Diff(a.Endpoints(), b.Endpoints(), cmpopts.EquateEmpty())
}

func TestApply_LoadsDataAsItStandsAndFillsTheRest(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		st := open()
		r := mustApply(t, st, mustRead(t, shop()), options(t))
		files := []string{}
		for _, l := range r.Loaded {
			files = append(files, l.File)
		}
		if diff := cmp.Diff([]string{"data/customer.csv", "data/a_order.csv"}, files); diff != "" {
			t.Errorf("order of files: %s", diff)
		}
		if diff := cmp.Diff([][]string{{"c1", "Dora", "c2", ""}, {"c2", "Emil", "", ""}}, texts(t, st, r.Snapshot, "customer", "sys_id", "name", "sent_by", "pin")); diff != "" {
			t.Errorf("customers: %s", diff)
		}
		orders := texts(t, st, r.Snapshot, "a_order", "number", "total", "placed", "open", "sys_created_by", "sys_mod_count", "sys_id")
		got := map[string][]string{}
		for _, o := range orders {
			if len(o[6]) != 32 {
				t.Errorf("sys_id %q", o[6])
			}
			got[o[0]] = o[1:6]
		}
		want := map[string][]string{
			"ORD00007": {"1000000", "2026-11-30 12:00:00", "false", "system", "0"},
			"ORD00041": {"1000000", "2026-11-30 12:00:00", "true", "system", "0"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("orders: %s", diff)
		}
		if diff := cmp.Diff([][]string{{"customer.pin", "c1", "hashed 1234", "1"}}, texts(t, st, catalog.System(), "secret", "owner", "key", "hash", "version")); diff != "" {
			t.Errorf("secrets: %s", diff)
		}
		number, err := st.Numbers(t.Context(), "a_order.number", 10, 1)
		if err != nil || number != 42 {
			t.Errorf("the next number is %d (%v), want 42: one above the highest loaded", number, err)
		}
	})
}

func TestApply_NewFieldAddsAColumnAndKeepsRecords(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		st, files := open(), shop()
		mustApply(t, st, mustRead(t, files), options(t))
		files["tables/customer.yaml"] = file(string(files["tables/customer.yaml"].Data) + "  - {name: city, type: string}\n")
		r := mustApply(t, st, mustRead(t, files), options(t))
		if r.Snapshot.Version != 2 || !r.Changed || len(r.Loaded) != 0 || len(r.Schema) != 1 {
			t.Errorf("version %d, loaded %v, schema %v", r.Snapshot.Version, r.Loaded, r.Schema)
		}
		if diff := cmp.Diff([][]string{{"Dora", ""}, {"Emil", ""}}, texts(t, st, r.Snapshot, "customer", "name", "city")); diff != "" {
			t.Error(diff)
		}
	})
}

func TestApply_ServicesComeChangeAndGoWithTheirFiles(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		st, files := open(), shop()
		names := func(s *catalog.Snapshot) (list []string) {
			for _, svc := range s.Services() {
				list = append(list, svc.Name+" "+svc.Label)
			}
			return list
		}
		check := func(version uint64, want ...string) {
			t.Helper()
			r := mustApply(t, st, mustRead(t, files), options(t))
			loaded, err := Load(t.Context(), st)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{want, want}, [][]string{names(r.Snapshot), names(loaded)}); diff != "" {
				t.Error(diff)
			}
			if r.Snapshot.Version != version || loaded.Version != version {
				t.Errorf("versions %d and %d, want %d", r.Snapshot.Version, loaded.Version, version)
			}
			if diff := cmp.Diff(r.Snapshot.Services(), loaded.Services()); diff != "" {
				t.Error(diff)
			}
			if len(want) > 0 && (!loaded.Applied.Equal(r.Snapshot.Applied) || loaded.Applied.Year() < 2000) {
				t.Errorf("applied %v and %v", r.Snapshot.Applied, loaded.Applied)
			}
		}
		check(1)
		files["services/SHOP.yaml"] = file("name: SHOP\nlabel: Orders\nexpose: [customer, a_order]\n")
		files["services/ONE.yaml"] = file("name: ONE\nsets:\n  - name: CustomerSet\n    table: customer\n    allow: []\n    properties:\n      - {name: ID, field: sys_id, nullable: false}\n    annotations: {pageable: false}\n")
		check(2, "ONE ", "SHOP Orders")
		check(2, "ONE ", "SHOP Orders")
		files["services/SHOP.yaml"] = file("name: SHOP\nlabel: Orders and customers\nexpose: [customer, a_order]\n")
		check(3, "ONE ", "SHOP Orders and customers")
		delete(files, "services/ONE.yaml")
		check(4, "SHOP Orders and customers")

		// A field that a service needs does not go away unnoticed.
		files["services/ONE.yaml"] = file("name: ONE\nsets:\n  - name: CustomerSet\n    table: customer\n    properties:\n      - {name: sys_id}\n      - {name: City, field: city}\n")
		_, err := Apply(t.Context(), st, mustRead(t, files), options(t))
		if want := "services/ONE.yaml:7: service ONE: set CustomerSet: property City: table customer has no field city"; record.KindOf(err) != record.Invalid || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestApply_DestructiveChangesAreListedAndRefused(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		st, files := open(), shop()
		before := mustApply(t, st, mustRead(t, files), options(t)).Snapshot
		files["tables/customer.yaml"] = file("name: customer\nfields:\n  - {name: sent_by, type: reference, reference: customer, foreign_key: true}\n  - {name: city, type: string}\n")
		_, err := Apply(t.Context(), st, mustRead(t, files), options(t))
		if record.KindOf(err) != record.Invalid {
			t.Fatalf("got %v, want an Invalid", err)
		}
		for _, want := range []string{"customer: drop column name: its values are lost", "drop column pin", "--allow-destructive"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in: %v", want, err)
			}
		}
		if v, err := Version(t.Context(), st); v != 1 || err != nil {
			t.Errorf("version %d (%v), want 1", v, err)
		}
		if got := texts(t, st, before, "customer", "name"); len(got) != 2 {
			t.Errorf("customers: %v", got)
		}
		o := options(t)
		o.AllowDestructive = true
		after := mustApply(t, st, mustRead(t, files), o).Snapshot
		if got := texts(t, st, after, "customer", "city"); len(got) != 2 {
			t.Errorf("customers: %v", got)
		}
	})
}

func TestApply_TwoNodesAtOnceApplyOnce(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		var wg sync.WaitGroup
		reports := make([]*Report, 4)
		for i := range reports {
			st, p := open(), mustRead(t, shop())
			wg.Go(func() {
				var err error
				if reports[i], err = Apply(t.Context(), st, p, options(t)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
		changed := 0
		for _, r := range reports {
			if r.Snapshot.Version != 1 {
				t.Errorf("version %d, want 1", r.Snapshot.Version)
			}
			if r.Changed {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%d nodes applied, want one", changed)
		}
		if got := texts(t, open(), reports[0].Snapshot, "a_order", "number"); len(got) != 2 {
			t.Errorf("orders: %v", got)
		}
	})
}

func TestApply_DifferentProjectsAtOnceTakeTurns(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		mustApply(t, open(), mustRead(t, shop()), options(t))
		var wg sync.WaitGroup
		for _, column := range []string{"city", "street", "phone"} {
			files := shop()
			files["endpoints/"+column+".js"] = file("// @path /api/x/" + column + "\n")
			st, p := open(), mustRead(t, files)
			wg.Go(func() {
				if _, err := Apply(t.Context(), st, p, options(t)); err != nil {
					t.Errorf("%s: %v", column, err)
				}
			})
		}
		wg.Wait()
		s, err := Load(t.Context(), open())
		if err != nil || s.Version != 4 || len(s.Endpoints()) != 2 {
			t.Fatalf("%+v (%v): want version 4 and the two endpoints of whoever came last", s, err)
		}
	})
}

func TestApply_AFaultInDataLeavesNothingOfItsFile(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		f := func(name, csv, want string) {
			t.Helper()
			files := shop()
			files[name] = file(csv)
			_, err := Apply(t.Context(), open(), mustRead(t, files), options(t))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if v, err := Version(t.Context(), open()); v != 0 || err != nil {
				t.Errorf("version %d (%v), want 0", v, err)
			}
		}
		f("data/customer.csv", "sys_id,nme\nc1,x\n", `data/customer.csv:1: table customer has no field "nme"`)
		f("data/customer.csv", "sys_id,name,name\nc1,x,y\n", `data/customer.csv:1: field name stands in two columns`)
		f("data/customer.csv", "sys_id,name\nc1,x\nc1,y\n", `data/customer.csv:3: `)
		f("data/customer.csv", "sys_id,name\nc1,x\nc2\n", `data/customer.csv:3: wrong number of fields`)
		f("data/customer.csv", "sys_id,name\nc1,this name is longer than allowed\n", `data/customer.csv:2: name: the value is longer than 20 characters`)
		f("data/customer.csv", "sys_id,sent_by\nc1,nobody\n", "data/customer.csv:")
		f("data/customer.csv", "", `data/customer.csv:1: the first line names the fields`)
		f("data/nobody.csv", "a\n1\n", `data/nobody.csv: there is no table nobody`)
	})
}

func TestApply_LoadsFilesOfSeveralSets(t *testing.T) {
	const n = 2*setSize + 500
	files := shop()
	var csv strings.Builder
	csv.WriteString("sys_id,name,sent_by\n")
	for i := range n { // each was sent by the next, who may stand in a later set
		fmt.Fprintf(&csv, "c%d,n%d,c%d\n", i, i, (i+1)%n)
	}
	files["data/customer.csv"] = file(csv.String())
	p := mustRead(t, files)
	onEach(t, func(t *testing.T, open func() store.Store) {
		st := open()
		r := mustApply(t, st, p, options(t))
		for _, c := range texts(t, st, r.Snapshot, "customer", "sys_id", "name", "sent_by.name") {
			var i int
			if _, err := fmt.Sscanf(c[0], "c%d", &i); err != nil {
				t.Fatal(err)
			}
			if c[1] != fmt.Sprint("n", i) || c[2] != fmt.Sprint("n", (i+1)%n) {
				t.Fatalf("customer %d reads %q", i, c)
			}
		}
		if r.Loaded[0].Rows != n {
			t.Errorf("loaded %v", r.Loaded)
		}
	})
}

func TestApply_NumbersRecordsWhoseFileGivesNone(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		st, files := open(), shop()
		files["data/a_order.csv"] = file("\ufeffcustomer\r\nc1\r\nc2\r\n")
		r := mustApply(t, st, mustRead(t, files), options(t))
		f := func(want map[string]bool, next int64) {
			t.Helper()
			got := map[string]bool{}
			for _, o := range texts(t, st, r.Snapshot, "a_order", "number") {
				got[o[0]] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if n, err := st.Numbers(t.Context(), "a_order.number", 10, 1); n != next || err != nil {
				t.Errorf("the next number is %d (%v), want %d", n, err, next)
			}
		}
		f(map[string]bool{"ORD00010": true, "ORD00011": true}, 12)

		// A file that comes later goes on where the sequence stands.
		files["tables/rush.yaml"] = file("name: rush\nextends: a_order\nfields: []\n")
		files["data/rush.csv"] = file("customer,sys_class_name\nc1,rush\nc1,\n")
		files["data/a_order.csv"] = file("customer\nc1\n")
		r = mustApply(t, st, mustRead(t, files), options(t))
		if len(r.Loaded) != 1 || r.Loaded[0].Rows != 2 {
			t.Errorf("loaded %v: a file that was loaded is not loaded again", r.Loaded)
		}
		f(map[string]bool{"ORD00010": true, "ORD00011": true, "ORD00013": true, "ORD00014": true}, 15)
		if got := texts(t, st, r.Snapshot, "rush", "sys_class_name"); len(got) != 2 {
			t.Errorf("rush orders: %v", got)
		}
	})
}

func TestApply_ListsFaultsOfRulesWithTheirLines(t *testing.T) {
	files := shop()
	files["tables/rush.yaml"] = file(`name: rush
extends: a_order
fields: []
rules:
  - {name: fine, check: 'total > 0', message: no}
  - {name: odd, check: 'total >', message: no}
`)
	files["tables/a_order.yaml"] = file(strings.Replace(string(files["tables/a_order.yaml"].Data), "total > 5", "totl > 5", 1))
	p := mustRead(t, files)
	onEach(t, func(t *testing.T, open func() store.Store) {
		st := open()
		_, err := Apply(t.Context(), st, p, options(t))
		if err == nil {
			t.Fatal("no fault")
		}
		for _, want := range []string{"tables/a_order.yaml:8: table a_order: compute of open: ", "tables/rush.yaml:6: table rush: rule odd: check: "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is missing in: %v", want, err)
			}
		}
		if v, err := Version(t.Context(), st); v != 0 || err != nil {
			t.Errorf("version %d (%v), want 0", v, err)
		}
	})
}

// swaps is a log handler that tells of each version that a node takes.
type swaps struct {
	slog.Handler
	seen chan struct{}
}

func (s swaps) Enabled(context.Context, slog.Level) bool { return true }

func (s swaps) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "definitions" {
		s.seen <- struct{}{}
	}
	return nil
}

func TestFollow_VersionReachesTheSecondNode(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		one, two, files := open(), open(), shop()
		cat := catalog.New(mustApply(t, one, mustRead(t, files), options(t)).Snapshot)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		seen := make(chan struct{}, 10)
		go func() { done <- Follow(ctx, two, cat, slog.New(swaps{slog.DiscardHandler, seen})) }()
		for version := uint64(2); version < 5; version++ {
			files["endpoints/more.js"] = file("// @path /api/x/more" + strings.Repeat("x", int(version)) + "\n")
			r := mustApply(t, one, mustRead(t, files), options(t))
			if r.Snapshot.Version != version {
				t.Fatalf("version %d, want %d", r.Snapshot.Version, version)
			}
			for cat.Snapshot().Version != version {
				select {
				case <-seen:
				case <-time.After(30 * time.Second):
					t.Fatalf("the second node is at version %d, want %d", cat.Snapshot().Version, version)
				}
			}
			fresh, err := Uncached(two)(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffSnapshots(cat.Snapshot(), fresh); diff != "" {
				t.Error(diff)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Follow ended with %v", err)
		}
	})
}

func TestLoad_SaysThatNothingIsApplied(t *testing.T) {
	onEach(t, func(t *testing.T, open func() store.Store) {
		if _, err := Load(t.Context(), open()); record.KindOf(err) != record.NotFound {
			t.Errorf("got %v, want NotFound", err)
		}
	})
}
