package ords

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
)

var (
	_ dialect.Entrance = (*Dialect)(nil)
	_ dialect.Issuer   = (*Dialect)(nil)
	_ dialect.Shared   = (*Dialect)(nil)
)

// challenges are what an answer 401 says, by what is taken: a token first, which is what protected resources usually want (protocol
// notes, section 11).
const (
	challengeBearer = `Bearer realm="ords"`
	challengeBasic  = `Basic realm="ords"`
)

// EntryOf says how a caller enters what a path leads to. What is no endpoint takes every way but a database login.
func (d *Dialect) EntryOf(snap *catalog.Snapshot, c *dialect.Call) dialect.Entry {
	var e dialect.Entry
	if to := d.endpointOf(snap, c); to != nil {
		e.Public, e.Ways = to.Public, dialect.WaysOf(to.SQL.Auth)
	}
	if e.Takes(dialect.ByBearer) {
		e.Challenges = append(e.Challenges, challengeBearer)
	}
	if e.Takes(dialect.ByBasic) || e.Takes(dialect.ByDatabase) {
		e.Challenges = append(e.Challenges, challengeBasic)
	}
	return e
}

// OriginsOf are the origins that an endpoint names: p_origins_allowed of a module.
func (d *Dialect) OriginsOf(snap *catalog.Snapshot, c *dialect.Call) []string {
	if e := d.endpointOf(snap, c); e != nil {
		return e.SQL.Origins
	}
	return nil
}

// IsToken reports whether path is where a schema hands out tokens: /ords/SCHEMA/oauth/token (protocol notes, section 12).
func (d *Dialect) IsToken(path string) bool {
	rest, ok := strings.CutPrefix(path, Prefix)
	schema, rest, _ := strings.Cut(rest, "/")
	return ok && schema != "" && rest == "oauth/token"
}
