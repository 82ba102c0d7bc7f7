package grpclock_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// attempts are the reloads of a watched file.
type attempts chan ruleset.Reload

// of waits for the attempt to load a text.
func (a attempts) of(t testing.TB, text string) error {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:12]
	limit := time.After(5 * time.Minute) // for a test that fails
	for {
		select {
		case r := <-a:
			if r.Hash == hash {
				return r.Err
			}
		case <-limit:
			t.Fatalf("nobody loaded\n%s", text)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const versions = 4

// twoLocks is a rule file whose two rules say by their keys which version they are of.
func twoLocks(version int) string {
	const entry = "  - {grpc: %[1]s, name: %[2]s, key: \"%[2]s-%[3]d:#{req.order_id}\"}\n"
	return "allow_rekey: true\nrules:\n" + fmt.Sprintf(entry, path("Pay"), "outer", version) + fmt.Sprintf(entry, path("Pay"), "inner", version)
}

// heldLocks answers with the locks of any version that a call holds.
func heldLocks(ctx context.Context, req *shoppb.PayRequest) (*shoppb.PayReply, error) {
	var held []string
	for _, name := range []string{"outer", "inner"} {
		for v := range versions {
			if _, ok := core.Held(ctx, fmt.Sprintf("%s-%d:%s", name, v, req.GetOrderId())); ok {
				held = append(held, fmt.Sprintf("%s-%d", name, v))
			}
		}
	}
	return reply(strings.Join(held, " ")), nil
}

// A watched file is replaced under 8 callers: no call fails, and the rules of each are
// of one version.
func TestReload_OfAWatchedFileUnderCallers(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t testing.TB, path, text string){"rename": rulesettest.Replace, "symbolic link": rulesettest.Mount} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, seen := filepath.Join(t.TempDir(), "locks.yaml"), make(attempts, 1000)
			replace(t, file, twoLocks(versions-1))
			live, err := ruleset.Watch(file, ruleset.WithReloadObserver(func(r ruleset.Reload) { seen <- r }))
			must(t, err)
			t.Cleanup(func() { _ = live.Close() })
			b := setup(t, &shop{pay: heldLocks}, grpclock.WithSet(live))

			c := startCallers(b)
			t.Cleanup(c.end)
			for v := range versions {
				replace(t, file, twoLocks(v))
				must(t, seen.of(t, twoLocks(v)))
				b.call(t.Context(), "Pay", "new").check(t, fmt.Sprintf("outer-%[1]d inner-%[1]d", v))
				bad := strings.Replace(twoLocks(v), "req.order_id", "req.order_di", 1)
				replace(t, file, bad)
				if err := seen.of(t, bad); err == nil || !strings.Contains(err.Error(), "write req.order_id") {
					t.Errorf("a broken file: got %v", err)
				}
			}
			c.judge(t)

			for _, head := range []string{"disabled: true\n", "dry_run: true\n"} {
				text := head + twoLocks(0)
				replace(t, file, text)
				must(t, seen.of(t, text))
				b.call(t.Context(), "Pay", "new").check(t, "")
			}
		})
	}
}

// callers call Pay until they are stopped.
type callers struct {
	ended atomic.Bool
	wg    sync.WaitGroup

	mu      sync.Mutex
	answers map[string]int
}

func startCallers(b *bench) *callers {
	c := &callers{answers: map[string]int{}}
	for i := range 8 {
		c.wg.Go(func() {
			for !c.ended.Load() {
				got := b.call(context.Background(), "Pay", strconv.Itoa(i/2)) // two of them meet
				text := strings.Join(got.replies, "+")
				if got.err != nil {
					text = got.err.Error()
				}
				c.mu.Lock()
				c.answers[text]++
				c.mu.Unlock()
			}
		})
	}
	return c
}

func (c *callers) end() {
	c.ended.Store(true)
	c.wg.Wait()
}

// judge ends the callers and judges what they were answered.
func (c *callers) judge(t testing.TB) {
	t.Helper()
	c.end()
	for v := range versions {
		good := fmt.Sprintf("outer-%[1]d inner-%[1]d", v)
		if c.answers[good] == 0 {
			t.Errorf("no call was answered under version %d", v)
		}
		delete(c.answers, good)
	}
	for text, count := range c.answers {
		t.Errorf("%d calls were answered with %q", count, text)
	}
}
