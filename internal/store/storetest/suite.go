package storetest

import (
	"testing"

	"weir/internal/store"
)

// Run is the suite that every database passes. open opens an empty database of its own, with connections for at most size
// readers, which wait for one no longer than a second.
func Run(t *testing.T, open func(t *testing.T, size int) store.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"ReadsWhatTheEvaluatorSays", testExpressions},
		{"RandomExpressionsAgreeWithTheEvaluator", testRandom},
		{"AggregatesAgreeWithTheEvaluator", testAggregates},
		{"MoreWalksThanADatabaseJoins", testManyWalks},
		{"DeepConditionsAreReadOrInvalid", testDeep},
		{"SortIsTotalAndPaged", testSort},
		{"EachValueHasABoundOfItsOwn", testEach},
		{"BadQueriesAreInvalid", testBadQueries},
		{"GuardsHideEverywhere", testGuards},
		{"HierarchyReadsItsClasses", testHierarchy},
		{"KeysSingleAndComposite", testKeys},
		{"EveryTypeComesBackAsItWent", testTypes},
		{"BadTextIsInvalid", testBadText},
		{"InsertConflictsAreFoundByRow", testConflicts},
		{"UpdateAndDeleteByKey", testUpdate},
		{"WritesReturnWhatIsStored", testReturning},
		{"ForeignKeysAreRestricted", testForeign},
		{"MarksUndoWhatCameAfter", testMarks},
		{"RollbackLeavesNothing", testRollback},
		{"ReadersSeeCommittedOnly", testIsolation},
		{"ALongListStreams", testStreaming},
		{"ACanceledReadEnds", testCancel},
		{"ReadersWorkWhileAWriterWrites", testConcurrency},
		{"NumbersAreDrawnOnce", testNumbers},
		{"AnExhaustedPoolNamesItsFigures", testExhausted},
		{"WatchersHearOfNotices", testWatch},
		{"PlainSelectStreams", testPlainSelect},
		{"PlainDescribe", testPlainDescribe},
		{"PlainReachesNothingOfWeir", testPlainSystem},
		{"PlainBlocksAreTransactions", testPlainBlock},
		{"PlainFaultsAreTold", testPlainFaults},
		{"PlainLimitsStopTheStatement", testPlainLimits},
		{"ResizeChangesThePool", testResize},
		{"ExplainShowsPlans", testExplain},
		{"LoadWritesMany", testLoad},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, 4)
			t.Cleanup(func() { s.Close() })
			c.test(t, s)
		})
	}
}
