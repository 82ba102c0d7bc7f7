package ruleset_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// A nil option is a mistake of the program, in every function with options. A nil observer would hide
// refusals.
func TestOption_Nil(t *testing.T) {
	t.Parallel()
	path := fileWith(t, keyed("a"))
	closed := func(l *ruleset.Live, err error) error {
		if err == nil {
			closeLater(t, l)
		}
		return err
	}
	for name, try := range map[string]func(opts ...ruleset.Option) error{
		"NewSet":   func(opts ...ruleset.Option) error { _, err := ruleset.NewSet(nil, opts...); return err },
		"BuildSet": func(opts ...ruleset.Option) error { _, err := ruleset.BuildSet(nil, opts...); return err },
		"Resolve":  func(opts ...ruleset.Option) error { _, err := ruleset.Resolve(nil, opts...); return err },
		"Load": func(opts ...ruleset.Option) error {
			_, err := ruleset.Load(path, []byte(keyed("a")), opts...)
			return err
		},
		"Open":  func(opts ...ruleset.Option) error { return closed(ruleset.Open(path, opts...)) },
		"Watch": func(opts ...ruleset.Option) error { return closed(ruleset.Watch(path, opts...)) },
	} {
		err := try(nil, ruleset.WithReloadObserver(nil))
		const want = "ruleset: 2 problems\n\tnil Option: leave it out\n\tWithReloadObserver(nil): "
		if _, ok := errors.AsType[*ruleset.InvalidError](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", name, err, want)
		}
	}
}
