package identity_test

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/identity"
	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The fields of this library differ from Redisson's fields, whose numbers are thread ids.
func TestRivalOf(t *testing.T) {
	t.Parallel()
	i := identity.Identity{ID: identity.NewID()}
	for field, want := range map[string]queue.Rival{
		"":                              queue.Unseen,
		"anything":                      queue.Unseen,
		i.NextField(&redisstore.Kind{}): queue.Fellow,
		i.NextField(&redisstore.Kind{Suffix: ":write"}): queue.Fellow,
		i.ID + ":1":                              queue.Stranger,
		i.ID + ":1099511627776":                  queue.Stranger,
		i.ID + ":":                               queue.Stranger,
		i.ID + ":1099511627777":                  queue.Fellow,
		i.ID + ":99999999999999999999":           queue.Stranger,
		i.ID + ":1099511627777:rwlock_timeout":   queue.Stranger,
		"00000000-0000-0000-0000-000000000000:9": queue.Stranger,
	} {
		if got := identity.RivalOf(field); got != want {
			t.Errorf("%q: got %d, want %d", field, got, want)
		}
	}
}
