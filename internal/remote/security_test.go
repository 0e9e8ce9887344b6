package remote_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/remote"
	"weir/internal/remote/remotetest"
)

// authority makes certificates.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.make("ca", true)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) make(name string, isCA bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.n++
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: isCA,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	by, with := c, key
	if a.cert != nil {
		by, with = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(a.file(name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// tls is the settings of an end with a certificate of its own, "" for none, that trusts this authority.
func (a *authority) tls(name string) remote.TLS {
	if name == "" {
		return remote.TLS{CA: a.file("ca.pem")}
	}
	if _, err := os.Stat(a.file(name + ".pem")); err != nil {
		a.make(name, false)
	}
	return remote.TLS{CA: a.file("ca.pem"), Cert: a.file(name + ".pem"), Key: a.file(name + ".key")}
}

// reach connects a hub and sends a unit; the error says why it is refused.
func reach(t *testing.T, backend, hub remote.Config, log *slog.Logger) error {
	t.Helper()
	var n atomic.Int64
	m := start(t, "127.0.0.1:0", remote.Options{Config: backend, Exec: done("a", &n), Log: log})
	hub.Backends = []string{m.addr}
	c, err := remote.Dial(hub, log)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Start(t.Context()); err != nil {
		if n.Load() != 0 {
			t.Error("a stranger's unit was run")
		}
		return err
	}
	if out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp)); out[0].Err != nil {
		return out[0].Err
	}
	return nil
}

func TestSecurity_WhoIsLetIn(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	const key, other auth.Secret = "the shared secret of this test", "quite another secret of a stranger"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key.Reveal()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(k auth.Secret, tls remote.TLS, change ...func(*remote.Config)) remote.Config {
		c := remotetest.Config()
		c.Key, c.TLS, c.Wait = k, tls, 20*time.Second
		for _, f := range change {
			f(&c)
		}
		return c
	}
	peers := func(names ...string) func(*remote.Config) { return func(c *remote.Config) { c.Peers = names } }
	onlyServer := ours.tls("backend")
	onlyServer.CA = ""
	none := remote.TLS{}
	for _, test := range []struct {
		name         string
		backend, hub remote.Config
		refused      string // "": let in
	}{
		{"SameKey", config(key, none), config(key, none), ""},
		{"KeyFromAFile", config("", none, func(c *remote.Config) { c.KeyFile = file }), config(key, none), ""},
		{"WrongKey", config(key, none), config(other, none), "does not know this hub's key"},
		{"MutualTLS", config("", ours.tls("backend")), config("", ours.tls("hub")), ""},
		{"MutualTLSAndKey", config(key, ours.tls("backend")), config(key, ours.tls("hub")), ""},
		{"MutualTLSWithoutTheKey", config(key, ours.tls("backend")), config("", ours.tls("hub")), "does not know this hub's key"},
		{"HubOfAnotherAuthority", config("", ours.tls("backend")), config("", remote.TLS{CA: ours.file("ca.pem"), Cert: theirs.tls("hub").Cert, Key: theirs.tls("hub").Key}), "certificate"},
		{"BackendOfAnotherAuthority", config("", theirs.tls("backend")), config("", ours.tls("hub")), "certificate"},
		{"HubWithoutCertificate", config("", ours.tls("backend")), config(key, ours.tls("")), "certificate"},
		{"HubWithoutTLS", config("", ours.tls("backend")), config(key, none), "backend"},
		{"ListedPeer", config("", ours.tls("backend"), peers("nobody", "hub")), config("", ours.tls("hub")), ""},
		{"UnlistedPeer", config("", ours.tls("backend"), peers("nobody")), config("", ours.tls("hub")), "tls"},
		{"EncryptedWithKey", config(key, onlyServer), config(key, ours.tls("")), ""},
		{"EncryptedWithWrongKey", config(key, onlyServer), config(other, ours.tls("")), "does not know this hub's key"},
		{"BackendOfAnotherName", config("", ours.tls("backend")), config("", remote.TLS{CA: ours.tls("hub").CA, Cert: ours.tls("hub").Cert, Key: ours.tls("hub").Key, Name: "db7"}), "certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "HubWithoutTLS" {
				test.hub.Wait = 500 * time.Millisecond // nothing tells it from a backend that is about to start
			}
			var log bytes.Buffer
			err := reach(t, test.backend, test.hub, slog.New(slog.NewTextHandler(&lockedWriter{w: &log}, nil)))
			switch {
			case test.refused == "" && err != nil:
				t.Error(err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got %v, want %q", err, test.refused)
			}
			for _, secret := range []auth.Secret{key, other} {
				if strings.Contains(log.String(), secret.Reveal()) || err != nil && strings.Contains(err.Error(), secret.Reveal()) {
					t.Errorf("a key is told:\n%s\n%v", log.String(), err)
				}
			}
		})
	}
}

