package store

// Routine is a function or procedure of a database.
type Routine struct {
	Schema, Name string
	Procedure    bool
	Args         []RoutineArg
	Returns      string // the database's own name of the type of a function's value, "" for a procedure
	Nothing      bool   // its value is none: void
	Rows         bool   // its value is rows: SETOF, TABLE or a row type
	Cursor       bool   // it gives or takes a cursor
}

// RoutineArg is an argument of a routine.
type RoutineArg struct {
	Name    string // "" if it has none
	Native  string // the database's own name of its type
	In, Out bool
	Default string // SQL of its default, "" for none
}
