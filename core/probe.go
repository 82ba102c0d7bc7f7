package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// preflightLease is the longest lease of a probe: its renewal comes after a third of it.
const preflightLease = 6 * time.Second

// preflightKeys is how many keys the probe of a MultiLock has. If a proxy routes each key to one of two
// servers, one preflight in 32,768 has all keys on one server.
const preflightKeys = 16

var (
	errUnsaid     = errors.New("INFO does not say it")
	errNotHeard   = errors.New("no message of the release has arrived, so that waiters poll")
	errNotOut     = errors.New("another client got the lock while it was held")
	errNoToken    = errors.New("the lock came without a fencing token")
	errElsewhere  = errors.New("the server of this key does not know of the lock: the endpoint sends a script to the server of its first key")
	errNotRenewed = errors.New("the lease was not renewed in time")
)

// probe tries one kind of lock with two clients, which share the store of the client that is asked.
type probe struct {
	*redisstore.Kind

	of         *Client
	name       string
	patience   time.Duration
	one, other *Client
	contended  chan struct{}
	renewed    chan error
	checks     []PreflightCheck
}

func (p *probe) run(ctx context.Context) {
	p.name = "interlock_preflight:" + p.Name + ":" + newID()[:8]
	p.patience = 8 * p.of.cfg.backendTimeout
	p.contended, p.renewed = make(chan struct{}, 1), make(chan error, 1)
	p.one, p.other = p.apart(), p.apart()
	names := []string{p.name}
	p.tryKind(ctx)
	if p.Kind == p.of.kinds.Reentrant {
		several := make([]string, preflightKeys)
		for i := range several {
			several[i] = fmt.Sprintf("%s:%d", p.name, i)
		}
		p.trySeveral(ctx, several)
		names = append(names, several...)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	for _, name := range names {
		if removal, err := p.forget(ctx, name); err != nil {
			p.checks = append(p.checks, PreflightCheck{Kind: Kind(p.Name), Name: "delete the probe", Err: err, Advice: removal})
			break
		}
	}
	cancel()                                    // holds that are left after a failure are not waited for
	_, _ = p.one.Close(ctx), p.other.Close(ctx) //nolint:errcheck // what is left was reported
}

// forget deletes a probe. It returns the command that does so if the probe never expires.
func (p *probe) forget(ctx context.Context, name string) (removal string, err error) {
	key, err := p.of.key(p.Kind, name)
	if err != nil {
		return "", err
	}
	if p.Counts() {
		removal = "DEL " + key
	}
	ctx, cancel := context.WithTimeout(ctx, p.of.cfg.backendTimeout)
	defer cancel()
	return removal, p.of.store.Forget(ctx, p.Kind, key)
}

// apart makes a client with the configuration of the probed client, but without its observers: they
// do not see probes.
func (p *probe) apart() *Client {
	cfg := p.of.cfg
	cfg.watchdog = min(cfg.watchdog, preflightLease)
	cfg.observers = observers{}
	cfg.observers.add(&Observer{
		Contention: func(context.Context, Contention) { note(p.contended, struct{}{}) },
		Renewal:    func(_ context.Context, r Renewal) { note(p.renewed, r.Err) },
		Backend:    func(context.Context, BackendChange) {}, // the report has the failures, not the log
	})
	c := newClient(cfg)
	c.borrowed = true
	c.furnish(p.of.store)
	return c
}

// note sends v unless an earlier value was not received yet.
func note[T any](to chan T, v T) {
	select {
	case to <- v:
	default:
	}
}

// try notes how one step ended, and reports whether it works.
func (p *probe) try(name string, step func() error) bool {
	check := PreflightCheck{Kind: Kind(p.Name), Name: name, Err: step()}
	if errors.Is(check.Err, errElsewhere) {
		check.Advice = "use redis.NewClusterClient if the endpoint is a Cluster's, or an endpoint of one server; otherwise use no MultiLock and no list of keys"
	}
	p.checks = append(p.checks, check)
	return check.Err == nil
}

// tryKind takes a lock through its life, as two clients see it. After a failure the later steps
// say nothing, and are left out.
func (p *probe) tryKind(ctx context.Context) {
	var held context.Context
	var end, next func(context.Context) error
	leased := p.Holds != redisstore.Unheld
	steps := []struct {
		name string
		has  bool
		do   func() error
	}{
		{"acquire", true, func() (err error) {
			held, end, err = p.take(ctx, p.one, WaitTime(p.patience)) //nolint:fatcontext // the steps after it need it
			return err
		}},
		{"keep another client out", true, func() error {
			leave, err := p.rival(ctx, WaitTime(0))
			switch {
			case err == nil:
				return errors.Join(errNotOut, leave(ctx))
			case errors.Is(err, ErrNotAcquired):
				return nil
			}
			return err
		}},
		{"re-enter", p.Holds == redisstore.Reentrant, func() error {
			_, leave, err := p.take(held, p.one, WaitTime(p.patience))
			if err != nil {
				return err
			}
			return leave(ctx)
		}},
		{"renew", leased, func() error { return p.awaitRenewal(ctx) }},
		{"hand off", leased && p.Shares != redisstore.Unlimited, func() error {
			err := p.whileWaiting(func() (err error) {
				_, next, err = p.take(ctx, p.one, WaitTime(p.patience))
				return err
			}, func() error { return end(ctx) })
			end = next
			return err
		}},
		{"notify", true, func() error {
			return p.whileWaiting(func() (err error) {
				next, err = p.rival(ctx, WaitTime(p.patience))
				return err
			}, func() error { return p.hear(ctx, func() error { return end(ctx) }) })
		}},
		{"release", true, func() error { return next(ctx) }},
	}
	for _, step := range steps {
		if step.has && !p.try(step.name, step.do) {
			return
		}
	}
}

// take gets the lock for a client. The function that it returns gives the lock back.
func (p *probe) take(ctx context.Context, c *Client, opts ...AcquireOption) (context.Context, func(context.Context) error, error) {
	switch kinds := &c.kinds; p.Kind {
	case kinds.PlainSemaphore:
		if _, err := c.PlainSemaphore(p.name).TrySetPermits(ctx, 1); err != nil {
			return ctx, nil, err
		}
		return ctx, func(ctx context.Context) error { return c.PlainSemaphore(p.name).Release(ctx, 1) }, c.PlainSemaphore(p.name).Acquire(ctx, 1, opts...)
	case kinds.Latch:
		_, err := c.CountDownLatch(p.name).TrySetCount(ctx, 1)
		return ctx, c.CountDownLatch(p.name).CountDown, err
	default:
		return p.acquire(ctx, c, p.Kind, opts)
	}
}

// rival acquires, for the other client, a lock that excludes the probe.
func (p *probe) rival(ctx context.Context, opts ...AcquireOption) (end func(context.Context) error, err error) {
	switch kinds := &p.other.kinds; p.Kind {
	case kinds.PlainSemaphore:
		s := p.other.PlainSemaphore(p.name)
		return func(ctx context.Context) error { return s.Release(ctx, 1) }, s.Acquire(ctx, 1, opts...)
	case kinds.Latch:
		return func(context.Context) error { return nil }, p.other.CountDownLatch(p.name).Await(ctx, opts...)
	case kinds.Read:
		_, end, err = p.acquire(ctx, p.other, kinds.Write, opts)
	default:
		_, end, err = p.acquire(ctx, p.other, p.Kind, opts)
	}
	return end, err
}

// acquire takes a lock with a lease. Its semaphore has one permit.
func (p *probe) acquire(
	ctx context.Context, c *Client, kind *redisstore.Kind, opts []AcquireOption,
) (context.Context, func(context.Context) error, error) {
	lock := Lock{client: c, kind: kind, name: p.name}
	if kind == c.kinds.PermitSemaphore {
		lock = c.Semaphore(p.name, 1).Lock
	}
	held, hold, err := lock.Acquire(ctx, opts...)
	if err == nil && kind.Fenced && hold.Token() == 0 {
		err = errNoToken
	}
	return held, hold.Release, err
}

// whileWaiting calls wait, and calls then as soon as wait waits for the lock. It returns when both have.
func (p *probe) whileWaiting(wait, then func() error) error {
	select {
	case <-p.contended: // of an earlier step
	default:
	}
	done := make(chan error, 1)
	go func() { done <- wait() }()
	select {
	case <-p.contended:
		return errors.Join(then(), <-done)
	case err := <-done:
		if err == nil {
			return errNotOut
		}
		return err
	}
}

// hear calls release, and waits for the message that the waiter of the other client gets.
func (p *probe) hear(ctx context.Context, release func() error) error {
	key, err := p.of.key(p.Kind, p.name)
	if err != nil || p.Channel(key) == "" {
		return errors.Join(err, release())
	}
	field := ""
	if p.Waits == redisstore.InRedis { // each waiter has its own channel
		if field, err = p.of.store.FirstInQueue(ctx, key); err != nil {
			return errors.Join(err, release())
		}
	}
	messages, err := p.of.store.Subscriptions(ctx, key)
	if err != nil {
		return errors.Join(err, release())
	}
	defer messages.Close() //nolint:errcheck // nothing was entrusted to it
	messages.Subscribe(ctx, []string{p.WaiterChannel(key, field)})
	if err := p.await(ctx, messages, redisstore.Subscribed); err != nil {
		return errors.Join(err, release())
	}
	if err := release(); err != nil {
		return err
	}
	return p.await(ctx, messages, redisstore.Message)
}

// await waits for an event on the channel of the lock.
func (p *probe) await(ctx context.Context, messages *redisstore.Subscriptions, kind redisstore.EventKind) error {
	for {
		switch event, err := messages.Receive(ctx, p.of.cfg.backendTimeout); {
		case err != nil && messages.Rejected(err):
			return err
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errNotHeard
		case err != nil:
			return errors.Join(errNotHeard, err)
		case event.Kind == kind && event.Channel != "":
			return nil
		}
	}
}

// awaitRenewal waits until the lease was renewed once.
func (p *probe) awaitRenewal(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, preflightLease, errNotRenewed)
	defer cancel()
	select {
	case err := <-p.renewed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// trySeveral takes several keys at once, and asks for each of them by itself who has it.
func (p *probe) trySeveral(ctx context.Context, names []string) {
	var hold *Hold
	works := p.try("several keys", func() (err error) {
		if _, hold, err = p.one.MultiLock(names...).Acquire(ctx, WaitTime(p.patience)); err != nil {
			return err
		}
		for _, name := range names {
			state, err := p.one.Lock(name).State(ctx)
			if err != nil {
				return err
			}
			if len(state.Holders) == 0 {
				return errElsewhere
			}
		}
		return nil
	})
	if !works {
		return
	}
	select {
	case <-p.renewed: //nolint:errcheck // of the single key
	default:
	}
	if p.try("renew several keys", func() error { return p.awaitRenewal(ctx) }) {
		p.try("release several keys", func() error { return hold.Release(ctx) })
	}
}
