package odata

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/wire"
)

var _ dialect.Deferrer = (*Dialect)(nil)

// monitorFolder is below the service root, where the monitors of deferred calls are.
const monitorFolder = "/$async/"

// Deferred reports whether a V4 call prefers an answer later (Prefer: respond-async; OData 4.01 part 1, 8.2.8.8).
func (d *Dialect) Deferred(snap *catalog.Snapshot, c *dialect.Call) bool {
	if r, ok := rootOf(c.Path); !ok || r.ver != v4 {
		return false
	}
	for i := range c.Header {
		if !strings.EqualFold(c.Header[i].Name, "Prefer") {
			continue
		}
		for p := range strings.SplitSeq(c.Header[i].Value, ",") {
			if strings.EqualFold(strings.TrimSpace(p), "respond-async") {
				return true
			}
		}
	}
	return false
}

// MonitorOf is {service root}/$async/{id}.
func (d *Dialect) MonitorOf(c *dialect.Call, id string) string {
	r, _ := rootOf(c.Path)
	return c.Path[:r.end] + monitorFolder + id
}

// Monitored is the id in the path of a monitor.
func (d *Dialect) Monitored(path string) string {
	r, ok := rootOf(path)
	if !ok || r.ver != v4 {
		return ""
	}
	id, ok := strings.CutPrefix(path[r.end:], monitorFolder)
	if !ok || strings.Contains(id, "/") {
		return ""
	}
	return id
}

// Pending is 202 with the address of the monitor.
func (d *Dialect) Pending(c *dialect.Call, monitor string, retry time.Duration, a *wire.Answer) {
	a.Status = http.StatusAccepted
	a.Header.Set("OData-Version", "4.0")
	a.Header.Set("Location", c.Base+monitor)
	a.Header.Set("Retry-After", strconv.Itoa(int(retry.Seconds())))
	if d.Monitored(c.Path) == "" {
		a.Header.Set("Preference-Applied", "respond-async")
	}
}

// Settled is 200 with the whole answer as an HTTP message, or with its status in AsyncResult and its headers and body as they were: that is
// for clients of 4.01, and for those that say what they accept and do not name application/http (OData 4.01 part 1, 11.6).
func (d *Dialect) Settled(c *dialect.Call, done *wire.Answer, a *wire.Answer) {
	a.Status = http.StatusOK
	if !wantsMessage(c) {
		a.Header = append(a.Header, done.Header...)
		a.Header.Set("AsyncResult", strconv.Itoa(done.Status))
		a.Body = append(a.Body, done.Body...)
		return
	}
	a.Header.Set("OData-Version", "4.0")
	a.Header.Set("Content-Type", "application/http")
	a.Header.Set("Content-Transfer-Encoding", "binary")
	b := append(a.Body, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(done.Status), 10)
	b = append(append(append(b, ' '), http.StatusText(done.Status)...), "\r\n"...)
	for _, f := range done.Header {
		b = append(append(append(append(b, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if done.Status != http.StatusNoContent {
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, int64(len(done.Body)), 10), "\r\n"...)
	}
	a.Body = append(append(b, "\r\n"...), done.Body...)
}

// wantsMessage reports whether a monitor answers with an HTTP message.
func wantsMessage(c *dialect.Call) bool {
	accept := strings.ToLower(c.Header.Get("Accept"))
	if strings.Contains(accept, "application/http") {
		return true
	}
	if v := strings.TrimSpace(c.Header.Get("OData-MaxVersion")); v != "" && v != "4.0" {
		return false
	}
	return accept == "" || strings.Contains(accept, "*/*")
}
