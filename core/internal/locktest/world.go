package locktest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// Pool is the name of the lock in a World.
const Pool = "pool"

// World is a lock of some kind in a bubble: its servers, a process behind their proxies, and a process beside it.
type World struct {
	Kind

	T       *testing.T
	Servers []*Redis
	Clients []*core.Client // of the process behind the proxies
	Mine    core.Lock      // of that process
	Beside  []*core.Client // of the other process
	Other   core.Lock      // of the other process; a holder of Mine excludes it
}

// EachKind runs a test with a World of every kind that has holders, in parallel. A count has no holders; its tests are
// in folder kinds. With -short, EachKind omits the kinds that differ little from the reentrant lock.
func EachKind(t *testing.T, body func(t *testing.T, w *World), opts ...core.Option) {
	t.Helper()
	for _, kind := range KindsWithHolders() {
		if kind.IsMinor && testing.Short() {
			continue
		}
		Parallel(t, kind.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				EndWithinADay(t)
				body(t, NewWorld(t, kind, opts...))
			})
		})
	}
}

// ParallelEachKind runs EachKind as a parallel subtest.
func ParallelEachKind(t *testing.T, name string, body func(t *testing.T, w *World), opts ...core.Option) {
	t.Helper()
	Parallel(t, name, func(t *testing.T) { EachKind(t, body, opts...) })
}

// NewWorld returns a World. The options are for the process behind the proxies.
func NewWorld(t *testing.T, kind Kind, opts ...core.Option) *World {
	t.Helper()
	w := &World{Kind: kind, T: t, Servers: NewServers(t, kind.Nodes)}
	for _, srv := range w.Servers {
		srv.LoadScripts()
		w.Beside = append(w.Beside, srv.Locks())
	}
	w.Clients = BehindEach(t, w.Servers, opts...)
	for _, c := range w.Clients {
		Must(t, c.Ready(t.Context()))
	}
	w.Mine, w.Other = kind.Lock(w.Clients, Pool), kind.Rival(w.Beside, Pool)
	return w
}

// Inject injects a fault on the way to every server.
func (w *World) Inject(f Fault, match func() faultproxy.Match) (rules []*faultproxy.Rule) {
	w.T.Helper()
	for _, s := range w.Servers {
		rules = append(rules, f.Inject(s.Proxy, match()))
	}
	return rules
}

// WatchScripts counts the scripts that reach each server through its proxy.
func (w *World) WatchScripts() (rules []*faultproxy.Rule) {
	for _, s := range w.Servers {
		rules = append(rules, s.Proxy.Watch(Scripts))
	}
	return rules
}

// Op returns a function that matches the next execution of a script of the kind, such as "acquire".
func (w *World) Op(name string) func() faultproxy.Match {
	if name == "acquire" && w.Acquire != "" {
		name = w.Acquire
	}
	return func() faultproxy.Match { return faultproxy.Once(Script(w.T, w.Scripts+name)) }
}

// BlackHole makes all servers silent while on.
func (w *World) BlackHole(on bool) {
	for _, s := range w.Servers {
		s.Proxy.BlackHole(on)
	}
}

// Flush deletes all keys, without a message.
func (w *World) Flush() {
	for _, s := range w.Servers {
		Must(w.T, s.FlushDB(context.Background()).Err())
	}
}

// HeldOn returns on how many servers the lock has a holder.
func (w *World) HeldOn() int {
	if w.HasPermits {
		return HeldOn(w.Servers, PermitLeases)
	}
	return HeldOn(w.Servers, Pool)
}

// WantNothing checks that the lock left no key in Redis, except the number of a semaphore with its one permit and the
// counter of fencing tokens.
func (w *World) WantNothing(when string) {
	w.T.Helper()
	for i, s := range w.Servers {
		keys := s.Keys(context.Background(), "*").Val()
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == TokenCounterOf(Pool) })
		if w.HasPermits {
			keys = slices.DeleteFunc(keys, func(key string) bool { return key == Pool })
			if n := s.Get(context.Background(), Pool).Val(); n != "1" && n != "" {
				w.T.Errorf("%s: %s permits are free, want 1", when, n)
			}
		}
		if len(keys) > 0 {
			w.T.Errorf("%s: left on server %d: %q", when, i, keys)
		}
	}
}

// WantTaken checks that the other process cannot get the lock.
func (w *World) WantTaken() {
	w.T.Helper()
	_, hold, err := w.Other.Acquire(context.Background(), core.WaitTime(0))
	if err == nil {
		w.T.Error("the other process has the lock")
		MustRelease(w.T, hold)
	}
	WantErr(w.T, err, core.ErrNotAcquired)
}

// WantFree checks that the other process gets the lock at once and that no key is left after it.
func (w *World) WantFree() {
	w.T.Helper()
	_, hold := MustAcquire(w.T, context.Background(), w.Other, core.WaitTime(time.Second), core.LeaseTime(time.Minute))
	MustRelease(w.T, hold)
	Pass(time.Second)
	w.WantNothing("free")
}
