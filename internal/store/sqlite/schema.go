package sqlite

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// spelling is how SQLite spells definitions. Decimals are kept as text, digit by digit; times are text of one width, so
// that they sort.
var spelling = &store.Spelling{
	Types: map[record.Type]string{
		record.TypeString: "TEXT", record.TypeInteger: "INTEGER", record.TypeDecimal: "TEXT", record.TypeFloat: "REAL",
		record.TypeBoolean: "INTEGER", record.TypeDateTime: "TEXT", record.TypeDate: "TEXT", record.TypeDuration: "INTEGER",
		record.TypeReference: "TEXT", record.TypeList: "TEXT", record.TypeJournal: "TEXT", record.TypePassword: "TEXT",
		record.TypeJSON: "TEXT", record.TypeGUID: "TEXT", record.TypeBytes: "BLOB",
	},
	Table:         tableName,
	InlineForeign: true,
	Retype:        retype,
}

// tableName is the quoted name of a stored table. SQLite has no schemas: weir's own tables carry a prefix.
func tableName(schema, name string) string { return store.Quote(bareTable(schema, name)) }

func bareTable(schema, name string) string {
	if schema == catalog.SystemSchema {
		return schema + "_" + name
	}
	return name
}

// retype changes the type of a column by way of a new one, since SQLite has no statement for it.
func retype(r *store.Relation, c store.Column) []string {
	table, tmp := tableName(r.Schema, r.Name), store.Quote(c.Name+"__new")
	var drop, create []string
	list := func(indexes []store.Index, unique string) {
		for _, x := range indexes {
			for _, name := range x.Columns {
				if name == c.Name {
					columns := make([]string, len(x.Columns))
					for i := range columns {
						columns[i] = store.Quote(x.Columns[i])
					}
					drop = append(drop, "DROP INDEX IF EXISTS "+store.Quote(x.Name))
					create = append(create, fmt.Sprintf("CREATE %sINDEX %s ON %s (%s)", unique, store.Quote(x.Name), table, strings.Join(columns, ", ")))
				}
			}
		}
	}
	list(r.Uniques, "UNIQUE ")
	list(r.Indexes, "")
	sql := append(drop,
		fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", table, tmp, c.Type),
		fmt.Sprintf("UPDATE %s SET %s = CAST(%s AS %s)", table, tmp, store.Quote(c.Name), c.Type),
		fmt.Sprintf("ALTER TABLE %s DROP COLUMN %s", table, store.Quote(c.Name)),
		fmt.Sprintf("ALTER TABLE %s RENAME COLUMN %s TO %s", table, tmp, store.Quote(c.Name)))
	return append(sql, create...)
}

// planSchema compares the tables that s needs with what the database behind conn has.
func planSchema(conn *sqlite3.Conn, s *catalog.Snapshot) (*store.Plan, error) {
	return spelling.Plan(inspector{conn}, s)
}

// applySchema carries out changes in one transaction.
func applySchema(conn *sqlite3.Conn, changes []store.Change) (err error) {
	tx, err := conn.BeginImmediate()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	for _, c := range changes {
		if len(c.SQL) == 0 {
			return record.Errorf(record.Invalid, c.Table, "%s: cannot be done by weir: %s", c.What, c.Reason)
		}
		for _, sql := range c.SQL {
			if err := conn.Exec(sql); err != nil {
				return record.Errorf(record.Invalid, c.Table, "%s: refused by the database", c.What).Because(fmt.Errorf("%s: %w", sql, err))
			}
		}
	}
	return nil
}

