package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// Redis may execute an unanswered attempt after a later attempt of the same waiter. The waiter then has two
// places in the queue, and its next attempt keeps the place nearest to the head.
func TestStore_Acquire_FairPlaceOfEarlierAttempts(t *testing.T) {
	t.Parallel()
	const first, second, third, other = bob + "1", bob + "2", bob + "3", bob + "4"
	for _, tc := range []struct {
		name  string
		order []string // the order in which Redis executes the attempts of bob and of the other waiter
	}{
		{name: "first lands last", order: []string{second, other, first}},
		{name: "second lands last", order: []string{first, other, second}},
		{name: "second is lost", order: []string{first, other}},
		{name: "first is lost", order: []string{second, other}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, b *bench) {
				ghosts := map[string][]string{second: {first}, third: {first, second}}
				b.gets(redisstore.Claim{Kind: kinds.Fair, Key: key, Field: alice}, redisstore.Terms{Lease: time.Minute})
				for _, field := range slices.Concat(tc.order, []string{third}) {
					b.refused(redisstore.Claim{Kind: kinds.Fair, Key: key, Field: field},
						redisstore.Terms{Lease: time.Minute, Wait: time.Minute, Ghosts: ghosts[field]}, alice)
				}
				queue, err := b.rdb.LRange(t.Context(), fmt.Sprintf("redisson_lock_queue:{%s}", key), 0, -1).Result()
				if want := []string{third, other}; err != nil || !slices.Equal(queue, want) {
					t.Errorf("the queue is %v, %v, want %v", queue, err, want)
				}
			})
		})
	}
}

// The numbers in the script of a fair acquire agree with the constants.
func TestFairLook_AsInTheScript(t *testing.T) {
	t.Parallel()
	source := kinds.Fair.Sources()["acquire"]
	const quiet = 600 // ms
	for name, want := range map[string]int64{
		"quiet":    quiet,
		"patience": redisstore.FairLook.Milliseconds() + quiet,
		"absent":   redisstore.FairLook.Milliseconds() * 3 / 2,
		"far":      redisstore.FairManyWait,
		"later":    (redisstore.FairFarLook - redisstore.FairLook).Milliseconds(),
	} {
		line := fmt.Sprintf("local %s = %d ", name, want)
		if !strings.Contains(source, line) {
			t.Errorf("the script does not contain %q", line)
		}
	}
}
