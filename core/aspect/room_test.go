package aspect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
)

// A rule none of whose keys can be taken, or whose long keys cannot, is refused when it
// is compiled.
func TestCompile_KeysHaveRoom(t *testing.T) {
	t.Parallel()
	const variable, constant = "order:#{in.ID}", "close-day"
	long := strings.Repeat("p", 600)
	mapper := func(n int) core.Option {
		return core.WithNameMapper(func(name string) string { return name + strings.Repeat("m", n) })
	}
	tests := []struct {
		name        string
		prefix, key string
		opts        []core.Option
		field, want string // of the problem; "" for none
	}{
		{"defaults", "shop:", variable, nil, "", ""},
		{"a prefix longer than a key", long, variable, nil, "prefix", "has 600 bytes: write one of at most 464"},
		{"a prefix that leaves room for the hash alone", long[:470], variable, nil, "prefix", "at most 464"},
		{"a prefix that leaves room", long[:464], variable, nil, "", ""},
		{"literals longer than a key", "", long + variable, nil, "key", "every key has at least 607 bytes"},
		{"the client's keys are too short", "", variable, []core.Option{core.WithMaxKeyLength(400)}, "key", "core.WithMaxKeyLength(520)"},
		{"the client's prefix is too long", "", variable, []core.Option{core.WithPrefix(long)}, "key", "core.WithMaxKeyLength(1120)"},
		{"the client's prefix is what to shorten", "", variable, []core.Option{core.WithPrefix(long)}, "key", "what its core.WithPrefix adds"},
		{"the client's mapper leaves room", "", variable, []core.Option{mapper(504)}, "", ""},
		{"the client's mapper adds too much", "", variable, []core.Option{mapper(505)}, "key", "room for 519 beside what its core.WithNameMapper adds: write core.WithMaxKeyLength(1025)"},
		{"a mapper that makes keys shorter", "", variable, []core.Option{core.WithNameMapper(core.KeyHash)}, "", ""},
		{"a constant key fits", "", constant, []core.Option{core.WithMaxKeyLength(400)}, "", ""},
		{"a constant key does not", "", strings.Repeat("k", 400), []core.Option{core.WithMaxKeyLength(400)}, "key", "core.WithMaxKeyLength(408)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := mustAspect(t, offline(t, tt.opts...)).Compile(site(t), ruleset.Rule{Name: "pay", Key: tt.key, Prefix: tt.prefix})
			problem, found := errors.AsType[*ruleset.Problem](err)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (!found || problem.Field != tt.field || !strings.Contains(problem.Message, tt.want)):
				t.Errorf("got %v, want %q of %s", err, tt.want, tt.field)
			}
		})
	}
}
