package ords

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

// rowPlan is how rows of one shape are written.
type rowPlan struct {
	data  []rowColumn // members
	links []rowLink   // "$name" aliases
	all   []string    // names of the members
}

type rowColumn struct {
	at     int    // in the row
	prefix string // `{"empno":` of the first, `,"ename":` of others
	typ    record.Type
	raw    bool // JSON text, put in as it stands
	check  bool // which may not be well-formed
}

type rowLink struct {
	at  int
	rel string
}

func planRow(columns []catalog.SQLColumn) rowPlan {
	var p rowPlan
	for i := range columns {
		c := &columns[i]
		if c.Rel != "" {
			p.links = append(p.links, rowLink{i, c.Rel})
			continue
		}
		lead := byte(',')
		if len(p.data) == 0 {
			lead = '{'
		}
		t := typeNamed(c.Type)
		p.data = append(p.data, rowColumn{
			at: i, prefix: string(append(wire.AppendQuote([]byte{lead}, c.Name), ':')), typ: t, raw: c.JSON || t == record.TypeJSON,
			check: c.JSON && !c.Made && c.Native != "json" && c.Native != "jsonb",
		})
		p.all = append(p.all, c.Name)
	}
	return p
}

// appendMembers appends a row without the brace at its end. The error is a fault of the handler: JSON text that is none.
func (p *rowPlan) appendMembers(dst []byte, row []record.Value) ([]byte, error) {
	if len(p.data) == 0 {
		return append(dst, '{'), nil
	}
	for i := range p.data {
		c := &p.data[i]
		dst = append(dst, c.prefix...)
		if !c.raw {
			dst = wire.AppendValue(dst, c.typ, row[c.at])
			continue
		}
		v := &row[c.at]
		if v.Form != record.Text {
			dst = wire.AppendValue(dst, c.typ, *v)
			continue
		}
		if v.S == "" {
			dst = append(dst, "null"...)
			continue
		}
		from := len(dst)
		dst = append(dst, v.S...)
		if c.check && !jsontext.Value(dst[from:]).IsValid(jsontext.AllowDuplicateNames(true)) {
			return dst, malformed(p.all[i])
		}
	}
	return dst, nil
}

// malformed is the fault of a column that is to hold JSON and does not (protocol notes, section 5.3).
func malformed(column string) error {
	return record.Errorf(record.Rejected, "", "a column that is to hold JSON does not").Because(
		errors.New("the column " + column + " is put into the answer as JSON and holds none"))
}

// appendLinks appends the links that a row holds itself, within a list; r resolves them.
func (p *rowPlan) appendLinks(dst []byte, row []record.Value, r *resolver) []byte {
	for _, l := range p.links {
		if v := &row[l.at]; !v.Empty() {
			dst = appendLink(dst, l.rel, r.resolve(v.Text()))
		}
	}
	return dst
}

// appendRefs appends the links of a row as the old sources have them: "uri":{"$ref":…}.
func (p *rowPlan) appendRefs(dst []byte, row []record.Value, r *resolver) []byte {
	for _, l := range p.links {
		if v := &row[l.at]; !v.Empty() {
			dst = appendRef(dst, l.rel, r.resolve(v.Text()))
		}
	}
	return dst
}

// appendRef appends "name":{"$ref":href} to an object that is open.
func appendRef(dst []byte, name, href string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = wire.AppendQuote(dst, name)
	dst = append(dst, `:{"$ref":`...)
	dst = wire.AppendQuote(dst, href)
	return append(dst, '}')
}

// appendRows appends rows as an array of objects.
func (p *rowPlan) appendRows(dst []byte, rows *record.Rows) ([]byte, error) {
	dst = append(dst, '[')
	n := 0
	for row, more := rows.Next(); more; row, more = rows.Next() {
		if n > 0 {
			dst = append(dst, ',')
		}
		n++
		var err error
		if dst, err = p.appendMembers(dst, row); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	return append(dst, ']'), rows.Err()
}
