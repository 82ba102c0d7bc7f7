package redisstore_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/redis/go-redis/v9"
)

// An acquisition that Redis executes again takes no other permit, whether or not one is available. It does
// not change the lease that the holder has set since.
func TestStore_Acquire_PermitTwice(t *testing.T) {
	t.Parallel()
	for _, total := range []string{"1", "2"} {
		each(t, func(t *testing.T, b *bench) {
			one := permit("a")
			raw, err := hex.DecodeString(one.Field)
			if err != nil {
				t.Fatal(err)
			}
			for _, lease := range []time.Duration{time.Hour, 30 * time.Second} {
				b.ask(one, total, time.Minute)
				reply(b, b.Refresh(time.Now(), one, lease))
				before := b.rdb.ZScore(t.Context(), leasesKey, string(raw)).Val()
				if refusal := b.ask(one, total, time.Minute); refusal != nil {
					t.Errorf("refused: %+v", refusal)
				}
				if after := b.rdb.ZScore(t.Context(), leasesKey, string(raw)).Val(); after != before || before == 0 {
					t.Errorf("the lease ends at %.0f, before at %.0f", after, before)
				}
				b.wantCount(map[string]string{"1": "0", "2": "1"}[total])
			}
		})
	}
}

// A refusal contains the permit whose lease expires first, in hex digits like the fields of holders.
func TestStore_Acquire_PermitRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.ask(permit("a"), "2", time.Hour)
		b.ask(permit("b"), "2", time.Minute)
		refusal := b.ask(permit("c"), "2", time.Hour)
		if refusal == nil || refusal.Holder != permit("b").Field || refusal.TTL <= 50*time.Second || refusal.TTL > time.Minute {
			t.Errorf("got %+v", refusal)
		}
	})
}

// An acquisition with a number of permits lets the count expire, at the earliest a day after the last acquisition and the end of
// its lease. The leases do not expire with it. A count without a TTL, a longer TTL, and a count that was set by hand stay.
func TestStore_Acquire_PermitCountExpires(t *testing.T) {
	t.Parallel()
	const day, hour = 24 * time.Hour, time.Hour
	for name, tt := range map[string]struct {
		before time.Duration // the TTL of the count; 0 for no count, -1 for none
		demand string
		lease  time.Duration
		want   time.Duration
	}{
		"new":                    {0, "3", hour, day + 2*hour},
		"long lease":             {0, "3", 5 * day, 6*day + hour},
		"renewed":                {2 * hour, "3", hour, day + 2*hour},
		"used within the hour":   {day + 90*time.Minute, "3", hour, day + 90*time.Minute},
		"longer":                 {9 * day, "3", hour, 9 * day},
		"without a TTL":          {-1, "3", hour, -1},
		"set by hand":            {2 * hour, "0", hour, 2 * hour},
		"set by hand, no TTL":    {-1, "0", hour, -1},
		"a lease of a century":   {0, "3", 36500 * day, 36501*day + hour},
		"not set by anyone":      {0, "0", hour, -2},
		"corrected, no TTL":      {-1, "4", hour, -1},
		"corrected, with a TTL":  {2 * hour, "4", hour, day + 2*hour},
		"corrected to no permit": {2 * hour, "1", hour, day + 2*hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				if tt.before != 0 {
					b.rdb.Set(t.Context(), key, 3, max(tt.before, 0))
				}
				for range 2 {
					b.ask(permit("a"), tt.demand, tt.lease)
					if tt.want < 0 {
						if got := b.rdb.PTTL(t.Context(), key).Val(); got != tt.want {
							t.Errorf("PTTL: got %s, want %s", got, tt.want)
						}
						continue
					}
					b.wantTTL(key, tt.want)
					if got := b.rdb.PTTL(t.Context(), leasesKey).Val(); tt.demand != "0" && got != -1 {
						t.Errorf("PTTL of the leases: got %s, want none", got)
					}
				}
			})
		})
	}
}

