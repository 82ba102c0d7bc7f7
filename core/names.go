package core

import (
	"slices"
	"sort"
	"strings"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// WithNameMapper has mapper make the Redis key of every lock name, as Redisson's NameMapper
// does: use the same mapping on both sides. What belongs to a lock in Redis, such as its
// channel, is named after the key. A prefix, the usual mapping, is simpler with [WithPrefix];
// to give both is an error, because Redisson knows one mapping and nobody would see which of
// the two comes first: write the prefix into the mapper.
//
// The mapper must be pure: of one name it always makes the same key, without waiting and
// without state, and any number of goroutines call it. Two names of one key are one lock. It
// is called once for every Acquire of a name, and once for every other question by name
// ([Held], [Lock.State]), before anything is sent: what it costs every
// acquisition costs. One that puts text together costs the same as a prefix, an allocation.
// It is never called with an empty name, and never with a key. An empty key, or one over
// [WithMaxKeyLength], is [ErrInvalid]; so is, in a Redis Cluster, one whose braces put the
// lock and its channel into different slots. Names of 64 bytes have to fit, which New finds
// out by mapping one.
func WithNameMapper(mapper func(name string) string) Option {
	return func(c *config) error {
		c.mapper = mapper
		if mapper == nil {
			return invalidf("WithNameMapper(nil): want a function, or leave the option out")
		}
		return nil
	}
}

// mapped is what a name is called in Redis.
func (c *config) mapped(name string) string {
	switch {
	case c.mapper == nil:
		return c.prefix + name
	case name == "":
		return ""
	default:
		return c.mapper(name)
	}
}

// inOrder sorts keys of sorted names, and leaves out repetitions. A prefix keeps the order; a
// mapper need not, and everybody who takes several locks has to take them in the same one.
func (c *config) inOrder(keys []string) []string {
	if c.mapper == nil {
		return keys
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (c *Client) key(kind *redisstore.Kind, name string) (string, error) {
	if name == "" {
		return "", invalidf("empty lock name")
	}
	key := c.cfg.mapped(name)
	switch {
	case key == "":
		return "", invalidf("the name mapper makes an empty key of lock %.40q (WithNameMapper)", name)
	case len(key) > c.cfg.maxKeyLength:
		return "", invalidf("the key of lock %.40q… has %d bytes, the limit is %d (WithMaxKeyLength)", name, len(key), c.cfg.maxKeyLength)
	}
	if err := c.store.CheckKey(kind, key); err != nil {
		return "", invalidf("%v", err)
	}
	return key, nil
}

// fits reports whether a name of n bytes makes a key within the limit.
func (c *config) fits(n int) bool { return len(c.mapped(strings.Repeat("x", n))) <= c.maxKeyLength }

// longestName is the longest that fits.
func (c *config) longestName() int {
	if c.mapper == nil {
		return c.maxKeyLength - len(c.prefix)
	}
	return sort.Search(c.maxKeyLength, func(n int) bool { return !c.fits(n + 1) })
}

// checkMapper refuses a mapper beside a prefix, and one that every acquisition would run into.
func (c *config) checkMapper() error {
	switch {
	case c.mapper == nil:
		return nil
	case c.prefix != "":
		return invalidf("WithPrefix(%.40q) and WithNameMapper: want one of them; write the prefix into the mapper", c.prefix)
	case c.maxKeyLength >= minNameLength && !c.fits(minNameLength):
		return invalidf("WithNameMapper: it makes a key of %d bytes of a name of %d, the limit is %d: write WithMaxKeyLength(%[1]d) or more, or shorter keys",
			len(c.mapped(strings.Repeat("x", minNameLength))), minNameLength, c.maxKeyLength)
	}
	return nil
}
