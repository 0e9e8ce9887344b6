package project

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// setSize is how many records are written as one set. Files are streamed, so a file of any size needs the memory of one
// set.
const setSize = 1000

// loadedBy is who created the records that come with a project.
const loadedBy = "system"

// loadData loads the files that were never loaded, each in a transaction of its own. What a file holds is taken as it
// stands, read-only and computed fields included; no rule runs. A column that is missing gets the field's default if that
// is a literal or =now(), or the next number if it has a sequence; audit fields are filled; password fields are hashed.
func (a *application) loadData(ctx context.Context, snap *catalog.Snapshot) error {
	if len(a.project.Data) == 0 {
		return nil
	}
	rows, err := readAll(ctx, a.st, catalog.System(), system("loaded"), []string{"name", "checksum"}, false)
	if err != nil {
		return err
	}
	loaded := map[string]string{}
	for i := range rows.Len() {
		loaded[rows.At(i)[0].S] = rows.At(i)[1].S
	}
	files, err := inOrder(snap, a.project.Data)
	if err != nil {
		return err
	}
	for _, d := range files {
		sum, err := checksum(d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.File, err)
		}
		if was, ok := loaded[d.File]; ok {
			if was != sum {
				a.Log.Warn("data changed since it was loaded; records that exist are not touched", "file", d.File)
			}
			continue
		}
		n, err := a.loadFile(ctx, snap, d, sum)
		if err != nil {
			return err
		}
		if n >= 0 {
			a.report.Loaded = append(a.report.Loaded, Loaded{File: d.File, Table: d.Table, Rows: n})
			a.Log.Info("loaded", "file", d.File, "records", n)
		}
	}
	return nil
}

// inOrder sorts files so that records that others refer to by a constraint of the database come first. Files that wait
// for each other keep the order of their names: the database says whether that works.
func inOrder(snap *catalog.Snapshot, data []Data) ([]Data, error) {
	var faults []error
	byRoot := map[string][]int{}
	tables := make([]*catalog.Table, len(data))
	data = slices.SortedFunc(slices.Values(data), func(x, y Data) int { return strings.Compare(x.File, y.File) })
	for i, d := range data {
		t, err := snap.Table(d.Table)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: there is no table %s", d.File, d.Table))
			continue
		}
		tables[i] = t
		byRoot[t.Root] = append(byRoot[t.Root], i)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	var (
		order []Data
		seen  = make([]bool, len(data))
		visit func(i int)
	)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, f := range tables[i].Fields {
			if f.ForeignKey && f.Reference != "" {
				if ref, err := snap.Table(f.Reference); err == nil {
					for _, j := range byRoot[ref.Root] {
						visit(j)
					}
				}
			}
		}
		order = append(order, data[i])
	}
	for i := range data {
		visit(i)
	}
	return order, nil
}

func checksum(d Data) (string, error) {
	r, err := d.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// sheet is one file on its way into its table.
type sheet struct {
	*application
	file   string
	table  *catalog.Table
	tx     store.Tx
	reader *csv.Reader

	fields  []*catalog.Field // of each column that is written
	column  []int            // of the file, or -1
	given   []record.Value   // the value for a column that the file lacks
	keys    []int            // of fields
	rows    [][]record.Value // of the set that is gathered
	lines   []int            // of the file
	written int

	later   []int // fields that refer to the table itself by a constraint: they are written when all records are there
	waiting store.UpdateSet
	waits   []int                    // their lines
	numbers map[*catalog.Field]int64 // the highest number of each sequence that was seen or given
	draw    []int                    // fields that the file lacks and a sequence numbers
}

// loadFile loads one file and remembers that. It returns -1 when another node has done so meanwhile.
func (a *application) loadFile(ctx context.Context, snap *catalog.Snapshot, d Data, sum string) (int, error) {
	t, err := snap.Table(d.Table)
	if err != nil {
		return 0, err
	}
	r, err := d.Open()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", d.File, err)
	}
	defer r.Close()
	tx, err := a.st.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	w, err := tx.Insert(ctx, &store.InsertSet{
		Table: system("loaded"), Fields: []string{"name", "checksum", "at"},
		Rows: [][]record.Value{{text(d.File), text(sum), record.TimeValue(a.Now())}},
	})
	if err != nil {
		return 0, err
	}
	if firstFault(w) != nil {
		return -1, nil
	}
	s := &sheet{application: a, file: d.File, table: t, tx: tx, reader: csv.NewReader(r), numbers: map[*catalog.Field]int64{}}
	if err := s.header(snap); err != nil {
		return 0, err
	}
	if err := s.load(ctx); err != nil {
		return 0, err
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", d.File, err)
	}
	return s.written, nil
}

