package ords

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"weir/internal/wire"
)

// hashTag is the entity tag of a body (protocol notes, section 13): strong, quoted, base64 of a hash. SHA-256 is the fastest that processors
// compute themselves; clients do not look at its length.
func hashTag(body []byte) string {
	sum := sha256.Sum256(body)
	b := make([]byte, 0, 2+base64.StdEncoding.EncodedLen(len(sum)))
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, sum[:])
	return string(append(b, '"'))
}

// addTag adds an entity tag to an answer, which whoever got it may keep if he asks each time whether it still holds.
func addTag(a *wire.Answer, etag string) {
	a.Header.Add("ETag", etag)
	a.Header.Add("Cache-Control", "private, no-cache")
}

// tagsOf are the entity tags in the header fields of a name, without quotes and without regard to their strength; "*" is any.
func tagsOf(h wire.Header, name string) []string {
	var list []string
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			list = appendTags(list, h[i].Value)
		}
	}
	return list
}

func appendTags(list []string, s string) []string {
	for {
		s = strings.TrimLeft(s, " \t,")
		if s = strings.TrimPrefix(s, "W/"); s == "" {
			return list
		}
		if s[0] != '"' { // what quotes are missing from is taken as it stands
			tag, more, _ := strings.Cut(s, ",")
			list, s = append(list, strings.TrimSpace(tag)), more
			continue
		}
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return append(list, s[1:])
		}
		list, s = append(list, s[1:1+end]), s[2+end:]
	}
}

// anyTag is what stands for every entity tag.
const anyTag = "*"

// hasTag reports whether a list of tags has the one that etag is, with its quotes.
func hasTag(list []string, etag string) bool {
	return len(list) > 0 && (slices.Contains(list, anyTag) || slices.Contains(list, strings.Trim(etag, `"`)))
}
