// Package wakeup receives the messages that announce a released lock. It manages the subscriptions of one client and
// the connections that they need. Package acquire subscribes for waiters. A client has one subscription connection, or
// one per master in a Cluster with sharded pub/sub. The package does not depend on the waiters. Package notice has a
// separate Subscriber, for keyspace notifications.
//
// A waiter for a key subscribes to the channel of the key and unsubscribes when it stops waiting. Several waiters may
// share a subscription. Several keys may share a channel, as the values of a group lock do; each key then has a separate
// subscription, and an event of the channel concerns all of them. The subscription stays for 5 s after its last user, because a lock that was contended will
// probably be contended again. The subscription of a lane, which has only one waiter, does not stay.
//
// The package calls [Config.Notify] in three cases: when a message arrives, when Redis confirms a subscription, and when
// messages may be missing. The confirmation matters because a message may have been missed between an attempt and the
// subscription. A connection that sends a ping every second and receives nothing for 3 s is closed, and its channels are
// subscribed again. Channels that the server rejected are subscribed again once a second. If a node keeps refusing or
// closing connections, the package tries to connect once a second.
//
// The package does not guarantee that a message arrives. A message is a hint to attempt. The waiters also poll.
//
// A goroutine locks the mutex of the list of connections before the mutex of one connection. While it holds a mutex, the
// package calls no other code.
package wakeup

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Wire connects to Redis.
type Wire interface {
	// NodeOf returns the name of the node from which the channel of key is received. With sharded pub/sub, and for
	// keyspace notifications, that is the master of key. Otherwise NodeOf always returns the same name.
	NodeOf(ctx context.Context, key string) string
	// Connect opens a connection to the node of key, without channels. It sends nothing yet.
	Connect(ctx context.Context, key string) (Connection, error)
}

// Connection is one subscription connection. One goroutine calls Receive, another one the other
// methods.
type Connection interface {
	// Sharded reports whether the channels belong to slots or to nodes of a Cluster. A lost connection is then not
	// restored, because the slots may have moved.
	Sharded() bool
	// ShouldReplace reports whether a new connection should replace this one, because the Sentinels named
	// another master or the credentials changed.
	ShouldReplace() bool
	// Subscribe subscribes to channels. An event confirms each of them.
	Subscribe(ctx context.Context, channels []string)
	// Unsubscribe unsubscribes from channels.
	Unsubscribe(ctx context.Context, channels []string)
	// Ping makes the server answer.
	Ping(ctx context.Context)
	// Receive waits for the next event for at most d. After an error the next call restores the
	// connection, with all its channels.
	Receive(ctx context.Context, d time.Duration) (redisstore.Event, error)
	// Rejected reports whether an error of Receive is an error reply to a command. The connection then still
	// works.
	Rejected(err error) bool
	// Close closes the connection. A Receive that waits on it returns.
	Close() error
}

// Reason is the reason for waking a waiter.
type Reason uint8

const (
	// Message means that a message arrived.
	Message Reason = iota
	// Confirmed means that messages arrive from now on.
	Confirmed
	// Interrupted means that no messages arrive, because the connection was lost or the server dropped the
	// subscription. The package subscribes again. Confirmed or Closed follows.
	Interrupted
	// Closed means that the connection is closed. The subscription is Dead and receives nothing more.
	Closed
)

// Topic is the subject of messages.
type Topic struct {
	Key  string
	Lane string // lane of a waiter that waits in Redis and has a separate channel; otherwise ""
}

// Config is the configuration of a Subscriber. All fields except Rejected are required.
type Config struct {
	Wire Wire
	// Notify is called for each event of the subscription of a topic. It must not block.
	Notify func(about Topic, why Reason)
	// Rejected is called with each error reply to a command of a connection, unless it is nil. It must not block.
	Rejected func(err error)
	// Spawn runs work in a goroutine of its owner. The owner stops the goroutine by canceling its context
	// and waits for it. Spawn does nothing after the owner was closed.
	Spawn func(work func(ctx context.Context))
}
