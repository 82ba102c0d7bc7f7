package outages_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
)

// rotatingProvider is a provider that sends new credentials.
type rotatingProvider struct {
	mu        sync.Mutex
	user      string
	listeners map[auth.CredentialsListener]bool
	subscribe func() error // runs before Subscribe sends credentials; nil: nothing
}

func startsWith(user string) *rotatingProvider {
	return &rotatingProvider{user: user, listeners: make(map[auth.CredentialsListener]bool)}
}

func (p *rotatingProvider) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.mu.Lock()
	first := p.subscribe
	p.mu.Unlock()
	if first != nil {
		if err := first(); err != nil {
			return nil, nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners[l] = true
	return token(p.user), func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, l)
		return nil
	}, nil
}

// next sends the credentials of a user.
func (p *rotatingProvider) next(user string) {
	p.mu.Lock()
	p.user = user
	var all []auth.CredentialsListener
	for l := range p.listeners {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		l.OnNext(token(user))
	}
}

func (p *rotatingProvider) listening() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners)
}

// token is the credentials of a user. The user "" does not log in.
type token string

const password = "secret"

func (u token) BasicAuth() (name, pass string) {
	if u, _, _ := strings.Cut(string(u), "#"); u != "" {
		return u, password
	}
	return "", ""
}

func (u token) RawCredentials() string { return string(u) }

// failures is a hook that records the errors of commands.
type failures struct {
	mu  sync.Mutex
	all []error
}

// note skips commands that are sent again, because on a busy machine a connection may seem to hang.
func (f *failures) note(err error) error {
	if err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") && !strings.Contains(err.Error(), "a connection that hangs") {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all = append(f.all, err)
	}
	return err
}

func (f *failures) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.all...)
}

func (f *failures) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failures) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return f.note(next(ctx, cmd)) }
}

func (f *failures) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return f.note(next(ctx, cmds)) }
}

// users creates users of Redis.
func users(t *testing.T, admin *redis.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		locktest.Must(t, admin.Do(t.Context(), "acl", "setuser", name, "on", ">"+password, "~*", "&*", "+@all").Err())
	}
}

// connectionsOf counts the connections of a user.
func connectionsOf(t *testing.T, admin *redis.Client, user string) int {
	t.Helper()
	list, err := admin.ClientList(t.Context()).Result()
	locktest.Must(t, err)
	return strings.Count(list, " user="+user+" ")
}

