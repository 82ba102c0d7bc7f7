// Package asynqlock puts lock rules around the tasks of asynq. A rule names a type of task. Its key reads the variables type,
// id, queue, header and payload:
//
//	rules:
//	  - func: task/invoice:send
//	    key: "invoice:#{payload.invoice_id}"
//	    wait_time: none # the queue waits, not the worker
//
// Copy asynqlock.go. The program wires the guard in two places:
//
//	guard, err := asynqlock.New(locking, rules, map[string]any{"invoice:send": Invoice{}}, nil)
//	mux.Use(guard.Middleware)
//	server := asynq.NewServer(redis, asynqlock.Config(asynq.Config{Concurrency: 10}))
//
// If the lock of a task is taken, or if Redis does not answer, asynq delivers the task again after the RetryAfter of the
// refusal, and the task keeps its retries. asynq looks for such tasks every DelayedTaskCheckInterval, which is 5 s by default.
// If the timeout of a task passes before core.WithBackendTimeout has ended an attempt, the task fails.
// A task without a key, and a task whose handler loses its lock, fail like any other task.
//
// asynq archives a task that has no retries left, whatever its error is. Such a task waits in its worker instead. If its
// timeout passes during that wait, or if the process dies, asynq archives the task, although its handler has not run. A
// debounce window that is longer than the timeout always ends in that way. So enqueue tasks with retries, which is the
// default.
//
// Shut down the server first and close the lock client after that. asynq puts tasks that still wait back into the queue.
package asynqlock

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/hibiken/asynq"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Guard puts rules around the handlers of a mux.
type Guard struct{ guard *aspect.MessageGuard[task] }

// task is a task with the values that asynq keeps in the context of its handler.
type task struct {
	*asynq.Task
	id, queue string
}

// New returns a guard and checks the rules for tasks. types lists the types of tasks, each with a value of the Go type of its
// payload, or nil if the payload is not JSON. fallbacks may be nil. If rules have problems, the error lists all of them, and the
// guard refuses the tasks of these rules. The guard follows reloads of rules.
func New(a *aspect.Aspect, rules ruleset.Provider, types map[string]any, fallbacks map[string]asynq.HandlerFunc) (*Guard, error) {
	messages := aspect.Messages[task]{
		Prefix: "task/", Noun: "type of task", Payloads: types, Variables: variables, Fallbacks: map[string]func(context.Context, task) error{},
	}
	for name, handle := range fallbacks {
		messages.Fallbacks[name] = func(ctx context.Context, t task) error { return handle(ctx, t.Task) }
	}
	guard, err := aspect.NewMessageGuard(a, rules, messages)
	if err != nil {
		return nil, err
	}
	return &Guard{guard}, guard.Check()
}

// Middleware returns next with a lock around it, for [asynq.ServeMux.Use]. The context of the handler carries the lock and ends when
// the lock is lost.
func (g *Guard) Middleware(next asynq.Handler) asynq.Handler {
	handle := func(ctx context.Context, t task) error { return next.ProcessTask(ctx, t.Task) }
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		queue, _ := asynq.GetQueueName(ctx)
		for {
			o := g.guard.Run(ctx, t.Type(), task{t, id, queue}, handle)
			if !o.Postponed() {
				if err := o.Result(); err != nil {
					return answer{error: err}
				}
				return nil
			}
			if isLastAttempt(ctx) {
				select {
				case <-time.After(o.RetryAfter):
					continue
				case <-ctx.Done():
				}
			}
			return answer{o.Refusal(), true}
		}
	})
}

// Config returns c with an IsFailure and a RetryDelayFunc that know postponed tasks. For all other errors they call the functions
// of c. The ErrorHandler of c does not see postponed tasks.
func Config(c asynq.Config) asynq.Config {
	isFailure, delay, handler := c.IsFailure, c.RetryDelayFunc, c.ErrorHandler
	if delay == nil {
		delay = asynq.DefaultRetryDelayFunc
	}
	c.IsFailure = func(err error) bool {
		return !isPostponed(err) && (isFailure == nil || isFailure(err))
	}
	c.RetryDelayFunc = func(retried int, err error, t *asynq.Task) time.Duration {
		if refused, ok := errors.AsType[*aspect.RefusedError](err); ok && isPostponed(err) {
			return refused.RetryAfter
		}
		return delay(retried, err, t)
	}
	if handler != nil {
		c.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
			if !isPostponed(err) {
				handler.HandleError(ctx, t, err)
			}
		})
	}
	return c
}

// answer is the error of a task. A handler may return the answer of an inner task or the refusal of a function: that is an
// ordinary failure, because the handler has run. So the outermost answer counts.
type answer struct {
	error
	postponed bool // asynq delivers the task again
}

func (a answer) Unwrap() error { return a.error }

func isPostponed(err error) bool {
	a, _ := errors.AsType[answer](err)
	return a.postponed
}

func variables(payload reflect.Type) []aspect.MessageVariable[task] {
	return []aspect.MessageVariable[task]{
		aspect.TextVariable("type", func(t task) string { return t.Type() }),
		aspect.TextVariable("id", func(t task) string { return t.id }),
		aspect.TextVariable("queue", func(t task) string { return t.queue }),
		aspect.HeaderVariable("header", func(t task) map[string]string { return t.Headers() }),
		aspect.JSONVariable("payload", payload, func(t task) []byte { return t.Payload() }),
	}
}

// isLastAttempt reports whether asynq archives the task of ctx if its handler returns an error.
func isLastAttempt(ctx context.Context) bool {
	retried, ok := asynq.GetRetryCount(ctx)
	most, _ := asynq.GetMaxRetry(ctx)
	return ok && retried >= most
}
