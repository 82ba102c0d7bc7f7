package grpclock

import (
	"google.golang.org/grpc"

	"github.com/interlock-go/interlock/grpclock/internal/methodrules"
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
// A rule for a unary method is an error if the program has not asked for
// [Guard.UnaryServerInterceptor], and one for a streaming method without
// [Guard.StreamServerInterceptor].
//
// Check cannot know what depends on the handlers: which side speaks first on a bidirectional
// method (see [WithServerFirst]). Nor does it see which server has the interceptors. Of a
// method without a descriptor it knows the shape only. Methods that are served by an
// unknown-service handler are not registered, so rules for them are reported: such a
// server goes without Check.
func (g *Guard) Check(servers ...Server) error {
	var keys []methodrules.Key
	for _, s := range servers {
		for service, info := range s.GetServiceInfo() {
			for _, m := range info.Methods {
				shape := methodrules.Shape{Client: m.IsClientStream, Server: m.IsServerStream}
				keys = append(keys, methodrules.Key{Path: "/" + service + "/" + m.Name, Shape: shape})
			}
		}
	}
	return g.methods.Check(keys)
}
