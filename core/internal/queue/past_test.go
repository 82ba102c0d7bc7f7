package queue_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
)

// The number of remembered keys without a queue is bounded, and stale ones make room.
func TestQueues_Recent_Bounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, queue.Config{})
	use := func(n int) {
		for i := range n {
			key := fmt.Sprint(i, b.now)
			h := &holder{field: "f"}
			b.RecordGrant(key, nil, queue.Grant{Holder: h, Kind: "plain", Sent: b.now}, b.now)
			b.RemoveHolder(key, h, queue.NoMessage, b.now)
		}
	}
	most, _ := b.Recent()
	use(20 * most)
	if _, got := b.Recent(); got != most {
		t.Errorf("remembers %d, want %d", got, most)
	}
	b.pass(queue.GiveWay)
	use(20 * most)
	b.pass(queue.GiveWay)
	use(1)
	if _, got := b.Recent(); got > most-40 && got != most {
		t.Errorf("remembers %d, want that stale keys of one shard were removed", got)
	}
}
