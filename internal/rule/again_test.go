package rule

import (
	"testing"

	"weir/internal/catalog"
)

// TestProgram_ComputesAgainOnlyWhatRulesTouch looks at the decision that spares most tables the second computation.
func TestProgram_ComputesAgainOnlyWhatRulesTouch(t *testing.T) {
	state, priority, impact, note := &catalog.Field{Name: "state"}, &catalog.Field{Name: "priority"}, &catalog.Field{Name: "impact"}, &catalog.Field{Name: "note"}
	computed := assignment{field: priority, expr: &expression{fields: []*catalog.Field{impact}}}
	f := func(want bool, computed []assignment, steps ...*step) {
		t.Helper()
		p := &Program{computed: computed, steps: steps}
		if got := p.computesAgain(); got != want {
			t.Errorf("computes again: %v, want %v", got, want)
		}
	}
	sets := func(f *catalog.Field) *step { return &step{set: []assignment{{field: f}}} }
	f(false, []assignment{computed})
	f(false, []assignment{computed}, sets(note), sets(state))
	f(true, []assignment{computed}, sets(note), sets(impact))
	f(true, []assignment{computed}, sets(priority))
	f(true, []assignment{computed}, &step{lookup: &lookup{copies: []copied{{ours: impact}}}})
	f(true, []assignment{computed}, &step{choose: &choose{copies: []copied{{ours: impact}}}})
	f(true, []assignment{{field: priority, expr: &expression{fields: []*catalog.Field{state}}}, {field: state, expr: &expression{}}}, sets(note))
}
