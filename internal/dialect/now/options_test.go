package now

import (
	"strings"
	"testing"
)

func TestOptions_DefaultsAreValid(t *testing.T) {
	var o Options
	o.Defaults()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestOptions_AllFaultsAreTold(t *testing.T) {
	o := Options{DefaultLimit: -1, MaxLimit: -1, MaxQuery: -1, MaxConditions: -1, MaxFields: -1, MaxWalks: 100}
	o.Defaults()
	err := o.Validate()
	if err == nil {
		t.Fatal("no fault is told")
	}
	for _, name := range []string{"default_limit", "max_limit", "max_query", "max_conditions", "max_fields", "max_walks"} {
		if !strings.Contains(err.Error(), "now."+name) {
			t.Errorf("%s is not named in %v", name, err)
		}
	}
}
