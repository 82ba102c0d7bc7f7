package core

import (
	"testing"

	"github.com/interlock-go/interlock/core/internal/queue"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// The fields of this library differ from those of Redisson, whose numbers are threads.
func TestRivalOf(t *testing.T) {
	t.Parallel()
	i := identity{id: newID()}
	for field, want := range map[string]queue.Rival{
		"":                              queue.Unseen,
		"anything":                      queue.Unseen,
		i.nextField(&redisstore.Kind{}): queue.Fellow,
		i.nextField(&redisstore.Kind{Suffix: ":write"}): queue.Fellow,
		i.id + ":1":                              queue.Stranger,
		i.id + ":1099511627776":                  queue.Stranger,
		i.id + ":":                               queue.Stranger,
		i.id + ":1099511627777":                  queue.Fellow,
		i.id + ":99999999999999999999":           queue.Stranger,
		i.id + ":1099511627777:rwlock_timeout":   queue.Stranger,
		"00000000-0000-0000-0000-000000000000:9": queue.Stranger,
	} {
		if got := rivalOf(field); got != want {
			t.Errorf("%q: got %d, want %d", field, got, want)
		}
	}
}
