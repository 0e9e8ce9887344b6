package odata

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/dialect"
	"weir/internal/record"
)

// formatName is a format as text.
func formatName(f format) string {
	switch f := f.(type) {
	case json2:
		return "json2"
	case atom2:
		return "atom"
	case *json4:
		name := []string{"minimal", "none", "full"}[f.meta]
		if f.texts {
			name += " texts"
		}
		if f.short {
			name += " short"
		}
		return name
	}
	return fmt.Sprintf("%T", f)
}

func TestNegotiate_AsTheVersionsSay(t *testing.T) {
	for _, c := range []struct {
		ver           version
		param, accept string
		want          string // "" for a NotAcceptable
	}{
		{v2, "", "", "atom"},
		{v2, "", "*/*", "atom"},
		{v2, "", "*/*;q=0.1", "atom"},
		{v2, "", "application/json", "json2"},
		{v2, "", "Application/JSON;charset=utf-8", "json2"},
		{v2, "", "application/json;odata=verbose", "json2"},
		{v2, "", "application/json, text/plain, */*", "json2"},
		{v2, "", "application/json;q=0.5, application/atom+xml", "atom"},
		{v2, "", "application/json;q=0.9, */*;q=0.8", "json2"},
		{v2, "", "application/json;q=0.1, */*;q=0.8", "atom"},
		{v2, "", "application/atom+xml,application/xml;q=0.9,application/json;q=0.95", "atom"},
		{v2, "", "application/atomsvc+xml", "atom"},
		{v2, "", "text/xml", "atom"},
		{v2, "", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "atom"},
		{v2, "", "application/xml, application/json", "atom"},
		{v2, "", "application/json, application/xml", "json2"},
		{v2, "", "image/png", ""},
		{v2, "", "application/json;q=0", ""},
		{v2, "", "application/json;q=0.0, image/*", ""},
		{v2, "", `multipart/mixed; a="x,application/json"`, ""},
		{v2, "json", "application/xml", "json2"},
		{v2, "JSON", "", "json2"},
		{v2, "atom", "application/json", "atom"},
		{v2, "xml", "application/json", "atom"},
		{v2, "application/json", "", "json2"},
		{v2, "application/json;odata=verbose", "", "json2"},
		{v2, "xlsx", "application/json", ""},
		{v2, "*/*", "", "atom"},
		{v4, "", "", "minimal"},
		{v4, "", "*/*", "minimal"},
		{v4, "", "application/json", "minimal"},
		{v4, "", "application/json;odata.metadata=minimal;IEEE754Compatible=true", "minimal texts"},
		{v4, "", "application/json;metadata=full", "full"},
		{v4, "", "application/json; odata.metadata=none; odata.streaming=true", "none"},
		{v4, "", `application/json;odata.metadata="full"`, "full"},
		{v4, "", "application/json;odata.metadata=verbose", ""},
		{v4, "", "application/json;odata.metadata=full;q=0.5,application/json;odata.metadata=none;q=0.7", "none"},
		{v4, "", "application/xml", ""},
		{v4, "", "application/atom+xml,*/*;q=0.1", "minimal"},
		{v4, "json", "application/xml", "minimal"},
		{v4, "application/json;odata.metadata=full", "", "full"},
		{v4, "atom", "", ""},
	} {
		f, err := chooseFormat(c.ver, c.param, c.accept)
		switch {
		case err != nil && record.KindOf(err) != record.NotAcceptable:
			t.Errorf("%d %q %q: %v", c.ver, c.param, c.accept, err)
		case err != nil && c.want != "", err == nil && formatName(f) != c.want:
			t.Errorf("%d $format=%q Accept: %q: %s (%v), want %q", c.ver, c.param, c.accept, formatName(f), err, c.want)
		}
	}
}

func TestNegotiate_WhatHasOneFormatNeedsNoConsent(t *testing.T) {
	for _, rest := range []string{"$metadata", "ProductSet/$count", "ProductSet('1')/Name/$value", "$batch"} {
		c := &dialect.Call{}
		c.Header.Add("Accept", "text/plain")
		q := &request{ver: v2, call: c, rest: rest}
		if _, err := q.negotiate(); err != nil {
			t.Errorf("%s: %v", rest, err)
		}
		q.rest = "ProductSet"
		if _, err := q.negotiate(); record.KindOf(err) != record.NotAcceptable {
			t.Errorf("a feed as text: %v", err)
		}
	}
}

func TestNegotiate_ShortNamesAreForThoseWhoAskFor401(t *testing.T) {
	for header, want := range map[string]string{"4.01": "4.01", "4.0": "4.0", "": "4.0", " 4.01 ": "4.01"} {
		c := &dialect.Call{}
		c.Header.Add("OData-MaxVersion", header)
		q := &request{ver: v4, call: c}
		var err error
		if q.format, err = q.negotiate(); err != nil {
			t.Fatal(err)
		}
		if got := q.version4(); got != want {
			t.Errorf("OData-MaxVersion %q is answered by %s, want %s", header, got, want)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add(uint8(2), "", "application/json;q=0.5, */*;q=0.1")
	f.Add(uint8(4), "application/json;odata.metadata=full", `a/b;c="d,e;f"`)
	f.Fuzz(func(t *testing.T, ver uint8, param, accept string) {
		v := v2
		if ver%2 == 0 {
			v = v4
		}
		format, err := chooseFormat(v, param, accept)
		if (format == nil) == (err == nil) {
			t.Fatalf("format %v, error %v", format, err)
		}
		if err != nil && record.KindOf(err) != record.NotAcceptable {
			t.Fatal(err)
		}
		if v, ok := preference(accept, param); !ok && v != "" {
			t.Fatalf("no preference has the value %q", v)
		}
		if matches("", accept) {
			t.Fatal("no tag matches")
		}
		if strings.Contains(accept, "*/*") && !strings.ContainsAny(accept, `";=`) && err != nil && param == "" {
			t.Fatalf("%q accepts everything", accept)
		}
	})
}
