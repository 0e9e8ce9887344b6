package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"

	"weir/internal/record"
)

// The cost of a password hash: OWASP's first choice for argon2id, 19 MiB and two passes. Some 24 ms of one core.
const (
	hashMemory  = 19 * 1024 // KiB
	hashPasses  = 2
	hashThreads = 1
	hashLength  = 32
	saltLength  = 16
)

const hashPrefix = "$argon2id$"

// maxPassword bounds what a caller can make us hash.
const maxPassword = 1024

// Hash is the argon2id hash of a password in the usual text form, "$argon2id$v=19$m=…,t=…,p=…$salt$hash".
func Hash(password string) (string, error) {
	if len(password) > maxPassword {
		return "", record.Errorf(record.Invalid, "", "a password has at most %d bytes", maxPassword)
	}
	salt := make([]byte, saltLength)
	rand.Read(salt)
	sum := argon2.IDKey([]byte(password), salt, hashPasses, hashMemory, hashThreads, hashLength)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("%sv=%d$m=%d,t=%d,p=%d$%s$%s", hashPrefix, argon2.Version, hashMemory, hashPasses, hashThreads,
		b64.EncodeToString(salt), b64.EncodeToString(sum)), nil
}

// Verify reports whether hash is that of password. A hash that cannot be read, or whose cost is absurd, is nobody's.
func Verify(hash, password string) bool {
	rest, ok := strings.CutPrefix(hash, hashPrefix)
	parts := strings.Split(rest, "$")
	if !ok || len(parts) != 4 || len(password) > maxPassword {
		return false
	}
	var version int
	var memory, passes uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[0], "v=%d", &version); err != nil || version != argon2.Version {
		return false
	}
	if _, err := fmt.Sscanf(parts[1], "m=%d,t=%d,p=%d", &memory, &passes, &threads); err != nil {
		return false
	}
	if memory > 1<<20 || passes < 1 || passes > 64 || threads < 1 {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[2])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil || len(want) < 16 || len(want) > 64 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// matches checks a password against a hash, or against a plain text from the settings.
func matches(stored, password string) bool {
	if strings.HasPrefix(stored, hashPrefix) {
		return Verify(stored, password)
	}
	return stored != "" && subtle.ConstantTimeCompare(digest(stored), digest(password)) == 1
}

func digest(s string) []byte {
	d := sha256.Sum256([]byte(s))
	return d[:]
}

// credential is a keyed hash of a name and a password: what a verified credential is remembered by. The key is random and lives
// as long as the process, so nothing that leaks from here can be tried elsewhere.
type credential [sha256.Size]byte

func (a *Auth) credential(kind, name, password string) credential {
	var room [256]byte
	text := append(append(room[:0], kind...), 0)
	text = append(strconv.AppendInt(text, int64(len(name)), 10), 0)
	text = append(append(append(text, name...), 0), password...)
	return credential(a.credentials.sum(text))
}

// keyed is a keyed hash whose states are used again: making one costs more than hashing a short text.
type keyed struct{ states sync.Pool }

func newKeyed(key []byte) *keyed {
	k := &keyed{}
	k.states.New = func() any { return hmac.New(sha256.New, key) }
	return k
}

// sum is the keyed hash of a text.
func (k *keyed) sum(text []byte) (sum [sha256.Size]byte) {
	m := k.states.Get().(hash.Hash)
	defer k.states.Put(m)
	m.Reset()
	m.Write(text)
	m.Sum(sum[:0])
	return sum
}

// checked says that a credential was verified against a hash of this version.
type checked struct{ version int64 }

// check verifies a password against the stored hash of kind ("user", "client") and name, unless it did so a short time ago.
// It reports false for a wrong password; an error means that it could not say.
func (a *Auth) check(ctx context.Context, kind, name, password, address, stored string, version int64) (bool, error) {
	key := a.credential(kind, name, password)
	if c, ok := a.remembered.GetIfPresent(key); ok && c.version == version {
		return true, nil
	}
	// Those who arrive with the same credential while it is being checked share the check, so that a client that opens a
	// hundred connections at once costs one.
	result, err, _ := a.checking.Do(string(key[:]), func() (any, error) {
		if c, ok := a.remembered.GetIfPresent(key); ok && c.version == version {
			return true, nil
		}
		if err := a.guess(kind+" "+name, address); err != nil {
			return false, err
		}
		if len(password) > maxPassword {
			return false, nil
		}
		// The first one's going away must not fail the others.
		ctx := context.WithoutCancel(ctx)
		if a.options.Permit != nil {
			release, err := a.options.Permit(ctx, name)
			if err != nil {
				return false, err
			}
			defer release()
		}
		if !matches(stored, password) {
			return false, nil
		}
		if a.cfg.Remember > 0 {
			a.remembered.Set(key, checked{version})
		}
		return true, nil
	})
	if err != nil {
		return false, err
	}
	return result.(bool), nil
}
