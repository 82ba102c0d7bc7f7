package core

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/redistest"
)

// newOrphans returns a client whose reaper has several fields to clear up on each of several keys. The rule counts the
// scripts with which the reaper asks about the fields. The fields of the keys k0, k1, … take turns.
func newOrphans(t *testing.T, keys, each int) (rdb *redis.Client, asked *faultproxy.Rule, fields []string) {
	t.Helper()
	rdb = redistest.New(t).Client()
	proxy, through := faultproxy.Around(t, rdb)
	c, err := New(through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	asked = proxy.Watch(faultproxy.Command("evalsha", "eval"))
	for range each {
		for k := range keys {
			field := c.id.NextField(c.kinds.Reentrant)
			c.reaper.Abandon(c.kinds.Reentrant, []string{fmt.Sprint("k", k)}, field, nil, time.Second)
			fields = append(fields, field)
		}
	}
	return rdb, asked, fields
}

// However many fields an outage has left, the client asks few questions.
func TestReaper_AsksFewQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ keys, each int }{{1, 20_000}, {20_000, 1}, {100, 100}} {
		t.Run(fmt.Sprint(tt.keys, "x", tt.each), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, asked, _ := newOrphans(t, tt.keys, tt.each)
				for range 2 {
					before := asked.Hits()
					time.Sleep(time.Second) // of the bubble
					if n := asked.Hits() - before; n == 0 || n > 410 {
						t.Errorf("%d questions in a second", n)
					}
				}
			})
		})
	}
}

// When no command can land any more, the client asks nothing.
func TestReaper_Ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, asked, _ := newOrphans(t, 10, 50)
		time.Sleep(reaper.SettleTime + 5*time.Second) // of the bubble
		synctest.Wait()
		before := asked.Hits()
		time.Sleep(time.Minute) // of the bubble
		if n := asked.Hits() - before; before == 0 || n != 0 {
			t.Errorf("%d questions, and %d when nothing can land any more", before, n)
		}
	})
}

// A field that lands late among many is found and cleared up soon, however old it is.
func TestReaper_FindsWhatLandsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rdb, _, fields := newOrphans(t, 3, 1000)
		time.Sleep(5 * time.Second) // of the bubble
		for i, key := range []string{"k0", "k1", "k2"} {
			ctx := context.Background()
			rdb.HSet(ctx, key, fields[1497*i+i], 1)
			rdb.Expire(ctx, key, time.Hour)
		}
		time.Sleep(1200 * time.Millisecond) // of the bubble; the client asks about a key every second
		if left := rdb.Keys(context.Background(), "*").Val(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}
