package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/catalog"
	"weir/internal/store"
)

// Role is what statements of endpoints run as where weir's login may make it or become it.
const Role = "weir_endpoint"

// role is the database role of the operator's statements. It is made when the first of them comes, never for databases
// whose projects have none.
type role struct {
	name atomic.Pointer[string] // nil: not known yet; "": the login's own

	mu      sync.Mutex // of who makes it or looks after its rights
	granted time.Time  // when that was last done
}

// grantEvery is the least pause between two looks after the rights of the role: a statement that is refused for good must
// not ask each time.
const grantEvery = 10 * time.Second

// endpointRole is the role of the operator's statements: weir_endpoint when the login is a superuser or can become that role
// otherwise, else the login itself.
func (s *Store) endpointRole(ctx context.Context) (string, error) {
	if name := s.role.name.Load(); name != nil {
		return *name, nil
	}
	s.role.mu.Lock()
	defer s.role.mu.Unlock()
	if name := s.role.name.Load(); name != nil {
		return *name, nil
	}
	name := ""
	err := s.with(ctx, func(conn *pgx.Conn) error {
		var super, maker, there bool
		err := conn.QueryRow(ctx, `SELECT rolsuper, rolcreaterole, EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1)
			FROM pg_roles WHERE rolname = current_user`, Role).Scan(&super, &maker, &there)
		if err != nil {
			return err
		}
		if !there && (super || maker) {
			if err := makeRole(ctx, conn, super); err != nil {
				return err
			}
			there = true
		}
		if there && !super {
			if err := conn.QueryRow(ctx, `SELECT pg_has_role(current_user, $1, 'MEMBER')`, Role).Scan(&there); err != nil {
				return err
			}
		}
		if !there {
			return nil
		}
		name = Role
		return grant(ctx, conn)
	})
	if err != nil {
		return "", err
	}
	s.role.granted = time.Now()
	s.role.name.Store(&name)
	return name, nil
}

// makeRole creates the role. Nodes that start together may both try.
func makeRole(ctx context.Context, conn *pgx.Conn, super bool) error {
	sql := fmt.Sprintf(`DO $$ BEGIN CREATE ROLE %s NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`, Role)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return err
	}
	if super {
		return nil
	}
	// From version 16 on, who makes a role is its administrator but not yet a member that may become it.
	_, err := conn.Exec(ctx, "GRANT "+Role+" TO CURRENT_USER")
	return err
}

// grantSQL gives the role what it lacks of tables, views and sequences outside of the server's and weir's own schemas, as far
// as the login may give it. Functions are open to all roles unless somebody closed them on purpose.
var grantSQL = fmt.Sprintf(`DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT nspname FROM pg_namespace
		WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', '%[2]s')
		AND NOT has_schema_privilege('%[1]s', oid, 'USAGE') AND has_schema_privilege(oid, 'USAGE WITH GRANT OPTION')
	LOOP
		EXECUTE format('GRANT USAGE ON SCHEMA %%I TO %[1]s', r.nspname);
	END LOOP;
	FOR r IN SELECT c.oid, n.nspname, c.relname, p.name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) p (name)
		WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', '%[2]s')
		AND NOT has_table_privilege('%[1]s', c.oid, p.name) AND has_table_privilege(c.oid, p.name || ' WITH GRANT OPTION')
	LOOP
		EXECUTE format('GRANT %%s ON %%I.%%I TO %[1]s', r.name, r.nspname, r.relname);
	END LOOP;
	FOR r IN SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', '%[2]s')
		AND CASE c.relkind WHEN 'S' THEN -- asked of anything else it is an error
			NOT has_sequence_privilege('%[1]s', c.oid, 'USAGE') AND has_sequence_privilege(c.oid, 'USAGE WITH GRANT OPTION') ELSE false END
	LOOP
		EXECUTE format('GRANT USAGE ON SEQUENCE %%I.%%I TO %[1]s', r.nspname, r.relname);
	END LOOP;
END $$`, Role, catalog.SystemSchema)

func grant(ctx context.Context, conn *pgx.Conn) error {
	// Two that grant on one table at the same time fail with "tuple concurrently updated": they take turns.
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	for _, sql := range []string{"SELECT pg_advisory_xact_lock(hashtext('" + Role + "'))", grantSQL} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// regrant looks after the rights of the role when a statement was refused: a table may be new. It reports whether it did. When
// calls ask, it does so no more often than grantEvery; who describes a statement, now.
func (s *Store) regrant(ctx context.Context, refused error, now bool) bool {
	var fault *store.SQLError
	if !errors.As(refused, &fault) || fault.Code != "42501" {
		return false
	}
	s.role.mu.Lock()
	defer s.role.mu.Unlock()
	if name := s.role.name.Load(); name == nil || *name == "" || !now && time.Since(s.role.granted) < grantEvery {
		return false
	}
	s.role.granted = time.Now()
	return s.with(ctx, func(conn *pgx.Conn) error { return grant(ctx, conn) }) == nil
}

// setRole is the command that makes a session run as a role, "" for the login.
func setRole(name string) string {
	if name == "" {
		return "RESET ROLE"
	}
	return "SET ROLE " + store.Quote(name)
}

// quoteText is a text as SQL spells it in a command that takes no parameters.
func quoteText(s string) string {
	return "'" + strings.NewReplacer("'", "''", "\x00", "").Replace(s) + "'"
}
