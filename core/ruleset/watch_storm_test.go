package ruleset_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/core/ruleset/rulesettest"
)

const (
	stormCallers   = 32
	stormChanges   = 300
	stormEndpoints = 20
)

// generation returns a file whose rules all have the number n. A set with two numbers is torn.
func generation(n int) string {
	var text strings.Builder
	text.WriteString("allow_rekey: true\nrules:\n")
	for i := range stormEndpoints {
		fmt.Fprintf(&text, "  - http: POST /r%d/:id\n    key: \"%d:#{path.id}\"\n    message: \"%d\"\n", i, n, n)
	}
	return text.String()
}

// badGeneration returns a file with a mistake only in its last rule.
func badGeneration(n int) string {
	return generation(n) + fmt.Sprintf("  - http: POST /bad\n    key: \"%d\"\n    wait_tme: 1s\n", n)
}

// caller reads the rules of every endpoint until stop is set.
func caller(current func() *ruleset.Set, stop *atomic.Bool) error {
	for !stop.Load() {
		time.Sleep(time.Millisecond) // lets the watcher run
		set := current()
		var first string
		for i := range stormEndpoints {
			rules := set.Match(ruleset.Route("POST", fmt.Sprintf("/r%d/:id", i)))
			if len(rules) != 1 {
				return fmt.Errorf("endpoint %d has %d rules", i, len(rules))
			}
			if first == "" {
				first = rules[0].Message
			}
			if r := rules[0]; r.Message != first || r.Key != first+":#{path.id}" {
				return fmt.Errorf("torn: endpoint %d has key %q and message %q in a set of %q", i, r.Key, r.Message, first)
			}
		}
	}
	return nil
}

func TestWatch_NoTornSet(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, top, text string, n int){
		"rename": func(t *testing.T, top, text string, _ int) {
			rulesettest.Replace(t, filepath.Join(top, "locks.yaml"), text)
		},
		"symlink swap": func(t *testing.T, top, text string, n int) {
			dir := fmt.Sprintf("..%d", n)
			rulesettest.Write(t, filepath.Join(mkdir(t, filepath.Join(top, dir)), "locks.yaml"), text)
			rulesettest.Link(t, dir, filepath.Join(top, "..data"))
			remove(t, filepath.Join(top, fmt.Sprintf("..%d", n-1)))
			if n == 0 {
				rulesettest.Link(t, "..data/locks.yaml", filepath.Join(top, "locks.yaml"))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			change(t, top, generation(0), 0)
			seen := newReloads()
			l, err := ruleset.WatchFor(filepath.Join(top, "locks.yaml"), 5*time.Millisecond, ruleset.WithReloadObserver(seen.observe))
			if err != nil {
				t.Fatal(err)
			}
			closeLater(t, l)
			seen.next(t)

			var adapted atomic.Pointer[ruleset.Set]
			cancel, err := l.Subscribe(func(next *ruleset.Set) (func(), error) {
				return func() { adapted.Store(next) }, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()

			var stop atomic.Bool
			var callers sync.WaitGroup
			for i := range stormCallers {
				current := []func() *ruleset.Set{l.Current, adapted.Load}[i%2]
				callers.Go(func() {
					if err := caller(current, &stop); err != nil {
						t.Error(err)
					}
				})
			}
			goods := storm(t, func(text string, n int) { change(t, top, text, n) }, seen)
			stop.Store(true)
			callers.Wait()

			if goods < stormChanges/6 {
				t.Errorf("%d reloads took effect, want at least the reloads that the test waited for", goods)
			}
			want := fmt.Sprint(stormChanges)
			for _, set := range []*ruleset.Set{l.Current(), adapted.Load()} {
				if got := set.Match(ruleset.Route("POST", "/r0/:id"))[0].Message; got != want {
					t.Errorf("got generation %s at the end, want %s", got, want)
				}
			}
		})
	}
}

// storm writes good and bad files in turn and checks the observed reloads. It waits for every third change.
// Changes in between may replace each other.
func storm(t *testing.T, change func(text string, n int), seen reloads) (goods int) {
	t.Helper()
	sets := map[string]string{hashOf(generation(0)): "good"}
	for n := 1; n <= stormChanges; n++ {
		text, kind := generation(n), "good"
		if n%2 == 1 {
			text, kind = badGeneration(n), "bad"
		}
		sets[hashOf(text)] = kind
		change(text, n)
		for await := n%3 == 0; await; {
			r := seen.next(t)
			if isGood := r.Err == nil; isGood != (sets[r.Hash] == "good") && !errors.Is(r.Err, fs.ErrNotExist) {
				t.Errorf("a %q file: got error %v", sets[r.Hash], r.Err)
			} else if isGood {
				goods++
			}
			await = r.Hash != hashOf(text)
		}
	}
	return goods
}
