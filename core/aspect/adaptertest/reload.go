package adaptertest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// reload tests the effects of a new rule file.
func reload(t *testing.T, a Adapter) {
	each(t, a, map[string]func(*testing.T, *bench){
		"takes effect":        reloadTakesEffect,
		"refused":             reloadRefused,
		"under way":           reloadUnderWay,
		"waiting":             reloadWaiting,
		"removes and returns": reloadRemovesAndReturns,
		"over declared":       reloadOverDeclared,
	})
}

// serveFile serves the program under a rule file. write replaces the file and reloads it.
func serveFile(t *testing.T, b *bench, first string) (write func(text string) error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "locks.yaml")
	put := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(first)
	rules, err := ruleset.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rules.Close() })
	b.program.Set = rules
	b.start()
	return func(text string) error {
		put(text)
		return rules.Reload()
	}
}

func skips(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip }

func reloadTakesEffect(t *testing.T, b *bench) {
	write := serveFile(t, b, formatRuleFile(b.rule()))
	b.redis.Take(prefix+"order:42", time.Hour)
	b.wantRefused(b.call(), failpolicy.Busy)
	if err := write(formatRuleFile(b.rule(skips))); err != nil {
		t.Fatal(err)
	}
	b.wantOK(b.call(), "", "skipped")
}

// reloadRefused tests that a file does not come into force if Check would not accept it, or if it would take another
// lock.
func reloadRefused(t *testing.T, b *bench) {
	write := serveFile(t, b, formatRuleFile(b.rule(skips)))
	b.redis.Take(prefix+"order:42", time.Hour)
	b.wantOK(b.call(), "", "skipped")
	for what, text := range map[string]string{
		"a rule that matches nothing": formatRuleFile(b.other()),
		"a key that does not compile": formatRuleFile(b.rule(func(r *ruleset.Rule) { r.Key = "order:#{" + b.adapter.ID + "x}" })),
		"a fallback that is not there": formatRuleFile(b.rule(func(r *ruleset.Rule) {
			r.OnBusy, r.Fallback = failpolicy.Fallback, "missing"
		})),
		"another lock": formatRuleFile(b.rule(func(r *ruleset.Rule) { r.Key = "invoice:#{" + b.adapter.ID + "}" })),
		"no rule file": "rules: 7\n",
	} {
		if err := write(text); err == nil {
			t.Errorf("%s: the reload was not refused", what)
		}
		b.wantOK(b.call(), "", "skipped")
	}
}

// reloadUnderWay tests that a call runs to its end under the rules with which it began.
func reloadUnderWay(t *testing.T, b *bench) {
	entered, leave := make(chan struct{}), make(chan struct{})
	b.handler(func(context.Context) (string, error) {
		close(entered)
		<-leave
		return "paid", nil
	})
	write := serveFile(t, b, formatRuleFile(b.rule()))
	done := make(chan Answer)
	go func() { done <- b.call() }()
	<-entered
	if err := write(formatRuleFile(b.rule(skips))); err != nil {
		t.Fatal(err)
	}
	b.wantOK(b.call(), "", "skipped")
	close(leave)
	b.wantOK(<-done, "paid", "")
	if b.isTaken() {
		t.Error("the lock is still held")
	}
}

// reloadWaiting tests that a call that waits goes on to wait under the rules with which it began.
func reloadWaiting(t *testing.T, b *bench) {
	write := serveFile(t, b, formatRuleFile(b.rule(func(r *ruleset.Rule) { r.WaitTime = time.Hour })))
	b.redis.Take(prefix+"order:42", time.Hour)
	done := make(chan Answer)
	go func() { done <- b.call() }()
	awaitEvent(t, "a call waits", func() bool { return b.locks.Stats().Waiters == 1 })
	if err := write(formatRuleFile(b.rule(skips))); err != nil {
		t.Fatal(err)
	}
	b.wantOK(b.call(), "", "skipped")
	b.redis.Free(prefix + "order:42")
	b.wantOK(<-done, "paid", "")
}

func reloadRemovesAndReturns(t *testing.T, b *bench) {
	write := serveFile(t, b, formatRuleFile(b.rule()))
	b.redis.Take(prefix+"order:42", time.Hour)
	if err := write("rules: []\n"); err != nil {
		t.Fatal(err)
	}
	b.wantOK(b.call(), "paid", "")
	if err := write(formatRuleFile(b.rule())); err != nil {
		t.Fatal(err)
	}
	b.wantRefused(b.call(), failpolicy.Busy)
}

// reloadOverDeclared tests that a file may change the strategy of a rule that the endpoint declares, but not its lock.
func reloadOverDeclared(t *testing.T, b *bench) {
	if !b.adapter.Declares {
		return
	}
	b.program.Declared = []ruleset.Rule{b.rule(skips)}
	write := serveFile(t, b, "rules: []\n")
	b.redis.Take(prefix+"order:42", time.Hour)
	b.wantOK(b.call(), "", "skipped")
	overlay := ruleset.Rule{Endpoint: b.adapter.Endpoint, Key: "invoice:#{" + b.adapter.ID + "}"}
	if err := write(formatRuleFile(overlay)); err == nil {
		t.Error("the reload was not refused")
	}
	b.wantOK(b.call(), "", "skipped")
	overlay.Key, overlay.OnBusy = b.rule().Key, failpolicy.NullResponse
	if err := write(formatRuleFile(overlay)); err != nil {
		t.Error(err)
	}
	b.wantOK(b.call(), "", "null")
}
