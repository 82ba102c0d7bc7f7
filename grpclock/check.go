package grpclock

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Server is what [Guard.Check] asks for the registered services: a *grpc.Server.
type Server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// Check compiles the rules of all methods that the servers have registered, and
// returns every problem as one [*ruleset.InvalidError]: what is wrong with a key, a
// condition, a response or a fallback for a method, and rules that match no method.
// Call it after the registrations and before Serve, once, with all servers that use
// the guard. Rules for other transports are not judged.
//
// It cannot know what depends on the handlers: who speaks first on a bidirectional
// method (see [WithServerFirst]), and whether the interceptors were installed. Of a
// method without a descriptor it knows the shape only. Methods that are served by an
// unknown-service handler are not registered, so rules for them are reported: such a
// server goes without Check.
func (g *Guard) Check(servers ...Server) error {
	c := &checker{used: map[*ruleset.Resolved]bool{}, seen: map[string]*finding{}}
	for _, s := range servers {
		for _, m := range registered(s) {
			c.check(g, m)
		}
	}
	problems := c.problems()
	for _, r := range g.rules.Rules() {
		if r.Endpoint.Transport == ruleset.TransportGRPC && !c.used[r] {
			problems = append(problems, r.Problem("endpoint", c.unmatched(r.Endpoint.Path)))
		}
	}
	return ruleset.Invalid(append(problems, c.serverFirst(g)...)...)
}

// registered lists the methods of a server, in order.
func registered(s Server) []methodKey {
	services := s.GetServiceInfo()
	var list []methodKey
	for _, service := range slices.Sorted(maps.Keys(services)) {
		for _, m := range services[service].Methods {
			list = append(list, methodKey{"/" + service + "/" + m.Name, shape{m.IsClientStream, m.IsServerStream}})
		}
	}
	slices.SortStableFunc(list, func(a, b methodKey) int { return strings.Compare(a.path, b.path) })
	return list
}

// checker collects what is wrong with the registered methods.
type checker struct {
	names []string // of all methods
	used  map[*ruleset.Resolved]bool
	order []*finding
	seen  map[string]*finding
}

// finding is one problem, and the methods that have it.
type finding struct {
	problem *ruleset.Problem
	methods []string
}

func (c *checker) check(g *Guard, k methodKey) {
	c.names = append(c.names, k.path)
	for _, r := range g.rules.Match(ruleset.GRPC(k.path)) {
		c.used[r] = true
	}
	m := g.method(k.path, k.shape)
	var invalid *ruleset.InvalidError
	if m == nil || !errors.As(m.err, &invalid) {
		return
	}
	for _, p := range invalid.Problems {
		c.add(p, k.path)
	}
}

// add notes a problem; a rule with a wildcard may have it for many methods.
func (c *checker) add(p *ruleset.Problem, path string) {
	text := p.Error()
	f := c.seen[text]
	if f == nil {
		f = &finding{problem: p}
		c.seen[text] = f
		c.order = append(c.order, f)
	}
	f.methods = append(f.methods, path)
}

// problems are the findings, those of wildcards with a method that has them.
func (c *checker) problems() []*ruleset.Problem {
	var list []*ruleset.Problem
	for _, f := range c.order {
		p := *f.problem
		if strings.HasSuffix(p.Endpoint.Path, "*") && !strings.Contains(p.Message, f.methods[0]) {
			p.Message = f.where() + ": " + p.Message
		}
		list = append(list, &p)
	}
	return list
}

// where names the methods that have the problem.
func (f *finding) where() string {
	if more := len(f.methods) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", f.methods[0], more)
	}
	return f.methods[0]
}

// serverFirst reports names given to [WithServerFirst] that do not exist.
func (c *checker) serverFirst(g *Guard) []*ruleset.Problem {
	var list []*ruleset.Problem
	for _, path := range slices.Sorted(maps.Keys(g.config.serverFirst)) {
		if !slices.Contains(c.names, path) {
			list = append(list, &ruleset.Problem{Endpoint: ruleset.GRPC(path), Message: "WithServerFirst: " + c.unmatched(path)})
		}
	}
	return list
}

// unmatched says what to write instead of an endpoint that matches nothing.
func (c *checker) unmatched(path string) string {
	if strings.HasSuffix(path, "*") {
		return fmt.Sprintf("%q applies to no method: none is registered there, or each has rules of its own: remove it", path)
	}
	text := fmt.Sprintf("no method %q is registered", path)
	switch near := failpolicy.Nearest(path, c.names); {
	case near != "":
		return text + fmt.Sprintf(": did you mean %q?", near)
	case len(c.names) == 0:
		return text + ": register the services before Check"
	default:
		return text + ": remove it here, or register its service before Check"
	}
}
