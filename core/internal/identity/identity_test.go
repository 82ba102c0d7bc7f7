package identity_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/identity"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The fields of this library differ from Redisson's fields, whose numbers are thread ids.
func TestRivalOf(t *testing.T) {
	t.Parallel()
	id := identity.NewID()
	for field, want := range map[string]queue.Rival{
		"":                               queue.Unseen,
		"anything":                       queue.Unseen,
		id.NextField(&redisstore.Kind{}): queue.Fellow,
		id.NextField(&redisstore.Kind{Suffix: ":write"}): queue.Fellow,
		string(id) + ":1":                            queue.Stranger,
		string(id) + ":1099511627776":                queue.Stranger,
		string(id) + ":":                             queue.Stranger,
		string(id) + ":1099511627777":                queue.Fellow,
		string(id) + ":99999999999999999999":         queue.Stranger,
		string(id) + ":1099511627777:rwlock_timeout": queue.Stranger,
		"00000000-0000-0000-0000-000000000000:9":     queue.Stranger,
	} {
		if got := identity.RivalOf(field); got != want {
			t.Errorf("%q: got %d, want %d", field, got, want)
		}
	}
}

// Every field is drawn from crypto/rand and the clock when it is needed. A generator in the memory of the process, or
// randomness that was read in advance, would be the same in processes that are restored from one snapshot.
//
//nolint:paralleltest // the seed of crypto/rand is global
func TestID_NextField_IsDrawn(t *testing.T) {
	for name, kind := range map[string]*redisstore.Kind{
		"reentrant": {}, "writer": {Suffix: ":write"}, "permit": {Holds: redisstore.Drawn}, "operation": {Holds: redisstore.Unheld},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the clock stands still
				id := identity.NewID()
				after := func(seed uint64) string {
					id.NextField(kind)
					cryptotest.SetGlobalRandom(t, seed)
					return id.NextField(kind)
				}
				one, again, other := after(1), after(1), after(2)
				time.Sleep(time.Nanosecond)
				if later := after(1); one != again || one == other || one == later {
					t.Errorf("got %q and %q after one seed, %q later, %q after another seed", one, again, later, other)
				}
			})
		})
	}
}

// The number in a field is a positive long for Java, larger than the ids of threads. All fields have the same length.
func TestID_NextField_Numbers(t *testing.T) {
	t.Parallel()
	id, seen := identity.NewID(), make(map[string]bool)
	var zeros, ones int64 = math.MaxInt64, 0
	for range 10_000 {
		field := id.NextField(&redisstore.Kind{})
		prefix, number, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if prefix != string(id) || err != nil || n <= identity.MaxThread || len(number) != 19 || seen[field] {
			t.Fatalf("got %q: %v; seen before: %t", field, err, seen[field])
		}
		seen[field], zeros, ones = true, zeros&n, ones|n
	}
	if zeros != 1<<62 || ones != math.MaxInt64 {
		t.Errorf("the bits %b are always 1, the bits %b are always 0", zeros, ^ones)
	}
}