func (s *sheet) fault(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", s.file, line, fmt.Errorf(format, args...))
}

// csvFault is an error of the reader, which names its line itself.
func (s *sheet) csvFault(err error) error {
	if pe := (*csv.ParseError)(nil); errors.As(err, &pe) {
		return s.fault(pe.Line, "%w", pe.Err)
	}
	return fmt.Errorf("%s: %w", s.file, err)
}

// header decides what is written into each column.
func (s *sheet) header(snap *catalog.Snapshot) error {
	if !s.table.Writable() {
		return s.fault(1, "table %s is read-only or has no key: no records can be loaded", s.table.Name)
	}
	head, err := s.reader.Read()
	if errors.Is(err, io.EOF) {
		return s.fault(1, "the first line names the fields")
	} else if err != nil {
		return s.csvFault(err)
	}
	head = slices.Clone(head)
	s.reader.ReuseRecord = true
	head[0] = strings.TrimPrefix(head[0], "\ufeff") // as spreadsheets write it
	var faults []error
	for i, name := range head {
		f := s.table.Field(name)
		switch {
		case f == nil:
			faults = append(faults, s.fault(1, "table %s has no field %q", s.table.Name, name))
		case slices.Contains(head[:i], name):
			faults = append(faults, s.fault(1, "field %s stands in two columns", name))
		case f.Generated:
			faults = append(faults, s.fault(1, "field %s is computed by the database: it cannot be loaded", name))
		default:
			s.write(f, i, record.Value{})
		}
	}
	now := record.TimeValue(s.Now())
	for _, f := range s.table.Fields {
		v := record.Value{}
		switch {
		case slices.Contains(head, f.Name):
			continue
		case f.Audit:
			v = s.audit(f, now)
		case f.Sequence != nil:
			s.draw = append(s.draw, len(s.fields))
			s.write(f, -1, v)
			continue
		case f.Default == "=now()" && f.Type == record.TypeDateTime:
			v = now
		case f.Default == "=now()" && f.Type == record.TypeDate:
			v = text(now.Text()[:len("2006-01-02")])
		case f.Default != "" && !strings.HasPrefix(f.Default, "="):
			if v, err = record.Parse(f.Type, f.Default); err != nil {
				faults = append(faults, s.fault(1, "default of %s: %w", f.Name, err))
			}
		}
		key := slices.Contains(s.table.Key, f.Name)
		if v.IsNull() && !(key && s.table.Audit) {
			if key && !f.Identity {
				faults = append(faults, s.fault(1, "key field %s is missing", f.Name))
			}
			continue
		}
		s.write(f, -1, v)
	}
	for i, f := range s.fields {
		if slices.Contains(s.table.Key, f.Name) {
			s.keys = append(s.keys, i)
		}
		if f.ForeignKey && f.Reference != "" && !slices.Contains(s.table.Key, f.Name) {
			if ref, err := snap.Table(f.Reference); err == nil && ref.Root == s.table.Root {
				s.later = append(s.later, i)
				s.waiting.Fields = append(s.waiting.Fields, f.Name)
			}
		}
		if f.Type == record.TypePassword && s.Hash == nil {
			faults = append(faults, s.fault(1, "field %s holds passwords, and there is nothing to hash them with", f.Name))
		}
	}
	return errors.Join(faults...)
}

