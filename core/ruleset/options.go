package ruleset

import (
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

// Option configures how rules are resolved.
type Option func(*config)

// WithDefaults replaces built-in defaults by the fields that r sets. Endpoint,
// Name, Key, Keys and Profile do not belong there.
func WithDefaults(r Rule) Option { return func(c *config) { c.defaults = append(c.defaults, r) } }

// WithProfile adds a profile, or replaces a built-in one of that name: the fields
// that r sets. Endpoint, Name, Key, Keys and Profile do not belong there.
func WithProfile(name string, r Rule) Option {
	return func(c *config) { c.profiles = append(c.profiles, profile{name, r}) }
}

type config struct {
	defaults []Rule
	profiles []profile
}

type profile struct {
	name string
	rule Rule
}

// Profiles lists the built-in profiles: quick (3 s wait, 10 s lease), normal (5 s,
// 30 s), heavy (10 s, 60 s) and long (10 s, watchdog).
func Profiles() []string {
	var names []string
	for _, p := range builtinProfiles() {
		names = append(names, p.name)
	}
	return names
}

func builtinProfiles() []profile {
	return []profile{
		{"quick", Rule{WaitTime: 3 * time.Second, LeaseTime: 10 * time.Second}},
		{"normal", Rule{WaitTime: 5 * time.Second, LeaseTime: 30 * time.Second}},
		{"heavy", Rule{WaitTime: 10 * time.Second, LeaseTime: 60 * time.Second}},
		{"long", Rule{WaitTime: 10 * time.Second, LeaseTime: Watchdog}},
	}
}

func builtinDefaults() Rule {
	return Rule{
		Kind:       Reentrant,
		WaitTime:   DefaultWaitTime,
		LeaseTime:  DefaultLeaseTime,
		OnBusy:     failpolicy.Error,
		OnBackend:  failpolicy.Error,
		OnKey:      failpolicy.Error,
		OnOverload: failpolicy.Error,
		OnLost:     failpolicy.Cancel,
		KeyFormat:  Encode,
	}
}
