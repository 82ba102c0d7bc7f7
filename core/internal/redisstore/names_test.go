package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

func TestChannel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"foo":        "redisson_lock__channel:{foo}",
		"a:b":        "redisson_lock__channel:{a:b}",
		"order:{42}": "redisson_lock__channel:order:{42}",
		"{t}:x":      "redisson_lock__channel:{t}:x",
		"заказ":      "redisson_lock__channel:{заказ}",
		"a}b":        "redisson_lock__channel:{a}b}",
		"a{b":        "redisson_lock__channel:a{b",
		"{}x":        "redisson_lock__channel:{}x",
	} {
		if got := redisstore.Channel(name); got != want {
			t.Errorf("Channel(%q): got %q, want %q", name, got, want)
		}
	}
}

func TestSlot(t *testing.T) {
	t.Parallel()
	rdb := redisserver.StartCluster(t, 1).Client()
	for _, name := range []string{"foo", "123456789", "order:{42}", "{42}", "a{b", "a}b", "{}x", "a{}{b}", "}a{b}", "заказ", "a{{b}}c"} {
		want, err := rdb.ClusterKeySlot(t.Context(), name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := wire.Slot(name); got != int(want) {
			t.Errorf("Slot(%q): got %d, want %d", name, got, want)
		}
	}
}

func TestStore_CheckName_Cluster(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = rdb.Close() })
	s, err := redisstore.New(rdb, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"foo", "order:{42}", "{t}:x", "x{t}y"} {
		if err := s.CheckName(name); err != nil {
			t.Errorf("CheckName(%q): got %v, want nil", name, err)
		}
	}
	for _, name := range []string{"a{b", "a}b", "{}x", "}a{b}", "a}{b"} {
		err := s.CheckName(name)
		if err == nil || !strings.Contains(err.Error(), "order:{42}") {
			t.Errorf("CheckName(%q): got %v, want an error that shows a good name", name, err)
		}
	}
	if !s.SameSlot([]string{"a{t}", "b{t}"}) || s.SameSlot([]string{"a", "b"}) {
		t.Error("SameSlot: want true for one hash tag, false for two names")
	}
}

func TestStore_CheckName_SingleServer(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	b := newBench(t, rdb)
	for _, name := range []string{"a{b", "}a{b}", "{}x"} {
		if err := b.CheckName(name); err != nil {
			t.Errorf("CheckName(%q): got %v", name, err)
		}
	}
}
