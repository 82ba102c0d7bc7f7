package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// check --against warns of what a reload logs as an error, and of nothing else.
func TestCheck_AgainstWarnsOfWhatAReloadUnlocks(t *testing.T) {
	t.Parallel()
	const admin = "- {http: POST /admin/*, key: 'admin:#{query.id}'}\n"
	const two = "- {func: f, name: a, key: '#{in.K}'}\n- {func: f, name: b, key: '#{in.L}'}\n"
	for name, c := range map[string]struct {
		old, next string
		unlocks   bool
	}{
		"none below a wildcard":     {admin, admin + "- {http: POST /admin/refund, none: true}\n", true},
		"disabled below a wildcard": {admin, admin + "- {http: POST /admin/refund, key: '#{query.id}', disabled: true}\n", true},
		"none for any method below": {admin, admin + "- {http: '* /admin/x/*', none: true}\n", true},
		"a wildcard but for one":    {admin, "- {http: POST /admin/refund, key: 'admin:#{query.id}'}\n", true},
		"widened to a wildcard":     {"- {http: POST /admin/refund, key: 'admin:#{query.id}'}\n", admin, false},
		"widened, but for one":      {admin, "- {http: POST /*, key: 'admin:#{query.id}'}\n- {http: POST /admin/refund, none: true}\n", true},
		"renamed":                   {"- {func: f, name: a, key: '#{in.K}'}\n", "- {func: f, name: b, key: '#{in.K}'}\n", false},
		"merged":                    {two, "- {func: f, keys: ['#{in.K}', '#{in.L}']}\n", false},
		"merged, and one disabled":  {two, "- {func: f, name: a, key: '#{in.K}', disabled: true}\n- {func: f, name: b, keys: ['#{in.K}', '#{in.L}']}\n", false},
		"one of two":                {two, "- {func: f, key: '#{in.K}'}\n", true},
		"one of two below":          {strings.ReplaceAll(two, "func: f", "func: x/*"), strings.ReplaceAll(two, "func: f", "func: x/*") + "- {func: x/y, name: a, key: '#{in.K}'}\n- {func: x/y, name: b, key: '#{in.L}', disabled: true}\n", true},
		"of a lower layer":          {"- {func: f, wait_time: 1s}\n", "- {func: g, key: '#{in.K}'}\n", false},
		"a condition":               {"- {func: f, key: '#{in.K}'}\n", "- {func: f, key: '#{in.K}', when: in.Big}\n", true},
		"without Redis":             {"- {func: f, key: '#{in.K}'}\n", "- {func: f, key: '#{in.K}', on_backend: proceed}\n", true},
		"of a lower layer, off":     {"- {func: g, key: '#{in.K}'}\n", "- {func: g, key: '#{in.K}'}\n- {func: f, disabled: true}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			load := func(name, rules string) (string, *ruleset.Set) {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte("rules:\n"+rules), 0o600); err != nil {
					t.Fatal(err)
				}
				live, err := ruleset.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				return path, live.Current()
			}
			oldPath, old := load("old.yaml", c.old)
			nextPath, next := load("next.yaml", c.next)
			if got := (ruleset.Reload{Old: old, Set: next}).Unlocked(); (len(got) > 0) != c.unlocks {
				t.Errorf("a reload says %q, want something: %t", got, c.unlocks)
			}
			got := interlock(t, "", "check", nextPath, "--against", oldPath)
			if warned := strings.Contains(got.stdout, "unlocked") || strings.Contains(got.stdout, "without th"); warned != c.unlocks {
				t.Errorf("check warns: %t, want %t:\n%s", warned, c.unlocks, got)
			}
		})
	}
}
