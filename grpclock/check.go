package grpclock

import (
	"maps"
	"slices"

	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Server is what [Guard.Check] asks for the registered services: a *grpc.Server.
type Server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}

// Check compiles the rules of all methods that the servers have registered, and
// returns every problem as one [*ruleset.InvalidError]: what is wrong with an option
// of a .proto file, and with a key, a condition, a response or a fallback for a
// method; and rules that take one key as locks of different kinds, see
// [ruleset.MixedKinds]. Call it after the registrations and before Serve, once, with all servers
// that use the guard. Rules for other transports are not judged.
//
// Rules that match no method, and methods that change something and have no rule,
// are errors, warnings for the observers, or nothing, as the set's [ruleset.Settings]
// say. Health checking and reflection need no rule.
//
// Later sets of a [ruleset.Live] are judged in the same way: what would not pass is
// not taken into force.
//
// It cannot know what depends on the handlers: who speaks first on a bidirectional
// method (see [WithServerFirst]), and whether the interceptors were installed. Of a
// method without a descriptor it knows the shape only. Methods that are served by an
// unknown-service handler are not registered, so rules for them are reported: such a
// server goes without Check.
func (g *Guard) Check(servers ...Server) error {
	done := false
	cancel, err := g.rules.Subscribe(func(*ruleset.Set) (func(), error) {
		if done { // a reload before cancel
			return func() {}, nil
		}
		done = true
		return func() {}, g.check(servers)
	})
	if err != nil {
		return err
	}
	cancel()
	return nil
}

// check is Check. No reload falls between its parts.
func (g *Guard) check(servers []Server) error {
	methods := registered(servers)
	g.registered.Store(&methods)
	t := g.learn(methods...)
	c := g.newChecker(t.set)
	for _, k := range methods {
		c.compiled(k, t.methods[k])
	}
	c.mixedKinds(t, methods)
	warnings := c.judge(methods)
	c.serverFirst(methods)
	g.aspect.Warn(warnings...)
	return ruleset.Invalid(c.problems()...)
}

// registered lists the methods of servers, in the order of their names.
func registered(servers []Server) []methodKey {
	list := []methodKey{}
	for _, s := range servers {
		services := s.GetServiceInfo()
		for _, service := range slices.Sorted(maps.Keys(services)) {
			for _, m := range services[service].Methods {
				list = append(list, methodKey{"/" + service + "/" + m.Name, shape{client: m.IsClientStream, server: m.IsServerStream}})
			}
		}
	}
	slices.SortFunc(list, byPath)
	return slices.Compact(list)
}
