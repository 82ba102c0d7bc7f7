package redistest

import (
	"strings"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// Down makes the server unreachable until [Server.Up]: it cuts all connections and refuses new ones
// (over TCP it closes them at once). The data stays and continues to expire, and [Server.Take],
// [Server.Free] and [Server.Expire] still act. go-redis logs nothing when a server of [New] refuses a
// connection.
func (s *Server) Down() { s.proxy.Refuse(true) }

// Up makes the server reachable again.
func (s *Server) Up() { s.proxy.Refuse(false) }

// LoseNextReply makes the server execute the next command of this name, lose its reply, and close the
// connection. The returned channel is closed when the server received such a command. The name is
// case-insensitive. "EVALSHA" stands for any script. It includes the EVAL to which a client falls
// back. It excludes an EVALSHA of a script that the server does not have, which executes nothing.
func (s *Server) LoseNextReply(command string) <-chan struct{} {
	names := []string{command}
	if strings.EqualFold(command, "evalsha") {
		names = append(names, "eval")
	}
	return s.LoseReply(faultproxy.Command(names...))
}

// LoseReply is like [Server.LoseNextReply], but loses the reply of the next command that match accepts. cmd[0] is the name
// of the command as the client wrote it. The server calls match for one command at a time, in the order of their arrival.
// match must not use the server.
func (s *Server) LoseReply(match func(cmd []string) bool) <-chan struct{} {
	return s.proxy.DropReply(faultproxy.Once(faultproxy.All(s.known.executable, match))).Hit()
}

// Replicas makes the server act as a master with connected replicas, of which acknowledging acknowledge its
// writes at once. From then on, WAIT and INFO replication answer accordingly. It is for tests of
// [core.WithReplicaAcks]. By default there are none. The replicas do not really exist.
//
// [core.WithReplicaAcks]: https://pkg.go.dev/github.com/interlock-go/interlock/core#WithReplicaAcks
func (s *Server) Replicas(connected, acknowledging int) {
	s.replicas.connected.Store(int64(connected))
	s.replicas.acknowledging.Store(int64(acknowledging))
}
