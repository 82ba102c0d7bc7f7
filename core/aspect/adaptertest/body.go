package adaptertest

import (
	"io"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// body tests when an adapter for HTTP waits for a body that its key does not need.
func body(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"free lock":                    bodyUnderAFreeLock,
		"taken lock":                   bodyUnderATakenLock,
		"body arrives during the wait": bodyDuringTheWait,
	})
}

// beginPost begins a call whose body ends when the test closes it. ok is false if the adapter is not for HTTP.
func beginPost(b *bench, change ...func(*ruleset.Rule)) (done <-chan Answer, body *io.PipeWriter, ok bool) {
	b.serveUnder(b.rule(change...))
	if b.server.post == nil {
		return nil, nil, false
	}
	r, body := io.Pipe()
	answers := make(chan Answer, 1)
	go func() { answers <- b.server.post(b.t.Context(), Call{ID: "42"}, r) }()
	b.t.Cleanup(func() { _ = body.Close() })
	if _, err := io.WriteString(body, "{"); err != nil {
		b.t.Error(err)
	}
	return answers, body, true
}

// bodyUnderAFreeLock tests that the handler runs before the body has arrived.
func bodyUnderAFreeLock(t *testing.T, b *bench) {
	done, body, ok := beginPost(b)
	if !ok {
		return
	}
	awaitEvent(t, "the handler runs", func() bool { return b.ran.Load() == 1 })
	_ = body.Close()
	b.wantOK(<-done, "paid", "")
}

// bodyUnderATakenLock tests that a body that does not arrive does not prolong the wait.
func bodyUnderATakenLock(_ *testing.T, b *bench) {
	b.redis.Take(prefix+"order:42", time.Hour)
	done, _, ok := beginPost(b, func(r *ruleset.Rule) { r.WaitTime = time.Second })
	if !ok {
		return
	}
	b.wantRefused(<-done, failpolicy.Busy)
	b.wantRan(0)
}

// bodyDuringTheWait tests that a request whose body has arrived still gets the lock after its wait.
func bodyDuringTheWait(t *testing.T, b *bench) {
	b.redis.Take(prefix+"order:42", time.Hour)
	done, body, ok := beginPost(b, func(r *ruleset.Rule) { r.WaitTime = ruleset.WaitForever })
	if !ok {
		return
	}
	if _, err := io.WriteString(body, "}"); err != nil {
		t.Error(err)
	}
	_ = body.Close()
	awaitEvent(t, "a call waits", func() bool { return b.locks.Stats().Waiters == 1 })
	b.redis.Free(prefix + "order:42")
	b.wantOK(<-done, "paid", "")
}