// Redisson gives the leases the TTL of the count. An acquisition that raises the one raises the other.
func TestStore_Acquire_PermitLeasesOutlastTheCount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.ask(permit("a"), "3", time.Minute)
		b.rdb.PExpire(t.Context(), key, time.Hour)
		b.rdb.PExpire(t.Context(), leasesKey, time.Hour)
		b.ask(permit("b"), "3", time.Minute)
		for _, k := range []string{key, leasesKey} {
			b.wantTTL(k, 25*time.Hour+time.Minute)
		}
	})
}

// If a count has expired under permits that were renewed, they stay held. Whoever gives one back does not make another count, which
// would not expire. The next acquisition counts the permits that are out.
func TestStore_PermitCountGone(t *testing.T) {
	t.Parallel()
	one, id := permit("a"), strings.Repeat("f", 32)
	for name, back := range map[string]func(b *bench){
		"release": func(b *bench) { reply(b, b.Release(time.Now(), one)) },
		"force": func(b *bench) {
			reply(b, b.Force(time.Now(), one.Kind, key))
			b.ask(permit("b"), "3", time.Minute)
			b.rdb.Del(b.t.Context(), key)
		},
		"by its id": func(b *bench) {
			reply(b, b.Settle(time.Now(), one.Kind, key, []string{id + ":" + one.Field + ":back:1"}))
		},
		"ghost": func(b *bench) {
			reply(b, b.Clear(time.Now(), []redisstore.Suspicion{{Kind: one.Kind, Key: key, Fields: []string{one.Field}}}))
		},
		"expiry": func(b *bench) {
			raw, _ := hex.DecodeString(one.Field)
			b.rdb.ZAdd(b.t.Context(), leasesKey, redis.Z{Score: 1, Member: string(raw)})
			reply(b, b.Count(time.Now(), one.Kind, key))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				b.ask(one, "3", time.Minute)
				b.ask(permit("b"), "3", time.Minute)
				b.rdb.Del(t.Context(), key)
				if got := b.Renew(t.Context(), []redisstore.Claim{one}, time.Minute); !got[0].Held {
					t.Errorf("renewal: %+v", got)
				}
				sub := b.rdb.Subscribe(t.Context(), redisstore.SemaphoreChannel(key))
				defer func() { _ = sub.Close() }()
				if _, err := sub.Receive(t.Context()); err != nil {
					t.Fatal(err)
				}
				back(b)
				if m, err := sub.ReceiveMessage(t.Context()); err != nil || strings.HasPrefix(m.Payload, "-") {
					t.Errorf("message %v, %v", m, err)
				}
				b.wantGone(key)
				if got := reply(b, b.Count(time.Now(), one.Kind, key)); got != (redisstore.Counts{Acquired: 1}) {
					t.Errorf("counts: %+v, want one permit that is out", got)
				}
				b.ask(permit("c"), "3", time.Minute)
				b.wantCount("1")
				b.wantTTL(key, 25*time.Hour+time.Minute)
			})
		})
	}
	t.Run("none free", func(t *testing.T) {
		t.Parallel()
		each(t, func(t *testing.T, b *bench) {
			b.ask(one, "1", time.Minute)
			b.rdb.Del(t.Context(), key)
			if refusal := b.ask(permit("b"), "1", time.Minute); refusal == nil || refusal.Holder != one.Field {
				t.Errorf("got %+v, want a refusal", refusal)
			}
			reply(b, b.Release(time.Now(), one))
			if refusal := b.ask(permit("b"), "1", time.Minute); refusal != nil {
				t.Errorf("refused: %+v", refusal)
			}
			b.wantCount("0")
		})
	})
}

// Expired permits are returned with a message, even if there are more than one command can have as arguments.
func TestStore_Count_ManyEndedPermits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b *bench) {
		b.rdb.Set(t.Context(), key, 0, 0)
		members := make([]redis.Z, 20000)
		for i := range members {
			members[i] = redis.Z{Score: float64(i), Member: i}
		}
		for chunk := range slices.Chunk(members, 1000) {
			b.rdb.ZAdd(t.Context(), leasesKey, chunk...)
		}
		if counts := reply(b, b.Count(time.Now(), kinds.PermitSemaphore, key)); counts != (redisstore.Counts{Left: 20000}) {
			t.Errorf("got %+v", counts)
		}
	})
}
