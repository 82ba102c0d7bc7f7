package redisserver

import (
	"testing"
	"time"
)

// Nodes that are stopped while they meet forget each other. awaitComplete introduces them again.
func TestStartCluster_NodesStandStillWhileTheyMeet(t *testing.T) {
	t.Parallel()
	c := &Cluster{t: t}
	args := Binary{}.clusterArgs(t)
	for range 3 {
		c.Masters = append(c.Masters, Binary{}.start(t, args))
	}
	c.assignSlots()
	c.introduce()
	for _, m := range c.Masters {
		m.Stop()
	}
	time.Sleep(4 * time.Second) // longer than a handshake may take
	for _, m := range c.Masters {
		m.Continue()
	}
	c.awaitComplete()
}
