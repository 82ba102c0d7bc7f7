package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/interlock-go/interlock/core/internal/thorough"
	"github.com/interlock-go/interlock/core/ruleset"
)

// --strict does not change the output, but warnings count as problems.
func TestCheck_Strict(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "testdata/warnings.yaml"},
		{"check", "testdata/switched.yaml"},
		{"check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml"},
	} {
		want := interlock(t, "", args...)
		want.code = exitProblems
		if got := interlock(t, "", append(args, "--strict")...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// If check knows the options of a method, it does not advise to look at them.
func TestCheck_AgainstWithDescriptors(t *testing.T) {
	t.Parallel()
	shop := compileImage(t, protocompile.SourceInfoStandard, shopProto)
	args := []string{"check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml"}
	want := interlock(t, "", args...)
	want.stdout = strings.NewReplacer(", unless its .proto has a rule (pass --descriptors)", "", "9 rules:", "9 rules and 1 in .proto files:").Replace(want.stdout)
	if got := interlock(t, "", append(args, "--descriptors", shop)...); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Annotations refer only to the new file, because a pull request does not show the old one.
func TestCheck_Annotations(t *testing.T) {
	t.Parallel()
	got := interlock(t, "", "check", "testdata/unlocked.yaml", "--against", "testdata/locked.yaml", "--format", "github")
	removed := 0
	for line := range strings.Lines(got.stdout) {
		if strings.HasPrefix(line, "::notice::not checked: ") {
			continue // a note about no file
		}
		if !strings.Contains(line, " file=testdata/unlocked.yaml,line=") {
			t.Errorf("got %q, which is not about the new file", line)
		}
		if strings.Contains(line, "file=testdata/unlocked.yaml,line=1::") && strings.Contains(line, ": removed (testdata/locked.yaml:") {
			removed++
		}
	}
	if removed == 0 {
		t.Errorf("no removed rule is reported: got %s", got)
	}
}

// With an image without source information, problems have no line numbers. An image without its imports is
// refused.
func TestCheck_IncompleteImages(t *testing.T) {
	t.Parallel()
	path := compileImage(t, protocompile.SourceInfoNone, typoProto)
	got := interlock(t, "", "check", "--descriptors", path)
	if got.code != exitProblems || !strings.Contains(got.stdout, "typo/v1/typo.proto: rule of grpc /typo.v1.Orders/Pay: key: ") {
		t.Errorf("without source information: got %s", got)
	}

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	set.File = set.GetFile()[len(set.GetFile())-1:]
	if content, err = proto.Marshal(set); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	got = interlock(t, "", "check", "--descriptors", path)
	if got.code != exitCannot || !strings.Contains(got.stderr, "--include_imports") {
		t.Errorf("without imports: got %s", got)
	}
}

// check --against warns about exactly the changes that a reload logs as an error.
func TestCheck_AgainstUnlocking(t *testing.T) {
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
				t.Errorf("a reload logs %q, want an error: %t", got, c.unlocks)
			}
			got := interlock(t, "", "check", nextPath, "--against", oldPath)
			if warned := strings.Contains(got.stdout, "unlocked") || strings.Contains(got.stdout, "without th"); warned != c.unlocks {
				t.Errorf("check warned: %t, want %t:\n%s", warned, c.unlocks, got)
			}
		})
	}
}

// rulesOf returns rules of one endpoint, one for each key, in that order.
func rulesOf(endpoint string, keys ...string) string {
	var text strings.Builder
	for i, key := range keys {
		fmt.Fprintf(&text, "- {func: %s, name: r%d, key: '%s:#{in.ID}'}\n", endpoint, i, key)
	}
	return text.String()
}

func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return keys
}

// Any number of locks that only one endpoint takes does not affect the limit.
func TestCheck_OrdersAmongManyLocks(t *testing.T) {
	t.Parallel()
	own := numbered("own", thorough.Or(49_990, 10_000)) // a file has at most 50,000 rules
	text := "rules:\n" + rulesOf("a", append(append([]string{"first"}, own...), "last")...) + rulesOf("b", "last", "first")
	got := interlock(t, text, "check", "-")
	if n := strings.Count(got.stdout, "the other way round"); n != 1 || !strings.Contains(got.stdout, `taken after "last:#{in.ID}", and func a takes`) {
		t.Errorf("got %d warnings, want one about b:\n%s", n, got)
	}
}

// If several endpoints share many locks, only some of them are compared, and a note says so.
func TestCheck_OrdersOfManySharedLocks(t *testing.T) {
	t.Parallel()
	keys := numbered("k", 101)
	for shared, compared := range map[int]bool{100: true, 101: false} {
		text := "rules:\n" + rulesOf("a", keys[:shared]...) + rulesOf("b", keys[shared-1], keys[0]) + rulesOf("c", keys[1:shared-1]...)
		got := interlock(t, text, "check", "-")
		if warned := strings.Contains(got.stdout, "the other way round"); warned != compared {
			t.Errorf("%d shared locks: warned %t, want %t:\n%s", shared, warned, compared, got)
		}
		if noted := strings.Contains(got.stdout, `rule "r100" of func a: key: not checked: whether other endpoints take this lock`); noted == compared {
			t.Errorf("%d shared locks: noted %t, want %t:\n%s", shared, noted, !compared, got)
		}
	}
}