// New credentials arrive before Redis closes the connections of the old user. By that time all connections of locks,
// and the subscription connection, use the new credentials, and no command was cut.
func TestNew_CredentialsRotate(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]core.Option{
		"master alone": nil, "replicas": {core.WithReplicaAcks(core.AcksAll, 2*time.Second)},
	} {
		locktest.Parallel(t, name, func(t *testing.T) {
			replicated := redisserver.StartReplicated(t, 1)
			admin := replicated.Master.Client()
			users(t, admin, "old", "new")
			provider, failed := startsWith("old"), &failures{}
			rdb := replicated.Master.Client(func(o *redis.Options) { o.StreamingCredentialsProvider = provider })
			rdb.AddHook(failed)
			locks := locktest.NewClient(t, rdb, append(opts, locktest.Patient)...)

			_, other := locktest.MustAcquire(t, t.Context(), locktest.NewClient(t, admin, locktest.Patient).Lock("contended"))
			at := locktest.AcquiredAt(t, locks, "contended")
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for i := range 4 {
				callers.Go(func() {
					for ctx.Err() == nil {
						if err := locks.Lock(string(rune('a'+i))).Do(t.Context(), func(context.Context) error { return nil }); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			locktest.Eventually(t, "a subscription", func() bool {
				return admin.PubSubNumSub(t.Context(), locktest.ChannelOf("contended")).Val()[locktest.ChannelOf("contended")] == 1
			})
			provider.next("new")
			locktest.Eventually(t, "a subscription by the new user", func() bool {
				list := admin.ClientList(t.Context()).Val()
				for line := range strings.Lines(list) {
					if strings.Contains(line, " user=new ") && strings.Contains(line, "sub=1 ") {
						return true
					}
				}
				return false
			})
			if name == "master alone" { // idle connections of acknowledged commands are replaced at their next use
				locktest.Eventually(t, "no connection of the old user", func() bool { return connectionsOf(t, admin, "old") == 0 })
			}
			locktest.Must(t, admin.Do(t.Context(), "acl", "deluser", "old").Err())
			locktest.MustRelease(t, other)
			<-at
			stop()
			callers.Wait()
			locktest.WantOK(t, failed.err())
			locktest.Must(t, locks.Close(t.Context()))
			locktest.WantSame(t, "subscriptions to the provider after Close", provider.listening(), 0)
		})
	}
}

// A command that is under way when new credentials arrive gets its answer on the old connection. Later commands use
// the new credentials.
func TestNew_CredentialsRotateBehindACommand(t *testing.T) {
	t.Parallel()
	r := locktest.NewProxied(t)
	users(t, r.Client, "old", "new")
	provider := startsWith("old")
	rdb := redis.NewClient(&redis.Options{Addr: r.Proxy.Addr(), StreamingCredentialsProvider: provider})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := locktest.NewClient(t, rdb, locktest.Patient)
	locktest.Warm(t, locks)

	held := r.Proxy.HoldReply(faultproxy.Once(locktest.ScriptOn(t, "acquire", "slow")))
	slow := locktest.GoAcquire(t.Context(), locks.Lock("slow"))
	<-held.Hit()
	provider.next("new")
	locktest.Eventually(t, "a connection of the new user", func() bool {
		locktest.Must(t, locks.Lock("quick").Do(t.Context(), func(context.Context) error { return nil }))
		return connectionsOf(t, r.Client, "new") > 0
	})
	locktest.WantSame(t, "connections of the old user", connectionsOf(t, r.Client, "old"), 1)
	held.Release()
	locktest.MustRelease(t, locktest.Got(r.T, slow).Hold)
	locktest.Eventually(t, "no connection of the old user", func() bool {
		locktest.Must(t, locks.Lock("quick").Do(t.Context(), func(context.Context) error { return nil }))
		return connectionsOf(t, r.Client, "old") == 0
	})
}

// The same credentials again change nothing. Other credentials replace each connection once.
func TestNew_CredentialsThatStay(t *testing.T) {
	t.Parallel()
	locktest.Bubble(t, func(t *testing.T, b *locktest.Redis) {
		provider := startsWith("#1")
		d, rdb := dialed(t, b.Client, func(o *redis.Options) { o.StreamingCredentialsProvider = provider })
		locks := locktest.NewClient(t, rdb)
		for _, user := range []string{"#1", "#1", "#2", "#2", "#3"} {
			provider.next(user)
			for range 10 {
				b.Warm(locks)
				locktest.Pass(time.Second)
			}
		}
		locktest.WantSame(t, "connections for three credentials", d.Load(), 3)
	})
}

// If the provider fails, panics or blocks, the call returns an error. If the provider answers after the client was
// closed, its subscription ends at once.
func TestNew_CredentialsFail(t *testing.T) {
	t.Parallel()
	errNone := errors.New("the identity provider is down")
	for name, fail := range map[string]func() error{
		"fails":  func() error { return errNone },
		"panics": func() error { panic("oops") },
	} {
		locktest.ParallelBubble(t, name, func(t *testing.T, b *locktest.Redis) {
			provider := startsWith("")
			provider.subscribe = fail
			_, rdb := dialed(t, b.Client, func(o *redis.Options) { o.StreamingCredentialsProvider = provider })
			locks := locktest.NewClient(t, rdb)
			_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
			locktest.WantErr(t, err, core.ErrUnavailable)
			if name == "fails" {
				locktest.WantErr(t, err, errNone)
			}
			provider.mu.Lock()
			provider.subscribe = nil
			provider.mu.Unlock()
			locktest.Pass(time.Minute)
			b.Warm(locks)
		})
	}
	locktest.ParallelBubble(t, "blocks", func(t *testing.T, b *locktest.Redis) {
		provider, unblock := startsWith(""), make(chan struct{})
		provider.subscribe = func() error {
			<-unblock
			return nil
		}
		_, rdb := dialed(t, b.Client, func(o *redis.Options) { o.StreamingCredentialsProvider = provider })
		locks := locktest.NewClient(t, rdb)
		start := time.Now()
		_, _, err := locks.Lock("k").Acquire(t.Context(), core.WaitTime(0))
		locktest.WantErr(t, err, core.ErrUnavailable)
		locktest.WantSoon(t, "the call took %s, and Redis answers pings", start, 8*core.DefaultBackendTimeout)
		locktest.Must(t, locks.Close(t.Context()))
		close(unblock)
		locktest.Pass(time.Second)
		locktest.WantSame(t, "subscriptions to the provider after Close", provider.listening(), 0)
	})
}
