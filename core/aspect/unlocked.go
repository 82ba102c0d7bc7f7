package aspect

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// unlocked is a field that lets calls run without the lock of their rule.
type unlocked struct {
	field, reason string
	is            func(r *ruleset.Resolved) bool
}

// ways lists what lets calls run unlocked. Of the first two, only the first that applies counts.
var ways = []unlocked{ //nolint:gochecknoglobals // a table that is only read
	{"disabled", "runs unlocked", func(r *ruleset.Resolved) bool { return r.Disabled }},
	{"dry_run", "runs unlocked, because a dry run only counts", func(r *ruleset.Resolved) bool { return r.DryRun && !r.Disabled }},
	{"on_busy", "runs unlocked while another call has the lock", proceeds(func(r *ruleset.Resolved) failpolicy.Strategy { return r.OnBusy })},
	{"on_backend", "runs unlocked while Redis is down", proceeds(func(r *ruleset.Resolved) failpolicy.Strategy { return r.OnBackend })},
	{"on_key", "runs unlocked for a request that yields no key", proceeds(func(r *ruleset.Resolved) failpolicy.Strategy { return r.OnKey })},
	{"on_overload", "runs unlocked while too many calls wait", proceeds(func(r *ruleset.Resolved) failpolicy.Strategy { return r.OnOverload })},
}

func proceeds(strategy func(*ruleset.Resolved) failpolicy.Strategy) func(*ruleset.Resolved) bool {
	return func(r *ruleset.Resolved) bool {
		return strategy(r) == failpolicy.Proceed && !r.Disabled && !r.DryRun
	}
}

// warnUnlocked warns of rules that become active at start-up and let calls run without their locks. One warning names all
// endpoints with the same reason. The same warning is not given again, because a rule with a wildcard becomes active at
// each of its endpoints.
func (e *environment) warnUnlocked(rules []*ruleset.Resolved) {
	for _, way := range ways {
		var first *ruleset.Resolved
		var others []string
		for _, r := range rules {
			switch name := r.Endpoint.String(); {
			case !way.is(r):
			case first == nil:
				first = r
			case r.Endpoint != first.Endpoint && !slices.Contains(others, name):
				others = append(others, name)
			}
		}
		if first == nil {
			continue
		}
		text := "the endpoint " + way.reason
		if len(others) > 0 {
			text += "; so do " + strings.Join(others, ", ")
		}
		p := first.Problem(way.field, text)
		if _, again := e.told.LoadOrStore(p.Error(), true); !again {
			e.warn(p)
		}
	}
}
