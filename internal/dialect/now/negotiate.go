package now

import (
	"strconv"
	"strings"

	"weir/internal/record"
)

// format is how an answer is written.
type format uint8

const (
	formatJSON format = iota
	formatXML
	formatTextXML
)

var contentTypes = [...]string{
	formatJSON: "application/json;charset=UTF-8", formatXML: "application/xml;charset=UTF-8", formatTextXML: "text/xml;charset=UTF-8",
}

func (f format) xml() bool { return f != formatJSON }

// negotiate chooses the format of an answer. No Accept at all is JSON, as instances do it whatever the documentation says.
func negotiate(accept string) (format, error) {
	if strings.TrimSpace(accept) == "" {
		return formatJSON, nil
	}
	best, found, bestQ := formatJSON, false, 0.0
	for more := true; more; {
		var piece string
		piece, accept, more = strings.Cut(accept, ",")
		media, args, _ := strings.Cut(piece, ";")
		f, ok := acceptable(strings.ToLower(strings.TrimSpace(media)))
		if q := quality(args); ok && q > bestQ {
			best, found, bestQ = f, true, q
		}
	}
	if !found {
		return formatJSON, record.Errorf(record.NotAcceptable, "Accept", "answers are application/json, application/xml or text/xml")
	}
	return best, nil
}

func acceptable(media string) (format, bool) {
	switch media {
	case "application/json", "application/*", "*/*", "text/json", "*":
		return formatJSON, true
	case "application/xml":
		return formatXML, true
	case "text/xml", "text/*":
		return formatTextXML, true
	}
	return formatJSON, false
}

// quality reads q=… of an Accept item; what cannot be read is 1.
func quality(args string) float64 {
	for more := true; more; {
		var piece string
		piece, args, more = strings.Cut(args, ";")
		if v, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(piece)), "q="); ok {
			if q, err := strconv.ParseFloat(v, 64); err == nil {
				return q
			}
		}
	}
	return 1
}

// bodyFormat tells how a body is to be read from its Content-Type. Without one the first character tells. A form or plain
// text is refused: a browser may send those across origins by itself.
func bodyFormat(contentType string, body []byte) (format, error) {
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); {
	case media == "application/json", media == "text/json", strings.HasSuffix(media, "+json"):
		return formatJSON, nil
	case media == "application/xml", media == "text/xml", strings.HasSuffix(media, "+xml"):
		return formatXML, nil
	case media == "", media == "*/*":
		for _, c := range body {
			if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
				continue
			}
			if c == '<' {
				return formatXML, nil
			}
			break
		}
		return formatJSON, nil
	}
	return formatJSON, record.Errorf(record.Unsupported, "Content-Type", "%.60q is not application/json, application/xml or text/xml", media)
}
