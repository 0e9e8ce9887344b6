package project

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Options are what Apply needs beside the project.
type Options struct {
	// AllowDestructive carries out changes of stored tables that lose something. Without it they are refused, and nothing
	// else is done either.
	AllowDestructive bool
	// Check finds faults that need more than the catalog: rules and conditions that do not compile. Its error may join many.
	//
	// Defaults to no check.
	Check func(*catalog.Snapshot) error
	// Hash hashes a value of a password field. Several run at once, one for each core. Required when data holds passwords.
	Hash func(password string) (string, error)
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
	// NewID makes keys for records that have none: 32 lower-case hex digits. Defaults to random ones.
	NewID func() string
	// Log is told of each change. Defaults to none.
	Log *slog.Logger
}

func (o *Options) defaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string {
			var id [16]byte
			rand.Read(id[:])
			return hex.EncodeToString(id[:])
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

// Report is what Apply did.
type Report struct {
	Snapshot *catalog.Snapshot // what is applied now
	Changed  bool              // the definitions are new: the version moved
	Schema   []store.Change    // changes of stored tables
	Loaded   []Loaded          // data that was loaded
	Mirrored int               // records of sys_db_object, sys_dictionary and sys_choice that were written or removed
}

// Loaded is one file of data that was loaded.
type Loaded struct {
	File  string
	Table string
	Rows  int
}

// attempts is how often Apply begins again when another node was faster. Whoever loses finds the winner's work done, so
// only as many nodes as apply different definitions at the same time can make it more than two.
const attempts = 10

// errMoved says that another node applied meanwhile.
var errMoved = errors.New("another node applied definitions meanwhile")

// Apply brings the database to what p says: stored tables, then data that was never loaded, then the definitions under a
// new version, of which all nodes are told. All faults of the definitions are found before anything is changed and are one Invalid error, but
// those of SQL endpoints, which the database finds when it has their tables, and before the definitions move; a fault in a data file leaves no record of that file. When the definitions are those that are applied already, only data
// that is missing is loaded. Changes that would lose something are an Invalid error that lists them, unless allowed.
//
// Stored tables change before the version moves, so nodes still at the old version see columns that they do not know,
// which do no harm.
func Apply(ctx context.Context, st store.Store, p *Project, o Options) (*Report, error) {
	o.defaults()
	p, err := withRoutines(ctx, st, p)
	if err != nil {
		return nil, err
	}
	defs, err := encode(p.Definitions)
	if err != nil {
		return nil, err
	}
	for range attempts {
		a := &application{Options: o, st: st, project: p, defs: defs, report: &Report{}}
		if err = a.run(ctx); err == nil {
			return a.report, nil
		}
		if !errors.Is(err, errMoved) {
			return nil, err
		}
	}
	return nil, record.Errorf(record.Conflict, "", "other nodes apply other definitions at the same time; apply again when they are done")
}

// application is one attempt at applying a project.
type application struct {
	Options
	st      store.Store
	project *Project
	defs    stored
	report  *Report
}

func (a *application) run(ctx context.Context) error {
	was, err := readState(ctx, a.st, false)
	if err != nil {
		return err
	}
	version := was.version
	if was.checksum != a.defs.checksum {
		a.report.Changed = true
		version++
	}
	snap, err := a.project.Build(version)
	if err == nil && a.Check != nil {
		if err = a.Check(snap); err != nil {
			err = a.project.locate(err)
		}
	}
	if err != nil {
		return record.Errorf(record.Invalid, "", "%s", err.Error())
	}
	if a.report.Changed {
		if err := a.schema(ctx, snap); err != nil {
			return err
		}
	}
	if snap, err = a.compile(ctx, snap); err != nil {
		return err
	}
	a.report.Snapshot = snap
	snap.Applied = was.when()
	if a.report.Changed {
		snap.Applied = a.Now().UTC().Truncate(time.Microsecond) // as it is stored
	}
	if err := a.loadData(ctx, snap); err != nil {
		return err
	}
	if !a.report.Changed {
		return nil
	}
	if err := a.store(ctx, snap, was); err != nil {
		return err
	}
	a.Log.Info("applied", "version", snap.Version, "tables", len(snap.Tables()), "endpoints", len(snap.Endpoints())+len(snap.SQLEndpoints()), "services", len(snap.Services()))
	// The definitions are there: whoever asked may go away, the other nodes must hear of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := a.st.Notify(ctx); err != nil {
		a.Log.Warn("other nodes could not be told; they look by themselves soon", "err", err)
	}
	return nil
}

