package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"weir/internal/auth"
)

// Limits bound what a client can make the server hold.
type Limits struct {
	// Body is how many bytes a request body may have, after decompression.
	//
	// Defaults to 67108864 (64 MiB).
	Body int64 `yaml:"body"`

	// BodyTime is how long a client may take to send its body.
	//
	// Defaults to 60s.
	BodyTime time.Duration `yaml:"body_time"`

	// Load is how many bytes a body may have that is worked on while it comes, as batch loads are, after decompression. Of these
	// BodyTime is what the client may take for each 64 KiB.
	//
	// Defaults to 17179869184 (16 GiB).
	Load int64 `yaml:"load"`

	// WriteTime is how long a client may take to read the next 64 KiB of its answer.
	//
	// Defaults to 30s.
	WriteTime time.Duration `yaml:"write_time"`

	// HeaderTime is how long a client may take to send the request line and headers.
	//
	// Defaults to 10s.
	HeaderTime time.Duration `yaml:"header_time"`

	// IdleTime is how long a connection may stay open between requests.
	//
	// Defaults to 2m.
	IdleTime time.Duration `yaml:"idle_time"`

	// HeaderBytes bounds the request line and headers together.
	//
	// Defaults to 65536 (64 KiB).
	HeaderBytes int `yaml:"header_bytes"`

	// Connections bounds the connections open at once; further ones wait to be accepted.
	//
	// Defaults to 10000.
	Connections int `yaml:"connections"`

	// Memory is how many bytes of memory the process tries to stay below: as it comes near, garbage is collected more often, so that
	// what is held for clients and what it leaves behind stay about within the byte budget. It is no hard limit. 0 is gate.bytes.limit and 48 MiB
	// for all else, moving with it; -1 is none. The environment variable GOMEMLIMIT goes before it.
	//
	// Defaults to 0.
	Memory int64 `yaml:"memory"`

	// Drain is how long accepted requests may take to finish when the server stops.
	//
	// Defaults to 5m.
	Drain time.Duration `yaml:"drain"`
}

// Log says what is written to the log.
type Log struct {
	// Level is the least level written: debug, info, warn or error.
	//
	// Defaults to info.
	Level string `yaml:"level"`

	// Format is text or json.
	//
	// Defaults to text.
	Format string `yaml:"format"`

	// Requests says which requests get a line at their start and their end, batch items included: all, slow (only at the end) or none.
	//
	// Defaults to slow.
	Requests string `yaml:"requests"`

	// Slow is how long a request takes that counts as slow.
	//
	// Defaults to 5s.
	Slow time.Duration `yaml:"slow"`

	// Redact are query parameters whose values are replaced by *** in the log and in the transaction log; "*" is all of them.
	//
	// Defaults to password, client_secret, access_token, refresh_token, token and apikey.
	Redact []string `yaml:"redact"`
}

// TxLog says how the transaction log is kept.
type TxLog struct {
	// Table is where it is written, if the project has it; "" is nowhere.
	//
	// Defaults to syslog_transaction.
	Table string `yaml:"table"`

	// Queue is how many rows may wait to be written. What does not fit is lost and counted; no request waits for it.
	//
	// Defaults to 20000.
	Queue int `yaml:"queue"`

	// Flush is how long a row waits for others at most.
	//
	// Defaults to 1s.
	Flush time.Duration `yaml:"flush"`

	// Batch is how many rows are written together.
	//
	// Defaults to 500.
	Batch int `yaml:"batch"`

	// Keep is how old a row becomes before it is removed; 0 keeps all.
	//
	// Defaults to 168h (a week).
	Keep time.Duration `yaml:"keep"`
}

// Telemetry says what is shown of where time goes.
type Telemetry struct {
	// Timing puts layers and SQL time into Server-Timing of every answer, not only of those asked for by the header X-Weir-Timing.
	//
	// Defaults to false.
	Timing bool `yaml:"timing"`

	// Metrics serves /metrics.
	//
	// Defaults to true.
	Metrics bool `yaml:"metrics"`

	// OTLP is the URL that OpenTelemetry spans are sent to (OTLP over HTTP), such as http://127.0.0.1:4318; "" sends none.
	//
	// Defaults to "".
	OTLP string `yaml:"otlp"`

	// SlowStatement is how long a statement of a SQL endpoint takes that counts as slow: it is written to the log with its plan, at most
	// one plan of each in a minute, and never with the values of its binds. 0 is none.
	//
	// Defaults to 1s.
	SlowStatement time.Duration `yaml:"slow_statement"`

	// Sample is the share of requests that spans are made of, from 0 to 1.
	//
	// Defaults to 1.
	Sample float64 `yaml:"sample"`

	// Pprof is a loopback address, such as 127.0.0.1:6060, where Go's profiler answers without a login; "" answers nowhere. It is
	// read at start.
	//
	// Defaults to "".
	Pprof string `yaml:"pprof"`
}

