package main

import (
	"bytes"
	"crypto/md5"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// sheet is one data file: a table's records, in order, as text.
type sheet struct {
	part   string // of the project: itsm, epm, hr
	table  string
	header []string
	rows   [][]string
}

// newSheet is a sheet of the part itsm, whose tables have a sys_id.
func newSheet(table string, header ...string) *sheet {
	return &sheet{part: "itsm", table: table, header: append([]string{"sys_id"}, header...)}
}

// add appends a record. It panics when the number of values does not fit the header: a slip in this program.
func (s *sheet) add(key string, values ...string) {
	if len(values)+1 != len(s.header) {
		panic(fmt.Sprintf("%s: %d values for %d columns", s.table, len(values)+1, len(s.header)))
	}
	s.rows = append(s.rows, append([]string{key}, values...))
}

func (s *sheet) csv() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Write(s.header)
	w.WriteAll(s.rows) // a bytes.Buffer does not fail
	return b.Bytes()
}

// id returns the sys_id of the record of a table that key names: the same always, and no two alike.
func id(table, key string) string {
	sum := md5.Sum([]byte("weir demo/" + table + "/" + key))
	return hex.EncodeToString(sum[:])
}

// dice draws by remainder from a generator whose stream Go promises to keep, unlike the shuffles and floats of math/rand.
type dice struct{ source *rand.PCG }

func newDice(purpose string) dice {
	h := fnv.New64a()
	h.Write([]byte(purpose))
	return dice{rand.NewPCG(h.Sum64(), 0x77656972)}
}

// n returns a number in [0, sides).
func (d dice) n(sides int) int { return int(d.source.Uint64() % uint64(sides)) }

// chance returns true in percent of a hundred cases.
func (d dice) chance(percent int) bool { return d.n(100) < percent }

func pick[T any](d dice, from []T) T { return from[d.n(len(from))] }

// weighted returns the index of one of the weights, each as often as it weighs.
func (d dice) weighted(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := d.n(sum)
	for i, w := range weights {
		if at < w {
			return i
		}
		at -= w
	}
	panic("unreachable: at is less than the sum of the weights")
}

// today is when the demo's world stands still. Its records lie in the half-year before.
var today = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

// stamp writes a time as the tables hold it; the zero time is empty.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateTime)
}

func date(t time.Time) string { return t.Format(time.DateOnly) }