// schema brings the stored tables to what snap needs.
func (a *application) schema(ctx context.Context, snap *catalog.Snapshot) error {
	plan, err := a.st.Schema().Plan(ctx, snap)
	if err != nil {
		return err
	}
	changes := plan.Additive
	if len(plan.Destructive) > 0 {
		if !a.AllowDestructive {
			return refused(plan.Destructive)
		}
		changes = append(changes[:len(changes):len(changes)], plan.Destructive...)
	}
	if len(changes) == 0 {
		return nil
	}
	if err := a.st.Schema().Apply(ctx, changes); err != nil {
		// Two nodes that found the same column missing: the second one fails, and finds it there when it looks again.
		if again, e := a.st.Schema().Plan(ctx, snap); e == nil && len(again.Additive)+len(again.Destructive) < len(plan.Additive)+len(plan.Destructive) {
			return errMoved
		}
		return err
	}
	for _, c := range changes {
		a.Log.Info("schema", "table", c.Table, "change", c.What)
	}
	a.report.Schema = changes
	return nil
}

func refused(changes []store.Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d changes of stored tables were refused, and nothing was changed; to carry them out, apply with --allow-destructive:", len(changes))
	for _, c := range changes {
		fmt.Fprintf(&b, "\n  %s: %s: %s", c.Table, c.What, c.Reason)
	}
	return record.Errorf(record.Invalid, "", "%s", b.String())
}

// store writes the definitions in place of those of version was, which must still be the ones applied.
func (a *application) store(ctx context.Context, snap *catalog.Snapshot, was state) error {
	tx, err := a.st.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	now, err := readState(ctx, tx, true)
	if err != nil {
		return err
	}
	if now != was {
		return errMoved
	}
	version := record.IntValue(int64(snap.Version))
	fields := []string{"version", "name", "applied", "checksum"}
	row := []record.Value{version, text(a.project.Name), record.TimeValue(snap.Applied), text(a.defs.checksum)}
	if was.version == 0 {
		w, err := tx.Insert(ctx, &store.InsertSet{
			Table: system("project"), Fields: append([]string{"id"}, fields...), Rows: [][]record.Value{append(theProject[:1:1], row...)},
		})
		if err != nil {
			return err
		}
		if firstFault(w) != nil {
			return errMoved
		}
	} else if f, err := update(ctx, tx, &store.UpdateSet{
		Table: system("project"), Keys: [][]record.Value{theProject}, Fields: fields, Rows: [][]record.Value{row},
	}); err != nil || f != nil {
		return cause(f, err)
	}

	definition := system("definition")
	old, err := readAll(ctx, tx, catalog.System(), definition, []string{"kind", "name"}, false)
	if err != nil {
		return err
	}
	if old.Len() > 0 {
		if _, err := tx.Delete(ctx, &store.DeleteSet{Table: definition, Keys: allRows(old)}); err != nil {
			return err
		}
	}
	rows := make([][]record.Value, len(a.defs.rows))
	for i, d := range a.defs.rows {
		rows[i] = []record.Value{text(d[0]), text(d[1]), text(d[2]), version}
	}
	if err := insert(ctx, tx, definition, []string{"kind", "name", "body", "version"}, rows); err != nil {
		return err
	}
	if a.report.Mirrored, err = a.mirror(ctx, tx, snap); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// insert writes rows that must all be new.
func insert(ctx context.Context, tx store.Tx, t *catalog.Table, fields []string, rows [][]record.Value) error {
	if len(rows) == 0 {
		return nil
	}
	w, err := tx.Insert(ctx, &store.InsertSet{Table: t, Fields: fields, Rows: rows})
	if err != nil {
		return fmt.Errorf("insert into %s: %w", t.Name, err)
	}
	if f := firstFault(w); f != nil {
		return fmt.Errorf("insert into %s: %w", t.Name, f.err)
	}
	return nil
}

// update changes records that must all be there.
func update(ctx context.Context, tx store.Tx, s *store.UpdateSet) (*rowFault, error) {
	w, err := tx.Update(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("update %s: %w", s.Table.Name, err)
	}
	if f := firstFault(w); f != nil {
		return f, nil
	}
	for i, hit := range w.Hit {
		if !hit {
			return &rowFault{i, fmt.Errorf("update %s: the record is gone", s.Table.Name)}, nil
		}
	}
	return nil, nil
}

// cause is err, or else the error of f.
func cause(f *rowFault, err error) error {
	if err == nil && f != nil {
		return f.err
	}
	return err
}

// rowFault is the error of one row of a set.
type rowFault struct {
	row int
	err error
}

func firstFault(w *store.Written) *rowFault {
	for i, err := range w.Errs {
		if err != nil {
			return &rowFault{i, err}
		}
	}
	return nil
}

func allRows(rows *record.Rows) [][]record.Value {
	list := make([][]record.Value, rows.Len())
	for i := range list {
		list[i] = rows.At(i)
	}
	return list
}

// text is a text value; in tables that weir creates an empty text is null.
func text(s string) record.Value {
	if s == "" {
		return record.Value{}
	}
	return record.TextValue(s)
}
