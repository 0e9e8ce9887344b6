package e2e

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
)

// envelope reports what is wrong with the body of an error: it must be the error envelope of the now dialect, in JSON or XML.
func envelope(a answer) error {
	kind := a.header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "application/json"):
		var e struct {
			Error *struct {
				Message string  `json:"message"`
				Detail  *string `json:"detail"`
			} `json:"error"`
			Status string `json:"status"`
		}
		d := json.NewDecoder(strings.NewReader(a.body))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("%w in %.300q", err, a.body)
		}
		if e.Error == nil || e.Error.Message == "" || e.Status != "failure" {
			return fmt.Errorf("no message or no failure in %.300q", a.body)
		}
	case strings.HasPrefix(kind, "application/xml"), strings.HasPrefix(kind, "text/xml"):
		var e struct {
			XMLName xml.Name `xml:"response"`
			Message string   `xml:"error>message"`
			Status  string   `xml:"status"`
		}
		if err := xml.Unmarshal([]byte(a.body), &e); err != nil {
			return fmt.Errorf("%w in %.300q", err, a.body)
		}
		if e.Message == "" || e.Status != "failure" {
			return fmt.Errorf("no message or no failure in %.300q", a.body)
		}
	default:
		return fmt.Errorf("Content-Type is %q, body %.300q", kind, a.body)
	}
	return nil
}