// Compress says which answers are compressed.
type Compress struct {
	// Level is how hard gzip tries, from 1 (fast) to 9 (small); 0 compresses nothing.
	//
	// Defaults to 1.
	Level int `yaml:"level"`

	// Least is the size in bytes from which an answer is compressed for clients that take gzip. A streamed answer is as large as its
	// first piece.
	//
	// Defaults to 2048.
	Least int `yaml:"least"`
}

// CORS says which pages of other origins may call.
type CORS struct {
	// Origins are the origins, such as https://fiori.example.com, whose pages may call this server and read its answers. Their
	// changes count as the user's own, so list only pages that you trust.
	//
	// Defaults to none.
	Origins []string `yaml:"origins"`
}

// Async says how calls are answered later (Prefer: respond-async).
type Async struct {
	// Workers is how many deferred calls this node executes at once, each in a slot of the gate's pool "jobs"; 0 defers none, and calls
	// that ask for it are answered at once.
	//
	// Defaults to 4.
	Workers int `yaml:"workers"`

	// Queue is how many deferred calls may wait for all nodes together; further ones are answered at once.
	//
	// Defaults to 1000.
	Queue int `yaml:"queue"`

	// Lease is how long a node may be silent before another one takes over the call that it executes.
	//
	// Defaults to 30s.
	Lease time.Duration `yaml:"lease"`

	// Poll is how often a node looks for calls that other nodes accepted, or left behind.
	//
	// Defaults to 1s.
	Poll time.Duration `yaml:"poll"`

	// Attempts is how often a call is begun that a node's end or a lack of room stopped, before it counts as failed.
	//
	// Defaults to 5.
	Attempts int `yaml:"attempts"`

	// Keep is how long the answer of a deferred call can be asked for.
	//
	// Defaults to 24h.
	Keep time.Duration `yaml:"keep"`
}

// TLS says how the listeners are encrypted.
type TLS struct {
	// Cert is the file with the certificate chain, PEM.
	//
	// Defaults to "": no encryption.
	Cert string `yaml:"cert"`

	// Key is the file with the certificate's key, PEM.
	Key string `yaml:"key"`

	// ClientCA is the file with the certificates, PEM, of those who vouch for clients that show a certificate of their own. Who shows
	// none is served as well; see auth.trusted.certs.
	//
	// Defaults to "": clients are not asked.
	ClientCA string `yaml:"client_ca"`

	// Self makes a certificate of its own at start, which nobody trusts: for tests.
	//
	// Defaults to false.
	Self bool `yaml:"self"`
}

// Config is every setting of the server. Start from [Defaults].
type Config struct {
	Listen    []string
	TLS       TLS
	Limits    Limits
	Log       Log
	TxLog     TxLog
	Telemetry Telemetry
	Compress  Compress
	CORS      CORS
	Async     Async

	// Trusted is a gateway in front that says who is calling.
	Trusted auth.Trusted

	// Proxies are the addresses and networks of reverse proxies whose X-Forwarded-Proto and X-Forwarded-Host are believed, for the links
	// in answers.
	Proxies []string
}

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		Listen: []string{"127.0.0.1:8080"},
		Limits: Limits{
			Body: 64 << 20, Load: 16 << 30, BodyTime: time.Minute, WriteTime: 30 * time.Second, HeaderTime: 10 * time.Second,
			IdleTime: 2 * time.Minute, HeaderBytes: 64 << 10, Connections: 10_000, Drain: 5 * time.Minute,
		},
		Log: Log{
			Level: "info", Format: "text", Requests: "slow", Slow: 5 * time.Second,
			Redact: []string{"password", "client_secret", "access_token", "refresh_token", "token", "apikey"},
		},
		TxLog:     TxLog{Table: "syslog_transaction", Queue: 20_000, Flush: time.Second, Batch: 500, Keep: 7 * 24 * time.Hour},
		Telemetry: Telemetry{Metrics: true, Sample: 1, SlowStatement: time.Second},
		Compress:  Compress{Level: 1, Least: 2048},
		Async:     Async{Workers: 4, Queue: 1000, Lease: 30 * time.Second, Poll: time.Second, Attempts: 5, Keep: 24 * time.Hour},
	}
}

