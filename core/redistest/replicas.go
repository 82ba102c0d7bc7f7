package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// Replicas has the server act as a master with so many replicas, of which so many
// acknowledge what it writes, at once: WAIT and INFO replication answer that from now on. It
// is for tests of [core.WithReplicaAcks]; the default is none. There are no replicas in fact.
//
// [core.WithReplicaAcks]: https://pkg.go.dev/github.com/interlock-go/interlock/core#WithReplicaAcks
func (s *Server) Replicas(connected, acknowledging int) {
	s.replicas.connected.Store(int64(connected))
	s.replicas.acknowledging.Store(int64(acknowledging))
}

// replicas are those that the server pretends to have.
type replicas struct{ connected, acknowledging atomic.Int64 }

// answer answers a command that is about them, and reports whether it was one.
func (r *replicas) answer(c *server.Peer, cmd string, args ...string) bool {
	switch {
	case cmd == "WAIT" && len(args) == 2:
		return r.wait(c, args)
	case cmd == "INFO" && len(args) == 1 && strings.EqualFold(args[0], "replication"):
		c.WriteBulk(r.info())
		return true
	default:
		return false
	}
}

// wait answers when there are enough acknowledgements, or the time is over.
func (r *replicas) wait(c *server.Peer, args []string) bool {
	wanted, errWanted := strconv.ParseInt(args[0], 10, 64)
	timeout, errTimeout := strconv.ParseInt(args[1], 10, 64)
	if errWanted != nil || errTimeout != nil || timeout <= 0 {
		return false // an error, or without an end
	}
	got := r.acknowledging.Load()
	if got < wanted {
		<-time.NewTimer(time.Duration(timeout) * time.Millisecond).C
		got = r.acknowledging.Load()
	}
	c.WriteInt(int(got))
	return true
}

func (r *replicas) info() string {
	var text strings.Builder
	n := r.connected.Load()
	fmt.Fprintf(&text, "# Replication\r\nrole:master\r\nconnected_slaves:%d\r\n", n)
	for i := range n {
		fmt.Fprintf(&text, "slave%d:ip=127.0.0.1,port=%d,state=online,offset=0,lag=0\r\n", i, 7000+i)
	}
	return text.String()
}
