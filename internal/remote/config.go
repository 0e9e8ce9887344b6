package remote

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"weir/internal/auth"
)

// Config is every setting of the line between hubs and backends. Start from [Defaults].
type Config struct {
	// Backends are where the backends of a hub listen, host:port; a list, or one text with commas between.
	//
	// Defaults to none.
	Backends []string `yaml:"backends"`

	// Listen is the address on which a backend takes calls of hubs.
	//
	// Defaults to 127.0.0.1:8090.
	Listen string `yaml:"listen"`

	// Status is an address on which a backend answers /healthz, /readyz and /metrics over plain HTTP; "" is nowhere. Probes that speak gRPC
	// find grpc.health.v1 on the address of the calls.
	//
	// Defaults to "".
	Status string `yaml:"status"`

	// TLS encrypts the line and proves who stands at its ends.
	TLS TLS `yaml:"tls"`

	// Peers are the names (DNS name, URI or common name in their certificate) of the hubs that a backend takes calls from; without one
	// it takes them from everyone with a certificate of remote.tls.ca.
	//
	// Defaults to none.
	Peers []string `yaml:"peers"`

	// Key is a text that hubs and backends share, at least 16 bytes, in place of certificates or beside them. Without remote.tls it is meant for trials,
	// and is taken on this machine's loopback only.
	//
	// Defaults to "".
	Key auth.Secret `yaml:"key"`

	// KeyFile is a file that holds the key.
	//
	// Defaults to "".
	KeyFile string `yaml:"key_file"`

	// Plain allows remote.key beyond this machine without encryption, for networks that nobody else can listen to: the key, the users'
	// passwords and all records cross them in the clear.
	//
	// Defaults to false.
	Plain bool `yaml:"plain"`

	// Health is how often a backend tells its hubs that it is well. A hub that hears nothing for four times as long sends it nothing more.
	//
	// Defaults to 1s.
	Health time.Duration `yaml:"health"`

	// Wait is how long a hub waits at its start for the first backend to answer.
	//
	// Defaults to 30s.
	Wait time.Duration `yaml:"wait"`

	// Retries is how often a call that was lost with its backend is sent again to another, if nothing can happen twice by that: it only
	// reads, or all its writes carry idempotency tokens. What never reached a backend is not counted.
	//
	// Defaults to 2.
	Retries int `yaml:"retries"`

	// Message is how many bytes a message may have: a unit with all its values, or its outcomes. Lists that stream come in pieces and are
	// not bounded by it.
	//
	// Defaults to 268435456 (256 MiB).
	Message int `yaml:"message"`
}

// TLS is the certificates of one end. With all three files both ends prove who they are (mutual TLS), with ca alone on the hub and cert and
// key alone on the backend only the backend does, and the hub shows remote.key.
type TLS struct {
	// Cert is the file with this end's certificate chain, PEM.
	//
	// Defaults to "".
	Cert string `yaml:"cert"`

	// Key is the file with the certificate's key, PEM.
	//
	// Defaults to "".
	Key string `yaml:"key"`

	// CA is the file with the certificates, PEM, that the other end's certificate must descend from.
	//
	// Defaults to "".
	CA string `yaml:"ca"`

	// Name is the name that a backend's certificate must have, where it is not that of its address in remote.backends.
	//
	// Defaults to "".
	Name string `yaml:"name"`
}

// Defaults returns the default settings.
func Defaults() Config {
	return Config{Listen: "127.0.0.1:8090", Health: time.Second, Wait: 30 * time.Second, Retries: 2, Message: 256 << 20}
}

// Validate returns all faults of c that it has for hubs and backends alike, joined, each with the path of its setting.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for i, at := range c.Backends {
		if _, _, err := net.SplitHostPort(at); err != nil {
			fault("remote.backends: %q is not host:port", at)
		}
		if slices.Contains(c.Backends[:i], at) {
			fault("remote.backends: %s is there twice", at)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		fault("remote.listen: %q is not host:port", c.Listen)
	}
	if _, _, err := net.SplitHostPort(c.Status); c.Status != "" && err != nil {
		fault("remote.status: %q is not host:port", c.Status)
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		fault("remote.tls: cert and key go together")
	}
	if c.Key != "" && c.KeyFile != "" {
		fault("remote: either key or key_file")
	}
	if c.Health < 10*time.Millisecond {
		fault("remote.health: must be at least 10ms, not %s", c.Health)
	}
	if c.Wait <= 0 {
		fault("remote.wait: must be longer than zero, not %s", c.Wait)
	}
	if c.Retries < 0 {
		fault("remote.retries: must not be negative: %d", c.Retries)
	}
	if c.Message < 1<<20 || c.Message > 1<<30 {
		fault("remote.message: must be between 1 MiB and 1 GiB, not %d", c.Message)
	}
	return errors.Join(faults...)
}

