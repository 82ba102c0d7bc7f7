package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/redis/go-redis/v9"
)

// EventKind is what happened to a channel.
type EventKind int

// The kinds of an Event.
const (
	Message EventKind = iota
	Subscribed
	Unsubscribed
)

// Event is one thing that came in on a subscription connection. An answer to a
// ping has no channel.
type Event struct {
	Kind    EventKind
	Channel string
}

// Subscriptions is one subscription connection. Receive is for one goroutine, the
// rest for any.
type Subscriptions struct {
	pubsub  *redis.PubSub
	sharded bool
	store   *Store
	era     int64
}

// Subscriptions opens a connection without channels; nothing is sent yet. In a
// Cluster with sharded pub/sub it belongs to the master of key.
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

// Outlived reports whether the connection should be replaced by another one: it may lead to a server that is not the
// master any more, or its credentials are about to expire; see [wire.Redis.Era].
func (p *Subscriptions) Outlived() bool { return p.era != p.store.wire.Era() }

// Sharded reports whether the channels belong to slots.
func (p *Subscriptions) Sharded() bool { return p.sharded }

// Subscribe asks for channels. Whether it worked is reported by an Event; a connection
// that is down is made again by Receive, with all channels.
func (p *Subscriptions) Subscribe(ctx context.Context, channels []string) {
	switch {
	case len(channels) == 0:
	case p.sharded:
		for _, channel := range channels { // one command may name only channels of one slot
			_ = p.pubsub.SSubscribe(ctx, channel) //nolint:errcheck // see above
		}
	default:
		_ = p.pubsub.Subscribe(ctx, channels...) //nolint:errcheck // see above
	}
}

// Unsubscribe gives channels up.
func (p *Subscriptions) Unsubscribe(ctx context.Context, channels []string) {
	switch {
	case len(channels) == 0:
	case p.sharded:
		for _, channel := range channels {
			_ = p.pubsub.SUnsubscribe(ctx, channel) //nolint:errcheck // a message too many does no harm
		}
	default:
		_ = p.pubsub.Unsubscribe(ctx, channels...) //nolint:errcheck // likewise
	}
}

// Ping makes the server answer, so that Receive sees that the connection lives.
func (p *Subscriptions) Ping(ctx context.Context) {
	_ = p.pubsub.Ping(ctx) //nolint:errcheck // a dead connection is noticed by Receive
}

// Receive waits for the next event, at most for d. When nothing comes in that time
// the connection is given up, and the next call makes a new one.
func (p *Subscriptions) Receive(ctx context.Context, d time.Duration) (Event, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	msg, err := p.pubsub.Receive(ctx)
	if err != nil {
		return Event{}, fmt.Errorf("subscription: %w", err)
	}
	switch m := msg.(type) {
	case *redis.Message:
		return Event{Kind: Message, Channel: m.Channel}, nil
	case *redis.Subscription:
		return Event{Kind: subscriptionKind(m.Kind), Channel: m.Channel}, nil
	default:
		return Event{}, nil
	}
}

// Rejected reports whether err is the server's answer to a command, such as NOPERM, after
// which the connection is as before. With sharded channels other answers say that they
// belong elsewhere.
func (p *Subscriptions) Rejected(err error) bool {
	if p.sharded {
		return wire.MeaningOf(err) == wire.MeansDenied
	}
	return err != nil && wire.Answer(err)
}

func subscriptionKind(kind string) EventKind {
	if kind == "subscribe" || kind == "ssubscribe" {
		return Subscribed
	}
	return Unsubscribed
}

// Close ends the connection and a Receive that waits on it.
func (p *Subscriptions) Close() error { return p.pubsub.Close() }
