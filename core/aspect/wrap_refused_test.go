package aspect_test

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
)

var closeDay = ruleset.Func("close-day")

func TestWrap_SaysThatTheKeyIsMissing(t *testing.T) {
	t.Parallel()
	missing := `ruleset: rule of func close-day: Key: missing: write a template such as "order:pay:#{in.OrderID}"`
	empty := file(t)
	for name, tc := range map[string]struct {
		opts []aspect.Option
		rule ruleset.Rule
	}{
		"a name":              {nil, ruleset.Rule{Name: "close-day"}},
		"an endpoint":         {nil, ruleset.Rule{Endpoint: closeDay}},
		"a wait":              {nil, ruleset.Rule{Name: "close-day", WaitTime: time.Second}},
		"a wait, with a set":  {[]aspect.Option{aspect.WithSet(empty)}, ruleset.Rule{Name: "close-day", WaitTime: time.Second}},
		"no name, with a set": {[]aspect.Option{aspect.WithSet(empty)}, ruleset.Rule{Endpoint: closeDay, WaitTime: time.Second}},
	} {
		_, err := aspect.Wrap(mustAspect(t, offline(t), tc.opts...), tc.rule, charge)
		if err == nil || err.Error() != missing {
			t.Errorf("%s: got %v, want %s", name, err, missing)
		}
	}
}
