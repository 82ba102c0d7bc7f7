package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core/internal/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errSilent = errors.New("silent")

// nodeOf returns the node of a key: "a" for "a:1".
func nodeOf(_ context.Context, key string) string {
	node, _, _ := strings.Cut(key, ":")
	return node
}

// Only keys of a tripped node fail, with the cause that Trip received.
func TestBreaker_OneNode(t *testing.T) {
	t.Parallel()
	b := breaker.New(nodeOf)
	b.Trip("a", errSilent)
	if err := b.Check(t.Context(), "a:1"); err != errSilent { //nolint:errorlint // exactly this error
		t.Errorf("got %v, want the cause", err)
	}
	if err := b.Check(t.Context(), "b:1"); err != nil {
		t.Errorf("another node: got %v", err)
	}
	b.Reset("b")
	if err := b.Check(t.Context(), "a:2"); err == nil {
		t.Error("the reset of another node closes the circuit")
	}
	b.Reset("a")
	if err := b.Check(t.Context(), "a:1"); err != nil {
		t.Errorf("after the reset: got %v", err)
	}
}

// The second cause replaces the first, and one Reset closes the circuit.
func TestBreaker_TrippedTwice(t *testing.T) {
	t.Parallel()
	b := breaker.New(nodeOf)
	later := errors.New("still silent")
	b.Trip("a", errSilent)
	b.Trip("a", later)
	if err := b.Check(t.Context(), "a:1"); !errors.Is(err, later) {
		t.Errorf("got %v, want the later cause", err)
	}
	b.Reset("a")
	if err := b.Check(t.Context(), "a:1"); err != nil {
		t.Errorf("after one reset: got %v", err)
	}
}

// Check does not call nodeOf while all circuits are closed, even if one was open before, because nodeOf may
// have to look up the slots of a Cluster.
//
//nolint:paralleltest // counts allocations
func TestBreaker_CheckWhileClosed(t *testing.T) {
	calls := 0
	b := breaker.New(func(context.Context, string) string { calls++; return "a" })
	check := func() {
		if err := b.Check(t.Context(), "k"); err != nil {
			t.Errorf("got %v", err)
		}
	}
	check()
	b.Trip("a", errSilent)
	b.Reset("a")
	b.Reset("a") // one Reset more than Trip
	check()
	if calls != 0 {
		t.Errorf("nodeOf was called %d times", calls)
	}
	if n := testing.AllocsPerRun(100, check); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Check calls nodeOf without the mutex, because nodeOf may trip another node.
func TestBreaker_CallsNodeOfWithoutMutex(t *testing.T) {
	t.Parallel()
	var b *breaker.Breaker
	b = breaker.New(func(context.Context, string) string {
		b.Trip("b", errSilent)
		return "b"
	})
	b.Trip("a", errSilent)
	if err := b.Check(t.Context(), "k"); !errors.Is(err, errSilent) {
		t.Errorf("got %v", err)
	}
}

// After random events, a breaker has the same state as a map of causes.
func TestBreaker_Model(t *testing.T) {
	t.Parallel()
	nodes := []string{"", "a", "b", "c"}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		b, model := breaker.New(nodeOf), map[string]error{}
		for i := range 300 {
			switch node := nodes[random.IntN(len(nodes))]; random.IntN(3) {
			case 0:
				model[node] = fmt.Errorf("%w: %d", errSilent, i)
				b.Trip(node, model[node])
			default:
				delete(model, node)
				b.Reset(node)
			}
			for _, node := range nodes {
				if got := b.Check(t.Context(), node+":1"); got != model[node] { //nolint:errorlint // exactly this error
					t.Fatalf("seed %d, event %d, node %q: got %v, want %v", seed, i, node, got, model[node])
				}
			}
		}
	}
}

// A breaker is safe for concurrent use. At the end, each circuit has the state of its last event.
func TestBreaker_Concurrent(t *testing.T) {
	t.Parallel()
	b := breaker.New(nodeOf)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			node := fmt.Sprint(n)
			for range 200 {
				b.Trip(node, errSilent)
				if b.Check(t.Context(), node+":1") == nil {
					t.Error("closed after Trip")
				}
				b.Reset(node)
				if b.Check(t.Context(), node+":1") != nil {
					t.Error("open after Reset")
				}
			}
		})
	}
	group.Wait()
	if err := b.Check(t.Context(), "0:1"); err != nil {
		t.Errorf("got %v", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	closed := breaker.New(nodeOf)
	b.ReportAllocs()
	for b.Loop() {
		if closed.Check(b.Context(), "k") != nil {
			b.Fatal("open")
		}
	}
}
