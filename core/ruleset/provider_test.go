package ruleset_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// byValue is a provider that is no pointer.
type byValue struct{ *ruleset.Set }

func TestCheckProvider(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		p  ruleset.Provider
		ok bool
	}{
		"nil":         {nil, false},
		"no set":      {(*ruleset.Set)(nil), false},
		"no live set": {(*ruleset.Live)(nil), false},
		"empty set":   {new(ruleset.Set), true},
		"a value":     {byValue{}, true},
	} {
		if err := ruleset.CheckProvider(tc.p); (err == nil) != tc.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
