package auth

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
)

// A token against forged changes holds the second it ends at and a keyed hash over that, the session and the user: every node can check
// it, and none keeps it. It is worth nothing without the session's cookie.
const (
	forgeryEnd = 8  // bytes of the end
	forgerySum = 24 // bytes of the hash
)

// ChangeToken is a token for the caller id that holds for age. It is "" if the nodes' secret cannot be read.
func (a *Auth) ChangeToken(ctx context.Context, id *Identity, age time.Duration) string {
	// The second that has begun counts whole, so that a token never ends before its time.
	body := binary.BigEndian.AppendUint64(nil, uint64(a.now().Add(age+time.Second-1).Unix()))
	sum := a.forgerySum(ctx, id, body)
	if sum == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(body, sum...))
}

// ChangeTokenHolds reports whether token was given to the caller id, in this session, and still holds.
func (a *Auth) ChangeTokenHolds(ctx context.Context, id *Identity, token string) bool {
	if base64.RawURLEncoding.DecodedLen(len(token)) != forgeryEnd+forgerySum {
		return false
	}
	plain, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return false
	}
	body, sum := plain[:forgeryEnd], plain[forgeryEnd:]
	return hmac.Equal(sum, a.forgerySum(ctx, id, body)) && a.now().Unix() < int64(binary.BigEndian.Uint64(body))
}

func (a *Auth) forgerySum(ctx context.Context, id *Identity, body []byte) []byte {
	session := id.Session
	if id.Method == "bearer" || id.Method == methodHeader {
		session = "" // has no cookie of ours: no browser sends a bearer token by itself, and a gateway has sessions of its own
	}
	sum := a.sign(ctx, "forgery", string(body)+session+"\x00"+id.Actor.Name)
	if sum == nil {
		return nil
	}
	return sum[:forgerySum]
}

// Actor is the user of that name as they stand now, for work that was accepted from them earlier. The error is an Unauthenticated
// if they may not call any more.
func (a *Auth) Actor(ctx context.Context, snap *catalog.Snapshot, name string) (record.Actor, error) {
	u, err := a.user(ctx, snap, name)
	if err != nil {
		return record.Actor{}, err
	}
	if u == nil || !u.active {
		return record.Actor{}, unauthenticated("the user is no longer active")
	}
	return u.actor, nil
}