// leastKey is how long a shared key is at least: one that can be guessed is none.
const leastKey = 16

// key is the shared key, "" if there is none.
func (c *Config) key() (string, error) {
	key := strings.TrimSpace(c.Key.Reveal())
	if c.KeyFile != "" {
		b, err := os.ReadFile(c.KeyFile)
		if err != nil {
			return "", fmt.Errorf("remote.key_file: %w", err)
		}
		if key = strings.TrimSpace(string(b)); key == "" {
			return "", fmt.Errorf("remote.key_file: %s is empty", c.KeyFile)
		}
	}
	if key != "" && len(key) < leastKey {
		return "", fmt.Errorf("remote.key: has at least %d bytes", leastKey)
	}
	if strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", errors.New("remote.key: holds printable ASCII only")
	}
	return key, nil
}

// proven checks that the ends can prove who they are to each other: mutual says by certificates, encrypted that nobody listens.
func (c *Config) proven(key string, encrypted, mutual bool, addresses ...string) error {
	if mutual {
		return nil
	}
	if key == "" {
		return errors.New("remote: hub and backend must know each other: give both certificates of one authority (remote.tls.cert, " +
			"remote.tls.key and remote.tls.ca), or for trials the same remote.key (at least 16 bytes, such as the environment variable WEIR_REMOTE_KEY)")
	}
	if encrypted || c.Plain {
		return nil
	}
	for _, at := range addresses {
		if !auth.LoopbackHost(at) {
			return fmt.Errorf("remote: %s is not on this machine's loopback, and a key alone is no protection there: set remote.tls, or remote.plain if "+
				"nobody else can listen to that network", at)
		}
	}
	return nil
}

// CheckBackend returns what is wrong with the settings for a backend, before it opens anything.
func (c *Config) CheckBackend() error {
	_, _, err := c.backend()
	return err
}

// backend is the key and the TLS of a backend, which lets nobody in who proves nothing.
func (c *Config) backend() (key string, encrypt *tls.Config, err error) {
	if err := c.Validate(); err != nil {
		return "", nil, err
	}
	if key, err = c.key(); err != nil {
		return "", nil, err
	}
	if encrypt, err = c.server(); err != nil {
		return "", nil, err
	}
	mutual := encrypt != nil && encrypt.ClientAuth == tls.RequireAndVerifyClientCert
	return key, encrypt, c.proven(key, encrypt != nil, mutual, c.Listen)
}

// server is the TLS of a backend, nil for none.
func (c *Config) server() (*tls.Config, error) {
	if c.TLS.Cert == "" {
		if c.TLS.CA != "" {
			return nil, errors.New("remote.tls: a backend needs cert and key, not ca alone")
		}
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS13}
	if err := c.load(t); err != nil {
		return nil, err
	}
	if c.TLS.CA != "" {
		pool, err := authorities(c.TLS.CA)
		if err != nil {
			return nil, err
		}
		t.ClientAuth, t.ClientCAs = tls.RequireAndVerifyClientCert, pool
	}
	if len(c.Peers) > 0 {
		if c.TLS.CA == "" {
			return nil, errors.New("remote.peers: the names are those of certificates, which need remote.tls.ca")
		}
		t.VerifyConnection = func(s tls.ConnectionState) error {
			for _, name := range namesOf(s.PeerCertificates[0]) {
				if slices.Contains(c.Peers, name) {
					return nil
				}
			}
			return errors.New("remote: the certificate has none of the names in remote.peers")
		}
	}
	return t, nil
}

// client is the TLS of a hub, nil for none.
func (c *Config) client() (*tls.Config, error) {
	if c.TLS.CA == "" {
		if c.TLS.Cert != "" {
			return nil, errors.New("remote.tls: a hub needs ca to know its backends by")
		}
		return nil, nil
	}
	pool, err := authorities(c.TLS.CA)
	if err != nil {
		return nil, err
	}
	t := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: c.TLS.Name}
	if c.TLS.Cert != "" {
		if err := c.load(t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (c *Config) load(t *tls.Config) error {
	cert, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
	if err != nil {
		return fmt.Errorf("remote.tls.cert, remote.tls.key: %w", err)
	}
	t.Certificates = []tls.Certificate{cert}
	return nil
}

func authorities(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("remote.tls.ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("remote.tls.ca: %s holds no certificate", file)
	}
	return pool, nil
}

// namesOf are the names that a certificate gives its owner.
func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}

// same compares keys in a time that does not depend on them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
