package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/project"
	"weir/internal/record"
)

// traceCommand shows where the time of one request went, from the transaction log.
type traceCommand struct {
	ID    string `arg:"" optional:"" name:"txid" help:"What X-Transaction-ID of the answer says. Without one: the last request."`
	Last  bool   `help:"The last request that the log holds; --user and --url choose among them."`
	List  int    `help:"One line for each of the last N requests instead." placeholder:"N"`
	User  string `help:"Requests of this user only." placeholder:"NAME"`
	URL   string `name:"url" help:"Requests only whose address begins so." placeholder:"PREFIX"`
	Items int    `help:"How many items are shown below each statement; 0 shows all." default:"5" placeholder:"N"`

	Project string            `type:"existingdir" help:"Project folder whose weir.yaml says where the database is." placeholder:"DIR" group:"Settings"`
	Data    string            `help:"Folder of the SQLite database (weir-data)." placeholder:"DIR" group:"Settings"`
	DB      string            `name:"db" help:"Database: sqlite:PATH or postgres://user@host/database." placeholder:"URL" group:"Settings"`
	Set     map[string]string `help:"Any setting by name; may be repeated." placeholder:"NAME=VALUE" mapsep:"none" group:"Settings"`
	File    string            `name:"config" help:"Settings file to read instead of the project's weir.yaml." type:"existingfile" placeholder:"FILE" group:"Settings"`
}

// Help is the command's longer help.
func (traceCommand) Help() string {
	return `Reads the transaction log from the database, beside the server that writes it, and prints one request as a tree: its layers (times exclude each other), the database statements with what each of them did, and below them the items of a batch that shared them.

Examples:
  weir trace 3f2a9c1b77d0
  weir trace --last --user ann
  weir trace --list 20 --url /sap/opu/odata/
  weir trace --last --db postgres://weir@127.0.0.1/weir`
}

