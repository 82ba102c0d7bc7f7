package interop_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// wantHeld checks that every key of a lock has exactly one holder, with the given count. A lock of several keys may have a
// different field of the same client at each key.
func (s *site) wantHeld(t *testing.T, k kind, name, field, count string) {
	t.Helper()
	for i, key := range k.names(name) {
		got := s.hash(t, key)
		for f := range got {
			if i > 0 && strings.HasPrefix(f, field[:clientID]) {
				field = f
			}
		}
		want := map[string]string{field: count}
		if k.layout != nil {
			want = k.layout(field, count)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v in Redis, want %v", key, got, want)
		}
	}
}

const clientID = 36 // characters of a UUID, which begins the field of a holder

// wantFree checks that nothing is left of a lock.
func (s *site) wantFree(t *testing.T, k kind, name string) {
	t.Helper()
	for _, key := range k.names(name) {
		s.wantGone(t, key)
		if k.beside != nil {
			s.wantNone(t, key, k.beside(key)...)
		}
	}
}

// wantNone checks that no key of a pattern is left on the server of a lock.
func (s *site) wantNone(t *testing.T, key string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if left, err := s.master(key).Keys(t.Context(), pattern).Result(); len(left) > 0 || err != nil {
			t.Errorf("%v still exists (%v)", left, err)
		}
	}
}

// wantGone checks that keys no longer exist.
func (s *site) wantGone(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if n, err := s.master(key).Exists(t.Context(), key).Result(); n != 0 || err != nil {
			t.Errorf("%s still exists (%v)", key, err)
		}
	}
}

// wantValue compares the text of a key.
func (s *site) wantValue(t *testing.T, key, want string) {
	t.Helper()
	if got, err := s.master(key).Get(t.Context(), key).Result(); got != want {
		t.Errorf("%s: got %q, %v in Redis, want %q", key, got, err, want)
	}
}

// wantFields compares a hash.
func (s *site) wantFields(t *testing.T, key string, want map[string]string) {
	t.Helper()
	if got := s.hash(t, key); !maps.Equal(got, want) {
		t.Errorf("%s: got %v in Redis, want %v", key, got, want)
	}
}

func (s *site) hash(t *testing.T, key string) map[string]string {
	t.Helper()
	fields, err := s.master(key).HGetAll(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// listeners returns the number of clients that subscribe to a channel on the node of key.
func (s *site) listeners(t *testing.T, key, channel string) int {
	t.Helper()
	reply, err := s.master(key).Do(t.Context(), "pubsub", s.subs, channel).Result()
	if err != nil {
		t.Fatalf("PUBSUB %s: %v", s.subs, err)
	}
	switch counts := reply.(type) {
	case map[any]any:
		return int(counts[channel].(int64))
	case []any:
		return int(counts[1].(int64))
	}
	t.Fatalf("PUBSUB %s: answered %v", s.subs, reply)
	return 0
}

// messages returns the messages on a channel on the node of key, from now on.
func (s *site) messages(t *testing.T, key, channel string) <-chan *redis.Message {
	t.Helper()
	rdb := s.master(key)
	subscribe := rdb.Subscribe
	if s.topology == cluster {
		subscribe = rdb.SSubscribe
	}
	sub := subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	if _, err := sub.Receive(t.Context()); err != nil { // the confirmation of the subscription
		t.Fatal(err)
	}
	return sub.Channel()
}

func wantMessage(t *testing.T, messages <-chan *redis.Message, want string) {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	select {
	case m := <-messages:
		if m.Payload != want {
			t.Errorf("message: got %q, want %q", m.Payload, want)
		}
	case <-limit.C:
		t.Errorf("no message within 10 s, want %q", want)
	}
}
