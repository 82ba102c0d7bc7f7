package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

// MessageProgram is the program that an adapter for messages serves. Its handlers return no text, because messages have no
// answer.
type MessageProgram struct {
	Aspect     *aspect.Aspect
	Rules      ruleset.Provider
	Pay, Queue func(ctx context.Context, id string) error // the handler, and the fallback "queue"
}

// ServeMessages serves p with an adapter that is built on [aspect.MessageGuard]. start creates the guard and returns its Check
// and a function that passes one message through it once, with ctx as the context of the message, and returns the error of the
// guard. e is the endpoint of the handler.
func ServeMessages(p *Program, e ruleset.Endpoint, start func(MessageProgram) (check func() error, deliver func(ctx context.Context, c Call) error, err error)) (Server, error) {
	a, err := aspect.New(p.Locks)
	if err != nil {
		return Server{}, err
	}
	rules := p.Set
	if len(p.InCode) > 0 {
		inCode := slices.Clone(p.InCode)
		for i := range inCode {
			inCode[i].Endpoint = e
		}
		if rules, err = ruleset.NewSet(inCode); err != nil {
			return Server{}, err
		}
	}
	check, deliver, err := start(MessageProgram{Aspect: a, Rules: rules, Pay: replying(p.Pay), Queue: replying(p.Queue)})
	if err != nil {
		return Server{}, err
	}
	return Server{
		Aspect: a, Check: check, Hold: aspect.HoldFrom,
		Call: func(ctx context.Context, c Call) Answer { return answerOf(ctx, c, deliver) },
	}, nil
}

// reply is the answer that a client would get.
type reply struct{ text, token, lock string }

type replyKey struct{}

// recordLock stores the lock status in the reply of a message.
func recordLock(ctx context.Context, d aspect.Decision) {
	r, ok := ctx.Value(replyKey{}).(*reply)
	answer, answers := d.Strategy.Reply()
	switch {
	case !ok || d.DryRun:
	case d.Verdict == aspect.VerdictAnswered && answers:
		r.lock = answer.Mark
	case d.Verdict == aspect.VerdictRan && d.Unlocked == aspect.UnlockedProceed:
		r.lock = "unlocked"
	}
}

// replying returns a handler that stores its answer in the reply of its context.
func replying(do func(ctx context.Context, id string) (string, error)) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		text, err := do(ctx, id)
		if r, ok := ctx.Value(replyKey{}).(*reply); ok && err == nil {
			r.text = text
			if token := aspect.HoldFrom(ctx).Token(); token != 0 {
				r.token = strconv.FormatInt(token, 10)
			}
		}
		return err
	}
}

// answerOf delivers one message and returns the answer that a client would get.
func answerOf(ctx context.Context, c Call, deliver func(context.Context, Call) error) (a Answer) {
	defer func() {
		if v := recover(); v != nil {
			a = Answer{Code: http.StatusInternalServerError, All: fmt.Sprint(v)}
		}
	}()
	var got reply
	err := deliver(context.WithValue(ctx, replyKey{}, &got), c)
	if err != nil && ctx.Err() != nil { // a handler may still be running
		return Answer{All: err.Error()}
	}
	a = Answer{OK: err == nil, Text: got.text, Token: got.token, Lock: got.lock, All: fmt.Sprint(got.text, err)}
	if refused, ok := errors.AsType[*aspect.RefusedError](err); ok {
		a.Code, a.Cause, a.Retry = refused.Status.HTTP, refused.Cause.Reason(), refused.RetryAfter
	}
	return a
}
