package odata

import (
	"testing"

	"weir/internal/dialect/dialecttest"
)

// The files of testdata/read run against the little market on a real engine. They only read, so one market serves them all.
func TestGolden_Read(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		m := open(t)
		dialecttest.EndToEnd(t, "testdata/read/*.txtar", func(t *testing.T) dialecttest.Server {
			return dialecttest.Server{Snapshot: m.snap, Executor: m.exec, Dialect: m.d}
		})
	})
}
