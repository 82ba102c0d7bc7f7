package ruleset

// Option configures how rules are resolved.
type Option func(*config)

type config struct {
	declarations

	service   string
	observers []*func(Reload)
}

func newConfig(opts []Option) *config {
	c := &config{declarations: declarations{settings: defaultSettings()}}
	for _, opt := range opts {
		if opt == nil {
			c.reject("nil Option: leave it out")
			continue
		}
		opt(c)
	}
	return c
}

// reject adds a problem with an option.
func (c *config) reject(message string) {
	c.problems = append(c.problems, &Problem{Message: message})
}

// WithProfile adds a profile: the fields that r sets. It replaces a built-in profile of that
// name. The profile default applies to every rule, as in a file. A profile must not set Endpoint, Name,
// Key, Keys, Profile and None.
func WithProfile(name string, r Rule) Option {
	return func(c *config) {
		if name == defaultProfile {
			c.defaults = append(c.defaults, Declared{Rule: r, Source: Source{Layer: LayerDefault}})
			return
		}
		c.profiles = append(c.profiles, profileOf(name, r))
	}
}

// WithRules adds rules written in Go. They are the lowest layer: the rules of a file are laid over
// them.
func WithRules(rules ...Rule) Option {
	return func(c *config) { c.rules = append(c.rules, inCode(rules)...) }
}

// WithService names this program, for files that several programs share. A rule of such a file
// whose services list lacks this name is skipped. Without this option a services list is an error.
func WithService(name string) Option { return func(c *config) { c.service = name } }

// WithReloadObserver makes a [Live] set call a function after every attempt to load the file, including the
// first one, in order. Several functions are called in the order in which they were given. A function
// must neither block nor call Reload or Close, because the reload waits for it. A panic in it is recovered,
// and [slog.Default] logs the first one. nil is an error.
//
// Observers of lock clients (core.WithObserver) need this option only to observe a first load that fails:
// an adapter that uses the set adds them by itself.
func WithReloadObserver(observe func(Reload)) Option {
	return func(c *config) {
		if observe == nil {
			c.reject("WithReloadObserver(nil): leave it out to have refusals and lost locks logged")
			return
		}
		c.observers = append(c.observers, &observe)
	}
}
