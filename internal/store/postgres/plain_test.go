package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/storetest"
)

// do runs SQL as weir's login.
func do(t testing.TB, s *Store, sql string, args ...any) {
	t.Helper()
	if err := s.with(t.Context(), func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), sql, args...)
		return err
	}); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// get runs an endpoint's statement and returns the texts of its rows' values.
func get(t testing.TB, s *Store, o store.SQLOptions, sql string, args ...record.Value) ([]string, error) {
	t.Helper()
	rows, err := s.Select(t.Context(), &store.Statement{SQL: sql}, args, o)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		for _, v := range row {
			list = append(list, strings.Clone(v.Text()))
		}
	}
	return list, rows.Err()
}

func one(t testing.TB, s *Store, o store.SQLOptions, sql string, args ...record.Value) string {
	t.Helper()
	list, err := get(t, s, o, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return strings.Join(list, "|")
}

func TestPlain_ReadsColumnsOfAllTypes(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	for _, c := range []struct {
		sql  string
		typ  record.Type
		want record.Value
	}{
		{"1::int2", record.TypeInteger, record.IntValue(1)},
		{"-1::int4", record.TypeInteger, record.IntValue(-1)},
		{"9223372036854775807", record.TypeInteger, record.IntValue(9223372036854775807)},
		{"1.50::numeric", record.TypeDecimal, record.TextValue("1.50")},
		{"'NaN'::numeric", record.TypeDecimal, record.TextValue("NaN")},
		{"0.1::float4::float8", record.TypeFloat, record.NumValue(float64(float32(0.1)))},
		{"2.5::float8", record.TypeFloat, record.NumValue(2.5)},
		{"true", record.TypeBoolean, record.BoolValue(true)},
		{"'2026-01-02 03:04:05.5+02'::timestamptz", record.TypeDateTime, record.TimeValue(time.Date(2026, 1, 2, 1, 4, 5, 5e8, time.UTC))},
		{"'2026-01-02 03:04:05'::timestamp", record.TypeDateTime, record.TimeValue(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		{"'2026-01-02'::date", record.TypeDate, record.TextValue("2026-01-02")},
		{"'03:04:05'::time", record.TypeString, record.TextValue("03:04:05")},
		{"'{\"a\": 1}'::json", record.TypeJSON, record.TextValue(`{"a": 1}`)},
		{"'{\"a\":1}'::jsonb", record.TypeJSON, record.TextValue(`{"a": 1}`)},
		{"'00000000-0000-0000-0000-000000000001'::uuid", record.TypeString, record.TextValue("00000000-0000-0000-0000-000000000001")},
		{"'x'::varchar(3)", record.TypeString, record.TextValue("x")},
		{"'x'::char(3)", record.TypeString, record.TextValue("x  ")},
		{`'\x00ff'::bytea`, record.TypeBytes, record.TextValue("\x00\xff")},
		{"ARRAY[1, NULL]", record.TypeString, record.TextValue("{1,NULL}")},
		{"ROW(1, 'a b')", record.TypeString, record.TextValue(`(1,"a b")`)},
		{"'10.0.0.1'::inet", record.TypeString, record.TextValue("10.0.0.1")},
		{"interval '1 day 2 hours'", record.TypeString, record.TextValue("1 day 02:00:00")},
		{"NULL", record.TypeString, record.Value{}},
		{"''", record.TypeString, record.TextValue("")},
	} {
		rows, err := s.Select(t.Context(), &store.Statement{SQL: "SELECT " + c.sql + " AS x"}, nil, store.SQLOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
			continue
		}
		row, _ := rows.Next()
		if rows.Types[0] != c.typ || rows.Fields[0] != "x" || row[0] != c.want {
			t.Errorf("%s: %s %+v, want %s %+v", c.sql, rows.Types[0], row[0], c.typ, c.want)
		}
		rows.Close()
		d, err := s.Describe(t.Context(), "SELECT "+c.sql+" AS x", nil)
		if err != nil || d.Columns[0].Type != c.typ {
			t.Errorf("%s: described as %+v, %v", c.sql, d, err)
		}
	}
}

func TestPlain_TakesValuesOfAnyForm(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	moment := record.TimeValue(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, c := range []struct {
		typ  string
		give record.Value
		want string
	}{
		{"int2", record.TextValue(" 12 "), "12"},
		{"int4", record.IntValue(7), "7"},
		{"int4", record.NumValue(1e6), "1000000"},
		{"int8", record.BoolValue(true), "1"},
		{"int8", record.TextValue(""), ""},
		{"numeric", record.NumValue(0.1), "0.1"},
		{"numeric", record.TextValue("1e3"), "1000"},
		{"float8", record.IntValue(3), "3"},
		{"bool", record.TextValue("yes"), "true"},
		{"bool", record.IntValue(1), "true"},
		{"text", record.IntValue(5), "5"},
		{"text", record.BoolValue(true), "true"},
		{"text", moment, "2026-01-02 03:04:05"},
		{"text", record.TextValue(""), ""},
		{"date", moment, "2026-01-02"},
		{"date", record.TextValue("2026-01-02T03:04:05Z"), "2026-01-02"},
		{"timestamptz", record.TextValue("2026-01-02T03:04:05+01:00"), "2026-01-02 02:04:05"},
		{"timestamp", moment, "2026-01-02 03:04:05"},
		{"uuid", record.TextValue("00000000-0000-0000-0000-00000000000A"), "00000000-0000-0000-0000-00000000000a"},
		{"jsonb", record.TextValue(`{"a":[1]}`), `{"a": [1]}`},
		{"int4[]", record.TextValue("{1,2}"), "{1,2}"},
		{"bytea", record.TextValue("\x00\xff"), "\x00\xff"},
	} {
		if got := one(t, s, store.SQLOptions{}, "SELECT $1::"+c.typ+" AS x", c.give); got != c.want {
			t.Errorf("%+v for %s came back as %q, want %q", c.give, c.typ, got, c.want)
		}
	}
	for typ, v := range map[string]string{"int4": "4e9", "int2": "seven", "date": "2026-02-30", "uuid": "u", "jsonb": "{", "bool": "perhaps", "int4[]": "{", "inet": "x"} {
		_, err := get(t, s, store.SQLOptions{}, "SELECT 1, $1::text, $2::"+typ, record.TextValue("a"), record.TextValue(v))
		e := record.AsError(err)
		if e.Kind != record.Invalid || e.Field != "$2" {
			t.Errorf("%q for %s: %v of %q, want an Invalid of $2", v, typ, e, e.Field)
		}
	}
}

func TestPlain_NeverRunsAsASuperuser(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	do(t, s, `CREATE TABLE item (id int PRIMARY KEY); INSERT INTO item VALUES (1);
		CREATE VIEW inner_view AS SELECT * FROM weir.sequence; CREATE VIEW outer_view AS SELECT name FROM inner_view;
		CREATE FUNCTION peek() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM weir.sequence); END $$;
		CREATE SCHEMA other; CREATE TABLE other.thing (id serial, n int)`)
	as := func(what, sql string) {
		t.Helper()
		if got := one(t, s, store.SQLOptions{}, sql); got != Role+"|off" {
			t.Errorf("%s it runs as %s", what, got)
		}
	}
	who := "SELECT current_user, current_setting('is_superuser')"
	as("at first", who)
	as("again", who)
	do(t, s, "CREATE TABLE later (id int)")                                            // ours has the login's rights on the same connection
	if got := one(t, s, store.SQLOptions{}, "SELECT count(*) FROM item"); got != "1" { // and was not granted to anybody before
		t.Errorf("a table that was there: %s", got)
	}
	// A statement that failed leaves no doubt about the session.
	_, _ = get(t, s, store.SQLOptions{}, "SELECT 1/0")
	as("after a failure", who)

	tx, err := s.BeginPlain(t.Context(), store.SQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := tx.Run(t.Context(), &store.Statement{SQL: "SELECT current_user"}, nil)
	if err != nil || rows.At(0)[0].Text() != Role {
		t.Errorf("in a transaction: %v, %v", rows, err)
	}
	if _, _, err := tx.Run(t.Context(), &store.Statement{SQL: "INSERT INTO other.thing (n) VALUES (1)"}, nil); err != nil {
		t.Errorf("a table with a sequence: %v", err)
	}
	tx.Rollback()
	as("after a rollback", who)

	s.role.granted = time.Time{} // the pause is over
	as("a table that came later", "SELECT current_user, current_setting('is_superuser') FROM later RIGHT JOIN (SELECT 1) x ON true")

	for _, sql := range []string{
		"SELECT * FROM weir.sequence", "SELECT * FROM outer_view", "SELECT pg_read_file('/etc/passwd')",
		"SELECT set_config('role', 'none', false)", "SELECT Set_Config ('role', 'none', false)", "SELECT rolpassword FROM pg_authid",
	} {
		var fault *store.SQLError
		if _, err := s.Describe(t.Context(), sql, nil); !errors.As(err, &fault) && !strings.Contains(sql, "pg_read_file") {
			t.Errorf("%s: %v", sql, err)
		}
		if strings.Contains(strings.ToLower(sql), "set_config") || strings.Contains(sql, "outer_view") {
			continue
		}
		if list, err := get(t, s, store.SQLOptions{}, sql); record.KindOf(err) != record.Rejected || !errors.As(err, &fault) || fault.Code != "42501" {
			t.Errorf("%s: %q, %v", sql, list, err)
		}
	}
	if _, err := get(t, s, store.SQLOptions{}, "SELECT peek()"); record.KindOf(err) != record.Rejected {
		t.Errorf("a function that peeks: %v", err)
	}
}

func TestPlain_OfAnOrdinaryLoginTouchesNothingOfWeir(t *testing.T) {
	name := roleFor(t)
	if name == "" {
		return
	}
	admin := open(t, Options{})
	do(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'any'")
	do(t, admin, "GRANT CREATE ON DATABASE "+store.Quote(admin.config(1, 0, nil).ConnConfig.Database)+" TO "+name)
	do(t, admin, "DROP SCHEMA weir CASCADE; GRANT ALL ON SCHEMA public TO "+name)
	u, err := url.Parse(admin.opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, "any")
	s := open(t, Options{URL: u.String()})
	do(t, s, "CREATE TABLE item (id int); INSERT INTO item VALUES (1); CREATE VIEW v AS SELECT name FROM weir.sequence")
	if got := one(t, s, store.SQLOptions{}, "SELECT id, current_user FROM item"); got != "1|"+name {
		t.Errorf("it runs as %s", got)
	}
	if _, err := s.Describe(t.Context(), "SELECT id FROM item", nil); err != nil {
		t.Error(err)
	}
	for _, sql := range []string{"SELECT * FROM weir.sequence", "SELECT 1 FROM item, v"} {
		var fault *store.SQLError
		if _, err := s.Describe(t.Context(), sql, nil); !errors.As(err, &fault) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// roleFor is the name of a role for one test, "" without a server. The role goes with the test, after its databases.
func roleFor(t *testing.T) string {
	t.Helper()
	server := os.Getenv(storetest.PostgresVariable)
	if server == "" {
		storetest.Postgres(t) // says whether that is a fault
		return ""
	}
	b := make([]byte, 6)
	rand.Read(b)
	name := "weir_test_" + hex.EncodeToString(b)
	t.Cleanup(func() {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "DROP ROLE IF EXISTS "+name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// TestPlain_SharesItsConnectionWithOurs has one connection serve both by turns, ours after all that theirs can do to it.
func TestPlain_SharesItsConnectionWithOurs(t *testing.T) {
	s := open(t, Options{Max: 1, Min: 1, RequestIDs: true})
	if s == nil {
		return
	}
	own, err := catalog.System().Table("sequence")
	if err != nil {
		t.Fatal(err)
	}
	ours := func(after string) {
		t.Helper()
		res, err := s.Query(t.Context(), &store.Read{Snapshot: catalog.System(), Table: own, Fields: []string{"name"}})
		if err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
		if err := res.Materialise(0); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
	}
	o := store.SQLOptions{ID: "x", Timeout: time.Second}
	state := "SELECT current_user, current_setting('statement_timeout'), current_setting('application_name')"
	theirs := func(o store.SQLOptions, want string) {
		t.Helper()
		if got := one(t, s, o, state); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	theirs(o, Role+"|1s|weir x")
	ours("a query")
	theirs(store.SQLOptions{}, Role+"|30s|weir")
	_, _ = get(t, s, o, "SELECT 1/0")
	ours("a failure")
	for _, end := range []func(store.Tx){func(tx store.Tx) { tx.Rollback() }, func(tx store.Tx) { _ = tx.Commit(t.Context()) }} {
		for _, sql := range []string{state, "SELECT 1/0", "SELECT nothing"} {
			tx, err := s.BeginPlain(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _ = tx.Run(t.Context(), &store.Statement{SQL: sql}, nil)
			end(tx)
			tx.Rollback()
			ours("a transaction of " + sql)
			theirs(o, Role+"|1s|weir x")
			mustTx := func() {
				tx, err := s.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback()
				if _, err := tx.Query(t.Context(), &store.Read{Snapshot: catalog.System(), Table: own, Fields: []string{"name"}}); err != nil {
					t.Fatal(err)
				}
			}
			mustTx() // rolled back, its settings too
			theirs(o, Role+"|1s|weir x")
		}
	}
}

func TestPlain_EndsInTheDatabaseToo(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	running := func() bool {
		var n int // asked as weir's login: others do not see what it runs
		if err := s.with(t.Context(), func(c *pgx.Conn) error {
			return c.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
				WHERE state = 'active' AND query LIKE '%pg_sleep(61)%' AND query NOT LIKE '%pg_stat%' AND datname = current_database()`).Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n > 0
	}
	gone := func(what string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); running(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%s it still runs", what)
				return
			}
		}
	}
	sleep := &store.Statement{SQL: "SELECT pg_sleep(61)"}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.Select(ctx, sleep, nil, store.SQLOptions{})
		failed <- err
	}()
	for !running() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-failed; record.KindOf(err) != record.Canceled {
		t.Error(err)
	}
	gone("canceled,")
	if _, err := s.Select(t.Context(), sleep, nil, store.SQLOptions{Timeout: 50 * time.Millisecond}); record.KindOf(err) != record.Timeout {
		t.Error(err)
	}
	gone("timed out,")
	// Longer than the store's own is allowed as well.
	short := open(t, Options{Statement: 100 * time.Millisecond})
	if _, err := get(t, short, store.SQLOptions{Timeout: 10 * time.Second}, "SELECT pg_sleep(0.3)"); err != nil {
		t.Error(err)
	}
	if _, err := get(t, short, store.SQLOptions{}, "SELECT pg_sleep(10)"); record.KindOf(err) != record.Timeout {
		t.Error(err)
	}
}

func TestPlain_NamesTheRequestInTheDatabase(t *testing.T) {
	s := open(t, Options{RequestIDs: true, Max: 1, Min: 1})
	if s == nil {
		return
	}
	name := func(id string) string {
		return one(t, s, store.SQLOptions{ID: id}, "SELECT current_setting('application_name')")
	}
	if a, b, c := name("r-1"), name("it's"), name(""); a != "weir r-1" || b != "weir it's" || c != "weir" {
		t.Errorf("%q, %q, %q", a, b, c)
	}
	if got := one(t, s, store.SQLOptions{}, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT current_setting(%'"); got != "1" {
		t.Errorf("the statement was prepared %s times", got)
	}
}

func TestPlain_LogsInForACall(t *testing.T) {
	name := roleFor(t)
	if name == "" {
		return
	}
	admin := open(t, Options{TrustLogins: true, Logins: 1, Wait: 50 * time.Millisecond})
	do(t, admin, "CREATE ROLE "+name+" LOGIN PASSWORD 'any'; CREATE TABLE open (id int); CREATE TABLE shut (id int); GRANT SELECT ON open TO "+name)
	o := store.SQLOptions{Login: &record.Login{User: name, Password: "any"}}
	if got := one(t, admin, o, "SELECT current_user, session_user, count(*) FROM open"); got != name+"|"+name+"|0" {
		t.Errorf("it runs as %s", got)
	}
	if _, err := get(t, admin, o, "SELECT * FROM shut"); record.KindOf(err) != record.Forbidden {
		t.Errorf("without the right: %v", err)
	}
	tx, err := admin.BeginPlain(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if rows, _, err := tx.Run(t.Context(), &store.Statement{SQL: "SELECT current_user"}, nil); err != nil || rows.At(0)[0].Text() != name {
		t.Errorf("in a transaction: %v, %v", rows, err)
	}
	if _, err := get(t, admin, o, "SELECT 1"); record.KindOf(err) != record.Unavailable || !strings.Contains(err.Error(), "1 of 1 in use") {
		t.Errorf("a second session: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	if got := one(t, admin, store.SQLOptions{}, "SELECT count(*) FROM pg_stat_activity WHERE usename = '"+name+"'"); got != "0" {
		for end := time.Now().Add(5 * time.Second); got != "0" && time.Now().Before(end); {
			got = one(t, admin, store.SQLOptions{}, "SELECT count(*) FROM pg_stat_activity WHERE usename = '"+name+"'")
		}
		if got != "0" {
			t.Errorf("%s sessions are left", got)
		}
	}
	own := admin.config(1, 0, nil).ConnConfig.User
	for _, l := range []record.Login{{User: own, Password: "x"}, {User: "", Password: "x"}, {User: name}, {User: "no\x00body", Password: "x"}, {User: "nobody_" + name, Password: "x"}} {
		_, err := get(t, admin, store.SQLOptions{Login: &l}, "SELECT 1")
		want := record.Unauthenticated
		if l.User == own {
			want = record.Forbidden
		}
		if record.KindOf(err) != want {
			t.Errorf("%q: %v, want %s", l.User, err, want)
		}
	}
	if st := admin.logins.stats(); st.InUse != 0 {
		t.Errorf("%+v", st)
	}
}

// answering is a server that lets speak say what follows the startup message of one client, and its URL.
func answering(t *testing.T, speak func(*pgproto3.Backend)) (url string, l net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		b := pgproto3.NewBackend(conn, conn)
		if _, err := b.ReceiveStartupMessage(); err == nil {
			speak(b)
			b.Flush()
		}
	}()
	return "postgres://weir@" + l.Addr().String() + "/x?sslmode=disable", l
}

func TestLogin_WrongPassword(t *testing.T) {
	got := make(chan string, 1)
	url, l := answering(t, func(b *pgproto3.Backend) {
		b.Send(&pgproto3.AuthenticationCleartextPassword{})
		b.SetAuthType(pgproto3.AuthTypeCleartextPassword)
		b.Flush()
		m, err := b.Receive()
		if p, ok := m.(*pgproto3.PasswordMessage); ok && err == nil {
			got <- p.Password
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "password authentication failed"})
	})
	s := &Store{opts: Options{URL: url}}
	s.opts.Defaults()
	s.logins.resize(1, time.Second)
	login := &record.Login{User: "u", Password: "wrong"}
	if _, err := s.logIn(t.Context(), login); record.KindOf(err) != record.Unauthenticated {
		t.Errorf("a wrong password: %v", err)
	}
	if diff := cmp.Diff("wrong", <-got); diff != "" {
		t.Error(diff)
	}
	l.Close()
	if _, err := s.logIn(t.Context(), login); record.KindOf(err) != record.Unavailable {
		t.Errorf("no server: %v", err)
	}
	if st := s.logins.stats(); st.InUse != 0 {
		t.Errorf("%+v", st)
	}
}

func TestLogin_NoPasswordAskedFor(t *testing.T) {
	url, _ := answering(t, func(b *pgproto3.Backend) {
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	})
	s := &Store{opts: Options{URL: url}}
	s.opts.Defaults()
	s.logins.resize(1, time.Second)
	_, err := s.logIn(t.Context(), &record.Login{User: "u", Password: "any"})
	if record.KindOf(err) != record.Unauthenticated || !strings.Contains(err.Error(), "logins.trust") {
		t.Error(err)
	}
	if st := s.logins.stats(); st.InUse != 0 {
		t.Errorf("%+v", st)
	}
}

func TestPlain_GoesOnWhenItsConnectionsAreCut(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	sel := func() {
		t.Helper()
		if got := one(t, s, store.SQLOptions{}, "SELECT current_user"); got != Role {
			t.Errorf("it runs as %s", got)
		}
	}
	sel()
	cut(t, s)
	sel()
	cut(t, s)
	tx, err := s.BeginPlain(t.Context(), store.SQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if rows, _, err := tx.Run(t.Context(), &store.Statement{SQL: "SELECT current_user"}, nil); err != nil || rows.At(0)[0].Text() != Role {
		t.Errorf("in a transaction: %v, %v", rows, err)
	}
	// A connection that is cut within a transaction is not another one's.
	var pid string
	if rows, _, err := tx.Run(t.Context(), &store.Statement{SQL: "SELECT pg_backend_pid()"}, nil); err == nil {
		pid = rows.At(0)[0].Text()
	}
	do(t, s, "SELECT pg_terminate_backend("+pid+")")
	if _, _, err := tx.Run(t.Context(), &store.Statement{SQL: "SELECT current_user"}, nil); record.KindOf(err) != record.Unavailable {
		t.Errorf("cut in the middle: %v", err)
	}
	tx.Rollback()
	sel()
	// A column of another type than before: connections remember how they read it.
	do(t, s, "CREATE TABLE shape (a int); INSERT INTO shape VALUES (1)")
	st := &store.Statement{SQL: "SELECT a FROM shape"}
	read := func(want record.Type) {
		t.Helper()
		rows, err := s.Select(t.Context(), st, nil, store.SQLOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		if row, _ := rows.Next(); rows.Types[0] != want || row[0].Text() != "1" {
			t.Errorf("%v of type %s", row, rows.Types[0])
		}
	}
	s.role.granted = time.Time{}
	read(record.TypeInteger)
	do(t, s, "ALTER TABLE shape ALTER a TYPE text")
	read(record.TypeString)
}

func TestDescribe_TakesTheTypesOfParameters(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	d, err := s.Describe(t.Context(), "SELECT $1 AS a, $2 AS b, $3::numeric(6,2) AS c", []string{"timestamp with time zone", "", ""})
	if err != nil {
		t.Fatal(err)
	}
	want := &store.Described{
		Params: []store.DescribedColumn{
			{Type: record.TypeDateTime, Native: "timestamp with time zone"}, {Type: record.TypeString, Native: "text"}, {Type: record.TypeDecimal, Native: "numeric"},
		},
		Columns: []store.DescribedColumn{
			{Name: "a", Type: record.TypeDateTime, Native: "timestamp with time zone"},
			{Name: "b", Type: record.TypeString, Native: "text"},
			{Name: "c", Type: record.TypeDecimal, Native: "numeric(6,2)"},
		},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Describe(t.Context(), "SELECT $1", []string{"no type"}); record.KindOf(err) != record.Invalid {
		t.Error(err)
	}
	do(t, s, `CREATE SCHEMA hidden; CREATE TABLE hidden.t ("A b" int); CREATE TABLE t (x int)`)
	if d, err = s.Describe(t.Context(), `SELECT h."A b", t.x FROM hidden.t h, t`, nil); err != nil || d.Columns[0].Table != "hidden.t" || d.Columns[0].Column != "A b" || d.Columns[1].Table != "t" {
		t.Errorf("%+v, %v", d, err)
	}
}