func TestSecurity_SettingsThatProtectNobodyAreRefused(t *testing.T) {
	ours := newAuthority(t)
	set := func(f func(*remote.Config)) remote.Config {
		c := remotetest.Config()
		c.Backends = []string{"127.0.0.1:1"}
		f(&c)
		return c
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name              string
		cfg               remote.Config
		backend, hubFault string // "": accepted
	}{
		{"NoProof", set(func(c *remote.Config) { c.Key = "" }), "must know each other", "must know each other"},
		{"ShortKey", set(func(c *remote.Config) { c.Key = "too short" }), "at least 16", "at least 16"},
		{"EmptyKeyFile", set(func(c *remote.Config) { c.Key, c.KeyFile = "", empty }), "is empty", "is empty"},
		{"NoKeyFile", set(func(c *remote.Config) { c.Key, c.KeyFile = "", empty+"x" }), "key_file", "key_file"},
		{"KeyOverANetwork", set(func(c *remote.Config) { c.Listen, c.Backends = "0.0.0.0:0", []string{"10.1.2.3:8090"} }), "loopback", "loopback"},
		{"KeyOverANetworkAllowed", set(func(c *remote.Config) {
			c.Listen, c.Backends, c.Plain = "0.0.0.0:0", []string{"10.1.2.3:8090"}, true
		}), "", ""},
		{"CertificatesOverANetwork", set(func(c *remote.Config) {
			c.Listen, c.Backends, c.Key, c.TLS = "0.0.0.0:0", []string{"10.1.2.3:8090"}, "", ours.tls("x")
		}), "", ""},
		{"AuthorityAlone", set(func(c *remote.Config) { c.TLS = ours.tls("") }), "needs cert and key", ""},
		{"CertificateAlone", set(func(c *remote.Config) { c.TLS = ours.tls("x"); c.TLS.CA = "" }), "", "needs ca"},
		{"CertificateWithoutKey", set(func(c *remote.Config) { c.TLS = ours.tls("x"); c.TLS.Key = "" }), "go together", "go together"},
		{"PeersWithoutAuthority", set(func(c *remote.Config) { c.TLS = ours.tls("x"); c.TLS.CA = ""; c.Peers = []string{"a"} }), "remote.peers", "needs ca"},
		{"NoBackends", set(func(c *remote.Config) { c.Backends = nil }), "", "at least one"},
		{"NoPort", set(func(c *remote.Config) { c.Backends = []string{"db1"} }), "host:port", "host:port"},
		{"Twice", set(func(c *remote.Config) { c.Backends = []string{"127.0.0.1:1", "127.0.0.1:1"} }), "twice", "twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			check := func(end string, err error, want string) {
				if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %q", end, err, want)
				}
			}
			_, err := remote.New(remote.Options{Config: test.cfg})
			check("backend", err, test.backend)
			c, err := remote.Dial(test.cfg, nil)
			if err == nil {
				c.Close()
			}
			check("hub", err, test.hubFault)
		})
	}
}

// A stranger who speaks the protocol and has no key gets nothing from any method.
func TestSecurity_EveryMethodAsksForTheKey(t *testing.T) {
	m := start(t, "127.0.0.1:0", remote.Options{})
	for method, err := range remote.CallAllWithoutKey(context.Background(), m.addr) {
		if err == nil || !strings.Contains(err.Error(), "Unauthenticated") {
			t.Errorf("%s: %v", method, err)
		}
	}
}
