package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/internal/identity"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// PreflightReport is the result of [Client.Preflight]. Its strings contain keys, channels, servers
// and the Redis user: they are for operators.
type PreflightReport struct {
	// Servers are the masters, such as "redis 7.0.15 at 10.0.0.7:6379". Empty if the user may
	// not run INFO.
	Servers []string

	// Rights are the rules of ACL SETUSER that suffice for the kinds of the preflight. With a
	// [WithNameMapper] they allow all keys, because no prefix describes the keys of a mapper. Redis
	// 6.2 allows a new user all channels: write resetchannels in front of the rules.
	Rights string

	// Checks are the steps that were tried, in order, for each kind of lock.
	Checks []PreflightCheck
}

// PreflightCheck is one step of a preflight.
type PreflightCheck struct {
	// Kind is the kind of lock that needs this step; empty if every kind needs it.
	Kind Kind

	// Name is the name of the step, such as "acquire" or "notify".
	Name string

	// Err is the error of the step; nil if the step works.
	Err error

	// Unseen reports that the step could not be tried, for the reason in Err.
	Unseen bool

	// Advice is the change to make, such as a line of ACL or of redis.conf. It may be empty. A step that works has an
	// Advice if its result is most likely not intended.
	Advice string
}

// Err joins the errors of the steps that do not work; nil if every step that was tried works.
func (r PreflightReport) Err() error {
	var errs []error
	for _, c := range r.Checks {
		if c.Err != nil && !c.Unseen {
			errs = append(errs, fmt.Errorf("%s: %w", c.title(), c.Err))
		}
	}
	return errors.Join(errs...)
}

