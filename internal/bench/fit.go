package bench

// Point is one measured case: how many calls a request carried, and how long such a request took on average.
type Point struct {
	Calls     int     `json:"calls"`
	RequestMS float64 `json:"request_ms"`
}

// Line is the straight line through the cases: request time = fixed + calls × per call.
type Line struct {
	// FixedMS is what a request costs before its first call: connection, login, session, queue.
	FixedMS float64 `json:"fixed_ms"`
	// PerCallMS is what each further call in a request costs. Near the endpoints' own time when the server runs a
	// batch's items one after another, near zero when it runs them side by side.
	PerCallMS float64 `json:"per_call_ms"`
}

// Fit returns the least-squares line through the points. Fewer than two different values of Calls determine no line; ok
// is then false.
func Fit(points []Point) (l Line, ok bool) {
	var n, sx, sy, sxx, sxy float64
	for _, p := range points {
		x := float64(p.Calls)
		n++
		sx += x
		sy += p.RequestMS
		sxx += x * x
		sxy += x * p.RequestMS
	}
	d := n*sxx - sx*sx
	if d == 0 {
		return Line{}, false
	}
	slope := (n*sxy - sx*sy) / d
	return Line{FixedMS: (sy - slope*sx) / n, PerCallMS: slope}, true
}

// At is the line's time of a request with that many calls, in ms.
func (l Line) At(calls int) float64 { return l.FixedMS + float64(calls)*l.PerCallMS }

// Overhead is what a request costs beyond the endpoints' own time, in ms: the line at one call, less that time. It is the
// figure to compare servers by. Where items run one after another it equals FixedMS but for what a call
// costs over its endpoint; where they run side by side FixedMS contains the endpoint's time once, and this does not.
func (l Line) Overhead(endpointMS float64) float64 { return l.At(1) - endpointMS }

// articleCase is one line of the article's results: 8 threads for 300 s.
type articleCase struct {
	batch, calls int
}

// The article's figures (5 minutes, 8 threads, 2 nodes of 4 integration threads).
const (
	articleSeconds = 300
	articleThreads = 8
)

var article = []articleCase{{1, 2891}, {5, 6565}, {10, 7690}, {20, 8500}}

// callsPerSecond is the article's throughput.
func (c articleCase) callsPerSecond() float64 { return float64(c.calls) / articleSeconds }

// callMS is the article's "average duration for each call": the threads' whole time divided by the calls.
func (c articleCase) callMS() float64 { return averageMS(articleSeconds, articleThreads, c.calls) }

// point is the article's case as a request time: its threads did nothing but requests.
func (c articleCase) point() Point {
	return Point{Calls: c.batch, RequestMS: c.callMS() * float64(c.batch)}
}

// averageMS is the article's metric, (duration × threads) / calls, in ms: thread time, not a measured latency. It is 0
// when there was no call.
func averageMS(seconds float64, threads, calls int) float64 {
	if calls == 0 {
		return 0
	}
	return seconds * float64(threads) / float64(calls) * 1000
}

// ArticleLine is the line through the article's own table.
func ArticleLine() Line {
	points := make([]Point, len(article))
	for i, c := range article {
		points[i] = c.point()
	}
	l, _ := Fit(points) // four different sizes determine it
	return l
}