// Validate returns all faults of c, joined, each with the path of its setting.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	oneOf := func(path, v string, allowed ...string) {
		if !slices.Contains(allowed, v) {
			fault("%s: %q is not one of %s", path, v, strings.Join(allowed, ", "))
		}
	}
	positive := func(path string, n int64) {
		if n < 1 {
			fault("%s: must be at least 1, not %d", path, n)
		}
	}
	some := func(path string, d time.Duration) {
		if d <= 0 {
			fault("%s: must be longer than zero, not %s", path, d)
		}
	}
	if len(c.Listen) == 0 {
		fault("listen: at least one address is needed")
	}
	for _, l := range c.Listen {
		if _, _, err := net.SplitHostPort(l); err != nil {
			fault("listen: %q is not host:port", l)
		}
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		fault("tls: cert and key go together")
	}
	if c.TLS.Self && c.TLS.Cert != "" {
		fault("tls: either self or cert and key")
	}
	encrypted := c.TLS.Self || c.TLS.Cert != ""
	if c.TLS.ClientCA != "" && !encrypted {
		fault("tls.client_ca: needs tls.cert and tls.key")
	}
	if len(c.Trusted.Certs) > 0 && c.TLS.ClientCA == "" {
		fault("auth.trusted.certs: tls.client_ca must say who vouches for them")
	}
	positive("limits.body", c.Limits.Body)
	positive("limits.load", c.Limits.Load)
	positive("limits.header_bytes", int64(c.Limits.HeaderBytes))
	positive("limits.connections", int64(c.Limits.Connections))
	if c.Limits.Memory < -1 {
		fault("limits.memory: must be a number of bytes, 0 or -1, not %d", c.Limits.Memory)
	}
	some("limits.body_time", c.Limits.BodyTime)
	some("limits.write_time", c.Limits.WriteTime)
	some("limits.header_time", c.Limits.HeaderTime)
	some("limits.idle_time", c.Limits.IdleTime)
	some("limits.drain", c.Limits.Drain)
	oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf("log.format", c.Log.Format, "text", "json")
	oneOf("log.requests", c.Log.Requests, "all", "slow", "none")
	some("log.slow", c.Log.Slow)
	positive("transactions.queue", int64(c.TxLog.Queue))
	positive("transactions.batch", int64(c.TxLog.Batch))
	some("transactions.flush", c.TxLog.Flush)
	if c.TxLog.Keep < 0 {
		fault("transactions.keep: must not be negative: %s", c.TxLog.Keep)
	}
	if at := c.Telemetry.Pprof; at != "" && !auth.LoopbackHost(at) {
		fault("telemetry.pprof: %q is not on this machine's loopback; anyone who reaches it may look into the server's memory", at)
	}
	if c.Telemetry.SlowStatement < 0 {
		fault("telemetry.slow_statement: must not be negative: %s", c.Telemetry.SlowStatement)
	}
	if c.Telemetry.Sample < 0 || c.Telemetry.Sample > 1 {
		fault("telemetry.sample: must lie between 0 and 1, not %v", c.Telemetry.Sample)
	}
	if c.Compress.Level < 0 || c.Compress.Level > gzip.BestCompression {
		fault("compress.level: must lie between 0 and %d, not %d", gzip.BestCompression, c.Compress.Level)
	}
	if c.Compress.Least < 0 {
		fault("compress.least: must not be negative: %d", c.Compress.Least)
	}
	for _, o := range c.CORS.Origins {
		if u, err := url.Parse(o); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != o {
			fault("cors.origins: %q is not an origin such as https://host or https://host:port", o)
		}
	}
	if _, err := auth.ParseNetworks(c.Proxies); err != nil {
		fault("proxies: %v", err)
	}
	if c.Async.Workers < 0 {
		fault("async.workers: must not be negative: %d", c.Async.Workers)
	}
	positive("async.queue", int64(c.Async.Queue))
	positive("async.attempts", int64(c.Async.Attempts))
	some("async.lease", c.Async.Lease)
	some("async.poll", c.Async.Poll)
	some("async.keep", c.Async.Keep)
	return errors.Join(faults...)
}
