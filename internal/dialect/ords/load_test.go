package ords

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readCSV reads all rows of a text, a few bytes at a time.
func readCSV(t testing.TB, text string, f csvFormat) (rows [][]string, err error) {
	t.Helper()
	if f.most == 0 {
		f.most = 1 << 20
	}
	r := newCSVReader(iotest.OneByteReader(strings.NewReader(text)), f)
	for {
		fields, _, err := r.next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		var row []string
		for _, f := range fields {
			s := string(f.text)
			if f.enclosed {
				s = "'" + s + "'"
			}
			row = append(row, s)
		}
		rows = append(rows, row)
	}
}

func TestCSV_ReadsWhatBatchLoadsAllow(t *testing.T) {
	plain := csvFormat{delimiter: []byte(","), left: '"', right: '"'}
	for _, c := range []struct {
		name, text string
		f          csvFormat
		want       [][]string
	}{
		{"rows", "a,b\nc,d", plain, [][]string{{"a", "b"}, {"c", "d"}}},
		{"terminators", "a\r\nb\rc\n\n\r\nd", plain, [][]string{{"a"}, {"b"}, {"c"}, {"d"}}},
		{"empty fields", ",\n\"\",", plain, [][]string{{"", ""}, {"''", ""}}},
		{"enclosed", "\"a,\"\"b\"\"\n\",c\n", plain, [][]string{{"'a,\"b\"\n'", "c"}}},
		{"enclosure within", "a\"b,c\"\n", plain, [][]string{{"a\"b", "c\""}}},
		{"text behind an enclosure", "\"a\"b,c", plain, [][]string{{"'ab'", "c"}}},
		{"brackets", "[a|]]|[|b", csvFormat{delimiter: []byte("|"), left: '[', right: ']'}, [][]string{{"'a|]|[|b'"}}},
		{"long delimiter", "a::b:c::\n", csvFormat{delimiter: []byte("::")}, [][]string{{"a", "b:c", ""}}},
		{"own terminator", "a,b\n<>c,<d<>", csvFormat{delimiter: []byte(","), end: []byte("<>")}, [][]string{{"a", "b\n"}, {"c", "<d"}}},
		{"no enclosures", "\"a,b\"", csvFormat{delimiter: []byte(",")}, [][]string{{"\"a", "b\""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readCSV(t, c.text, c.f)
			if c.name == "brackets" {
				if err == nil {
					t.Fatal("an enclosure that is not closed is a fault")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
	if _, err := readCSV(t, "a\n"+strings.Repeat("b", 11), csvFormat{delimiter: []byte(","), most: 10}); !errors.Is(err, errRowTooLong) {
		t.Fatalf("got %v", err)
	}
}

// FuzzCSV compares with encoding/csv what that one reads, and reads the rest without harm.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\nc,d\n", "\"a\"\"b\",\n", "\r\n,,\"", "a\"b\n", "\"x\ny\",z", ",\n\r\r"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		got, err := readCSV(t, text, csvFormat{delimiter: []byte(","), left: '"', right: '"'})
		_, _ = readCSV(t, text, csvFormat{delimiter: []byte("::"), left: '[', right: ']', end: []byte("\n;")})
		std := csv.NewReader(strings.NewReader(text))
		std.FieldsPerRecord = -1
		want, stdErr := std.ReadAll()
		// A carriage return ends a row of ours, and is text to encoding/csv.
		if stdErr != nil || strings.Contains(text, "\r") {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for i := range got {
			for j := range got[i] {
				if s := got[i][j]; len(s) > 1 && s[0] == '\'' && s[len(s)-1] == '\'' && !strings.Contains(text, "'") {
					got[i][j] = s[1 : len(s)-1]
				}
			}
		}
		if strings.Contains(text, "'") {
			return // the marks of enclosed fields cannot be told from those of the text
		}
		if len(got) == 0 && len(want) == 0 {
			return
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q: %s", text, d)
		}
	})
}

func TestMask_ReadsTheCommonParts(t *testing.T) {
	for _, c := range []struct{ mask, text, want string }{
		{"YYYY-MM-DD", "2026-01-31", "2026-01-31 00:00:00"},
		{"DD-MON-RR", "31-jan-26", "2026-01-31 00:00:00"},
		{"YYYYMMDDHH24MISS", "20260131235958", "2026-01-31 23:59:58"},
		{"DD/MM/YYYY HH:MI AM", "1/2/2026 3:04 PM", "2026-02-01 15:04:00"},
		{"YYYY-MM-DD\"T\"HH24:MI:SS.FF3TZH:TZM", "2026-01-31T10:00:00.25+01:00", "2026-01-31 09:00:00.25"},
		{"YYYY-MM-DDTHH24:MI:SSZ", "2026-01-31T10:00:00Z", "2026-01-31 10:00:00"},
		{"Day, DD Month YYYY", "Saturday, 31 January 2026", "2026-01-31 00:00:00"},
	} {
		layout, err := layoutOf("dateFormat", c.mask)
		if err != nil {
			t.Errorf("%s: %v", c.mask, err)
			continue
		}
		col := loadColumn{layout: layout, Column: officeColumn(t, "seen")}
		v, ok := col.value(c.text, false)
		if !ok || v.Text() != c.want {
			t.Errorf("%s (%s): %q became %q, want %q", c.mask, layout, c.text, v.Text(), c.want)
		}
	}
	for _, mask := range []string{"", "J", "YYYY\"x", "WW", "YYYY-05"} {
		if _, err := layoutOf("dateFormat", mask); err == nil {
			t.Errorf("%q was taken", mask)
		}
	}
}
