package ruleset

import (
	"time"

	"github.com/interlock-go/interlock/failpolicy"
)

// Option configures how rules are resolved.
type Option func(*config)

// WithProfile adds a profile, or replaces a built-in one of that name: the fields
// that r sets. The profile default is for every rule, as in a file. Endpoint, Name,
// Key, Keys, Profile and None do not belong there.
func WithProfile(name string, r Rule) Option {
	return func(c *config) {
		if name == defaultProfile {
			c.defaults = append(c.defaults, Declared{Rule: r, Source: Source{Layer: LayerDefault}})
			return
		}
		c.profiles = append(c.profiles, profileOf(name, r))
	}
}

// WithRules adds rules written in Go, the lowest layer: those of a file are laid over
// them.
func WithRules(rules ...Rule) Option {
	return func(c *config) { c.declared = append(c.declared, inCode(rules)...) }
}

// WithService says which program this is, for files that are shared by several:
// entries with a services list that does not name it are left out. Without this
// option such a list is an error.
func WithService(name string) Option { return func(c *config) { c.service = name } }

type config struct {
	defaults  []Declared
	profiles  []Declared
	declared  []Declared
	service   string
	settings  Settings
	settingAt map[string]Source // where the settings stand, by their names outside Go
	observers []*func(Reload)
	problems  []*Problem // of the options themselves

	profilesUnread bool // some of the file could not be read, names and all
}

func newConfig(opts []Option) *config {
	c := &config{settings: defaultSettings()}
	for _, opt := range opts {
		if opt == nil {
			c.reject("nil Option: leave it out")
			continue
		}
		opt(c)
	}
	return c
}

// reject notes a problem of an option, which is one of the program.
func (c *config) reject(message string) {
	c.problems = append(c.problems, &Problem{Message: message})
}

// profileOf declares a profile; its name is in the source.
func profileOf(name string, r Rule) Declared {
	return Declared{Rule: r, Source: Source{Layer: LayerProfile, Profile: name}}
}

// Profiles lists the built-in profiles: quick (3 s wait, 10 s lease), normal (5 s,
// 30 s), heavy (10 s, 60 s) and long (10 s, watchdog).
func Profiles() []string {
	var names []string
	for _, p := range builtinProfiles() {
		names = append(names, p.Source.Profile)
	}
	return names
}

func builtinProfiles() []Declared {
	return []Declared{
		profileOf("quick", Rule{WaitTime: 3 * time.Second, LeaseTime: 10 * time.Second}),
		profileOf("normal", Rule{WaitTime: 5 * time.Second, LeaseTime: 30 * time.Second}),
		profileOf("heavy", Rule{WaitTime: 10 * time.Second, LeaseTime: 60 * time.Second}),
		profileOf("long", Rule{WaitTime: 10 * time.Second, LeaseTime: Watchdog}),
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

// WithReloadObserver has a [Live] set call a function at every attempt to load the file, the first one
// included, in order; functions are called in the order in which they were given. A function is called synchronously and must
// neither block nor call Reload or Close. Observers of lock clients (core.WithObserver) need it only to see how the first load
// failed: they are notified without it as soon as an adapter uses the set. A panic in it is contained, and [slog.Default] has a record of the first
// one. nil is an error.
func WithReloadObserver(observe func(Reload)) Option {
	return func(c *config) {
		if observe == nil {
			c.reject("WithReloadObserver(nil): leave it out to have refusals and lost locks logged")
			return
		}
		c.observers = append(c.observers, &observe)
	}
}
