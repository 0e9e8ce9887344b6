package engine

import (
	"context"
	"fmt"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
	"weir/internal/store"
)

// entry is a text for a journal field.
type entry struct {
	f *catalog.Field
	v record.Value
}

// secret is a value for a password field.
type secret struct {
	f *catalog.Field
	v record.Value
}

// besides writes what belongs to records but is stored elsewhere: journal entries and hashed passwords.
func (w *writer) besides(ctx context.Context, list []*pending) error {
	if err := w.writeJournal(ctx, list); err != nil {
		return err
	}
	return w.writeSecrets(ctx, list)
}

func (w *writer) writeJournal(ctx context.Context, list []*pending) error {
	var entries []*pending
	for _, p := range list {
		for _, e := range p.journal {
			t, err := w.x.snap.Table(JournalTable)
			if err != nil {
				return err
			}
			info := w.x.m.table(t)
			row := &rule.Row{Table: t, Actor: p.row.Actor, New: make([]record.Value, len(t.Fields)), Given: make([]bool, len(t.Fields))}
			set := func(name string, v record.Value) {
				if f := t.Field(name); f != nil {
					row.New[f.Index] = v
				}
			}
			set(t.Key[0], record.TextValue(w.x.e.opt.NewID()))
			set("element", record.TextValue(e.f.Name))
			set("element_id", keyOf(p.info.t, p.row.New)[0])
			set("name", record.TextValue(p.info.t.Name))
			set("value", e.v)
			set("sys_created_on", record.TimeValue(w.x.now))
			set("sys_created_by", byActor(p.row.Actor))
			set("sys_updated_on", record.TimeValue(w.x.now))
			set("sys_updated_by", byActor(p.row.Actor))
			set("sys_mod_count", record.IntValue(0))
			entries = append(entries, &pending{t: p.t, info: info, row: row, changed: true})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return w.insertRows(ctx, entries)
}

var secretTable = func() *catalog.Table {
	t, err := catalog.System().Table("secret")
	if err != nil {
		panic(err)
	}
	return t
}()

// writeSecrets replaces the stored hashes of password fields that were given.
func (w *writer) writeSecrets(ctx context.Context, list []*pending) error {
	var gone, rows [][]record.Value
	for _, p := range list {
		for _, s := range p.secrets {
			key := []record.Value{SecretOwner(p.info.t, s.f), record.TextValue(SecretKey(keyOf(p.info.t, p.row.New)))}
			gone = append(gone, key)
			if s.v.Empty() {
				continue
			}
			hash, err := w.x.e.opt.Hash(s.v.S)
			if err != nil {
				return fmt.Errorf("hash %s.%s: %w", p.info.t.Name, s.f.Name, err)
			}
			rows = append(rows, []record.Value{key[0], key[1], record.TextValue(hash), record.IntValue(1), record.TimeValue(w.x.now)})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if _, err := w.tx.Delete(ctx, &store.DeleteSet{Table: secretTable, Keys: gone}); err != nil {
		return fmt.Errorf("replace secrets: %w", err)
	}
	if len(rows) == 0 {
		return nil
	}
	written, err := w.tx.Insert(ctx, &store.InsertSet{Table: secretTable, Fields: []string{"owner", "key", "hash", "version", "changed"}, Rows: rows})
	if err != nil {
		return fmt.Errorf("store secrets: %w", err)
	}
	for _, e := range written.Errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// SecretOwner is the owner of a password field's hashes in the system table secret: the table that defines the field, a
// dot, the field.
func SecretOwner(t *catalog.Table, f *catalog.Field) record.Value {
	return record.TextValue(f.Owner + "." + f.Name)
}

// SecretKey is the key of a record in the system table secret.
func SecretKey(key []record.Value) string { return keyID(key) }

// forget removes the hashes of deleted records.
func (w *writer) forget(ctx context.Context, list []*pending) error {
	var gone [][]record.Value
	for _, p := range list {
		for _, f := range p.info.passwords {
			gone = append(gone, []record.Value{SecretOwner(p.info.t, f), record.TextValue(SecretKey(keyOf(p.info.t, p.row.Old)))})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err := w.tx.Delete(ctx, &store.DeleteSet{Table: secretTable, Keys: gone})
	return err
}
