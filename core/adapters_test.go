package core_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
)

// Shared creates the value of each key once per client. A function that creates a value may use the value of another key.
func TestShared_Once(t *testing.T) {
	t.Parallel()
	type outer struct{}
	type inner struct{}
	b := locktest.Embedded(t)
	var created [2]atomic.Int32
	get := func(c *core.Client) any {
		return c.ForAdapters().Shared(outer{}, func() any {
			created[0].Add(1)
			return c.ForAdapters().Shared(inner{}, func() any {
				created[1].Add(1)
				return new(int)
			})
		})
	}
	clients := []*core.Client{b.Locks(), b.Locks()}
	values := make([][50]any, len(clients))
	var all sync.WaitGroup
	for i, c := range clients {
		for j := range values[i] {
			all.Go(func() { values[i][j] = get(c) })
		}
	}
	all.Wait()
	for i, c := range clients {
		for _, value := range values[i] {
			locktest.WantSame(t, "the value of the client", value, get(c))
		}
	}
	if values[0][0] == values[1][0] {
		t.Error("two clients share a value, want one for each")
	}
	for i := range created {
		locktest.WantSame(t, "values created", created[i].Load(), 2)
	}
}
