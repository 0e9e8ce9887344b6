package auth

import (
	"context"
	"slices"

	"github.com/maypok86/otter/v2"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// user is what is known of a user for a short while.
type user struct {
	name     string
	actor    record.Actor
	active   bool
	hash     string // of the password; "" has none
	version  int64  // of the hash: sessions and remembered credentials end with it
	snapshot uint64
}

// user finds a user by login name, nil if there is none. It is cached for auth.roles, and as long as the snapshot stays.
func (a *Auth) user(ctx context.Context, snap *catalog.Snapshot, name string) (*user, error) {
	version := uint64(0)
	if snap != nil {
		version = snap.Version
	}
	if u, ok := a.users.GetIfPresent(name); ok && (u == nil || u.snapshot == version) {
		return u, nil
	} else if ok {
		a.users.Invalidate(name)
	}
	load := otter.LoaderFunc[string, *user](func(ctx context.Context, name string) (*user, error) {
		for i := range a.cfg.Users {
			if s := &a.cfg.Users[i]; s.Name == name {
				return &user{
					name: name, active: true, hash: s.Password.Reveal(), snapshot: version,
					actor: record.Actor{Key: name, Name: name, Roles: s.Roles},
				}, nil
			}
		}
		if a.options.Data == nil || snap == nil {
			return nil, nil
		}
		u, err := a.load(ctx, snap, name)
		if u != nil {
			u.snapshot = version
		}
		return u, err
	})
	// Whoever asks at the same time shares the load, so one caller's going away must not fail it.
	u, err := a.users.Get(context.WithoutCancel(ctx), name, load)
	if err == nil && a.cfg.Roles == 0 {
		a.users.Invalidate(name)
	}
	return u, err
}

func (a *Auth) load(ctx context.Context, snap *catalog.Snapshot, name string) (*user, error) {
	m := &a.cfg.Tables
	t, err := snap.Table(m.User)
	if err != nil || t.Field(m.Name) == nil || t.SingleKey() == nil {
		return nil, nil // the project has no users of its own
	}
	fields := []string{t.Key[0], m.Name}
	active, locked := -1, -1
	if f := t.Field(m.Active); f != nil {
		active = len(fields)
		fields = append(fields, m.Active)
	}
	if f := t.Field(m.Locked); f != nil {
		locked = len(fields)
		fields = append(fields, m.Locked)
	}
	rows, err := a.read(ctx, snap, t, fields, record.Compare(record.Eq, record.F(m.Name), record.C(record.TextValue(name))))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	row := rows[0]
	u := &user{name: name, active: true, actor: record.Actor{Key: row[0].Text(), Name: row[1].Text()}}
	if active >= 0 {
		u.active = row[active].Truth()
	}
	if locked >= 0 && row[locked].Truth() {
		u.active = false
	}
	if u.hash, u.version, err = a.secret(ctx, m.User+"."+m.Password, u.actor.Key); err != nil {
		return nil, err
	}
	u.actor.Roles, err = a.roles(ctx, snap, u.actor.Key)
	return u, err
}

// roles are a user's own roles and those of their groups, sorted.
func (a *Auth) roles(ctx context.Context, snap *catalog.Snapshot, key string) ([]string, error) {
	m := &a.cfg.Tables
	is := func(field, key string) *record.Expr {
		return record.Compare(record.Eq, record.F(field), record.C(record.TextValue(key)))
	}
	var roles []string
	collect := func(table string, where *record.Expr) error {
		t, err := snap.Table(table)
		if err != nil || t.Field("role") == nil {
			return nil
		}
		path := "role"
		if t.Field("role").Type == record.TypeReference {
			path = "role." + m.RoleName
		}
		if t.Field("state") != nil {
			where = record.AllOf(where, record.Compare(record.Ne, record.F("state"), record.C(record.TextValue("inactive"))))
		}
		rows, err := a.read(ctx, snap, t, []string{path}, where)
		for _, r := range rows {
			if !r[0].Empty() {
				roles = append(roles, r[0].Text())
			}
		}
		return err
	}
	if err := collect(m.UserRole, is("user", key)); err != nil {
		return nil, err
	}
	if member, err := snap.Table(m.Member); err == nil && member.Field("group") != nil {
		rows, err := a.read(ctx, snap, member, []string{"group"}, is("user", key))
		if err != nil {
			return nil, err
		}
		var groups []record.Value
		for _, r := range rows {
			groups = append(groups, r[0])
		}
		if len(groups) > 0 {
			in := &record.Expr{Op: record.In, Args: []*record.Expr{record.F("group")}, Values: groups}
			if err := collect(m.GroupRole, in); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles), nil
}

// maxRead bounds what is read for one user.
const maxRead = 10_000

// read is a small read into memory.
func (a *Auth) read(ctx context.Context, snap *catalog.Snapshot, t *catalog.Table, fields []string, where *record.Expr) ([][]record.Value, error) {
	res, err := a.options.Data.Query(ctx, &store.Read{
		Snapshot: snap, Table: t, Fields: fields, Query: &record.Query{Where: where, Limit: maxRead},
	})
	if err != nil {
		return nil, err
	}
	defer res.Close()
	if err := res.Materialise(0); err != nil {
		return nil, err
	}
	rows := make([][]record.Value, res.Len())
	for i := range rows {
		rows[i] = res.At(i)
	}
	return rows, nil
}

// secret reads a hash from the system table secret, "" if there is none.
func (a *Auth) secret(ctx context.Context, owner, key string) (hash string, version int64, err error) {
	rows, err := a.system(ctx, "secret", []string{"hash", "version"},
		record.Compare(record.Eq, record.F("owner"), record.C(record.TextValue(owner))),
		record.Compare(record.Eq, record.F("key"), record.C(record.TextValue(key))))
	if err != nil || len(rows) == 0 {
		return "", 0, err
	}
	return rows[0][0].Text(), rows[0][1].N, nil
}

// system reads one of weir's own tables.
func (a *Auth) system(ctx context.Context, table string, fields []string, where ...*record.Expr) ([][]record.Value, error) {
	sys := catalog.System()
	t, err := sys.Table(table)
	if err != nil {
		return nil, err
	}
	return a.read(ctx, sys, t, fields, record.AllOf(where...))
}
