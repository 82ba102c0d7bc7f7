package ruleset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// A semaphore without a free permit is no conflict: the client sees that there are too many
// calls, unless the rule says something else.
func TestRule_StatusOfBusy(t *testing.T) {
	t.Parallel()
	full := failpolicy.Status{HTTP: 429, GRPC: 8 /* RESOURCE_EXHAUSTED */}
	for _, kind := range ruleset.Kinds() {
		want := failpolicy.Busy.Status()
		if kind == ruleset.Semaphore {
			want = full
		}
		for name, tt := range map[string]struct{ own, want failpolicy.Status }{
			"none":      {failpolicy.Status{}, want},
			"HTTP only": {failpolicy.Status{HTTP: 503}, failpolicy.Status{HTTP: 503, GRPC: want.GRPC}},
			"gRPC only": {failpolicy.Status{GRPC: 14 /* UNAVAILABLE */}, failpolicy.Status{HTTP: want.HTTP, GRPC: 14 /* UNAVAILABLE */}},
		} {
			rule := ruleset.Rule{Kind: kind, Status: failpolicy.Statuses{Busy: tt.own}}
			policy := rule.Policy()
			if got := policy.Statuses.Status(failpolicy.Busy); got != tt.want {
				t.Errorf("%s, %s: got %+v, want %+v", kind, name, got, tt.want)
			}
			if got := policy.Statuses.Status(failpolicy.Backend); got != failpolicy.Backend.Status() {
				t.Errorf("%s, %s: another cause is %+v", kind, name, got)
			}
		}
	}
}

func TestKind_Words(t *testing.T) {
	t.Parallel()
	for kind, noun := range map[ruleset.Kind]string{ruleset.Reentrant: "reentrant lock", ruleset.Fair: "fair lock", ruleset.Write: "write lock", ruleset.Semaphore: "semaphore"} {
		if kind.Traits().Noun != noun {
			t.Errorf("%s: got %q", kind, kind.Traits().Noun)
		}
	}
	for _, kind := range ruleset.Kinds() {
		if shared := slices.Contains([]ruleset.Kind{ruleset.Read, ruleset.Semaphore}, kind); kind.Traits().Shared != shared {
			t.Errorf("%s is shared: %v, want %v", kind, kind.Traits().Shared, shared)
		}
	}
}

// What a higher layer makes useless in a lower one is no mistake, and what it lacks is told
// where it is written.
func TestLoad_PermitsOfLayers(t *testing.T) {
	t.Parallel()
	semaphore := ruleset.Rule{Kind: ruleset.Semaphore, Permits: 3}
	for name, tt := range map[string]struct {
		file  string
		lower ruleset.Rule
		want  string // the end of the only problem; "" for none
	}{
		"another number":     {"permits: 10", semaphore, ""},
		"another kind":       {"kind: spin", semaphore, ""},
		"a kind without":     {"kind: semaphore", ruleset.Rule{}, "kind: a semaphore has to know how many calls may run at once, across all instances: write permits: 5 beside it"},
		"permits without":    {"permits: 10", ruleset.Rule{}, "permits: a reentrant lock has no permits: remove it, or write kind: semaphore"},
		"permits over spin":  {"permits: 10", ruleset.Rule{Kind: ruleset.Spin}, "or write kind: semaphore (kind comes from the program)"},
		"a kind for a token": {"kind: read", ruleset.Rule{Token: true}, "kind: several calls hold a read lock at a time, and one token cannot order them: remove token, or write another kind, such as write (token comes from the program)"},
		"no token any more":  {"kind: read\n  token: false", ruleset.Rule{Token: true}, ""},
		"fenced, no token":   {"kind: fenced\n  token: false", ruleset.Rule{}, "token: a fenced lock has a token in any case: remove token, or write another kind, such as reentrant"},
		"no token of fenced": {"token: false", ruleset.Rule{Kind: ruleset.Fenced}, "token: a fenced lock has a token in any case: remove token, or write another kind, such as reentrant (kind comes from the program)"},
		"fenced, a token":    {"kind: fenced\n  token: true", ruleset.Rule{}, ""},
		"fenced over others": {"kind: fenced", ruleset.Rule{Kind: ruleset.Spin}, ""},
		"a token for a kind": {"token: true", semaphore, "token: several calls hold a semaphore at a time, and one token cannot order them: remove token, or write another kind, such as reentrant (kind comes from the program)"},
		"a window":           {"debounce: 5s", semaphore, "has no last holder, so the window would never start: remove debounce, or write another kind, such as reentrant (kind comes from the program)"},
	} {
		_, err := overCode(t, "rules:\n- http: POST /a\n  "+tt.file+"\n", tt.lower)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}
