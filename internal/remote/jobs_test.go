package remote_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/job"
	"weir/internal/record"
	"weir/internal/remote"
	"weir/internal/store/sqlite"
)

func TestJobs_AreKeptByTheBackend(t *testing.T) {
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := st.Schema().Plan(t.Context(), snapshot(t, 1))
	if err == nil {
		err = st.Schema().Apply(t.Context(), plan.Additive)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	jobs := hub(t, start(t, "127.0.0.1:0", remote.Options{Jobs: job.New(st)})).Jobs()
	must(jobs.Put(ctx, &job.Job{ID: "a", User: "beth", Head: []byte("head"), Body: []byte("\x00body")}, 1))
	if err := jobs.Put(ctx, &job.Job{ID: "b", User: "beth"}, 1); record.KindOf(err) != record.Busy {
		t.Errorf("%v", err)
	}
	j, err := jobs.Claim(ctx, time.Minute)
	must(err)
	if j.ID != "a" || string(j.Head) != "head" || string(j.Body) != "\x00body" || j.Attempts != 1 || j.Claim == "" {
		t.Fatalf("%+v", j)
	}
	if none, err := jobs.Claim(ctx, time.Minute); none != nil || err != nil {
		t.Errorf("%+v %v", none, err)
	}
	if canceled, lost, err := jobs.Renew(ctx, j, time.Minute); canceled || lost || err != nil {
		t.Errorf("%v %v %v", canceled, lost, err)
	}
	stranger := *j
	stranger.Claim = "somebody else's"
	if _, lost, err := jobs.Renew(ctx, &stranger, time.Minute); !lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
	if under, err := jobs.Cancel(ctx, "a"); !under || err != nil {
		t.Errorf("%v %v", under, err)
	}
	if canceled, _, err := jobs.Renew(ctx, j, time.Minute); !canceled || err != nil {
		t.Errorf("%v %v", canceled, err)
	}
	must(jobs.Return(ctx, j, 0))
	j, err = jobs.Claim(ctx, time.Minute)
	must(err)
	must(jobs.Finish(ctx, j, []byte("answer"), []byte("result")))
	found, err := jobs.Find(ctx, "a")
	must(err)
	if d := cmp.Diff(&job.Job{ID: "a", User: "beth", State: job.Done, Attempts: 2, Canceled: true, Answer: []byte("answer"), Result: []byte("result")}, found); d != "" {
		t.Error(d)
	}
	if n, err := jobs.Trim(ctx, time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if gone, err := jobs.Find(ctx, "a"); gone != nil || err != nil {
		t.Errorf("%+v %v", gone, err)
	}
	must(jobs.Put(ctx, &job.Job{ID: "c", User: "beth"}, 10))
	j, err = jobs.Claim(ctx, time.Minute)
	must(err)
	must(jobs.Drop(ctx, j))
	if gone, err := jobs.Find(ctx, "c"); gone != nil || err != nil {
		t.Errorf("%+v %v", gone, err)
	}
}
