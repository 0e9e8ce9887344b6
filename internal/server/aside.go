package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/telemetry"
)

// The endpoints that hand out tokens and take them back.
const (
	TokenPath  = "/oauth_token.do"
	RevokePath = "/oauth_revoke_token.do"
)

// aside answers what does not take the line: health, metrics and tokens. They need no slot, so they answer in a flood too.
func (s *Server) aside(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz":
		text(w, http.StatusOK, "ok")
	case "/readyz":
		s.ready(w, r)
	case "/metrics":
		if !s.cfg.Telemetry.Metrics {
			return false
		}
		s.metrics.handler.ServeHTTP(w, r)
	case TokenPath:
		s.token(w, r, s.o.Fallback, s.o.Auth.Token)
	case RevokePath:
		s.token(w, r, s.o.Fallback, s.o.Auth.Revoked)
	default:
		if strings.HasPrefix(r.URL.Path, AdminPrefix) {
			page := s.adminPageOf(r.URL.Path)
			if page != nil {
				s.admin(w, r, page)
			}
			return page != nil
		}
		d := s.o.Mux.Find(r.URL.Path)
		if issuer, ok := d.(dialect.Issuer); !ok || !issuer.IsToken(r.URL.Path) {
			return false
		}
		s.token(w, r, d, s.o.Auth.Token)
	}
	return true
}

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	io.WriteString(w, s+"\n")
}

// ready says whether this node should get requests: the database answers, and it is not about to stop.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.Draining() {
		text(w, http.StatusServiceUnavailable, "draining")
		return
	}
	if s.o.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.o.Ready(ctx); err != nil {
			// The cause may name hosts and users, and anybody may ask here.
			s.log.Warn("not ready", "error", err.Error())
			text(w, http.StatusServiceUnavailable, "the database does not answer")
			return
		}
	}
	text(w, http.StatusOK, "ok")
}

// maxForm bounds the body of a token request.
const maxForm = 64 << 10

// token serves the endpoints of tokens; d words what is wrong before they are asked. Password checks have permits and limits of their own, so it takes no slot.
func (s *Server) token(w http.ResponseWriter, r *http.Request, d dialect.Dialect, do func(context.Context, *catalog.Snapshot, *http.Request, []byte) (*auth.Answer, error)) {
	v := &Visit{
		Recorder: telemetry.New(), Number: s.serial.Add(1), Method: r.Method, Path: r.URL.Path, Identity: auth.Guest(), Dialect: "oauth",
		URL: s.redact.url(r.URL), s: s, w: w, r: r, control: http.NewResponseController(w), d: d,
	}
	v.Recorder.ID = newTransactionID()
	v.leave = v.Recorder.Enter(telemetry.Hub)
	s.metrics.running.Add(1)
	defer v.end()
	defer v.recover()
	v.logStart()
	if r.Method != http.MethodPost && !(r.Method == http.MethodGet && r.URL.Path == RevokePath) {
		v.fail(record.Errorf(record.NotAllowed, "", "the token endpoint takes POST"))
		return
	}
	if err := s.forgery.Check(r); err != nil {
		v.fail(record.Errorf(record.Forbidden, "", "a page of another site may not do this").Because(err))
		return
	}
	v.control.SetReadDeadline(time.Now().Add(s.cfg.Limits.BodyTime))
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm+1))
	v.control.SetReadDeadline(time.Time{})
	if err != nil {
		v.fail(v.unread(err))
		return
	}
	if len(body) > maxForm {
		v.fail(record.Errorf(record.TooLarge, "", "a token request has at most %d bytes", maxForm))
		return
	}
	ctx := telemetry.With(r.Context(), v.Recorder)
	snap, err := s.o.Snapshot(ctx)
	if err != nil {
		v.fail(err)
		return
	}
	says, err := do(ctx, snap, r, body)
	if err != nil {
		if record.KindOf(err) == record.RateLimited {
			v.retry = time.Minute
		}
		v.fail(err)
		return
	}
	a := answer()
	defer release(a)
	a.Status = says.Status
	if _, _, basic := r.BasicAuth(); basic && a.Status == http.StatusUnauthorized && r.URL.Path != TokenPath {
		a.Header.Set("WWW-Authenticate", `Basic realm="oauth"`) // RFC 6749, section 5.2
	}
	if says.Body != nil {
		a.Header.Set("Content-Type", "application/json;charset=UTF-8")
		if a.Body, err = json.Marshal(says.Body); err != nil {
			v.fail(err)
			return
		}
	}
	v.send(a)
}
