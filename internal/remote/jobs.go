package remote

import (
	"context"
	"errors"
	"time"

	"weir/internal/job"
)

// Calls that are answered later stand in the database, so backends keep them; hubs, which know the protocols, execute them.

// jobAsk is what a hub asks about jobs; each method reads its own part.
type jobAsk struct {
	Job            job.Job
	ID             string
	Limit          int
	Time           time.Duration // a lease or a pause
	Before         int64         // a time, microseconds since 1970
	Answer, Result []byte
}

// jobSaid is what a backend says.
type jobSaid struct {
	Job             *job.Job
	Canceled, Other bool // Other: lost, or under way
	Count           int
}

// jobMethod is one method of jobs at a backend.
func jobMethod(do func(context.Context, *job.Store, *jobAsk) (jobSaid, error)) func(*Server, context.Context, *jobAsk) (jobSaid, error) {
	return func(s *Server, ctx context.Context, a *jobAsk) (jobSaid, error) {
		if s.o.Jobs == nil {
			return jobSaid{}, errors.New("remote: this backend keeps no jobs")
		}
		return do(ctx, s.o.Jobs, a)
	}
}

var (
	jobPut = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (jobSaid, error) {
		return jobSaid{}, s.Put(ctx, &a.Job, a.Limit)
	})
	jobClaim = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (said jobSaid, err error) {
		said.Job, err = s.Claim(ctx, a.Time)
		return said, err
	})
	jobRenew = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (said jobSaid, err error) {
		said.Canceled, said.Other, err = s.Renew(ctx, &a.Job, a.Time)
		return said, err
	})
	jobFinish = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (jobSaid, error) {
		return jobSaid{}, s.Finish(ctx, &a.Job, a.Answer, a.Result)
	})
	jobReturn = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (jobSaid, error) {
		return jobSaid{}, s.Return(ctx, &a.Job, a.Time)
	})
	jobDrop = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (jobSaid, error) {
		return jobSaid{}, s.Drop(ctx, &a.Job)
	})
	jobFind = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (said jobSaid, err error) {
		said.Job, err = s.Find(ctx, a.ID)
		return said, err
	})
	jobCancel = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (said jobSaid, err error) {
		said.Other, err = s.Cancel(ctx, a.ID)
		return said, err
	})
	jobTrim = jobMethod(func(ctx context.Context, s *job.Store, a *jobAsk) (said jobSaid, err error) {
		said.Count, err = s.Trim(ctx, time.UnixMicro(a.Before))
		return said, err
	})
)

// Jobs is a hub's side: the jobs that its backends keep.
type Jobs struct{ c *Client }

// Jobs are the jobs that the backends keep.
func (c *Client) Jobs() Jobs { return Jobs{c} }

func (j Jobs) ask(ctx context.Context, method string, repeatable bool, a *jobAsk) (jobSaid, error) {
	said, fail := call[jobAsk, jobSaid](ctx, j.c, method, a, repeatable)
	if fail != nil {
		return said, fail.err
	}
	return said, nil
}

// held is what a backend must know of a job that was claimed.
func held(j *job.Job) job.Job {
	return job.Job{ID: j.ID, User: j.User, State: j.State, Attempts: j.Attempts, Canceled: j.Canceled, Claim: j.Claim}
}

// Put stores a job; see [job.Store.Put].
func (j Jobs) Put(ctx context.Context, job *job.Job, limit int) error {
	_, err := j.ask(ctx, "JobPut", false, &jobAsk{Job: *job, Limit: limit})
	return err
}

// Claim takes a job; see [job.Store.Claim]. One whose claim is lost on its way is taken again when its lease is over.
func (j Jobs) Claim(ctx context.Context, lease time.Duration) (*job.Job, error) {
	said, err := j.ask(ctx, "JobClaim", true, &jobAsk{Time: lease})
	return said.Job, err
}

// Renew keeps a job; see [job.Store.Renew].
func (j Jobs) Renew(ctx context.Context, job *job.Job, lease time.Duration) (canceled, lost bool, err error) {
	said, err := j.ask(ctx, "JobRenew", true, &jobAsk{Job: held(job), Time: lease})
	return said.Canceled, said.Other, err
}

// Finish stores the answer of a job; see [job.Store.Finish].
func (j Jobs) Finish(ctx context.Context, job *job.Job, answer, result []byte) error {
	_, err := j.ask(ctx, "JobFinish", true, &jobAsk{Job: held(job), Answer: answer, Result: result})
	return err
}

// Return lets a job wait again; see [job.Store.Return].
func (j Jobs) Return(ctx context.Context, job *job.Job, pause time.Duration) error {
	_, err := j.ask(ctx, "JobReturn", true, &jobAsk{Job: held(job), Time: pause})
	return err
}

// Drop forgets a job; see [job.Store.Drop].
func (j Jobs) Drop(ctx context.Context, job *job.Job) error {
	_, err := j.ask(ctx, "JobDrop", true, &jobAsk{Job: held(job)})
	return err
}

// Find is a job with its answer; see [job.Store.Find].
func (j Jobs) Find(ctx context.Context, id string) (*job.Job, error) {
	said, err := j.ask(ctx, "JobFind", true, &jobAsk{ID: id})
	return said.Job, err
}

// Cancel asks to stop a job; see [job.Store.Cancel].
func (j Jobs) Cancel(ctx context.Context, id string) (under bool, err error) {
	said, err := j.ask(ctx, "JobCancel", true, &jobAsk{ID: id})
	return said.Other, err
}

// Trim removes old answers; see [job.Store.Trim].
func (j Jobs) Trim(ctx context.Context, before time.Time) (int, error) {
	said, err := j.ask(ctx, "JobTrim", true, &jobAsk{Before: before.UnixMicro()})
	return said.Count, err
}
