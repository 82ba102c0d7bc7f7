package redisstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// onServer runs a test with a bench on a real Redis.
func onServer(t *testing.T) *bench {
	t.Helper()
	return newBench(t, redisserver.Start(t).Client())
}

// clientOf connects as an ACL user without a password.
func (b *bench) clientOf(user string) *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Addr: b.rdb.Options().Addr, Username: user, Password: "any",
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	b.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// subscriber collects the messages of a channel.
type subscriber struct {
	b       *bench
	channel string
	sub     *redis.PubSub
}

func (b *bench) subscribe(channel string) *subscriber {
	b.t.Helper()
	sub := b.rdb.Subscribe(context.Background(), channel)
	b.t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	return &subscriber{b: b, channel: channel, sub: sub}
}

// wantOnly requires exactly these messages. It publishes the last payload itself, so that all earlier
// messages have arrived.
func (s *subscriber) wantOnly(want ...string) {
	s.b.t.Helper()
	s.b.rdb.Publish(context.Background(), s.channel, want[len(want)-1])
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // for a test that fails
	defer cancel()
	var got []string
	for range want {
		m, err := s.sub.ReceiveMessage(ctx)
		if err != nil {
			s.b.t.Fatal(err)
		}
		got = append(got, m.Payload)
	}
	if !slices.Equal(got, want) {
		s.b.t.Errorf("messages: got %q, want %q", got, want)
	}
}
