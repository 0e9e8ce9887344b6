package catalog

import "testing"

func TestSystem_Builds(t *testing.T) {
	if _, err := System().Table("sequence"); err != nil {
		t.Fatal(err)
	}
}
