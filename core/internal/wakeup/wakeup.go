// Package wakeup listens for the messages that a lock was released: the subscriptions of this process, and
// their health. Package acquire calls it for waiters. There is one connection per client, and one per master
// of a Cluster with sharded pub/sub. It does not know the waiters.
//
// A waiter for a key subscribes to its channel, and unsubscribes when it does not wait any more. Several
// waiters may share one subscription, which lingers for 5 s after the last of them, because a lock that was
// contended a moment ago will be again. The subscription of a lane, which has one waiter, does not linger.
//
// One call runs upward: Woken. The package guarantees that it is called for each message that arrives; for each
// confirmation by Redis, which closes the gap between an attempt and the subscription; and when messages may be
// missing. A connection that receives nothing for 3 s, although it sends a ping every second, is given up. Its
// channels are subscribed again, and so are, once a second, the channels that the server has rejected. A node
// that refuses or closes connections again and again is asked once a second.
//
// The package does not guarantee that a message arrives. A message is a hint to look; the waiters rely on their
// poll.
//
// Mutexes: the list of connections, then the subscriptions of one of them. They guard memory only; nothing is
// called under them.
package wakeup

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Wire is the way to Redis.
type Wire interface {
	// NodeOf names the node to whose connection the channel of key belongs: with sharded pub/sub its
	// master, otherwise always the same name.
	NodeOf(ctx context.Context, key string) string
	// Connect opens a connection to the node of key, without channels. It sends nothing yet.
	Connect(ctx context.Context, key string) (Connection, error)
}

// Connection is one subscription connection. One goroutine calls Receive, another one the other
// methods.
type Connection interface {
	// Sharded reports whether the channels belong to slots. A lost connection is then not made again,
	// because the slots may have moved.
	Sharded() bool
	// Outlived reports whether another connection should replace this one: it may lead to a server that
	// is not the master any more, or its credentials are about to expire.
	Outlived() bool
	// Subscribe asks for channels. An event reports success.
	Subscribe(ctx context.Context, channels []string)
	// Unsubscribe gives channels back.
	Unsubscribe(ctx context.Context, channels []string)
	// Ping makes the server answer.
	Ping(ctx context.Context)
	// Receive waits for the next event, for d at most. After an error the next call restores the
	// connection, with all its channels.
	Receive(ctx context.Context, d time.Duration) (redisstore.Event, error)
	// Rejected reports whether an error of Receive is the server's answer to a command, after
	// which the connection is as before.
	Rejected(err error) bool
	// Close ends the connection, and a Receive that waits on it.
	Close() error
}

// Reason is why a waiter is woken.
type Reason uint8

const (
	// Message means that a message has arrived.
	Message Reason = iota
	// Confirmed means that messages arrive from now on.
	Confirmed
	// Interrupted means that no messages arrive for now: the connection is lost, or the server has
	// dropped the subscription. It is asked for again; Confirmed or Closed follows.
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
	// Woken is called for each event of the subscription of a topic. It must not wait.
	Woken func(about Topic, why Reason)
	// Spawn runs work in a goroutine of its owner, which ends it through its context and waits for it. It
	// does nothing when the owner has closed.
	Spawn func(work func(ctx context.Context))
}
