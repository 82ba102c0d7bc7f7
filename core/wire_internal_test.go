package core

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// A Cluster of servers before Redis 7 has no SPUBLISH.
func TestWire_ShardedOnServersThatAreTooOld(t *testing.T) {
	t.Parallel()
	w := Wire{Topology: topologyCluster, Channels: channelsSharded}
	if got := w.warnings(&redisstore.Survey{}); len(got) != 1 || !strings.Contains(got[0], "leave core.WithPubSub out") {
		t.Errorf("got %q", got)
	}
	w.Channels = channelsClassic
	if got := w.warnings(&redisstore.Survey{}); got != nil {
		t.Errorf("classic: got %q", got)
	}
}
