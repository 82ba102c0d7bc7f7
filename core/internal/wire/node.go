package wire

import (
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// node sends commands to one server.
type node struct {
	*origin

	lines *lines
	acker *acker                // nil: no acknowledgements are required
	hooks atomic.Pointer[hooks] // hooks of a node of a Cluster; nil: there are none
}

// newNode returns a node for the server of an origin. Its client has these options.
func newNode(o *origin, opts *redis.Options, wants Replication, replicas *replicas) *node {
	n := &node{origin: o, lines: newLines(o, pipelineBound(opts.AutoPipelineOptions))}
	if wants.Acks != NoAcks {
		n.acker = newAcker(n.lines, wants, max(1, opts.PoolSize/2), replicas)
	}
	return n
}

// send passes commands to the lines, or to the acker if replicas have to acknowledge them.
func (n *node) send(cmds []*command) {
	if cmds[0].ack != nil {
		n.acker.submit(cmds)
		return
	}
	for _, c := range cmds {
		c.company = len(cmds) > 1
		c.prepare(within(c.ctx.caller, c.limit))
		c.err = n.lines.submit(c)
	}
}

// surroundings returns the hooks of the node's client.
func (n *node) surroundings() hooks {
	if h := n.hooks.Load(); h != nil {
		return *h
	}
	return nil
}

// close closes all connections to the node.
func (n *node) close() {
	n.lines.close()
	if n.acker != nil {
		n.acker.life.close()
	}
	n.dialer.close()
}
