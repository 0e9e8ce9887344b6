package odata

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// document is the text of a metadata document. Between its pieces stands the address of the service root, which is the caller's.
type document struct {
	pieces []string
	etag   string
	typ    string // Content-Type
}

// newDocument cuts a text at the places where the address of the service root belongs.
func newDocument(typ string, text []byte) *document {
	sum := sha256.Sum256(text)
	return &document{strings.Split(string(text), rootMark), `W/"` + hex.EncodeToString(sum[:16]) + `"`, typ}
}

// rootMark stands for the address of the service root while a document is made. No text of XML or JSON holds it.
const rootMark = "\x00"

// documents are the metadata documents of a service, each made when it is first asked for.
type documents struct{ xml2, xml4, json4 func() *document }

func newDocuments(svc *edm.Service) *documents {
	return &documents{
		xml2:  sync.OnceValue(func() *document { return newDocument(contentXML, metadata2(svc)) }),
		xml4:  sync.OnceValue(func() *document { return newDocument(contentXML, metadata4(svc)) }),
		json4: sync.OnceValue(func() *document { return newDocument("application/json;charset=utf-8", metadata4JSON(svc)) }),
	}
}

// documents are the metadata documents of svc. Those of services of the current snapshot are kept.
func (m *models) documents(svc *edm.Service) *documents {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by[svc.Name] != svc {
		return newDocuments(svc)
	}
	d := m.docs[svc.Name]
	if d == nil {
		d = newDocuments(svc)
		m.docs[svc.Name] = d
	}
	return d
}

// metadata is the exchange of GET $metadata. V2 answers XML whatever the call accepts (protocol notes, section 2); V4 answers JSON to
// those who prefer it. The document changes when definitions do, so it has an ETag and a time, and 304 answers who has it already.
func (q *request) metadata() (*dialect.Exchange, error) {
	docs := q.d.model.documents(q.svc)
	doc := docs.xml2
	if q.ver == v4 {
		doc = docs.xml4
		if q.prefersJSON() {
			doc = docs.json4
		}
	}
	return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) { q.replyDocument(a, doc()) }}, nil
}

func (q *request) replyDocument(a *wire.Answer, doc *document) {
	q.head(a, 200)
	a.Header.Add("ETag", doc.etag)
	applied := q.snap.Applied
	if !applied.IsZero() {
		a.Header.Add("Last-Modified", applied.UTC().Format(httpTime))
	}
	// Whoever keeps it asks each time whether it is still right.
	a.Header.Add("Cache-Control", "private, no-cache")
	if q.ver == v4 {
		a.Header.Add("Vary", "Accept")
	}
	if q.has(doc.etag, applied) {
		a.Status = 304
		return
	}
	a.Header.Add("Content-Type", doc.typ)
	n := 0
	for _, p := range doc.pieces {
		n += len(p)
	}
	root := q.address()
	a.Body = make([]byte, 0, n+len(root)*len(doc.pieces))
	for i, p := range doc.pieces {
		if i > 0 {
			a.Body = wire.AppendXMLText(a.Body, root)
		}
		a.Body = append(a.Body, p...)
	}
}

// httpTime is the layout of times in HTTP headers.
const httpTime = "Mon, 02 Jan 2006 15:04:05 GMT"

// has reports whether the caller says that it has the document already: If-None-Match, else If-Modified-Since (RFC 9110, section 13.2.2).
func (q *request) has(etag string, changed time.Time) bool {
	if list := q.call.Header.Get("If-None-Match"); list != "" {
		for more := true; more; {
			var tag string
			tag, list, more = strings.Cut(list, ",")
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
				return true
			}
		}
		return false
	}
	since, err := time.Parse(httpTime, strings.TrimSpace(q.call.Header.Get("If-Modified-Since")))
	return err == nil && !changed.IsZero() && !changed.Truncate(time.Second).After(since)
}

// prefersJSON reports whether a call of V4 metadata wants JSON: $format says so, or Accept does more than it wants XML. A client that
// takes anything gets XML, as do those that send the Accept of all their calls, "application/json, */*", and read XML.
func (q *request) prefersJSON() bool {
	if f, ok := q.query.get("$format"); ok {
		name, _, _ := strings.Cut(strings.ToLower(f), ";")
		return name == "json" || strings.TrimSpace(name) == "application/json"
	}
	accept := q.call.Header.Get("Accept")
	return accepts(accept, "application/json") > max(accepts(accept, "application/xml"), accepts(accept, "text/xml"))
}

// accepts is the q that an Accept header gives to a media type, in thousandths: that of the most specific range it is in.
func accepts(accept, typ string) int {
	q, rank := 0, 0
	group, _, _ := strings.Cut(typ, "/")
	for more := accept != ""; more; {
		var item string
		item, accept, more = cutQuoted(accept, ',')
		name, params, _ := cutQuoted(item, ';')
		r := 0
		switch strings.ToLower(strings.TrimSpace(name)) {
		case typ:
			r = 3
		case group + "/*":
			r = 2
		case "*/*":
			r = 1
		}
		if r > rank {
			q, rank = quality(params), r
		}
	}
	return q
}

// serviceDocument is the exchange of GET on the service root.
func (q *request) serviceDocument() (*dialect.Exchange, error) {
	return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) {
		q.head(a, 200)
		q.format.service(q, a)
	}}, nil
}
