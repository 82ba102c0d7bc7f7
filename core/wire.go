package core

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The topologies of a Redis.
const (
	topologyServer   = "single server"
	topologySentinel = "Sentinel"
	topologyCluster  = "Cluster"
)

// The channels of wake-up messages. A client that listens on one sort of channel does not receive messages that are sent
// on the other.
const (
	channelsClassic = "classic" // PUBLISH and SUBSCRIBE
	channelsSharded = "sharded" // SPUBLISH and SSUBSCRIBE
)

// Wire describes the settings in which the programs that share the locks of a Redis have to agree: see [Client.Wire].
// String describes the configuration that Redisson needs. Warnings lists the findings that do not fit.
type Wire struct {
	// Topology is the topology for which the client is configured: "single server", "Sentinel" or "Cluster". It is
	// "single server" even if that server belongs to a Cluster.
	Topology string

	// Database is the number of the database. In a Cluster it is 0, unless OnConnect of the client selects another one
	// (Valkey 9).
	Database int

	// Channels is the sort of channel on which this client sends and listens: "classic" (PUBLISH and SUBSCRIBE) or
	// "sharded" (SPUBLISH and SSUBSCRIBE). In a Cluster it is the mode of [WithPubSub], or what the servers support;
	// elsewhere it is always classic.
	Channels string

	// ServerSharded reports that the servers of the Cluster have sharded pub/sub, which Redisson uses by default
	// since 3.22.
	ServerSharded bool

	// Prefix is the prefix of the keys. Mapped reports that a [WithNameMapper] maps names to keys instead.
	Prefix string
	Mapped bool

	// Warnings describe signs that another program is configured differently, and the change to make. They are for the
	// log of the program, because they contain channels (and so keys) and servers.
	Warnings []string
}

// Wire returns the settings of this client in which other programs have to agree. It asks the servers whether another
// program listens for the wake-ups of its keys in the other mode (PUBSUB CHANNELS, or SHARDCHANNELS, on every node).
// Programs whose modes differ still exclude each other, but a waiter sleeps until the end of the lease although the lock
// was released long before.
//
// Call it once when a program starts, or in a command or a test of the deployment, and log the result. It costs a few
// round trips and, in a Cluster, connections to all nodes, so for a readiness probe use [Client.Ready]. Programs
// subscribe to channels only while they wait. So a warning proves that a program uses the wrong mode, but the absence
// of warnings proves nothing, and Wire finds more after all programs have started. Redis cannot report which database
// and which names other programs use.
//
// The error matches [ErrUnavailable] or [ErrClosed]. A server that does not answer the query, because it is
// silent for four backend timeouts or because the user has no right to it, causes a warning.
func (c *Client) Wire(ctx context.Context) (Wire, error) {
	if err := c.callers.enter(); err != nil {
		return Wire{}, err
	}
	defer c.callers.exit()
	if err := c.store.Detect(ctx, c.sender.DetectLimit(time.Now())); err != nil {
		return Wire{}, unavailable(err)
	}
	if err := c.Ready(ctx); err != nil {
		return Wire{}, err
	}
	found, err := c.store.Survey(ctx, c.cfg.prefix)
	if err != nil {
		return Wire{}, unavailable(err)
	}
	w := Wire{
		Topology: topologyServer, Database: c.store.Database(), Channels: channelsClassic,
		ServerSharded: found.Sharding, Prefix: c.cfg.prefix, Mapped: c.cfg.mapper != nil,
	}
	switch {
	case c.store.Clustered():
		w.Topology = topologyCluster
	case c.store.Failover():
		w.Topology = topologySentinel
	}
	if c.store.Sharded() {
		w.Channels = channelsSharded
	}
	w.Warnings = w.warnings(&found)
	return w, nil
}

// warnings returns the warnings for the findings.
func (w *Wire) warnings(found *redisstore.Survey) (list []string) {
	if found.Stray {
		list = append(list, "the server belongs to a Cluster, and this client is for a single one: use redis.NewClusterClient, "+
			"because keys of other nodes cannot be locked, and Redisson listens for sharded messages there")
	}
	if w.Channels == channelsSharded && !found.Sharding {
		list = append(list, "the servers have no sharded pub/sub (Redis 7), and core.PubSubSharded is set: no message is sent; leave core.WithPubSub out")
	}
	if n := len(found.Elsewhere); n > 0 {
		list = append(list, w.otherChannels(n, found.Elsewhere[0]))
	}
	if found.Unasked != nil {
		list = append(list, fmt.Sprintf("it is not known which other programs listen: %v", found.Unasked))
	}
	return list
}

// otherChannels returns the warning that others listen on channels to which this client does not send.
func (w *Wire) otherChannels(n int, example string) string {
	theirs, ours, change := "SSUBSCRIBE", "PUBLISH", "shardedSubscriptionMode OFF (core.PubSubClassic in Go), or this client core.PubSubSharded"
	switch {
	case w.Channels == channelsSharded:
		theirs, ours = "SUBSCRIBE", "SPUBLISH"
		change = "Redisson 3.22 or later and shardedSubscriptionMode AUTO or ON (core.PubSubSharded in Go), or this client core.PubSubClassic"
	case w.Topology != topologyCluster:
		change = "the topology of this client, or this client theirs"
	}
	return fmt.Sprintf("another program waits for locks by %s, on channels such as %q (%d in all), and this client sends by %s, which is not heard there: "+
		"give them %s", theirs, example, n, ours, change)
}

// String describes in two sentences the settings of this client and the configuration with which Redisson shares its
// locks.
func (w Wire) String() string {
	place, theirs := fmt.Sprintf("database %d of a %s", w.Database, w.Topology), fmt.Sprintf("database %d", w.Database)
	switch {
	case w.Topology == topologyCluster && w.Database != 0:
		theirs = fmt.Sprintf("useClusterServers with database %d (version 4.0 or later)", w.Database)
	case w.Topology == topologyCluster:
		place, theirs = "a Cluster", "useClusterServers"
	}
	keys, mapper := "names as they are", "no nameMapper"
	switch {
	case w.Mapped:
		keys, mapper = "a name mapper", "a nameMapper that makes the same keys"
	case w.Prefix != "":
		keys, mapper = fmt.Sprintf("the prefix %q", w.Prefix), fmt.Sprintf("a nameMapper that puts %q in front of every name", w.Prefix)
	}
	return fmt.Sprintf("This client uses %s, %s channels and %s. Redisson needs %s, %s and %s.", place, w.Channels, keys, theirs, w.mode(), mapper)
}

// mode returns the versions and modes of Redisson that use the channels of this client.
func (w *Wire) mode() string {
	switch {
	case w.Topology != topologyCluster:
		return "a configuration that is not useClusterServers"
	case w.Channels == channelsSharded && w.ServerSharded:
		return "version 3.22 or later with shardedSubscriptionMode AUTO (the default) or ON"
	case w.Channels == channelsSharded:
		return "shardedSubscriptionMode ON"
	case w.ServerSharded:
		return "shardedSubscriptionMode OFF (since version 3.29; before 3.22 without it)"
	default:
		return "shardedSubscriptionMode AUTO (the default) or OFF"
	}
}
