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

// nodeOf has the key "a:1" on the node "a".
func nodeOf(_ context.Context, key string) string {
	node, _, _ := strings.Cut(key, ":")
	return node
}

// Only the keys of the node that is silent fail, with the cause as it was given.
func TestBreaker_OfOneNode(t *testing.T) {
	t.Parallel()
	b := breaker.New(nodeOf)
	b.Trip("a", errSilent)
	if err := b.Check(t.Context(), "a:1"); err != errSilent { //nolint:errorlint // the very one
		t.Errorf("got %v, want the cause", err)
	}
	if err := b.Check(t.Context(), "b:1"); err != nil {
		t.Errorf("another node: got %v", err)
	}
	b.Reset("b")
	if err := b.Check(t.Context(), "a:2"); err == nil {
		t.Error("closed by the reset of another node")
	}
	b.Reset("a")
	if err := b.Check(t.Context(), "a:1"); err != nil {
		t.Errorf("after the reset: got %v", err)
	}
}

// The latest cause counts, and one reset ends them all.
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

// The name of a node may cost a look at the slots of a Cluster: nobody asks for it while
// all nodes answer, also when one was silent before.
//
//nolint:paralleltest // allocations are counted
func TestBreaker_CostsNothingWhileClosed(t *testing.T) {
	asked := 0
	b := breaker.New(func(context.Context, string) string { asked++; return "a" })
	check := func() {
		if err := b.Check(t.Context(), "k"); err != nil {
			t.Errorf("got %v", err)
		}
	}
	check()
	b.Trip("a", errSilent)
	b.Reset("a")
	b.Reset("a") // once more than it was tripped
	check()
	if asked != 0 {
		t.Errorf("the node was asked for %d times", asked)
	}
	if n := testing.AllocsPerRun(100, check); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The node is named without the mutex: naming it may trip another one.
func TestBreaker_CallsNothingUnderItsMutex(t *testing.T) {
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

// Random events do to a breaker what they do to a map of causes.
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
				if got := b.Check(t.Context(), node+":1"); got != model[node] { //nolint:errorlint // the very one
					t.Fatalf("seed %d, event %d, node %q: got %v, want %v", seed, i, node, got, model[node])
				}
			}
		}
	}
}

// It is safe for concurrent use, and as closed at the end as the last event of each node.
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
