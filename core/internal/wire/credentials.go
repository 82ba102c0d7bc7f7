package wire

import (
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
)

// credentials receives credentials from a provider that sends new ones before the old ones expire. A server
// closes a connection whose credentials expired, even with commands under way. So credentials calls changed
// when new credentials arrive. The node then opens another connection and closes the old one when its
// commands are answered.
type credentials struct {
	provider auth.StreamingCredentialsProvider
	changed  func()

	mu     sync.Mutex
	last   auth.Credentials // nil: the provider was not asked yet
	leave  auth.UnsubscribeFunc
	closed bool
}

// newCredentials returns nil without a provider.
func newCredentials(provider auth.StreamingCredentialsProvider, changed func()) *credentials {
	if provider == nil {
		return nil
	}
	return &credentials{provider: provider, changed: changed}
}

// current returns the last credentials. The first call asks the provider, which may block.
func (c *credentials) current() (user, password string, err error) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last == nil {
		first, leave, err := c.provider.Subscribe(c) // the interface allows a second call
		if err != nil {
			return "", "", err
		}
		var wanted bool
		if last, wanted = c.noteSubscription(first, leave); !wanted {
			return "", "", redis.ErrClosed
		}
	}
	user, password = last.BasicAuth()
	return user, password, nil
}

// noteSubscription records the answer of the provider and returns the last credentials, unless close
// was called before.
func (c *credentials) noteSubscription(first auth.Credentials, leave auth.UnsubscribeFunc) (last auth.Credentials, wanted bool) {
	c.mu.Lock()
	c.leave = leave
	if c.last == nil {
		c.last = first
	}
	last, wanted = c.last, !c.closed
	c.mu.Unlock()
	if !wanted {
		c.close()
	}
	return last, wanted
}

// OnNext records new credentials.
func (c *credentials) OnNext(next auth.Credentials) {
	c.mu.Lock()
	again := c.last != nil && c.last.RawCredentials() != next.RawCredentials()
	c.last = next
	c.mu.Unlock()
	if again {
		c.changed()
	}
}

// OnError does nothing, because the last credentials may still be valid. If they are not, the
// server refuses them.
func (*credentials) OnError(error) {}

// close cancels the subscription. If Subscribe has not returned yet, noteSubscription cancels it.
func (c *credentials) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	leave := c.leave
	c.leave, c.closed = nil, true
	c.mu.Unlock()
	if leave != nil {
		_ = leave() //nolint:errcheck // no caller could act on it
	}
}
