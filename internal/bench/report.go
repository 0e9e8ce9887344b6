package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// WriteJSON writes a result to a file, indented, whole or not at all.
func WriteJSON(path string, result any) error {
	b, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// Print writes the article's table beside ours, the fitted costs and the problems.
func (r *NowBatchResult) Print(w io.Writer) error {
	t := newTable("", "article calls/s", "ms/call", "calls/s", "ms/call", "faster", "calls", "request p50", "p99 ms", "errors")
	for _, c := range r.Cases {
		seedRate, seedMS, faster := "–", "–", "–"
		if i := slices.IndexFunc(article, func(a articleCase) bool { return a.batch == c.Batch }); i >= 0 {
			seedRate, seedMS = fmt.Sprintf("%.1f", article[i].callsPerSecond()), fmt.Sprintf("%.1f", article[i].callMS())
			faster = fmt.Sprintf("%.1f ×", c.CallsPerSecond/article[i].callsPerSecond())
		}
		t.Row(batchName(c.Batch), seedRate, seedMS, fmt.Sprintf("%.1f", c.CallsPerSecond), fmt.Sprintf("%.1f", c.CallMS), faster,
			fmt.Sprint(c.Calls), fmt.Sprintf("%.1f", c.P50MS), fmt.Sprintf("%.1f", c.P99MS), fmt.Sprint(c.Errors()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d threads, no pause, connection closed after each call, hard stop; %s\n%s\n", r.Threads, strings.Join(r.Targets, " "), t.Render())
	costs := newTable("request time = fixed + calls × per call", "article", "here")
	fixed, perCall, over := "–", "–", "–"
	if r.Line != nil {
		fixed, perCall, over = ms(r.Line.FixedMS), ms(r.Line.PerCallMS), ms(r.OverheadMS)
	}
	costs.Row("fixed cost per request", ms(r.ArticleLine.FixedMS), fixed)
	costs.Row("cost per call", ms(r.ArticleLine.PerCallMS), perCall)
	costs.Row(fmt.Sprintf("a request beyond its endpoint's %.0f ms", r.EndpointMS), ms(r.ArticleLine.Overhead(r.EndpointMS)), over)
	fmt.Fprintf(&b, "%s\nms/call is the article's measure, threads' time divided by calls; p50 and p99 are measured request times.\n", costs.Render())
	printProblems(&b, r.OK, r.Problems)
	_, err := io.WriteString(w, b.String())
	return err
}

// Print writes a line for each way, the verdict and the problems.
func (r *NowFloodResult) Print(w io.Writer) error {
	t := newTable("", "calls", "served", "rejected", "other", "pages whole", "page p50 s", "p90", "max", "queue high", "memory", "breaks with")
	for _, c := range r.Cases {
		p50, p90, most := "–", "–", "–"
		if c.PagesWhole > 0 {
			p50, p90, most = seconds(c.PageP50MS), seconds(c.PageP90MS), seconds(c.PageMaxMS)
		}
		t.Row(c.Name, fmt.Sprint(c.Calls), fmt.Sprint(c.Served), fmt.Sprint(c.Rejected), fmt.Sprint(c.Wrong+c.Failed),
			fmt.Sprintf("%.1f %%", c.WholePercent()), p50, p90, most, queueHigh(c.QueueHigh), mebibytes(c.ResidentBytes), c.Break.String())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d users open a page of %d calls within %.1f s, %d connections each\n%s\n",
		r.Users, endpoints, r.ArriveSeconds, r.PerUserConnections, t.Render())
	fmt.Fprintf(&b, "queue high and memory are one node's worst; page times are of whole pages.\n%s\n", r.Verdict)
	printProblems(&b, r.OK, r.Problems)
	_, err := io.WriteString(w, b.String())
	return err
}

// String says in a few words where a way breaks.
func (b *Break) String() string {
	switch {
	case b == nil:
		return "–"
	case b.Breaks == 0 && b.Limit == "time":
		return fmt.Sprintf("> %d users (time)", b.Holds)
	case b.Breaks == 0:
		return fmt.Sprintf("> %d users", b.Holds)
	case b.Holds == 0 && b.Breaks == 1:
		return "1 user"
	case b.Limit == "time":
		return fmt.Sprintf("%d–%d users (time)", b.Holds+1, b.Breaks)
	default:
		return fmt.Sprintf("%d users", b.Breaks)
	}
}

func printProblems(b *strings.Builder, ok bool, problems []string) {
	if ok {
		b.WriteString("result: ok\n")
		return
	}
	b.WriteString("result: failed\n")
	for _, p := range problems {
		fmt.Fprintf(b, "  %s\n", p)
	}
}

// newTable is a table without colours, so that it reads the same in a terminal, a file and a log. The first column is
// text, the others are figures.
func newTable(headers ...string) *table.Table {
	text := lipgloss.NewStyle().Padding(0, 1)
	figures := text.Align(lipgloss.Right)
	return table.New().Border(lipgloss.RoundedBorder()).Headers(headers...).Wrap(false).
		StyleFunc(func(_, col int) lipgloss.Style {
			if col == 0 {
				return text
			}
			return figures
		})
}

func ms(v float64) string { return fmt.Sprintf("%.1f ms", v) }

func seconds(ms float64) string { return fmt.Sprintf("%.2f", ms/1000) }

func mebibytes(n int64) string {
	if n == 0 {
		return "n/a"
	}
	return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
}

func queueHigh(pools map[string]int) string {
	if len(pools) == 0 {
		return "n/a"
	}
	var parts []string
	for pool, n := range pools {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", pool, n))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