// Run prints the tree, or the list.
func (c *traceCommand) Run(ctx context.Context, s streams) error {
	if c.ID != "" && (c.Last || c.List > 0) || c.Last && c.List > 0 {
		return usageError{errors.New("either an id, --last or --list")}
	}
	from := place{general: general{Project: c.Project, Set: c.Set, File: c.File}, Data: c.Data, DB: c.DB}
	e, err := from.load()
	if err != nil {
		return err
	}
	db, err := openStore(ctx, &e.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	snap, err := project.Load(ctx, db)
	if err != nil {
		return err
	}
	run, err := engine.New(db, engine.Options{})
	if err != nil {
		return err
	}
	defer run.Close()
	log := &txReader{engine: run, snap: snap}
	if log.table, err = snap.Table(e.Transactions.Table); err != nil {
		return fmt.Errorf("the project has no table %q, where transactions would be logged; see transactions.table", e.Transactions.Table)
	}
	if c.List > 0 {
		return c.list(ctx, log, s.out)
	}
	var root txEntry
	// The log is written behind, so what has just been answered may not be there yet.
	for until := time.Now().Add(2 * e.Transactions.Flush); ; {
		found, err := log.requests(ctx, c, 1)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			root = found[0]
			break
		}
		if c.ID == "" {
			return errors.New("the transaction log holds no such request")
		}
		if time.Now().After(until) {
			return fmt.Errorf("the transaction log holds no request %.40q", c.ID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	items, err := log.items(ctx, root["sys_id"])
	if err != nil {
		return err
	}
	return printTree(s.out, root, items, c.Items)
}

func (c *traceCommand) list(ctx context.Context, log *txReader, w io.Writer) error {
	found, err := log.requests(ctx, c, c.List)
	if err != nil {
		return err
	}
	for _, r := range found {
		if _, err := fmt.Fprintf(w, "%s  %s  %3s  %9s ms  %-12s %-6s %s\n", r["link"], moment(r["sys_created_on"]), r["http_status"], millis(r["response_time"]), r["sys_created_by"], r["method"], r["url"]); err != nil {
			return err
		}
	}
	return nil
}

// txEntry is one row of the transaction log, by field.
type txEntry map[string]string

// number is a field as a number, 0 if it is empty.
func (t txEntry) number(field string) float64 {
	f, _ := strconv.ParseFloat(t[field], 64) // the log's own figures
	return f
}

// txReader reads the transaction log as weir itself.
type txReader struct {
	engine *engine.Engine
	snap   *catalog.Snapshot
	table  *catalog.Table
}

var txShown = []string{
	"sys_id", "sys_created_on", "sys_created_by", "link", "item_id", "type", "method", "url", "transaction_pattern", "http_status", "input_length",
	"output_length", "format", "rows", "items", "response_time", "hub_time", "queue_time", "be_time", "app_time", "network_time", "sql_time",
	"sql_count", "statement", "statement_operations", "statements",
}

func (l *txReader) read(ctx context.Context, q *record.Query) ([]txEntry, error) {
	var fields []string
	for _, f := range txShown {
		if l.table.Field(f) != nil { // a project may keep fewer
			fields = append(fields, f)
		}
	}
	out := l.engine.Execute(ctx, l.snap, &record.Unit{Version: l.snap.Version, Actors: []record.Actor{{Name: "system", System: true}}, Ops: []record.Op{{
		Verb: record.List, Table: l.table.Name, Query: q, Return: fields,
	}}})
	if out[0].Err != nil {
		return nil, fmt.Errorf("read the transaction log: %w", out[0].Err)
	}
	var list []txEntry
	for i := range out[0].Rows.Len() {
		entry := make(txEntry, len(fields))
		for k, v := range out[0].Rows.At(i) {
			entry[fields[k]] = v.Text()
		}
		list = append(list, entry)
	}
	return list, nil
}

// requests are the last n that c asks for, the latest first.
func (l *txReader) requests(ctx context.Context, c *traceCommand, n int) ([]txEntry, error) {
	is := func(field, value string) *record.Expr {
		return record.Compare(record.Eq, record.F(field), record.C(record.TextValue(value)))
	}
	where := record.Compare(record.Eq, record.F("parent"), record.C(record.Value{}))
	if c.ID != "" {
		where = record.AllOf(where, is("link", c.ID))
	}
	if c.User != "" {
		where = record.AllOf(where, is("sys_created_by", c.User))
	}
	if c.URL != "" {
		where = record.AllOf(where, &record.Expr{Op: record.StartsWith, Args: []*record.Expr{record.F("url"), record.C(record.TextValue(c.URL))}})
	}
	return l.read(ctx, &record.Query{Where: where, Sort: []record.Sort{{Path: "sys_created_on", Desc: true}, {Path: "sys_id", Desc: true}}, Limit: int64(n)})
}

// items are those of a batch, in the order in which they are logged.
func (l *txReader) items(ctx context.Context, parent string) ([]txEntry, error) {
	return l.read(ctx, &record.Query{
		Where: record.Compare(record.Eq, record.F("parent"), record.C(record.TextValue(parent))), Sort: []record.Sort{{Path: "sys_id"}}, Limit: -1,
	})
}

// txStatement is one entry of the field statements.
type txStatement struct {
	N           int
	Verb, Table string
	Ops, Rows   int
	Start, MS   float64
	More        int
}

// branch is one line of a tree with what hangs below it.
type branch struct {
	text  string
	below []*branch
}

func (b *branch) add(format string, args ...any) *branch {
	n := &branch{text: fmt.Sprintf(format, args...)}
	b.below = append(b.below, n)
	return n
}

func (b *branch) print(w io.Writer, indent string) {
	for i, n := range b.below {
		mark, next := "|- ", "|  "
		if i == len(b.below)-1 {
			mark, next = "`- ", "   "
		}
		fmt.Fprintf(w, "%s%s%s\n", indent, mark, n.text)
		n.print(w, indent+next)
	}
}

// printTree writes one request: a head, the layers, the statements with the items that shared them, and the items that used none.
func printTree(w io.Writer, root txEntry, items []txEntry, most int) error {
	tree := &branch{}
	total := root.number("response_time")
	layer := func(name, field string) *branch {
		ms := root.number(field)
		share := ""
		if total > 0 {
			share = fmt.Sprintf("%5.1f %%", 100*ms/total)
		}
		return tree.add("%-6s%10s ms %s", name, millis(root[field]), share)
	}
	layer("hub", "hub_time")
	layer("queue", "queue_time")
	if root.number("network_time") > 0 {
		layer("wire", "network_time")
	}
	layer("be", "be_time")
	app := layer("app", "app_time")
	app.text += fmt.Sprintf("  (sql %s ms, %s statements)", millis(root["sql_time"]), orZero(root["sql_count"]))

	var statements []txStatement
	if text := root["statements"]; text != "" {
		if err := json.Unmarshal([]byte(text), &statements); err != nil {
			return fmt.Errorf("statements of the request: %w", err)
		}
	}
	shared := map[string][]txEntry{} // by the first statement that an item was part of
	var rest []txEntry
	for _, it := range items {
		first, _, _ := strings.Cut(it["statement"], ",")
		if first == "" {
			rest = append(rest, it)
			continue
		}
		shared[first] = append(shared[first], it)
	}
	for _, st := range statements {
		if st.More > 0 {
			app.add("and %d more", st.More)
			continue
		}
		b := app.add("#%d %s %s: %d ops, %d rows, at %.3f ms, %.3f ms", st.N, st.Verb, st.Table, st.Ops, st.Rows, st.Start, st.MS)
		n := strconv.Itoa(st.N)
		addItems(b, shared[n], most)
		delete(shared, n)
	}
	for _, list := range shared { // of statements that the log has no room for
		rest = append(rest, list...)
	}
	if len(rest) > 0 {
		slices.SortStableFunc(rest, func(a, b txEntry) int { return strings.Compare(a["sys_id"], b["sys_id"]) })
		addItems(tree.add("items without a statement here"), rest, most)
	}

	_, err := fmt.Fprintf(w, "%s %s  %s  %s ms\n  %s  %s  %s  %s  %s\n  %s bytes in, %s bytes out, %s rows", root["method"], root["url"], root["http_status"], millis(root["response_time"]),
		root["link"], moment(root["sys_created_on"]), root["sys_created_by"], root["type"], root["transaction_pattern"],
		orZero(root["input_length"]), orZero(root["output_length"]), orZero(root["rows"]))
	if err != nil {
		return err
	}
	if root["format"] != "" {
		fmt.Fprintf(w, ", %s", root["format"])
	}
	if len(items) > 0 {
		fmt.Fprintf(w, ", %d items", len(items))
	}
	fmt.Fprintln(w)
	tree.print(w, "")
	return nil
}

func addItems(b *branch, items []txEntry, most int) {
	for i, it := range items {
		if most > 0 && i == most && len(items) > most+1 {
			sum := 0.0
			for _, it := range items[i:] {
				sum += it.number("sql_time")
			}
			b.add("and %d more, sql %.3f ms together", len(items)-i, sum)
			return
		}
		text := fmt.Sprintf("item %s: %s %s  %s  %s ms", it["item_id"], it["method"], it["url"], it["http_status"], millis(it["response_time"]))
		if sql := it.number("sql_time"); sql > 0 {
			text += fmt.Sprintf(", its share of sql %.3f ms", sql)
		}
		if _, also, ok := strings.Cut(it["statement"], ","); ok {
			text += ", also in #" + strings.ReplaceAll(also, ",", ", #")
		}
		b.add("%s", text)
	}
}

// millis is a time of the log with three decimals.
func millis(s string) string {
	f, _ := strconv.ParseFloat(s, 64)
	return strconv.FormatFloat(f, 'f', 3, 64)
}

// moment is a time of the log in milliseconds.
func moment(s string) string {
	if t, err := time.Parse("2006-01-02 15:04:05.999999", s); err == nil {
		return t.Format("2006-01-02 15:04:05.000")
	}
	return s
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}