// String returns a table of the checks: each works, fails or is unseen. The advice of a check is on
// the line below it.
func (r PreflightReport) String() string {
	var text strings.Builder
	for _, server := range r.Servers {
		fmt.Fprintln(&text, "server  "+server)
	}
	for _, c := range r.Checks {
		switch {
		case c.Err == nil:
			fmt.Fprintf(&text, "works   %s\n", c.title())
		case c.Unseen:
			fmt.Fprintf(&text, "unseen  %s: %s\n", c.title(), oneLine(c.Err))
		default:
			fmt.Fprintf(&text, "FAILS   %s: %s\n", c.title(), oneLine(c.Err))
		}
		if c.Advice != "" {
			fmt.Fprintf(&text, "        -> %s\n", c.Advice)
		}
	}
	return text.String()
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (c *PreflightCheck) title() string {
	if c.Kind == "" {
		return c.Name
	}
	return string(c.Kind) + ": " + c.Name
}

// Preflight tries everything that the given kinds of lock need from this Redis, with probe locks whose names begin with
// "interlock_preflight:". It tries an acquisition, which has to keep another client out, a re-entry, a renewal, a
// hand-off to a waiter of the same client, a message to a waiter of another client, and the release. With
// [WithLossNotice] it also waits for a keyspace notification. Without kinds it tries [KindReentrant]. For KindReentrant it
// also takes a MultiLock over several slots, to detect a proxy that sends a script to the server of its first key: behind
// such a proxy MultiLocks and lists of keys do not exclude others.
// Preflight asks the masters for their role and their maxmemory-policy, and includes the warnings of [Client.Wire].
// Probe keys are deleted at the end. If that fails, they expire within seconds, except for plain semaphores and
// latches: the report contains the command that deletes those.
//
// Use Preflight in a deployment test, or in a start-up that may take seconds; `interlock doctor`
// uses it too. It takes 2 s or more, because it waits for a renewal, and sends about a hundred
// commands for each kind. Observers do not see the probes. The report contains all findings,
// including that Redis does not answer. The error is [ErrInvalid] for [KindGroup] and for a kind that no single client
// has, or [ErrClosed].
func (c *Client) Preflight(ctx context.Context, kinds ...Kind) (PreflightReport, error) {
	if len(kinds) == 0 {
		kinds = []Kind{KindReentrant}
	}
	known, probed := c.kinds.Keyed(), make([]*redisstore.Kind, len(kinds))
	for i, name := range kinds {
		at := slices.IndexFunc(known, func(k *redisstore.Kind) bool { return k.Name == string(name) })
		if at < 0 {
			return PreflightReport{}, invalidf("Preflight cannot try kind %q: write one of %s", name, kindNames(known))
		}
		probed[i] = known[at]
	}
	if err := c.callers.enter(); err != nil {
		return PreflightReport{}, err
	}
	defer c.callers.exit()
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(c.service, func() { cancel(ErrClosed) })()

	p := preflight{client: c}
	p.report.Rights = c.store.Rights(c.cfg.prefix, probed)
	p.checkPrefix(c.cfg.prefix)
	found, err := c.Wire(ctx)
	p.add(PreflightCheck{Name: "answer", Err: err})
	if err != nil {
		return p.report, nil
	}
	for _, warning := range found.Warnings {
		p.add(PreflightCheck{Name: "channels", Err: errors.New(warning)}) //nolint:err113 // a text for people
	}
	if !p.askServers(ctx) {
		return p.report, nil
	}
	probes := make([]*probe, len(kinds))
	var all sync.WaitGroup
	for i, kind := range probed {
		probes[i] = &probe{Kind: kind, client: c}
		all.Go(func() { probes[i].run(ctx) })
	}
	all.Wait()
	for _, probe := range probes {
		for _, check := range probe.checks {
			p.add(check)
		}
	}
	return p.report, nil
}

func kindNames(kinds []*redisstore.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

type preflight struct {
	client *Client
	report PreflightReport
}

func (p *preflight) add(check PreflightCheck) {
	if check.Err != nil && check.Advice == "" {
		check.Advice = p.advice(check.Err)
	}
	p.report.Checks = append(p.report.Checks, check)
}

// checkPrefix advises a separator for a prefix without one.
func (p *preflight) checkPrefix(prefix string) {
	if advice := prefixAdvice(prefix); advice != "" {
		p.add(PreflightCheck{Name: fmt.Sprintf("prefix %q", prefix), Advice: advice})
	}
}

// prefixAdvice returns the advice for a prefix that ends in a letter or a digit, and "" for any other. A prefix without a
// separator works, but keys of two prefixes may be the same: "shop" + "s:42" is "shops:" + "42".
func prefixAdvice(prefix string) string {
	last, _ := utf8.DecodeLastRuneInString(prefix)
	if prefix == "" || !unicode.IsLetter(last) && !unicode.IsDigit(last) {
		return ""
	}
	return fmt.Sprintf("the key of lock %q is %q: write the prefix %q, or WithNameMapper if that is meant", "order:42", prefix+"order:42", prefix+":")
}

// advice returns the change to make for an error whose message does not contain it. The message may contain a key, so
// the parts are in the spelling of Redis.
func (p *preflight) advice(err error) string {
	text := err.Error()
	for _, known := range []struct{ part, advice string }{
		{"no permissions", p.rights()},
		{"No permissions", p.rights()},
		{"can't run this command", p.rights()}, // in a script
		{errNotHeard.Error(), p.rights() + "; of these +publish and the channels (&); behind a proxy: let it pass PUBLISH, SUBSCRIBE and messages"},
		{errNoNotice.Error(), `CONFIG SET notify-keyspace-events "Kghzxe" on every server, and the same in redis.conf`},
		{"WRONGPASS ", "give the Redis client the user and password of the server"},
		{"NOAUTH ", "give the Redis client the user and password of the server"},
		{"READONLY ", "give the Redis client the address of the master, or use redis.NewFailoverClient"},
		{"OOM ", "raise maxmemory, or let other data expire"},
		{"unknown command", "use an endpoint that allows this command: locks are scripts (EVAL, EVALSHA)"},
	} {
		if strings.Contains(text, known.part) {
			return known.advice
		}
	}
	return ""
}

func (p *preflight) rights() string {
	return "ACL SETUSER " + p.client.store.Username() + " " + p.report.Rights
}

// askServers checks the role and the policy of the masters and reports whether they accept writes.
func (p *preflight) askServers(ctx context.Context) (writable bool) {
	writable = true
	servers, err := p.client.store.Servers(ctx)
	if err != nil {
		p.add(PreflightCheck{Name: "INFO", Err: err, Unseen: true})
	}
	for _, s := range servers {
		if s.Err != nil {
			info := PreflightCheck{Name: "INFO of " + s.Addr, Err: s.Err, Unseen: true}
			if wire.Rejects(s.Err) {
				info.Advice = "allow +info to see the version, the role and the maxmemory-policy"
			}
			p.add(info)
			continue
		}
		p.report.Servers = append(p.report.Servers, s.Name+" at "+s.Addr)
		role, policy := PreflightCheck{Name: "role of " + s.Addr}, PreflightCheck{Name: "maxmemory-policy of " + s.Addr}
		switch s.Role {
		case "master":
		case "":
			role.Unseen, role.Err = true, errUnsaid
		default:
			role.Err = fmt.Errorf("it is a %s", s.Role) //nolint:err113 // a text for people
			writable = false
			role.Advice = "give the Redis client the address of the master, or use redis.NewFailoverClient"
		}
		switch s.Policy {
		case "noeviction":
		case "":
			policy.Unseen, policy.Err = true, errUnsaid
		default:
			policy.Err = fmt.Errorf("%s evicts locks when maxmemory (%d bytes; 0 means no limit) is reached", s.Policy, s.MaxBytes) //nolint:err113 // as above
			policy.Advice = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
		}
		p.add(role)
		p.add(policy)
	}
	return writable
}

// preflightLease is the longest lease of a probe, which is renewed after a third of it.
const preflightLease = 6 * time.Second

// preflightKeys is how many keys the probe of a MultiLock has. If a proxy routes each key to one of two
// servers, one preflight in 32,768 has all keys on one server.
const preflightKeys = 16

var (
	errUnsaid     = errors.New("INFO does not show it")
	errNotHeard   = errors.New("no message of the release has arrived, so that waiters poll")
	errNoNotice   = errors.New("no keyspace notification of the release has arrived, so that WithLossNotice has no effect")
	errNotOut     = errors.New("another client got the lock while it was held")
	errNoToken    = errors.New("the lock came without a fencing token")
	errElsewhere  = errors.New("the server of this key does not know the lock: the endpoint sends a script to the server of its first key")
	errNotRenewed = errors.New("the lease was not renewed in time")
)

// probe tries one kind of lock with two clients, which share the store of the probed client.
type probe struct {
	*redisstore.Kind

	client     *Client
	name       string
	waitTime   time.Duration
	one, other *Client
	contended  chan struct{}
	renewed    chan error
	checks     []PreflightCheck
}

func (p *probe) run(ctx context.Context) {
	p.name = "interlock_preflight:" + p.Name + ":" + string(identity.NewID()[:8])
	p.waitTime = 8 * p.client.cfg.backendTimeout
	p.contended, p.renewed = make(chan struct{}, 1), make(chan error, 1)
	p.one, p.other = p.newClient(), p.newClient()
	names := []string{p.name}
	p.tryKind(ctx)
	if p.Kind == p.client.kinds.Reentrant {
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

// forget deletes a probe. If the probe never expires, forget returns the command that deletes it.
func (p *probe) forget(ctx context.Context, name string) (removal string, err error) {
	key, err := p.lock(name).keyOf(name)
	if err != nil {
		return "", err
	}
	if p.Counts() {
		removal = "DEL " + key
	}
	ctx, cancel := context.WithTimeout(ctx, p.client.cfg.backendTimeout)
	defer cancel()
	return removal, p.client.store.Forget(ctx, p.Kind, key)
}

// lock returns a lock of the kind on the probed client.
func (p *probe) lock(name string) Lock { return Lock{client: p.client, kind: p.Kind, name: name} }

// newClient returns a client with the configuration of the probed client, but without its observers.
func (p *probe) newClient() *Client {
	cfg := p.client.cfg
	cfg.watchdog = min(cfg.watchdog, preflightLease)
	cfg.observers = observers{}
	cfg.observers.add(&Observer{
		Contention: func(context.Context, Contention) { trySend(p.contended, struct{}{}) },
		Renewal:    func(_ context.Context, r Renewal) { trySend(p.renewed, r.Err) },
		// Failures are in the report, not in the log.
		AcquireEnd: func(context.Context, AcquireResult) {},
		HoldEnd:    func(context.Context, HoldResult) {},
		Loss:       func(context.Context, Loss) {},
		Leak:       func(context.Context, HoldInfo) {},
		Backend:    func(context.Context, BackendChange) {},
	})
	c := newClient(cfg)
	c.unobserved.polling.Do(func() {}) // the report shows it
	c.borrowed = true
	c.startOn(p.client.store)
	return c
}

// trySend sends v unless the channel is full.
func trySend[T any](to chan T, v T) {
	select {
	case to <- v:
	default:
	}
}

// try runs one step, records its result, and reports whether it works.
func (p *probe) try(name string, step func() error) bool {
	check := PreflightCheck{Kind: Kind(p.Name), Name: name, Err: step()}
	if errors.Is(check.Err, errElsewhere) {
		check.Advice = "use redis.NewClusterClient if the endpoint is a Cluster's, or an endpoint of one server; otherwise use no MultiLock and no list of keys"
	}
	p.checks = append(p.checks, check)
	return check.Err == nil
}

// tryKind runs the steps in the life of a lock, with two clients. After a failure it skips the later steps, because
// their results would mean nothing.
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
			held, end, err = p.take(ctx, p.one, WaitTime(p.waitTime)) //nolint:fatcontext // the steps after it need it
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
			_, leave, err := p.take(held, p.one, WaitTime(p.waitTime))
			if err != nil {
				return err
			}
			return leave(ctx)
		}},
		{"renew", leased, func() error { return p.awaitRenewal(ctx) }},
		{"hand off", leased && p.Shares != redisstore.Unlimited, func() error {
			err := p.whileWaiting(func() (err error) {
				_, next, err = p.take(ctx, p.one, WaitTime(p.waitTime))
				return err
			}, func() error { return end(ctx) })
			end = next
			return err
		}},
		{"notify", true, func() error {
			return p.whileWaiting(func() (err error) {
				next, err = p.rival(ctx, WaitTime(p.waitTime))
				return err
			}, func() error { return p.hear(ctx, func() error { return end(ctx) }) })
		}},
		{"release", true, func() error { return next(ctx) }},
		{"notice of a loss", leased && p.client.cfg.lossNotice, func() error {
			_, end, err := p.take(ctx, p.one, WaitTime(p.waitTime))
			if err != nil {
				return err
			}
			return p.hearNotice(ctx, func() error { return end(ctx) })
		}},
	}
	for _, step := range steps {
		if step.has && !p.try(step.name, step.do) {
			return
		}
	}
}

