package ruleset

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

// Set is a validated set of rules. It does not change and is safe for concurrent
// use. The zero value is an empty set.
type Set struct {
	rules []*Resolved
	index map[Endpoint][]*Resolved
}

// NewSet builds a set of rules declared in Go. Every rule needs an Endpoint, and
// rules of one endpoint need different Names. The error is an [*InvalidError] with
// every problem.
func NewSet(rules []Rule, opts ...Option) (*Set, error) {
	declared := make([]Declared, len(rules))
	for i, r := range rules {
		declared[i] = Code(r)
	}
	return BuildSet(declared, opts...)
}

// BuildSet builds a set from declarations of any layer, in any order. Those of one
// identity, which is (Endpoint, Name), are overlaid by their layers: a field that
// a higher layer sets replaces the lower one's whole. Two declarations of one
// identity in one layer are an error. The order of first declaration is kept.
func BuildSet(declared []Declared, opts ...Option) (*Set, error) {
	panic("unbuilt")
}

// Resolve resolves rules for one place without a set: what an adapter does with
// rules that it is handed directly. They need no Endpoint; those of one endpoint
// need different Names. The error is an [*InvalidError] with every problem.
func Resolve(rules []Rule, opts ...Option) ([]*Resolved, error) {
	panic("unbuilt")
}

// Match returns the rules that apply to a call, in the order in which they were
// declared; nil when there are none. e is the exact endpoint of the call, from
// [Route] or [GRPC]. It does not allocate. Do not change the result.
func (s *Set) Match(e Endpoint) []*Resolved { panic("unbuilt") }

// Rules returns every rule, in order.
func (s *Set) Rules() []*Resolved { panic("unbuilt") }

// Len is the number of rules.
func (s *Set) Len() int { return len(s.rules) }

// Profiles lists the names of the built-in profiles: quick (3 s wait, 10 s lease),
// normal (5 s, 30 s), heavy (10 s, 60 s) and long (10 s, watchdog).
func Profiles() []string { panic("unbuilt") }
