package ruleset_test

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

func TestRule_Templates(t *testing.T) {
	t.Parallel()
	one, many := ruleset.Rule{Key: "a"}, ruleset.Rule{Keys: []string{"a", "b"}}
	if got := one.Templates(); len(got) != 1 || got[0] != "a" {
		t.Errorf("got %q", got)
	}
	if got := many.Templates(); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestNoWait_NotATime(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for _, d := range []time.Duration{ruleset.NoWait, ruleset.WaitForever, ruleset.Watchdog} {
		if d >= -ruleset.MaxDuration || seen[d] {
			t.Errorf("%d could be confused with a duration or another sentinel", d)
		}
		seen[d] = true
	}
}

// A busy semaphore means that too many calls run. So its status is the status of an overload, unless the rule
// sets one.
func TestRule_Policy_BusyStatus(t *testing.T) {
	t.Parallel()
	full := failpolicy.Status{HTTP: 429, GRPC: 8 /* RESOURCE_EXHAUSTED */}
	for _, kind := range ruleset.Kinds() {
		want := failpolicy.Busy.Status()
		if kind == ruleset.Semaphore {
			want = full
		}
		for name, tt := range map[string]struct{ set, want failpolicy.Status }{
			"none":      {failpolicy.Status{}, want},
			"HTTP only": {failpolicy.Status{HTTP: 503}, failpolicy.Status{HTTP: 503, GRPC: want.GRPC}},
			"gRPC only": {failpolicy.Status{GRPC: 14 /* UNAVAILABLE */}, failpolicy.Status{HTTP: want.HTTP, GRPC: 14 /* UNAVAILABLE */}},
		} {
			rule := ruleset.Rule{Kind: kind, Status: failpolicy.Statuses{Busy: tt.set}}
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

func TestKind_Traits(t *testing.T) {
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
