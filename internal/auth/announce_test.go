package auth

import (
	"context"
	"errors"
	"testing"

	"weir/internal/catalog"
	"weir/internal/store"
)

// quietStore counts what it is told and writes nothing.
type quietStore struct {
	store.Store
	told  int
	fails error
}

func (s *quietStore) Begin(context.Context) (store.Tx, error) { return &quietTx{s: s}, nil }
func (s *quietStore) Notify(context.Context) error            { s.told++; return s.fails }

type quietTx struct {
	store.Tx
	s *quietStore
}

func (t *quietTx) Insert(context.Context, *store.InsertSet) (*store.Written, error) { return nil, nil }

func (t *quietTx) Update(context.Context, *store.UpdateSet) (*store.Written, error) { return nil, nil }

func (t *quietTx) Delete(context.Context, *store.DeleteSet) (*store.Written, error) { return nil, nil }

func (t *quietTx) Commit(context.Context) error { return t.s.fails }
func (t *quietTx) Rollback()                    {}

func TestAnnounce_TellsOfWhatChangesWhoMayCall(t *testing.T) {
	insert := func(table string) func(store.Tx) {
		return func(tx store.Tx) {
			tx.Insert(t.Context(), &store.InsertSet{Table: &catalog.Table{Name: table}})
		}
	}
	update := func(table string, fields ...string) func(store.Tx) {
		return func(tx store.Tx) {
			tx.Update(t.Context(), &store.UpdateSet{Table: &catalog.Table{Name: table}, Fields: fields})
		}
	}
	remove := func(table string) func(store.Tx) {
		return func(tx store.Tx) {
			tx.Delete(t.Context(), &store.DeleteSet{Table: &catalog.Table{Name: table}})
		}
	}
	secret, err := catalog.System().Table("secret")
	if err != nil {
		t.Fatal(err)
	}
	grant, err := catalog.System().Table("grant")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		write func(store.Tx)
		told  int
	}{
		"password":     {func(tx store.Tx) { tx.Update(t.Context(), &store.UpdateSet{Table: secret, Fields: []string{"hash"}}) }, 1},
		"revoked":      {func(tx store.Tx) { tx.Update(t.Context(), &store.UpdateSet{Table: grant, Fields: []string{"expires"}}) }, 1},
		"new token":    {func(tx store.Tx) { tx.Insert(t.Context(), &store.InsertSet{Table: grant}) }, 0},
		"old token":    {func(tx store.Tx) { tx.Delete(t.Context(), &store.DeleteSet{Table: grant}) }, 0},
		"locked out":   {update("sys_user", "title", "locked_out"), 1},
		"title":        {update("sys_user", "title"), 0},
		"user removed": {remove("sys_user"), 1},
		"role given":   {insert("sys_user_has_role"), 1},
		"role taken":   {remove("sys_user_has_role"), 1},
		"member":       {remove("sys_user_grmember"), 1},
		"group's role": {update("sys_group_has_role", "role"), 1},
		"other table":  {insert("incident"), 0},
	} {
		s, heard := &quietStore{}, 0
		tx, err := Announce(s, Defaults().Tables, func(err error) {
			heard++
			if err != nil {
				t.Error(err)
			}
		}).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.write(tx)
		if s.told != 0 {
			t.Errorf("%s: told before the commit", name)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.told != c.told || heard != c.told {
			t.Errorf("%s: told %d times, and %d times here, instead of %d", name, s.told, heard, c.told)
		}
	}
	s := &quietStore{fails: errors.New("no")}
	tx, err := Announce(s, Defaults().Tables, func(err error) { t.Error(err) }).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remove("sys_user")(tx)
	if err := tx.Commit(t.Context()); err == nil || s.told != 0 {
		t.Errorf("a commit that failed was announced (%v, %d)", err, s.told)
	}
}
