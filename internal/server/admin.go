package server

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// AdminPrefix is where the pages for administrators are.
const AdminPrefix = "/weir/"

// SettingsPath lists the settings in force, each with where it came from, and takes changes of those that change while the node runs.
const SettingsPath = "/weir/settings"

// Settings are those of the whole node as people see them.
type Settings struct {
	// List is what a page shows: in JSON a list of setting, value and source.
	List func() (any, error)
	// Change lays a JSON document over them and puts the result in force on this node; by is who wanted it. An error that is a
	// record.Error is the caller's to see; nothing is changed then.
	Change func(ctx context.Context, patch []byte, by string) (names []string, err error)
}

// adminPage is a page for administrators.
type adminPage func(v *Visit, ctx context.Context, snap *catalog.Snapshot, a *wire.Answer) error

// adminPageOf is the page at a path, nil for none.
func (s *Server) adminPageOf(path string) adminPage {
	switch {
	case path == GatePath:
		return (*Visit).gateState
	case path == SettingsPath && s.o.Settings.List != nil:
		return (*Visit).settings
	case path == EndpointsPath || path == EndpointsPath+"/":
		return (*Visit).endpoints
	case strings.HasPrefix(path, EndpointsPath+"/") && strings.HasSuffix(path, planSuffix):
		return (*Visit).plan
	}
	return nil
}

// admin serves a page for administrators. It needs no slot, so that it answers when none is free.
func (s *Server) admin(w http.ResponseWriter, r *http.Request, page adminPage) {
	v := &Visit{
		Recorder: telemetry.New(), Number: s.serial.Add(1), Method: r.Method, Path: r.URL.Path, Identity: auth.Guest(), Dialect: "weir",
		URL: s.redact.url(r.URL), s: s, w: w, r: r, control: http.NewResponseController(w), d: s.o.Fallback,
	}
	v.Recorder.ID = newTransactionID()
	v.leave = v.Recorder.Enter(telemetry.Hub)
	s.metrics.running.Add(1)
	defer v.end()
	defer v.recover()
	ctx := telemetry.With(r.Context(), v.Recorder)
	snap, err := s.o.Snapshot(ctx)
	if err == nil {
		err = v.identify(ctx, snap)
	}
	v.logStart()
	if err == nil && !v.Identity.Actor.Admin() {
		err = record.Errorf(record.Forbidden, "", "%s is for administrators", clean(r.URL.Path, 100))
	}
	a := answer()
	defer release(a)
	if err == nil {
		err = page(v, ctx, snap, a)
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.send(a)
}

// answerJSON makes the answer of a page.
func answerJSON(page any, a *wire.Answer) (err error) {
	a.Header.Set("Content-Type", "application/json;charset=UTF-8")
	a.Body, err = json.Marshal(page)
	return err
}

// patch reads the body of a change of what.
func (v *Visit) patch(what string) ([]byte, error) {
	// Not text/plain, which a page of another site may send without asking.
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/merge-patch+json" && kind != "application/json" {
		return nil, record.Errorf(record.Unsupported, "Content-Type", "a change of %s is application/merge-patch+json", what)
	}
	v.control.SetReadDeadline(time.Now().Add(v.s.cfg.Limits.BodyTime))
	body, err := io.ReadAll(io.LimitReader(v.r.Body, maxForm+1))
	v.control.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		return nil, v.unread(err)
	case len(body) > maxForm:
		return nil, record.Errorf(record.TooLarge, "", "a change of %s has at most %d bytes", what, maxForm)
	case !json.Valid(body):
		return nil, record.Errorf(record.Invalid, "", "the body is not JSON")
	}
	return body, nil
}

// settings serves [SettingsPath].
func (v *Visit) settings(ctx context.Context, _ *catalog.Snapshot, a *wire.Answer) error {
	switch v.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPatch:
		if v.s.o.Settings.Change == nil {
			return record.Errorf(record.NotAllowed, "", "the settings of this node cannot be changed")
		}
		patch, err := v.patch("the settings")
		if err != nil {
			return err
		}
		name, _, _ := v.user()
		name = clean(name, 100)
		changed, err := v.s.o.Settings.Change(ctx, patch, name)
		if err != nil {
			return err
		}
		v.s.log.Info("settings were changed", "txid", v.Recorder.ID, "user", name, "settings", strings.Join(changed, " "), "patch", clean(string(patch), maxURL))
	default:
		return record.Errorf(record.NotAllowed, "", "%s takes GET and PATCH", SettingsPath)
	}
	list, err := v.s.o.Settings.List()
	if err != nil {
		return err
	}
	return answerJSON(map[string]any{"settings": list}, a)
}
