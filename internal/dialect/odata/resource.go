package odata

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/edm"
)

// root is the service root in a path, and what it says.
type root struct {
	ver     version
	service string // its name, without ;v= and ;o=
	end     int    // where the root ends: path[:end]
}

// rootOf finds the service root in a path:
//
//	/sap/opu/odata/{namespace}/{SERVICE}[;v=N][;o=ALIAS]/…                 V2
//	/sap/opu/odata4/{ns}/{group}/default/{ns}/{service}/{version}/…       V4
//	/odata/v2/{service}/… and /odata/v4/{service}/…
func rootOf(path string) (r root, ok bool) {
	segments, at := 0, 0
	switch {
	case strings.HasPrefix(path, "/sap/opu/odata/"):
		r.ver, segments, at = v2, 5, 5
	case strings.HasPrefix(path, "/sap/opu/odata4/"):
		r.ver, segments, at = v4, 9, 8
	case strings.HasPrefix(path, "/odata/v2/"):
		r.ver, segments, at = v2, 3, 3
	case strings.HasPrefix(path, "/odata/v4/"):
		r.ver, segments, at = v4, 3, 3
	default:
		return r, false
	}
	for n := 1; n <= segments; n++ {
		if r.end == len(path) {
			return r, false
		}
		begin := r.end + 1
		if next := strings.IndexByte(path[begin:], '/'); next < 0 {
			r.end = len(path)
		} else {
			r.end = begin + next
		}
		if n == at {
			r.service, _, _ = strings.Cut(path[begin:r.end], ";")
		}
	}
	return r, true
}

// serviceAt is the service that a call addresses, nil if there is none.
func (d *Dialect) serviceAt(snap *catalog.Snapshot, c *dialect.Call) *edm.Service {
	r, ok := rootOf(c.Path)
	if !ok {
		return nil
	}
	svc, err := d.model.service(snap, r.service)
	if err != nil {
		return nil
	}
	return svc
}

var _ dialect.Namer = (*Dialect)(nil)

// ResourceOf names service and set, function or $-resource: "odata/GWSAMPLE_BASIC/ProductSet" for all entities of the set and what
// is navigated to from there, in V2 and V4.
func (d *Dialect) ResourceOf(snap *catalog.Snapshot, path string) (name string, known bool) {
	r, ok := rootOf(path)
	if !ok {
		return "", false
	}
	first := strings.TrimPrefix(path[r.end:], "/")
	if i := strings.IndexAny(first, "/("); i >= 0 {
		first = first[:i]
	}
	name = "odata/" + r.service
	if first != "" {
		name += "/" + first
	}
	svc, err := d.model.service(snap, r.service)
	if err != nil {
		return name, false
	}
	switch first {
	case "", "$metadata", "$batch":
		return name, true
	}
	return name, svc.Set(first) != nil || svc.Function(first) != nil
}