// take takes the lock with a client. It returns a function that gives the lock back.
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

// acquire takes a lock with a lease. A semaphore has one permit.
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

// whileWaiting calls wait and calls then as soon as wait waits for the lock. It returns when both have returned.
func (p *probe) whileWaiting(wait, then func() error) error {
	select {
	case <-p.contended: // left over from an earlier step
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

// hear calls release and waits for the message to the waiter of the other client.
func (p *probe) hear(ctx context.Context, release func() error) error {
	key, err := p.lock(p.name).keyOf(p.name)
	if err != nil || p.Channel(key) == "" {
		return errors.Join(err, release())
	}
	field := ""
	if p.Waits == redisstore.InRedis { // each waiter has its own channel
		if field, err = p.client.store.FirstInQueue(ctx, key); err != nil {
			return errors.Join(err, release())
		}
	}
	messages, err := p.client.store.Subscriptions(ctx, key)
	if err != nil {
		return errors.Join(err, release())
	}
	return p.listen(ctx, messages, p.WaiterChannel(key, field), release)
}

// hearNotice calls release and waits for the keyspace notification of it.
func (p *probe) hearNotice(ctx context.Context, release func() error) error {
	key, err := p.lock(p.name).keyOf(p.name)
	if err != nil {
		return errors.Join(err, release())
	}
	messages, err := p.client.store.Notices(ctx, key)
	if err != nil {
		return errors.Join(err, release())
	}
	err = p.listen(ctx, messages, p.client.store.NoticeChannel(redisstore.Claim{Kind: p.Kind, Key: key}), release)
	if errors.Is(err, errNotHeard) {
		return errNoNotice
	}
	return err
}

// listen subscribes to a channel, calls release and waits for a message. It closes the connection.
func (p *probe) listen(ctx context.Context, messages *redisstore.Subscriptions, channel string, release func() error) error {
	defer messages.Close() //nolint:errcheck // it is only read
	messages.Subscribe(ctx, []string{channel})
	if err := p.await(ctx, messages, redisstore.Subscribed); err != nil {
		return errors.Join(err, release())
	}
	if err := release(); err != nil {
		return err
	}
	return p.await(ctx, messages, redisstore.Message)
}

// await waits for an event on a channel.
func (p *probe) await(ctx context.Context, messages *redisstore.Subscriptions, kind redisstore.EventKind) error {
	for {
		switch event, err := messages.Receive(ctx, p.client.cfg.backendTimeout); {
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

// awaitRenewal waits for one renewal of the lease. A renewal that got no answer is tried again, as for any lock.
func (p *probe) awaitRenewal(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, preflightLease, errNotRenewed)
	defer cancel()
	for failed := error(nil); ; {
		select {
		case failed = <-p.renewed:
			if failed == nil || wire.Rejects(failed) {
				return failed
			}
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), failed)
		}
	}
}

// trySeveral takes several keys at once and then asks for the state of each key separately.
func (p *probe) trySeveral(ctx context.Context, names []string) {
	var hold *Hold
	works := p.try("several keys", func() (err error) {
		if _, hold, err = p.one.MultiLock(names...).Acquire(ctx, WaitTime(p.waitTime)); err != nil {
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
	case <-p.renewed: //nolint:errcheck // left over from the single key
	default:
	}
	if p.try("renew several keys", func() error { return p.awaitRenewal(ctx) }) {
		p.try("release several keys", func() error { return hold.Release(ctx) })
	}
}
