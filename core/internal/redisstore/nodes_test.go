package redisstore_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Two nodes that send each other the key will agree some day: that a redirection was followed
// in vain is no answer for ever.
func TestCall_RedirectedInVain(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"MOVED", "ASK"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := newBoard(t, map[string]dialNode{
					"10.0.0.1:6379": says("-" + verb + " 1 10.0.0.2:6379"),
					"10.0.0.2:6379": says("-" + verb + " 1 10.0.0.1:6379"),
				})
				cluster.give("10.0.0.1:6379")
				s, err := redisstore.New(cluster.client, redisstore.Config{Timeout: time.Second, RenewTimeout: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				fate, err := acquiring(t.Context(), &bench{Store: s, t: t})
				if !redis.HasErrorPrefix(err, verb) || fate != redisstore.Answered {
					t.Fatalf("got %v, fate %d", err, fate)
				}
				if !redisstore.Transient(err) || redisstore.Rejects(err) {
					t.Errorf("%v: transient %t, rejects %t", err, redisstore.Transient(err), redisstore.Rejects(err))
				}
			})
		})
	}
}

// A node of a Cluster that was given as a single server sends a key away for ever.
func TestCall_RedirectedOutsideACluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := storeOf(t, altered(t, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) { return says("-MOVED 1 10.0.0.2:6379")(ctx) }
		}))
		defer b.Close()
		_, err := acquiring(t.Context(), b)
		if !redis.HasErrorPrefix(err, "MOVED") || redisstore.Transient(err) || !redisstore.Rejects(err) {
			t.Errorf("%v: transient %t, rejects %t", err, redisstore.Transient(err), redisstore.Rejects(err))
		}
	})
}
