package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// PreflightReport is the result of [Client.Preflight]. Its texts name keys, channels, servers and
// the Redis user: they are for operators.
type PreflightReport struct {
	// Servers are the masters, such as "redis 7.0.15 at 10.0.0.7:6379". Empty if the user may
	// not run INFO.
	Servers []string

	// Rights are the rules of ACL SETUSER that suffice for the kinds of the preflight. With a
	// [WithNameMapper], which makes keys that no prefix describes, they allow all keys. For a new
	// user of Redis 6.2, which has all channels, write resetchannels in front.
	Rights string

	// Checks are the steps that were tried, for each kind of lock in their order.
	Checks []PreflightCheck
}

// PreflightCheck is one step of a preflight.
type PreflightCheck struct {
	// Kind is the kind of lock that takes this step; empty: every kind needs it.
	Kind Kind

	// Name says what was tried, such as "acquire" or "notify".
	Name string

	// Err is why it does not work; nil if it works.
	Err error

	// Unseen says that it could not be tried, for the reason in Err.
	Unseen bool

	// Advice is what to change, such as a line of ACL or of redis.conf, also where a check that works
	// is most likely not meant. May be empty.
	Advice string
}

// Err joins what does not work; nil if all that was tried works.
func (r PreflightReport) Err() error {
	var errs []error
	for _, c := range r.Checks {
		if c.Err != nil && !c.Unseen {
			errs = append(errs, fmt.Errorf("%s: %w", c.title(), c.Err))
		}
	}
	return errors.Join(errs...)
}

// String returns a table of the checks: each works, fails or is unseen. The advice of a check is in
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

// Preflight tries with probe locks, whose names begin with "interlock_preflight:", all that the
// given kinds of lock need from this Redis: an acquisition, which keeps another client out, a
// re-entry, a renewal, a hand-off to a waiter of the same client, a message to a waiter of
// another one, and the release. Without kinds it tries [KindReentrant]. For that kind it also takes a
// MultiLock of several slots, which shows a proxy that sends a script to the server of its first
// key: MultiLocks and lists of keys do not exclude others there. It asks the masters for their
// role and their maxmemory-policy, and has the warnings of [Client.Wire]. Probe keys are deleted at the end. If
// that fails, they expire within seconds, except for plain semaphores and latches: the report has the
// command that deletes those.
//
// It is for a deployment test, a start-up that may take seconds, and `interlock doctor`: it takes
// 2 s or more, because it waits for a renewal, and about a hundred commands for each kind.
// Observers do not see the probes. The report has what it finds, also that Redis does not
// answer. The error is [ErrInvalid] for a kind that is not of one client, or [ErrClosed].
func (c *Client) Preflight(ctx context.Context, kinds ...Kind) (PreflightReport, error) {
	if len(kinds) == 0 {
		kinds = []Kind{KindReentrant}
	}
	probed := make([]*redisstore.Kind, len(kinds))
	for i, name := range kinds {
		at := slices.IndexFunc(c.kinds.All(), func(k *redisstore.Kind) bool { return k.Name == string(name) })
		if at < 0 {
			return PreflightReport{}, invalidf("Preflight: %q is not a kind of lock of one client: write one of %s", name, c.kindNames())
		}
		probed[i] = c.kinds.All()[at]
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
		probes[i] = &probe{Kind: kind, of: c}
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

func (c *Client) kindNames() string {
	var names []string
	for _, k := range c.kinds.All() {
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

// checkPrefix advises a separator for a prefix that ends in a letter or a digit. Such a prefix works,
// and keys of two prefixes may be the same: "shop" + "s:42" is "shops:" + "42".
func (p *preflight) checkPrefix(prefix string) {
	last, _ := utf8.DecodeLastRuneInString(prefix)
	if prefix == "" || !unicode.IsLetter(last) && !unicode.IsDigit(last) {
		return
	}
	p.add(PreflightCheck{
		Name:   fmt.Sprintf("prefix %q", prefix),
		Advice: fmt.Sprintf("the key of lock %q is %q: write the prefix %q, unless that is meant", "order:42", prefix+"order:42", prefix+":"),
	})
}

// advice returns what to change for an error whose text does not say that itself. The text may contain a key, so
// the parts are spelled as Redis spells them.
func (p *preflight) advice(err error) string {
	text := err.Error()
	for _, known := range []struct{ part, advice string }{
		{"no permissions", p.rights()},
		{"No permissions", p.rights()},
		{"can't run this command", p.rights()}, // of a script
		{errNotHeard.Error(), p.rights() + "; of these +publish and the channels (&); behind a proxy: let it pass PUBLISH, SUBSCRIBE and messages"},
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

// askServers checks what the masters say of themselves, and reports whether they take writes.
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
