package core

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Public surface under construction: signatures are final, bodies follow.

type Client struct{ cfg config }

func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) { panic("unbuilt") }
func Open(url string, opts ...Option) (*Client, error)               { panic("unbuilt") }

// Lock is a small immutable value; (&c).Lock(name) costs nothing and validates nothing: a bad
// name is an ErrInvalid from Acquire.
type Lock struct{}

func (c *Client) Lock(name string) Lock             { panic("unbuilt") }
func (c *Client) MultiLock(names ...string) Lock    { panic("unbuilt") } // sorted, deduplicated; >= 1
func (l Lock) Acquire(ctx context.Context, opts ...AcquireOption) (context.Context, *Hold, error) {
	panic("unbuilt")
}
func (l Lock) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	panic("unbuilt")
}
func (l Lock) State(ctx context.Context) (State, error)       { panic("unbuilt") }
func (l Lock) ForceRelease(ctx context.Context) (bool, error) { panic("unbuilt") }

type State struct {
	Key     string
	Holders map[string]int // field -> hold count; empty when free
	TTL     time.Duration  // 0 when free, negative when the key has no TTL
}

// Hold is one acquisition.
type Hold struct{}

func (h *Hold) Key() string                                              { panic("unbuilt") }
func (h *Hold) Keys() []string                                           { panic("unbuilt") }
func (h *Hold) Field() string                                            { panic("unbuilt") }
func (h *Hold) Token() int64                                             { panic("unbuilt") }
func (h *Hold) Remaining() time.Duration                                 { panic("unbuilt") }
func (h *Hold) Refresh(ctx context.Context, lease time.Duration) error   { panic("unbuilt") }
func (h *Hold) Release(ctx context.Context) error                        { panic("unbuilt") }
func (h *Hold) Handover() (context.Context, *Hold)                       { panic("unbuilt") }
func (h *Hold) Leave(ctx context.Context, d time.Duration) error         { panic("unbuilt") }

func Held(ctx context.Context, name string) (*Hold, bool)  { panic("unbuilt") } // name without prefix
func MustHold(ctx context.Context, name string) *Hold      { panic("unbuilt") } // panics if not held
func Detach(ctx context.Context) context.Context           { panic("unbuilt") }

func (c *Client) Ready(ctx context.Context) error { panic("unbuilt") } // nil when Redis answers
func (c *Client) Holds() []HoldInfo               { panic("unbuilt") }
func (c *Client) Stats() Stats                    { panic("unbuilt") }
func (c *Client) Close(ctx context.Context) error { panic("unbuilt") }
func (c *Client) ID() string                      { panic("unbuilt") } // the uuid in holder fields
func (c *Client) Prefix() string                  { panic("unbuilt") }

// Stats is a cheap snapshot for gauges.
type Stats struct {
	Holds      int
	Waiters    int
	OldestWait time.Duration
}
