package now

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

func TestFailures_AreCompleteOverAllKinds(t *testing.T) {
	for k := record.Kind(0); k < record.NumKinds; k++ {
		f := failures[k]
		if f.status < 400 || f.status > 599 {
			t.Errorf("kind %s has status %d", k, f.status)
		}
		for _, method := range []string{"GET", "POST", "PATCH", "DELETE"} {
			status, message, _ := rendering(record.Errorf(k, "", "why"), where{method: method, table: "incident"})
			if status != f.status || message == "" {
				t.Errorf("%s of kind %s is %d %q", method, k, status, message)
			}
		}
	}
}

func TestFail_ForeignErrorTellsNothingPrivate(t *testing.T) {
	d := New(Options{})
	a := &wire.Answer{}
	d.Fail(&dialect.Call{Method: "GET", Path: "/api/now/table/incident"}, fmt.Errorf("dial: %w", errors.New("password=secret")), a)
	var got struct {
		Error struct{ Message, Detail string }
	}
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatal(err)
	}
	if a.Status != 500 || got.Error.Detail != "internal error" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
}

func TestFail_KindBeyondTheTableIsInternal(t *testing.T) {
	a := &wire.Answer{}
	New(Options{}).Fail(&dialect.Call{Method: "GET", Path: "/x"}, record.Errorf(record.NumKinds, "", "new"), a)
	if a.Status != 500 {
		t.Fatalf("status %d", a.Status)
	}
}
