package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// replicas simulates the replicas of the server.
type replicas struct{ connected, acknowledging atomic.Int64 }

// answer answers a command about replicas. It reports whether the command was about replicas.
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

// wait answers when there are enough acknowledgements or the time has passed.
func (r *replicas) wait(c *server.Peer, args []string) bool {
	wanted, errWanted := strconv.ParseInt(args[0], 10, 64)
	timeout, errTimeout := strconv.ParseInt(args[1], 10, 64)
	if errWanted != nil || errTimeout != nil || timeout <= 0 {
		return false // an error, or a wait without a limit
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
