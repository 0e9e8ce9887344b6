package odata

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// DoorOptions are the settings of what the dialect wants of the door: tokens against forged changes and repeated requests.
type DoorOptions struct {
	// CSRF says when a change needs the token that a client fetches with X-CSRF-Token: Fetch. on: always. off: never, and none is given
	// out; clients go on without. auto: below /sap/ always, as on SAP Gateway; below /odata/ when a browser may have sent it by itself,
	// that is by cookie alone or with Origin or Sec-Fetch-Site, so that programs which send their credential need none. A service's own csrf: true or
	// false goes before it.
	//
	// Defaults to auto.
	CSRF string `yaml:"csrf"`
	// CSRFAge is how long a token holds. It ends with its session's cookie (auth.session) too.
	//
	// Defaults to 24h.
	CSRFAge time.Duration `yaml:"csrf_age"`
	// CSRFBearer asks callers with a bearer token for one too. No browser sends a bearer token by itself, so that they need none otherwise.
	//
	// Defaults to false.
	CSRFBearer bool `yaml:"csrf_bearer"`
	// RepeatWindow is how long after its Repeatability-First-Sent a request may be repeated; older ones are answered 412. What it
	// did is remembered for engine.token_age, so that should not be shorter.
	//
	// Defaults to 24h.
	RepeatWindow time.Duration `yaml:"repeat_window"`
}

// The values of the setting odata.csrf.
const (
	csrfAuto = "auto"
	csrfOn   = "on"
	csrfOff  = "off"
)

func (o *DoorOptions) defaults() {
	if o.CSRF == "" {
		o.CSRF = csrfAuto
	}
	if o.CSRFAge == 0 {
		o.CSRFAge = 24 * time.Hour
	}
	if o.RepeatWindow == 0 {
		o.RepeatWindow = 24 * time.Hour
	}
}

func (o *DoorOptions) validate() error {
	var faults []error
	if o.CSRF != csrfAuto && o.CSRF != csrfOn && o.CSRF != csrfOff {
		faults = append(faults, fmt.Errorf("odata.csrf: %q is not auto, on or off", o.CSRF))
	}
	if o.CSRFAge < time.Second {
		faults = append(faults, fmt.Errorf("odata.csrf_age: %s is less than 1s", o.CSRFAge))
	}
	if o.RepeatWindow < time.Second {
		faults = append(faults, fmt.Errorf("odata.repeat_window: %s is less than 1s", o.RepeatWindow))
	}
	return errors.Join(faults...)
}

const csrfHeader = "X-CSRF-Token"

var _ dialect.Guarded = (*Dialect)(nil)

// Guard reads the handshake of protocol notes, section 1: a GET or HEAD of any path below a service root may fetch a token, and every
// change owes it. The items of a batch owe none of their own.
func (d *Dialect) Guard(snap *catalog.Snapshot, c *dialect.Call) dialect.Guard {
	g := dialect.Guard{Age: d.opt.CSRFAge, Bearer: d.opt.CSRFBearer, Token: strings.TrimSpace(c.Header.Get(csrfHeader))}
	switch d.opt.CSRF {
	case csrfOn:
		g.Need = dialect.NeedAlways
	case csrfAuto:
		g.Need = dialect.NeedBrowser
		if strings.HasPrefix(c.Path, "/sap/") {
			g.Need = dialect.NeedAlways
		}
	}
	if svc := d.serviceAt(snap, c); svc != nil && svc.Def.CSRF != nil {
		g.Need = dialect.NeedNot
		if *svc.Def.CSRF {
			g.Need = dialect.NeedAlways
		}
	}
	g.Fetch = g.Need != dialect.NeedNot && strings.EqualFold(g.Token, "fetch")
	return g
}

// Grant writes a fresh token.
func (d *Dialect) Grant(token string, a *wire.Answer) { a.Header.Set(csrfHeader, token) }

// Refuse answers a change without a valid token as SAP Gateway does; UI5 then fetches one and tries again.
func (d *Dialect) Refuse(c *dialect.Call, a *wire.Answer) {
	a.Status = http.StatusForbidden
	a.Header.Set(csrfHeader, "Required")
	a.Header.Set("Content-Type", "text/plain;charset=utf-8")
	a.Body = append(a.Body, "CSRF token validation failed"...)
}

// fetching is the exchange of a call that is made for the token alone: a HEAD, which clients send to addresses that need not exist (with a
// slash behind them, or of $batch) and which should not cost a read; and a GET of $batch. Nil for all other calls.
func (d *Dialect) fetching(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	if c.Item || c.Method != "HEAD" && c.Method != "GET" || !strings.EqualFold(strings.TrimSpace(c.Header.Get(csrfHeader)), "fetch") || !d.Guard(snap, c).Fetch {
		return nil, nil
	}
	q := &request{d: d, snap: snap, call: c, method: "GET"}
	if err := q.locate(); err != nil {
		return nil, err
	}
	if c.Method == "GET" && !isBatchPath(q.rest) {
		return nil, nil
	}
	return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) { q.head(a, http.StatusOK) }}, nil
}

// isBatchPath reports whether what follows a service root is $batch.
func isBatchPath(rest string) bool {
	rest = strings.TrimSuffix(rest, "/")
	return rest == "$batch" || rest == "%24batch"
}
