// Package riverlock puts lock rules around the jobs of River. A rule names a kind of job. Its key reads the variables kind, id,
// queue, metadata and args:
//
//	rules:
//	  - func: job/charge
//	    key: "order:#{args.order_id}"
//	    wait_time: none # the queue waits, not the worker
//
// Copy riverlock.go. The guard is a middleware of the client:
//
//	guard, err := riverlock.New(locking, rules, nil, ChargeArgs{}, RefundArgs{})
//	client, err := river.NewClient(driver, &river.Config{Middleware: []rivertype.Middleware{guard}, …})
//
// If the lock of a job is taken, or if Redis does not answer, River snoozes the job, which does not count as an attempt. A job
// without a key, and a job whose worker loses its lock, fail like any other job.
//
// The timeout of a job begins when it has its lock. Keep the wait and the timeout together below RescueStuckJobsAfter. Client.Stop
// also waits for jobs that wait for their locks. Client.StopAndCancel ends these waits, and the jobs keep their attempts. Stop the
// client first and close the lock client after that.
package riverlock

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strconv"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Guard is a middleware of a River client.
type Guard struct {
	river.MiddlewareDefaults

	guard *aspect.MessageGuard[*rivertype.JobRow]
	kinds map[string]string // kinds by their aliases
}

var _ rivertype.WorkerMiddleware = (*Guard)(nil)

// Fallbacks holds fallback handlers by the names that rules use.
type Fallbacks map[string]func(ctx context.Context, job *rivertype.JobRow) error

// New returns a guard and checks the rules for jobs against the kinds and the types of their arguments. fallbacks may be nil. If
// rules have problems, the error lists all of them, and the guard refuses the jobs of these rules. The guard follows reloads of
// rules.
func New(a *aspect.Aspect, rules ruleset.Provider, fallbacks Fallbacks, jobs ...river.JobArgs) (*Guard, error) {
	g := &Guard{kinds: map[string]string{}}
	payloads := map[string]any{}
	for _, args := range jobs {
		payloads[args.Kind()] = args
		if renamed, ok := args.(river.JobArgsWithKindAliases); ok {
			for _, alias := range renamed.KindAliases() {
				g.kinds[alias] = args.Kind()
			}
		}
	}
	var err error
	g.guard, err = aspect.NewMessageGuard(a, rules, aspect.Messages[*rivertype.JobRow]{
		Prefix: "job/", Noun: "kind of job", Payloads: payloads, Variables: g.variables, Fallbacks: fallbacks,
	})
	if err != nil {
		return nil, err
	}
	return g, g.guard.Check()
}

// Work implements [rivertype.WorkerMiddleware]. The context of the worker carries the lock and ends when the lock is lost.
func (g *Guard) Work(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) error {
	o := g.guard.Run(ctx, g.kindOf(job), job, func(ctx context.Context, _ *rivertype.JobRow) error { return work(ctx) })
	if o.Postponed() {
		return errors.Join(o.Refusal(), river.JobSnooze(o.RetryAfter))
	}
	return o.Result()
}

// kindOf returns the kind of a job, also if the job has an alias of it. So a job has the same key under both names.
func (g *Guard) kindOf(job *rivertype.JobRow) string { return cmp.Or(g.kinds[job.Kind], job.Kind) }

func (g *Guard) variables(args reflect.Type) []aspect.MessageVariable[*rivertype.JobRow] {
	return []aspect.MessageVariable[*rivertype.JobRow]{
		aspect.TextVariable("kind", g.kindOf),
		aspect.TextVariable("id", func(j *rivertype.JobRow) string { return strconv.FormatInt(j.ID, 10) }),
		aspect.TextVariable("queue", func(j *rivertype.JobRow) string { return j.Queue }),
		aspect.JSONVariable("metadata", nil, func(j *rivertype.JobRow) []byte { return j.Metadata }),
		aspect.JSONVariable("args", args, func(j *rivertype.JobRow) []byte { return j.EncodedArgs }),
	}
}
