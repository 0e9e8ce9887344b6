package auth

import (
	"context"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/store"
)

// Announce returns s with an eye on the tables that say who may call: when a transaction that wrote to them has been committed, all
// nodes are told (Notify) before the commit returns, so that none goes on accepting a credential that was changed or a role that was
// taken away. It sees every write, whoever makes it: calls, scripts, rules, deletions that cascade.
//
// Then done is called, for this node. Its error says that the others could not be told; the commit stands, and they learn it when
// auth.remember and auth.roles have passed.
func Announce(s store.Store, tables UserTables, done func(error)) store.Store {
	return &announcer{Store: s, tables: tables, done: done}
}

type announcer struct {
	store.Store
	tables UserTables
	done   func(error)
}

// Begin opens a write transaction that is watched.
func (a *announcer) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := a.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &watchedTx{Tx: tx, of: a}, nil
}

type watchedTx struct {
	store.Tx
	of   *announcer
	tell bool
}

// Insert notes new users, links and passwords.
func (t *watchedTx) Insert(ctx context.Context, s *store.InsertSet) (*store.Written, error) {
	t.tell = t.tell || t.of.concerns(s.Table, nil)
	return t.Tx.Insert(ctx, s)
}

// Update notes changed links and passwords, and users whose name or standing changed.
func (t *watchedTx) Update(ctx context.Context, s *store.UpdateSet) (*store.Written, error) {
	t.tell = t.tell || t.of.concerns(s.Table, s.Fields)
	return t.Tx.Update(ctx, s)
}

// Delete notes removed users, links and passwords.
func (t *watchedTx) Delete(ctx context.Context, s *store.DeleteSet) (*store.Written, error) {
	t.tell = t.tell || t.of.concerns(s.Table, nil)
	return t.Tx.Delete(ctx, s)
}

// announceTime bounds the telling; the commit's own time may be spent.
const announceTime = 5 * time.Second

// Commit commits and tells.
func (t *watchedTx) Commit(ctx context.Context) error {
	if err := t.Tx.Commit(ctx); err != nil || !t.tell {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTime)
	defer cancel()
	t.of.done(t.of.Notify(ctx))
	return nil
}

// concerns reports whether a write to a table may change who may call. Fields nil are all of them.
func (a *announcer) concerns(t *catalog.Table, fields []string) bool {
	if t.System {
		// Hashes of passwords are kept apart from the users. Grants are updated when they are revoked only; new ones and expired ones that
		// are removed change nothing for anybody.
		return t.Name == "secret" || t.Name == "client" || t.Name == "grant" && fields != nil
	}
	switch t.Name {
	case a.tables.UserRole, a.tables.Member, a.tables.GroupRole:
		return true
	case a.tables.User:
		return fields == nil || slices.ContainsFunc(fields, func(f string) bool {
			return f == a.tables.Active || f == a.tables.Locked || f == a.tables.Name
		})
	}
	return false
}