// introspect describes all tables and views that are not weir's own.
func introspect(conn *sqlite3.Conn) ([]catalog.TableDef, error) {
	in := inspector{conn}
	var names []string
	err := in.each(`SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
		AND substr(name, 1, 5) <> 'weir_' ORDER BY name`, func(s *sqlite3.Stmt) error {
		names = append(names, s.ColumnText(0))
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []*store.Relation
	for _, name := range names {
		r, err := in.Relation("", name)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return store.Describe(list, fieldType), nil
}

var sized = regexp.MustCompile(`^\s*([A-Za-z ]+?)\s*(?:\(\s*(\d+)(?:\s*,\s*\d+)?\s*\))?\s*$`)

// fieldType reads a declared type as SQLite does, by what the name contains, after the names that mean more than that.
func fieldType(c *store.Column) (record.Type, bool) {
	name := strings.ToUpper(c.Type)
	if m := sized.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	has := func(part string) bool { return strings.Contains(name, part) }
	switch {
	case has("BOOL"):
		return record.TypeBoolean, true
	case has("INT"):
		return record.TypeInteger, true
	case has("CHAR"), has("CLOB"), has("TEXT"):
		return record.TypeString, true
	case has("JSON"):
		return record.TypeJSON, true
	case has("DATETIME"), has("TIMESTAMP"):
		return record.TypeDateTime, true
	case name == "DATE":
		return record.TypeDate, true
	case has("BLOB"):
		return record.TypeBytes, true
	case has("REAL"), has("FLOA"), has("DOUB"):
		return record.TypeFloat, true
	case has("DEC"), has("NUM"):
		return record.TypeDecimal, true
	}
	return record.TypeString, name == ""
}

// inspector answers what planning asks, on one connection.
type inspector struct{ conn *sqlite3.Conn }

func (in inspector) each(sql string, row func(*sqlite3.Stmt) error, args ...string) error {
	stmt, _, err := in.conn.Prepare(sql)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer stmt.Close()
	for i, a := range args {
		if err := stmt.BindText(i+1, a); err != nil {
			return err
		}
	}
	for stmt.Step() {
		if err := row(stmt); err != nil {
			return err
		}
	}
	return stmt.Err()
}

// Holds reports whether a query returns a row.
func (in inspector) Holds(query string) (bool, error) {
	found := false
	err := in.each(query, func(*sqlite3.Stmt) error { found = true; return nil })
	return found, err
}

// Relation describes a stored table or view, nil if there is none.
func (in inspector) Relation(schema, name string) (*store.Relation, error) {
	bare := bareTable(schema, name)
	var r *store.Relation
	err := in.each(`SELECT type, coalesce(sql, '') FROM sqlite_schema WHERE name = ? AND type IN ('table', 'view')`, func(s *sqlite3.Stmt) error {
		r = &store.Relation{Schema: schema, Name: name, View: s.ColumnText(0) == "view"}
		r.Checks = len(checkWord.FindAllString(s.ColumnText(1), -1))
		return nil
	}, bare)
	if err != nil || r == nil {
		return nil, err
	}
	keys := map[int]string{}
	err = in.each(`SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?)`, func(s *sqlite3.Stmt) error {
		c := store.Column{
			Name: s.ColumnText(0), Type: s.ColumnText(1), NotNull: s.ColumnBool(2), Default: s.ColumnBool(3),
			Generated: s.ColumnInt(5) >= 2,
		}
		if s.ColumnInt(5) == 1 {
			return nil // of a virtual table
		}
		// Generated columns report their type with the words that made them.
		c.Type = strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(c.Type), "ALWAYS"), "GENERATED"))
		c.Base = c.Type
		if m := sized.FindStringSubmatch(c.Type); m != nil && strings.Contains(strings.ToUpper(m[1]), "CHAR") {
			c.Length, _ = strconv.Atoi(m[2])
		}
		if n := s.ColumnInt(4); n > 0 {
			keys[n] = c.Name
		}
		r.Columns = append(r.Columns, c)
		return nil
	}, bare)
	if err != nil {
		return nil, err
	}
	for i := 1; i <= len(keys); i++ {
		r.Key = append(r.Key, keys[i])
	}
	if len(r.Key) == 1 {
		// A single INTEGER PRIMARY KEY is the row id, numbered by the database.
		if c := r.Column(r.Key[0]); strings.EqualFold(c.Type, "INTEGER") {
			c.Identity = true
		}
	}
	if err := in.indexes(r, bare); err != nil {
		return nil, err
	}
	return r, in.foreign(r, bare)
}

var checkWord = regexp.MustCompile(`(?i)\bCHECK\s*\(`)

func (in inspector) indexes(r *store.Relation, bare string) error {
	type listed struct {
		name           string
		unique, origin string
	}
	var list []listed
	err := in.each(`SELECT name, "unique", origin FROM pragma_index_list(?) WHERE partial = 0 AND origin <> 'pk' ORDER BY name`, func(s *sqlite3.Stmt) error {
		list = append(list, listed{s.ColumnText(0), s.ColumnText(1), s.ColumnText(2)})
		return nil
	}, bare)
	if err != nil {
		return err
	}
	for _, x := range list {
		index, plain := store.Index{Name: x.name}, true
		err := in.each(`SELECT coalesce(name, '') FROM pragma_index_info(?) ORDER BY seqno`, func(s *sqlite3.Stmt) error {
			plain = plain && s.ColumnText(0) != ""
			index.Columns = append(index.Columns, s.ColumnText(0))
			return nil
		}, x.name)
		switch {
		case err != nil:
			return err
		case !plain: // over expressions
		case x.unique == "1":
			r.Uniques = append(r.Uniques, index)
		default:
			r.Indexes = append(r.Indexes, index)
		}
	}
	return nil
}

func (in inspector) foreign(r *store.Relation, bare string) error {
	parts := map[int]int{}
	var ids []int
	var list []store.ForeignKey
	err := in.each(`SELECT id, "table", "from", coalesce("to", '') FROM pragma_foreign_key_list(?) ORDER BY id, seq`, func(s *sqlite3.Stmt) error {
		fk := store.ForeignKey{Column: s.ColumnText(2), Table: s.ColumnText(1), Key: s.ColumnText(3)}
		if r.Schema == catalog.SystemSchema {
			fk.Schema, fk.Table = r.Schema, strings.TrimPrefix(fk.Table, r.Schema+"_")
		}
		parts[s.ColumnInt(0)]++
		ids, list = append(ids, s.ColumnInt(0)), append(list, fk)
		return nil
	}, bare)
	if err != nil {
		return err
	}
	for i, fk := range list {
		if parts[ids[i]] > 1 {
			continue // over several columns: left to the database
		}
		if fk.Key == "" { // the primary key of the other table
			err := in.each(`SELECT name FROM pragma_table_info(?) WHERE pk = 1`, func(s *sqlite3.Stmt) error {
				fk.Key = s.ColumnText(0)
				return nil
			}, bareTable(fk.Schema, fk.Table))
			if err != nil {
				return err
			}
		}
		r.Foreign = append(r.Foreign, fk)
	}
	return nil
}
