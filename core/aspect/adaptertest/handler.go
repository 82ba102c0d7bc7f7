package adaptertest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// none is the cause of a call that fails because of a mistake of the program.
const none = failpolicy.Cause("")

// handler tests handlers that do not succeed, and the messages of rules.
func handler(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"fails":                              handlerFails,
		"panics":                             handlerPanics,
		"fails before a debounce":            failsBeforeADebounce,
		"cancels a debounce":                 cancelsADebounce,
		"fallback panics":                    fallbackPanics,
		"exits its goroutine":                exitsItsGoroutine,
		"message and status of a rule":       messageAndStatus,
		"response of a rule":                 responseOfARule,
		"waits no longer than the rule says": waitsNoLonger,
	})
}

var errDeclined = errors.New("the card was declined")

func handlerFails(t *testing.T, b *bench) {
	b.handler(func(context.Context) (string, error) { return "", errDeclined })
	b.serveUnder(b.rule())
	if got := b.call(); got.OK || got.Cause != "" || got.Lock != "" {
		t.Errorf("got %+v, want the handler's own failure", got)
	}
	b.wantFree(t)
}

func handlerPanics(t *testing.T, b *bench) {
	b.handler(func(context.Context) (string, error) { panic("declined") })
	b.serveUnder(b.rule())
	if got := b.call(); got.OK || !strings.Contains(got.All, "declined") {
		t.Errorf("got %+v, want the recovery's answer for the panic", got)
	}
	if b.isTaken() { // the recovery is around the guard
		t.Error("the lock is still held")
	}
}

func failsBeforeADebounce(t *testing.T, b *bench) {
	fails := true
	b.handler(func(context.Context) (string, error) {
		if fails {
			return "", errDeclined
		}
		return "paid", nil
	})
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.Debounce, r.WaitTime = time.Hour, 0 }))
	if got := b.call(); got.OK {
		t.Errorf("got %+v", got)
	}
	b.wantFree(t)
	fails = false
	b.wantOK(b.call(), "paid", "")
	b.wantRefused(b.call(), failpolicy.Debounced)
}

// cancelsADebounce tests that a handler that succeeds may cancel the debounce window.
func cancelsADebounce(_ *testing.T, b *bench) {
	counts := false
	b.handler(func(ctx context.Context) (string, error) {
		if !counts {
			aspect.CancelDebounce(ctx)
		}
		return "paid", nil
	})
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.Debounce, r.WaitTime = time.Hour, 0 }))
	b.wantOK(b.call(), "paid", "")
	counts = true
	b.wantOK(b.call(), "paid", "")
	b.wantRefused(b.call(), failpolicy.Debounced)
}

func fallbackPanics(t *testing.T, b *bench) {
	b.program.Queue = func(context.Context, string) (string, error) { panic("the queue is full") }
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.OnBusy, r.Fallback = failpolicy.Fallback, "queue" }))
	b.redis.Take(prefix+"order:42", time.Hour)
	if got := b.call(); got.OK || !strings.Contains(got.All, "the queue is full") {
		t.Errorf("got %+v, want the recovery's answer for the panic", got)
	}
	b.wantRan(0)
	b.redis.Free(prefix + "order:42")
	b.wantOK(b.call(), "paid", "")
}

// exitsItsGoroutine tests that the lock is released if the handler exits its goroutine, as t.FailNow does. Most servers
// then do not answer.
func exitsItsGoroutine(t *testing.T, b *bench) {
	exits := true
	b.handler(func(context.Context) (string, error) {
		if exits {
			runtime.Goexit()
		}
		return "paid", nil
	})
	b.serveUnder(b.rule())
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done) // even if the handler runs in the goroutine of the call
		if got := b.send(ctx, Call{ID: "42"}); got.OK {
			t.Errorf("got %+v", got)
		}
	}()
	awaitEvent(t, "the handler runs", func() bool { return b.ran.Load() == 1 })
	b.wantFree(t)
	leave()
	<-done
	exits = false
	b.wantOK(b.call(), "paid", "")
}

func messageAndStatus(t *testing.T, b *bench) {
	status := failpolicy.Status{HTTP: 423, GRPC: 9 /* FAILED_PRECONDITION */}
	b.serveUnder(b.rule(func(r *ruleset.Rule) {
		r.Message, r.Status.Busy = "Another payment of this order is in progress", status
	}))
	b.redis.Take(prefix+"order:42", time.Hour)
	got := b.call()
	if got.Code != b.adapter.Code(status) {
		t.Errorf("got %+v", got)
	}
	wantText(t, errors.New(got.All), "Another payment of this order is in progress")
}

func responseOfARule(t *testing.T, b *bench) {
	if b.adapter.Response == "" {
		return
	}
	b.serveUnder(b.rule(func(rule *ruleset.Rule) { rule.OnBusy, rule.Response = failpolicy.NullResponse, b.adapter.Response }))
	b.redis.Take(prefix+"order:42", time.Hour)
	got := b.call()
	if !got.OK || got.Lock != "null" {
		t.Errorf("got %+v", got)
	}
	wantText(t, errors.New(got.All), "later")
}

func waitsNoLonger(_ *testing.T, b *bench) {
	b.serveUnder(b.rule(func(r *ruleset.Rule) { r.WaitTime = time.Second }))
	b.redis.Take(prefix+"order:42", time.Hour)
	if !b.isTaken() { // isTaken also connects to Redis, so that the call does not spend its wait time on that
		b.t.Fatal("the order is free")
	}
	b.wantRefused(b.call(), failpolicy.Busy)
	b.wantRan(0)
}