// write adds a field that is written: from a column of the file, or with one value for all records.
func (s *sheet) write(f *catalog.Field, column int, v record.Value) {
	s.fields, s.column, s.given = append(s.fields, f), append(s.column, column), append(s.given, v)
}

// audit is the value of an audit field for records whose file does not give it.
func (s *sheet) audit(f *catalog.Field, now record.Value) record.Value {
	switch f.Name {
	case catalog.ClassField:
		return text(s.table.Name)
	case "sys_created_on", "sys_updated_on":
		return now
	case "sys_created_by", "sys_updated_by":
		return text(loadedBy)
	case "sys_mod_count":
		return record.IntValue(0)
	}
	return record.Value{}
}

func (s *sheet) load(ctx context.Context) error {
	now := record.TimeValue(s.Now())
	for _, i := range s.draw {
		if err := s.begin(ctx, s.fields[i]); err != nil {
			return err
		}
	}
	for {
		cells, err := s.reader.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return s.csvFault(err)
		}
		line, _ := s.reader.FieldPos(0)
		row := slices.Clone(s.given)
		for i, f := range s.fields {
			if c := s.column[i]; c >= 0 {
				if row[i], err = s.value(f, cells[c]); err != nil {
					return s.fault(line, "%s: %w", f.Name, err)
				}
				if row[i].IsNull() && f.Audit {
					row[i] = s.audit(f, now)
				}
			}
			if row[i].IsNull() && s.table.Audit && f.Name == "sys_id" {
				row[i] = text(s.NewID())
			}
		}
		for _, i := range s.draw {
			f := s.fields[i]
			s.numbers[f]++
			row[i] = text(fmt.Sprintf("%s%0*d", f.Sequence.Prefix, f.Sequence.Digits, s.numbers[f]))
		}
		s.rows, s.lines = append(s.rows, row), append(s.lines, line)
		if len(s.rows) == setSize {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	if len(s.waiting.Keys) > 0 {
		s.waiting.Table = s.table
		if f, err := update(ctx, s.tx, &s.waiting); err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		} else if f != nil {
			return s.fault(s.waits[f.row], "%w", f.err)
		}
	}
	return s.sequences(ctx)
}

// value reads one cell.
func (s *sheet) value(f *catalog.Field, cell string) (record.Value, error) {
	v, err := record.Parse(f.Type, cell)
	if err != nil {
		return v, err
	}
	if f.MaxLength > 0 && len(cell) > f.MaxLength && utf8.RuneCountInString(cell) > f.MaxLength {
		return v, record.Errorf(record.Invalid, "", "the value is longer than %d characters", f.MaxLength)
	}
	if f.Name == s.table.ClassField && !v.IsNull() && !slices.Contains(s.table.Classes, v.S) {
		return v, record.Errorf(record.Invalid, "", "%.80q is neither %s nor a table that extends it", v.S, s.table.Name)
	}
	if f.Sequence != nil {
		// A number that another prefix made, or none, does not count.
		if n, err := strconv.ParseInt(strings.TrimPrefix(cell, f.Sequence.Prefix), 10, 64); err == nil && n > s.numbers[f] {
			s.numbers[f] = n
		}
	}
	return v, nil
}

