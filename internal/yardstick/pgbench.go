package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// pgbench lets PostgreSQL's own load generator insert the row into the copy, each insert a commit, and returns its rate.
// The statement is prepared once on each connection and bears the row as literals; unique texts end in a random number.
func (d *postgresDB) pgbench(ctx context.Context, url string, clients int, duration time.Duration) (float64, error) {
	program, err := exec.LookPath("pgbench")
	if err != nil {
		return 0, fmt.Errorf("%w; Debian has it in the package postgresql", err)
	}
	script, err := os.CreateTemp("", "yardstick-*.sql")
	if err != nil {
		return 0, err
	}
	defer os.Remove(script.Name())
	_, err = script.WriteString(d.pgbenchScript())
	if e := script.Close(); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, program, "-n", "-c", strconv.Itoa(clients), "-j", "2", "-M", "prepared",
		"-T", strconv.Itoa(max(1, int(duration.Seconds()))), "-f", script.Name(), url).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return pgbenchRate(string(out))
}

var tpsLine = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// pgbenchRate finds the rate in what pgbench prints.
func pgbenchRate(out string) (float64, error) {
	m := tpsLine.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("it printed no rate: %s", out)
	}
	return strconv.ParseFloat(m[1], 64)
}

// pgbenchScript is the insert of one row. A random number of 18 digits takes the place of a counter, which clients would
// have to share.
func (d *postgresDB) pgbenchScript() string {
	var values []string
	for _, c := range d.columns {
		switch {
		case c.value == nil:
			values = append(values, "NULL")
		case !c.unique:
			values = append(values, literalPG(*c.value)+"::"+c.kind)
		default:
			values = append(values, "("+literalPG((*c.value)[:max(0, len(*c.value)-pgbenchDigits)])+" || :n)::text::"+c.kind)
		}
	}
	return "\\set n random(100000000000000000, 999999999999999999)\n" +
		"INSERT INTO " + d.copied + " (" + strings.Join(names(d.columns, quotePG), ", ") + ") OVERRIDING SYSTEM VALUE VALUES (" +
		strings.Join(values, ", ") + ");\n"
}

// pgbenchDigits is the length of the random number.
const pgbenchDigits = 18
