package bench

import (
	"fmt"
	"io"
	"strings"
)

// Print writes a table for each lever and store, the article's figures beside ours.
func (r *OrdsLeversResult) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d users, %d requests each, medians of %d rounds after a warm-up\n", r.Users, r.Each, r.Rounds)
	t := newTable("", "store", "requests/s", "faster", "average ms", "p50", "p95", "errors", "statements", "round trips", "bytes", "article")
	last := ""
	for _, c := range r.Cases {
		if group := c.Store + c.Lever; group != last {
			t.Row(c.Lever, c.Store)
			last = group
		}
		article := c.Article
		if article == "" {
			article = "–"
		}
		t.Row("  "+c.Name, c.Store, fmt.Sprintf("%.0f", c.PerSecond), fmt.Sprintf("%.2f ×", c.Times), fmt.Sprintf("%.2f", c.MeanMS),
			fmt.Sprintf("%.2f", c.P50MS), fmt.Sprintf("%.2f", c.P95MS), fmt.Sprint(c.Errors), counted(c.Statements), counted(c.RoundTrips), fmt.Sprint(c.Bytes), article)
	}
	fmt.Fprintf(&b, "%s\nfaster is against the first line of each lever; statements and round trips are for one request.\n"+
		"The article's service took 290 ms around a query of 68 ms; its figures are from other machines, so compare the ratios.\n", t.Render())
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	printProblems(&b, r.OK, r.Problems)
	_, err := io.WriteString(w, b.String())
	return err
}

// counted is a number of things that the server may not tell.
func counted(n float64) string {
	if n < 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", n)
}

// Print writes a line for each size of the pool.
func (r *OrdsPoolResult) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d users, %d requests each; a request holds its connection for %.0f ms, one waits %.0f ms for a connection\n",
		r.Users, r.Each, r.HoldMS, r.WaitMS)
	t := newTable("gate", "pool", "article", "requests/s", "average ms", "p50", "p95", "served", "503, 429", "other", "waits in vain", "in use, most", "waiting, most", "at the door, most")
	for _, c := range r.Cases {
		article := "–"
		switch {
		case c.Gate == gateShipped && c.Pool == 10:
			article = "failures"
		case c.Gate == gateShipped && c.Pool == 50:
			article = "none failed"
		}
		t.Row(c.Gate, fmt.Sprint(c.Pool), article, fmt.Sprintf("%.0f", c.PerSecond), fmt.Sprintf("%.0f", c.MeanMS), fmt.Sprintf("%.0f", c.P50MS), fmt.Sprintf("%.0f", c.P95MS),
			fmt.Sprint(c.Requests), fmt.Sprint(c.Rejected), fmt.Sprint(c.Wrong+c.Failed), fmt.Sprint(c.Refused), fmt.Sprint(c.InUseHigh), fmt.Sprint(c.WaitingHigh), fmt.Sprint(c.QueueHigh))
	}
	fmt.Fprintf(&b, "%s\ntimes are of served requests. fitted: gate.pools.default.slots is the size of the pool, so requests wait at the door and not for a connection.\n", t.Render())
	for _, c := range r.Cases {
		if c.Says != "" {
			fmt.Fprintf(&b, "gate %s, pool %d, a refused request is told: %s\n", c.Gate, c.Pool, c.Says)
		}
	}
	printProblems(&b, r.OK, r.Problems)
	_, err := io.WriteString(w, b.String())
	return err
}
