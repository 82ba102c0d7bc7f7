package lockz

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/core"
)

// clients lists the open lock clients that the page observes, in the order in which they were created.
// The page shows their ids and numbers, and lists and releases locks through them.
type clients struct {
	mu   sync.Mutex
	list []*core.Client
}

// add adds a client. The returned function removes it; core calls that function when the client
// is closed.
func (c *clients) add(client *core.Client) (closed func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, client)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.list = slices.DeleteFunc(c.list, func(other *core.Client) bool { return other == client })
	}
}

// open returns a copy of the list.
func (c *clients) open() []*core.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// find returns the open client with an id, or nil.
func (c *clients) find(id string) *core.Client {
	for _, client := range c.open() {
		if client.ID() == id {
			return client
		}
	}
	return nil
}

// shorten removes the id of an open client from a holder field, because the page shows the id at its top.
func (c *clients) shorten(field string) string {
	list := c.open()
	for i, client := range list {
		number, own := strings.CutPrefix(field, client.ID()+":")
		switch {
		case own && len(list) == 1:
			return ":" + number
		case own:
			return fmt.Sprintf("client %d:%s", i+1, number)
		}
	}
	return field
}
