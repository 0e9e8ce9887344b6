package catalog

import "time"

// SQLDef is what makes an endpoint a SQL endpoint: a handler of a template of a module (ORDS' words; protocol notes, sections 2 to 6),
// whose source is plain SQL.
type SQLDef struct {
	Schema      string        // alias of the schema, the first segment after /ords/
	Module      string        // name of the module, "" for none
	Base        string        // base path of the module, "" or "v1/"
	Pattern     string        // route pattern of the template: "departments/:id?"
	Priority    int           // of the template, 0 to 9; the highest wins when several patterns match
	Source      string        // one of the Source constants
	PageSize    *int          // rows of a page when the caller names no limit; 0: no paging; nil: the setting ords.page_size
	ETag        string        // ETagHash (default), ETagQuery, ETagNone
	TagQuery    string        // SQL, with ETagQuery
	TagLine     int           // of the file where it begins
	Params      []SQLParam    // parameters that are declared; further names of the SQL are bound from path and query
	Columns     []SQLColumn   // types of columns that are declared, because the database cannot say them
	Auth        []string      // ways to prove who is calling: basic, oauth, database, header; none: any but database
	Mimes       []string      // accepted content types of a body; none: any
	Nested      string        // "json" (default) or "rows": how CURSOR columns are read
	Timeout     time.Duration // of each statement; 0: the setting database.statement_timeout
	Store       string        // the one database that the SQL is for, "sqlite" or "postgres"; on the other one there is no such endpoint; "": both
	Unpublished bool          // answered as if it were not there
	Origins     []string      // of pages of other sites that may call
	Comment     string        // for descriptions of the API
	Text        string        // the SQL as it stands in the file
	Line        int           // of the file where Text begins, from 1

	// Compiled is what the database said when the project was applied; nil before, and of an endpoint for another database.
	Compiled *SQLCompiled
}

// The kinds of sources.
const (
	SourceCollection = "json/collection"        // a query, answered in pages
	SourceItem       = "json/item"              // a query of one row
	SourceQuery      = "json/query"             // a query, in pages of the old form
	SourceSingle     = "json/query;type=single" // a query of one row, without links
	SourceFeed       = "json/feed"              // the old feed, whose first column is the key
	SourceCSV        = "csv/query"              // a query, answered as CSV
	SourceMedia      = "resource/lob"           // a query of one row: content type, bytes
	SourceBlock      = "block"                  // statements in one transaction
)

// The kinds of entity tags.
const (
	ETagHash  = "HASH"
	ETagQuery = "QUERY"
	ETagNone  = "NONE"
)

// SQLParam is a declared parameter.
type SQLParam struct {
	Name   string // outside
	Bind   string // in the SQL
	Source string // URI, HEADER or RESPONSE
	Type   string // STRING, INT, LONG, DOUBLE, BOOLEAN, TIMESTAMP or RESULTSET
	Access string // IN, OUT or INOUT
}

// SQLColumn is a column of a query's rows, in the order of the query.
type SQLColumn struct {
	Name   string // of the member in answers
	Type   string // name of a record.Type; "" when each value says it itself (SQLite, computed columns)
	Native string // the database's own type, "" for the one that weir gives columns of Type
	JSON   bool   // holds JSON text that goes into the answer as it stands: a "{}name" alias, or CURSOR
	Made   bool   // its JSON is the database's own doing (CURSOR), and so is JSON
	Rel    string // a "$name" alias: it is no data but a link with this relation
}

// SQLCompiled is a SQL endpoint as its database runs it.
type SQLCompiled struct {
	Store      string // sqlite or postgres
	Binds      []SQLBind
	Statements []SQLStatement // one of a query, all of a block
	Tag        *SQLStatement  // the tag query
}

// SQLBind is one value that a call gives.
type SQLBind struct {
	Name   string // in the SQL, without the colon
	Type   string // name of a record.Type
	Native string
	Out    bool // a block assigns it
}

// SQLType is the type of a parameter.
type SQLType struct {
	Type   string // name of a record.Type; "" when each value says it itself
	Native string
}

// MaxRowsMark stands in compiled texts where the bound on the rows of a nested query goes. It is SQL as it stands.
const MaxRowsMark = "/*max_rows*/10000"

// SQLStatement is one statement.
type SQLStatement struct {
	SQL     string    // with parameters $1 … or ?1 …
	Params  []int     // by parameter: index into the binds
	Takes   []SQLType // by parameter: what the database takes there
	Columns []SQLColumn
	Line    int         // of the file where it begins
	Reads   bool        // it gives rows
	Bounded bool        // it has a LIMIT, OFFSET, FETCH or FOR of its own
	Into    []string    // of a block, by column: the bind that gets its value in the first row, "" for none; a single RESULTSET gets all rows
	Nested  []SQLNested // with Nested "rows": read for each row
}

// SQLNested is a nested query that is run once for each row of the statement around it.
type SQLNested struct {
	Column int   // of the statement around it: where the rows go
	Outer  []int // columns of the statement around it whose values follow the binds as parameters; they are not answered
	SQLStatement
}
