// Package wakeup listens for the messages that announce a released lock. It manages the subscriptions of this
// process and their health. Package acquire calls it for waiters. There is one connection per client, or one per
// master of a Cluster with sharded pub/sub. The package does not depend on the waiters.
//
// A waiter for a key subscribes to its channel and unsubscribes when it stops waiting. Several
// waiters may share one subscription. It lingers for 5 s after its last user, because a lock that was
// contended a moment ago will be contended again. The subscription of a lane, which has one waiter, does not
// linger.
//
// One call runs upward: Woken. The package guarantees that it is called for each message that arrives; for each
// confirmation by Redis, which closes the gap between an attempt and the subscription; and when messages may be
// missing. A connection that receives nothing for 3 s, although it sends a ping every second, is given up, and its
// channels are subscribed again. Channels that the server rejected are subscribed again once a second. A node
// that keeps refusing or closing connections is tried once a second.
//
// The package does not guarantee that a message arrives. A message is a hint to attempt; the waiters rely on
// polling.
//
// The order of the mutexes is: the list of connections, then the subscriptions of one connection. They guard memory
// only; the package calls nothing while it holds them.
package wakeup

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Wire connects to Redis.
type Wire interface {
	// NodeOf returns the name of the node whose connection serves the channel of key: with sharded pub/sub
	// the master of key, otherwise always the same name.
	NodeOf(ctx context.Context, key string) string
	// Connect opens a connection to the node of key, without channels. It sends nothing yet.
	Connect(ctx context.Context, key string) (Connection, error)
}

// Connection is one subscription connection. One goroutine calls Receive, another one the other
// methods.
type Connection interface {
	// Sharded reports whether the channels belong to slots. A lost connection is then not restored,
	// because the slots may have moved.
	Sharded() bool
	// ShouldReplace reports whether another connection should replace this one: it may lead to a server that
	// is no longer the master, or its credentials are about to expire.
	ShouldReplace() bool
	// Subscribe asks for channels. An event reports success.
	Subscribe(ctx context.Context, channels []string)
	// Unsubscribe unsubscribes from channels.
	Unsubscribe(ctx context.Context, channels []string)
	// Ping makes the server answer.
	Ping(ctx context.Context)
	// Receive waits for the next event for at most d. After an error the next call restores the
	// connection, with all its channels.
	Receive(ctx context.Context, d time.Duration) (redisstore.Event, error)
	// Rejected reports whether an error of Receive is an error reply of the server to a command, and
	// the connection still works.
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
	// Interrupted means that no messages arrive for now: the connection was lost, or the server
	// dropped the subscription. The package subscribes again; Confirmed or Closed follows.
	Interrupted
	// Closed means that the connection is closed: the subscription is Dead and receives nothing more.
	Closed
)

// Topic is the subject of messages.
type Topic struct {
	Key  string
	Lane string // lane of a waiter that waits in Redis and has a separate channel; otherwise ""
}

// Config is the configuration of a Subscriber. All fields are required.
type Config struct {
	Wire Wire
	// Notify is called for each event of the subscription of a topic. It must not block.
	Notify func(about Topic, why Reason)
	// Spawn runs work in a goroutine of its owner. The owner stops the goroutine by canceling its context
	// and waits for it. Spawn does nothing after the owner was closed.
	Spawn func(work func(ctx context.Context))
}
