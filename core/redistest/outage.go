package redistest

import (
	"crypto/sha1" // the digest by which Redis knows scripts
	"encoding/hex"
	"strings"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
)

// Down makes the server unreachable until [Server.Up]: all connections are cut and
// new ones refused (over TCP: closed at once). The data is kept and goes on
// expiring, and [Server.Take], [Server.Free] and [Server.Expire] still act.
// go-redis logs nothing of what a server of [New] refuses.
func (s *Server) Down() { s.proxy.Refuse(true) }

// Up makes the server reachable again.
func (s *Server) Up() { s.proxy.Refuse(false) }

// LoseNextReply has the next command of this name executed and its reply lost; the
// connection is then closed. The channel is closed when the server has got such a
// command. Any case will do. "EVALSHA" stands for any script: also for the EVAL that
// a client falls back to, and not for an EVALSHA of a script that the server does
// not know, which executes nothing.
func (s *Server) LoseNextReply(command string) <-chan struct{} {
	names := []string{command}
	if strings.EqualFold(command, "evalsha") {
		names = append(names, "eval")
	}
	return s.LoseReply(faultproxy.Command(names...))
}

// LoseReply is [Server.LoseNextReply] for the next command that match accepts; cmd[0]
// is the command's name, as the client wrote it. match is called for one command at
// a time, in the order in which they arrive; it must not use the server.
func (s *Server) LoseReply(match func(cmd []string) bool) <-chan struct{} {
	return s.proxy.DropReply(faultproxy.Once(faultproxy.All(s.known.executable, match))).Hit()
}

// scripts are the digests of the scripts that the server knows. The proxy calls the
// methods one at a time.
type scripts struct{ digests map[string]bool }

// note is a match that matches nothing and looks at everything.
func (s *scripts) note(cmd []string) bool {
	switch name := strings.ToLower(cmd[0]); {
	case name == "eval" && len(cmd) > 1:
		s.add(cmd[1])
	case name == "script" && len(cmd) > 2 && strings.EqualFold(cmd[1], "load"):
		s.add(cmd[2])
	case name == "script" && len(cmd) > 1 && strings.EqualFold(cmd[1], "flush"):
		clear(s.digests)
	}
	return false
}

func (s *scripts) add(source string) {
	if s.digests == nil {
		s.digests = make(map[string]bool)
	}
	sum := sha1.Sum([]byte(source))
	s.digests[hex.EncodeToString(sum[:])] = true
}

// executable reports whether a command would do more than answer NOSCRIPT.
func (s *scripts) executable(cmd []string) bool {
	return !strings.EqualFold(cmd[0], "evalsha") || len(cmd) > 1 && s.digests[strings.ToLower(cmd[1])]
}
