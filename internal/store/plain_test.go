package store

import (
	"errors"
	"strings"
	"testing"
)

func TestFirstWord_LooksBehindCommentsAndParentheses(t *testing.T) {
	for sql, want := range map[string]string{
		"select 1": "SELECT", " \n\t( (Select 1))": "SELECT", "-- a\n--b\nwith x": "WITH", "/* a /* b */ c */ UPDATE": "UPDATE",
		"": "", "--": "", "/* open": "", "/*/": "", ";": "", "'text'": "", "sélect": "SÉLECT", "values(1)": "VALUES", "/**/table t": "TABLE",
	} {
		if word, _ := FirstWord(sql); word != want {
			t.Errorf("%q begins with %q, want %q", sql, word, want)
		}
	}
}

func TestOneOf_FindsWords(t *testing.T) {
	for sql, want := range map[string]int{
		"SELECT Set_Config('a')": 7, "set_config": 0, "SELECT my_set_config()": -1, "set_config2, set_config": 13, "é set_configé": -1, "": -1,
	} {
		if _, pos := OneOf(sql, "set_config"); pos != want {
			t.Errorf("%q: %d, want %d", sql, pos, want)
		}
	}
}

func FuzzFirstWord(f *testing.F) {
	for _, s := range []string{"SELECT 1", "/* /* */", "--\n(", "\xff", "/*/*/*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		word, pos := FirstWord(sql)
		if pos < 0 || pos > len(sql) || !strings.HasPrefix(strings.ToUpper(sql[pos:]), word) {
			t.Errorf("%q: %q at %d", sql, word, pos)
		}
		var fault *SQLError
		if err := CheckVerb(sql); err != nil && (!errors.As(err, &fault) || fault.Pos > len(sql)) {
			t.Errorf("%q: %v", sql, err)
		}
	})
}
