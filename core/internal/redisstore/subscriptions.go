package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// EventKind is the kind of an Event on a channel.
type EventKind int

// The kinds of an Event.
const (
	Message EventKind = iota
	Subscribed
	Unsubscribed
)

// Event is one message or answer on a subscription connection. The answer to a ping has no channel.
type Event struct {
	Kind    EventKind
	Channel string
}

// Subscriptions is one subscription connection. Only one goroutine may call Receive and Rejected. The other
// methods are safe for concurrent use.
type Subscriptions struct {
	pubsub    *redis.PubSub
	sharded   bool
	notices   bool // see [Store.Notices]
	store     *Store
	era       int64
	connected bool // Receive has found a connection, and it has not failed since
}

// Subscriptions returns a subscription connection without channels. It sends nothing yet. In a
// Cluster with sharded pub/sub the connection leads to the master of key.
func (s *Store) Subscriptions(ctx context.Context, key string) (*Subscriptions, error) {
	p := &Subscriptions{store: s, era: s.wire.Era(), sharded: s.Sharded()}
	switch {
	case s.cluster == nil:
		p.pubsub = s.single.Subscribe(ctx)
	case !p.sharded:
		p.pubsub = s.cluster.Subscribe(ctx)
	default:
		master, err := s.cluster.MasterForKey(ctx, key)
		if err != nil {
			return nil, err
		}
		p.pubsub = s.clone(master).SSubscribe(ctx)
	}
	return p, nil
}

// NoticeChannel returns the channel on which Redis announces changes of the key that contains the field of a claim. Redis
// does so only if its setting notify-keyspace-events includes them.
func (s *Store) NoticeChannel(c Claim) string { return s.noticePrefix() + c.Kind.leaseKey(c.Key) }

// noticePrefix returns the first part of the channels of notices.
func (s *Store) noticePrefix() string { return fmt.Sprintf("__keyspace@%d__:", s.Database()) }

// keepsHolders reports whether an event removes no field of a holder. The scripts of this library and of Redisson cause
// such events when a lock is acquired, re-entered or renewed.
func keepsHolders(event string) bool {
	switch event {
	case "expire", "hset", "hincrby", "zadd":
		return true
	}
	return false
}

// Notices returns a connection for channels of [Store.NoticeChannel]. It leads to the master of key, because a node of a
// Cluster announces only changes of keys that it has. It drops the messages about changes after which all holders remain.
func (s *Store) Notices(ctx context.Context, key string) (*Subscriptions, error) {
	p := &Subscriptions{store: s, era: s.wire.Era(), notices: true}
	node, err := s.node(ctx, key)
	if err != nil {
		return nil, err
	}
	p.pubsub = node.Subscribe(ctx)
	return p, nil
}

// ShouldReplace reports whether a new connection should replace this one, because the Sentinels named another master
// or the credentials changed. See [wire.Redis.Era].
func (p *Subscriptions) ShouldReplace() bool { return p.era != p.store.wire.Era() }

// Sharded reports whether the channels belong to the nodes of a Cluster: sharded channels, and channels of notices.
func (p *Subscriptions) Sharded() bool { return p.sharded || p.notices && p.store.Clustered() }

// Subscribe subscribes to channels. An Event confirms each of them. Receive restores a broken
// connection with all its channels.
func (p *Subscriptions) Subscribe(ctx context.Context, channels []string) {
	switch {
	case len(channels) == 0:
	case p.sharded:
		for _, channel := range channels { // one command may name only channels of one slot
			_ = p.pubsub.SSubscribe(ctx, channel) //nolint:errcheck // Receive reports it
		}
	default:
		_ = p.pubsub.Subscribe(ctx, channels...) //nolint:errcheck // Receive reports it
	}
}

// Unsubscribe unsubscribes from channels.
func (p *Subscriptions) Unsubscribe(ctx context.Context, channels []string) {
	switch {
	case len(channels) == 0:
	case p.sharded:
		for _, channel := range channels {
			_ = p.pubsub.SUnsubscribe(ctx, channel) //nolint:errcheck // a superfluous message does no harm
		}
	default:
		_ = p.pubsub.Unsubscribe(ctx, channels...) //nolint:errcheck // as above
	}
}

// Ping makes the server send an answer, which Receive returns as an Event.
func (p *Subscriptions) Ping(ctx context.Context) {
	_ = p.pubsub.Ping(ctx) //nolint:errcheck // Receive notices a dead connection
}

// Receive waits for the next event for at most d. If none arrives in that time, Receive gives up the
// connection, and the next call opens a new one.
func (p *Subscriptions) Receive(ctx context.Context, d time.Duration) (Event, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if !p.connected {
		if err := p.pubsub.Ping(ctx); err != nil { // not the reply to the PING, which pubsub.Receive returns
			return Event{}, fmt.Errorf("subscription: %w", err)
		}
		p.connected = true
	}
	msg, err := p.pubsub.Receive(ctx)
	if err != nil {
		p.connected = p.Rejected(err)
		return Event{}, fmt.Errorf("subscription: %w", err)
	}
	switch m := msg.(type) {
	case *redis.Message:
		if p.notices && keepsHolders(m.Payload) {
			return Event{}, nil
		}
		return Event{Kind: Message, Channel: m.Channel}, nil
	case *redis.Subscription:
		return Event{Kind: subscriptionKind(m.Kind), Channel: m.Channel}, nil
	default:
		return Event{}, nil
	}
}

// Rejected reports whether err, the error of the last Receive, is an error reply to a command, such as NOPERM, on a
// connection that still works. An error reply to the handshake of a connection, such as WRONGPASS, does not count. With
// sharded channels only NOPERM counts, because other error replies mean that the channels belong to another node.
func (p *Subscriptions) Rejected(err error) bool {
	switch {
	case err == nil || !p.connected:
		return false
	case p.sharded:
		return wire.MeaningOf(err) == wire.MeansDenied
	default:
		return wire.Answer(err)
	}
}

func subscriptionKind(kind string) EventKind {
	if kind == "subscribe" || kind == "ssubscribe" {
		return Subscribed
	}
	return Unsubscribed
}

// Close closes the connection. A Receive that waits on it returns.
func (p *Subscriptions) Close() error { return p.pubsub.Close() }
