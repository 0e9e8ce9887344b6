package odata

import (
	"testing"

	"weir/internal/dialect/dialecttest"
)

// The files of testdata/read run against the little market on a real engine.
func TestGolden_Read(t *testing.T) {
	onMarket(t, func(t *testing.T, open func(t *testing.T) *market) {
		dialecttest.EndToEnd(t, "testdata/read/*.txtar", func(t *testing.T) dialecttest.Server {
			m := open(t)
			return dialecttest.Server{Snapshot: m.snap, Executor: m.exec, Dialect: m.d}
		})
	})
}
