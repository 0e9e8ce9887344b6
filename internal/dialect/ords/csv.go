package ords

import (
	"strings"

	"weir/internal/record"
	"weir/internal/wire"
)

// csv writes csv/query (protocol notes, section 4): a line of names, then the rows, as RFC 4180 has it. Of pages the next one is named by
// a Link. A table that is asked for whole and has more rows than any answer may have is an error, for part of it would pass for all.
func (r *reply) csv(rows *record.Rows, a *wire.Answer) error {
	r.head(a, typeCSV)
	plan := &r.h.row
	for i, name := range plan.all {
		a.Body = r.appendText(separate(a.Body, i), name)
	}
	a.Body = append(a.Body, "\r\n"...)
	for n := int64(0); ; n++ {
		row, ok := rows.Next()
		if !ok {
			return rows.Err()
		}
		if n == r.page.limit {
			if r.page.whole {
				return record.Errorf(record.TooLarge, "", "there are more than %d rows; ask for them by limit and offset, or see ords.max_rows", n)
			}
			if r.page.limit > 0 && !r.sent {
				a.Header.Add("Link", "<"+r.pageLink(&r.page, r.page.offset+r.page.limit)+`>; rel="next"`)
			}
			return nil
		}
		for i := range plan.data {
			a.Body = r.appendField(separate(a.Body, i), plan.data[i].typ, row[plan.data[i].at])
		}
		a.Body = append(a.Body, "\r\n"...)
		if !r.page.whole {
			continue // whether there is a Link is known at the end
		}
		if err := r.grown(a); err != nil {
			return err
		}
	}
}

func separate(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

// appendField writes a value as its JSON has it, without the quotes. Null is nothing, an empty text is "".
func (r *reply) appendField(dst []byte, t record.Type, v record.Value) []byte {
	switch {
	case v.IsNull():
		return dst
	case v.Form == record.Text && t != record.TypeBytes && t != record.TypeDecimal && t != record.TypeDate:
		return r.appendText(dst, v.S)
	}
	from := len(dst)
	dst = wire.AppendValue(dst, t, v)
	if n := len(dst); n > from+1 && dst[from] == '"' { // a time, a date, bytes: nothing in them wants quotes
		copy(dst[from:], dst[from+1:n-1])
		dst = dst[:n-2]
	}
	return dst
}

func (r *reply) appendText(dst []byte, s string) []byte {
	if r.opt.CSVGuard && s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		s = "'" + s
	}
	if s != "" && !strings.ContainsAny(s, "\",\r\n") && s[0] != ' ' && s[len(s)-1] != ' ' {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			break
		}
		dst = append(append(dst, s[:i+1]...), '"')
		s = s[i+1:]
	}
	return append(append(dst, s...), '"')
}