// flush writes the set that is gathered.
func (s *sheet) flush(ctx context.Context) error {
	if len(s.rows) == 0 {
		return nil
	}
	if err := s.secrets(ctx); err != nil {
		return err
	}
	for r, row := range s.rows {
		if slices.ContainsFunc(s.later, func(i int) bool { return !row[i].IsNull() }) {
			key, values := make([]record.Value, len(s.keys)), make([]record.Value, len(s.later))
			for j, i := range s.keys {
				key[j] = row[i]
			}
			for j, i := range s.later {
				values[j], row[i] = row[i], record.Value{}
			}
			s.waiting.Keys, s.waiting.Rows = append(s.waiting.Keys, key), append(s.waiting.Rows, values)
			s.waits = append(s.waits, s.lines[r])
		}
	}
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.Name
	}
	w, err := s.tx.Insert(ctx, &store.InsertSet{Table: s.table, Fields: names, Rows: s.rows})
	if err != nil {
		return s.fault(s.lines[0], "this record or one of the %d after it: %w", len(s.rows)-1, err)
	}
	if f := firstFault(w); f != nil {
		return s.fault(s.lines[f.row], "%w", f.err)
	}
	s.written += len(s.rows)
	s.rows, s.lines = s.rows[:0], s.lines[:0]
	return nil
}

// secrets hashes the set's passwords, on all cores, into the system table "secret" and takes them out of the rows.
func (s *sheet) secrets(ctx context.Context) error {
	type job struct {
		row, field int
		hash       string
		err        error
	}
	var jobs []job
	for i, f := range s.fields {
		if f.Type != record.TypePassword {
			continue
		}
		for r := range s.rows {
			if !s.rows[r][i].Empty() {
				jobs = append(jobs, job{row: r, field: i})
			}
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if len(s.keys) != 1 {
		return s.fault(1, "passwords need a table whose key is one field")
	}
	var wg sync.WaitGroup
	next := make(chan *job)
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for j := range next {
				if j.err = ctx.Err(); j.err == nil {
					j.hash, j.err = s.Hash(s.rows[j.row][j.field].S)
				}
			}
		})
	}
	for i := range jobs {
		next <- &jobs[i]
	}
	close(next)
	wg.Wait()
	rows := make([][]record.Value, len(jobs))
	for i, j := range jobs {
		f := s.fields[j.field]
		if j.err != nil {
			return s.fault(s.lines[j.row], "%s: %w", f.Name, j.err)
		}
		rows[i] = []record.Value{
			text(f.Owner + "." + f.Name), text(s.rows[j.row][s.keys[0]].Text()), text(j.hash), record.IntValue(1), record.TimeValue(s.Now()),
		}
		s.rows[j.row][j.field] = record.Value{}
	}
	return insert(ctx, s.tx, system("secret"), []string{"owner", "key", "hash", "version", "changed"}, rows)
}

// begin finds where a sequence stands, and keeps others from drawing from it until the file is loaded.
func (s *sheet) begin(ctx context.Context, f *catalog.Field) error {
	next, err := s.raise(ctx, f.Sequence, f.Sequence.Start)
	s.numbers[f] = next - 1
	return err
}

// sequences moves each sequence beyond the highest number that the file holds. A sequence that would begin beyond it
// anyway is left alone.
func (s *sheet) sequences(ctx context.Context) error {
	for f, highest := range s.numbers {
		if next := highest + 1; next > f.Sequence.Start {
			if _, err := s.raise(ctx, f.Sequence, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// raise makes the next number of a sequence at least n, and returns it.
func (s *sheet) raise(ctx context.Context, q *catalog.Sequence, n int64) (int64, error) {
	table, key := system("sequence"), []record.Value{text(q.Name)}
	w, err := s.tx.Insert(ctx, &store.InsertSet{
		Table: table, Fields: []string{"name", "next"}, Rows: [][]record.Value{{key[0], record.IntValue(n)}},
	})
	if err != nil || firstFault(w) == nil {
		return n, err
	}
	rows, err := readAll(ctx, s.tx, catalog.System(), table, []string{"next"}, true, key)
	if err != nil {
		return n, err
	}
	if rows.Len() == 1 && rows.At(0)[0].N >= n {
		return rows.At(0)[0].N, nil
	}
	return n, cause(update(ctx, s.tx, &store.UpdateSet{
		Table: table, Keys: [][]record.Value{key}, Fields: []string{"next"}, Rows: [][]record.Value{{record.IntValue(n)}},
	}))
}
