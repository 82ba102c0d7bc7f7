package wire

import (
	"sync"

	"github.com/redis/go-redis/v9/auth"
)

// credentials are those of a provider that sends new ones before the old ones expire. Servers end a connection
// whose credentials have expired, with all commands that are under way. So changed is called when there are new
// ones: the node makes another connection then, and the old one leaves when it has answered its commands.
type credentials struct {
	provider auth.StreamingCredentialsProvider
	changed  func()

	mu    sync.Mutex
	last  auth.Credentials // nil: the provider was not asked yet
	leave auth.UnsubscribeFunc
}

// newCredentials returns nil without a provider.
func newCredentials(provider auth.StreamingCredentialsProvider, changed func()) *credentials {
	if provider == nil {
		return nil
	}
	return &credentials{provider: provider, changed: changed}
}

// current returns the last credentials.
func (c *credentials) current() (user, password string, err error) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last == nil {
		first, leave, err := c.provider.Subscribe(c) // twice is as good as once, as the interface demands
		if err != nil {
			return "", "", err
		}
		c.mu.Lock()
		if c.leave = leave; c.last == nil {
			c.last = first
		}
		last = c.last
		c.mu.Unlock()
	}
	user, password = last.BasicAuth()
	return user, password, nil
}

// OnNext takes in new credentials.
func (c *credentials) OnNext(next auth.Credentials) {
	c.mu.Lock()
	again := c.last != nil && c.last.RawCredentials() != next.RawCredentials()
	c.last = next
	c.mu.Unlock()
	if again {
		c.changed()
	}
}

// OnError changes nothing: the last credentials may be good still, and the server says if they are not.
func (*credentials) OnError(error) {}

// close ends the subscription.
func (c *credentials) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	leave := c.leave
	c.leave = nil
	c.mu.Unlock()
	if leave != nil {
		_ = leave() //nolint:errcheck // nothing is expected of it any more
	}
}
