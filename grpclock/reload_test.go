package grpclock_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
)

// ruleFile is a rule file that is loaded again on request.
type ruleFile struct {
	*ruleset.Live
	path string
}

// openRules writes a rule file and opens it.
func openRules(t testing.TB, text string) *ruleFile {
	t.Helper()
	f := &ruleFile{path: filepath.Join(t.TempDir(), "locks.yaml")}
	f.write(t, text)
	var err error
	if f.Live, err = ruleset.Open(f.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func (f *ruleFile) write(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// change writes another text and loads it.
func (f *ruleFile) change(t testing.TB, text string) error {
	t.Helper()
	f.write(t, text)
	return f.Reload()
}

// tillFile is a rule file with one entry for the service.
func tillFile(method, fields string) string {
	return "rules:\n  - {grpc: " + tillMethod(method) + ", " + fields + "}\n"
}

func TestReload_RefusesWhatCheckWouldNotPass(t *testing.T) {
	t.Parallel()
	const good = `on_busy: skip`
	for name, tt := range map[string]struct{ text, want string }{
		"field of the message": {tillFile("Skip", `key: "till:#{req.itm}"`), "write req.item"},
		"condition":            {tillFile("Skip", `when: req.amont > 1`), "write req.amount"},
		"fallback":             {tillFile("Skip", `on_busy: fallback, fallback: qeue`), `write "queue"`},
		"response":             {tillFile("Skip", `on_busy: null_response, response: '{"txt": "a"}'`), "unknown field"},
		"unknown method":       {tillFile("Skp", `key: k`), `did you mean "/till.v1.Till/Skip"?`},
		"uncovered":            {"uncovered: error\n" + tillFile("Skip", good), "rule of grpc /till.v1.Till/Plain: missing, and"},
		"name of no option":    {tillFile("Both", `name: itm, wait_time: 1s`), `give its name: "day" or "item"`},
		"another lock":         {tillFile("Refuse", `key: "new:#{req.item}"`), "allow_rekey"},
		"another prefix":       {tillFile("Refuse", `prefix: "new:"`), "allow_rekey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			rules := openRules(t, tillFile("Refuse", good))
			b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules), core.WithObserver(seen.observer())).checked()
			b.redis.Take("till:1", time.Minute)
			err := rules.change(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) || (name != "uncovered" && !strings.Contains(err.Error(), "locks.yaml:2:")) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | skipped | (empty)" {
				t.Errorf("after the refusal: got %q, want the old rule", got)
			}
			if err := rules.change(t, tillFile("Refuse", `on_busy: proceed`)); err != nil {
				t.Errorf("a good file after a bad one: %v", err)
			}
			if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | unlocked | Refuse 1" {
				t.Errorf("after the next reload: got %q", got)
			}
		})
	}
}

// A key that moves between the file and the .proto is another key all the same.
func TestReload_ComparesKeysOfAllLayers(t *testing.T) {
	t.Parallel()
	rules := openRules(t, tillFile("Refuse", `keys: ["till:#{req.item}", "new:#{req.item}"]`))
	b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules)).checked()
	if err := rules.change(t, tillFile("Refuse", `key: "new:#{req.item}"`)); err != nil {
		t.Errorf("by way of both keys: %v", err)
	}
	if err := rules.change(t, elsewhere); err == nil {
		t.Error("back to the key of the .proto: not refused")
	}
	if err := rules.change(t, "allow_rekey: true\n"+elsewhere); err != nil {
		t.Errorf("back to the key of the .proto, allowed: %v", err)
	}
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != busy {
		t.Errorf("got %q, want the rule of the .proto", got)
	}
}

func TestReload_IsOfAllGuardsOrOfNone(t *testing.T) {
	t.Parallel()
	rules := openRules(t, tillFile("Plain", `key: "till:#{req.item}", wait_time: none`))
	tenant := grpclock.WithVariable("tenant", func(context.Context) (string, error) { return "x", nil })
	first := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules), tenant).checked()
	second := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules)).checked()
	if err := rules.change(t, tillFile("Plain", `key: "till:#{req.item}", when: tenant == "y"`)); err == nil {
		t.Fatal("a rule that one guard cannot work with was not refused")
	}
	for i, b := range []*bench{first, second} {
		b.redis.Take("till:1", time.Minute)
		if got := b.sell(t.Context(), "Plain", sale("1", 1)); got != busy {
			t.Errorf("guard %d: got %q, want the old rule", i+1, got)
		}
	}
}

// told collects the rules that observers are notified of.
type told struct {
	mu   sync.Mutex
	list []string
}

func (o *told) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Rule: o.observeRule}}
}

func (o *told) observeRule(r aspect.RuleInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := r.Endpoint.Path + " " + r.Rule
	if r.Retracted {
		text = "gone: " + text
	}
	o.list = append(o.list, text)
}

func (o *told) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	return list
}

func TestReload_TellsObserversOfRulesAndWarnings(t *testing.T) {
	t.Parallel()
	files, service := readLate(t, late(t, payLock, ""), nil)
	rules := openRules(t, "rules:\n  - {grpc: /late.v1.Orders/Chat, name: chat, key: k}\n")
	seen, warned := &told{}, &warnings{}
	b := prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithSet(rules), core.WithObserver(seen.observer(), warned.observer()))
	b.server = dynamicServer(b.guard, service)
	b.checked()
	expect := func(when string, want ...string) {
		t.Helper()
		if got := seen.take(); !slices.Equal(got, want) {
			t.Errorf("%s: told of %q, want %q", when, got, want)
		}
	}
	expect("at the start", "/late.v1.Orders/Chat chat", "/late.v1.Orders/Pay /late.v1.Orders/Pay")

	if err := rules.change(t, "rules:\n  - {grpc: /late.v1.Orders/Chat, name: chat, key: 'k#{req.x}'}\n"); err == nil {
		t.Error("not refused")
	}
	expect("after a refused file")

	if err := rules.change(t, "unmatched: warn\nuncovered: warn\nrules:\n  - {grpc: /late.v1.Orders/Pya, key: k}\n"); err != nil {
		t.Fatal(err)
	}
	expect("after a reload", "gone: /late.v1.Orders/Chat chat", "/late.v1.Orders/Pay /late.v1.Orders/Pay")
	if got := warned.text(); !strings.Contains(got, `did you mean "/late.v1.Orders/Pay"?`) || !strings.Contains(got, "/late.v1.Orders/Chat: missing, and") {
		t.Errorf("warned of %q", got)
	}
}

// Nobody called Check: what was called so far is what a reload compiles.
func TestReload_WithoutCheckJudgesTheMethodsThatWereCalled(t *testing.T) {
	t.Parallel()
	rules := openRules(t, elsewhere)
	b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(rules))
	b.serve()
	if got := b.sell(t.Context(), "Plain", sale("1", 1)); got != "OK | Plain 1" {
		t.Error(got)
	}
	if err := rules.change(t, tillFile("Plain", `key: "till:#{req.itm}"`)); err == nil || !strings.Contains(err.Error(), "write req.item") {
		t.Errorf("a broken rule of a method that was called: %v", err)
	}
	if err := rules.change(t, tillFile("Plain", `key: "till:#{req.item}", wait_time: none`)); err != nil {
		t.Error(err)
	}
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Plain", sale("1", 1)); got != busy {
		t.Errorf("got %q, want the new rule", got)
	}
}
