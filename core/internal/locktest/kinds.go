package locktest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core"
)

// Kind describes a kind of lock for the tests of all kinds. A kind without holders is called a count: the semaphore
// without leases, and the latch.
type Kind struct {
	Name    string
	Scripts string // prefix of the names of its scripts
	Acquire string // name of the script that acquires; "acquire" by default
	Nodes   int    // independent servers that one lock needs

	// Lock returns the lock with a name. It gets one client for each server. Rival returns a lock that a holder of Lock
	// excludes. Both are nil for a count.
	Lock, Rival func(clients []*core.Client, key string) core.Lock

	Channel func(key string) string // prefix of the channels of its waiters; nil: it has no messages

	IsReentrant bool
	HasTokens   bool // WithToken draws a fencing token
	HasPermits  bool
	IsMinor     bool // differs little from the reentrant lock; EachKind omits it with -short
	IsUntagged  bool // the names of its keys have no braces

	// Whether taking, renewing or giving back uses several keys, which have to be on one node.
	TakesSeveral, RenewsSeveral, GivesSeveral bool

	take, want func(ctx context.Context, locks *core.Client, key string) (Taken, error) // set if Lock is nil
}

// Kinds returns all kinds of package core, and the MultiLock, which is a reentrant lock of several keys. The group lock
// has three values.
func Kinds() []Kind {
	plainChannel := func(key string) string { return "redisson_sc:" + Tagged(key) }
	latchChannel := func(key string) string { return "redisson_countdownlatch__channel__{" + key + "}" }
	reentrant, fenced, spin := onOne((*core.Client).Lock), onOne((*core.Client).FencedLock), onOne((*core.Client).SpinLock)
	fair, reads, writes := onOne((*core.Client).FairLock), onOne((*core.Client).ReadLock), onOne((*core.Client).WriteLock)
	multi, group, permit := onOne(MultiLockOf), onOne(GroupLockOf), onOne(func(c *core.Client, key string) core.Lock { return c.Semaphore(key, 1).Lock })
	redlock := func(clients []*core.Client, key string) core.Lock { return core.Redlock(key, clients...) }
	return []Kind{
		{Name: "reentrant", Nodes: 1, Lock: reentrant, Rival: reentrant, Channel: ChannelOf, IsReentrant: true, HasTokens: true},
		{Name: "fenced", IsMinor: true, Scripts: "fenced/", Nodes: 1, Lock: fenced, Rival: fenced, Channel: ChannelOf, IsReentrant: true, HasTokens: true, TakesSeveral: true},
		{Name: "spin", IsMinor: true, Scripts: "spin/", Nodes: 1, Lock: spin, Rival: spin, IsReentrant: true, HasTokens: true},
		{Name: "fair", Scripts: "fair/", Nodes: 1, Lock: fair, Rival: fair, Channel: ChannelOf, IsReentrant: true, HasTokens: true, TakesSeveral: true},
		{Name: "read", Scripts: "read/", Nodes: 1, Lock: reads, Rival: writes, Channel: ReadWriteChannelOf, IsReentrant: true, RenewsSeveral: true},
		{Name: "write", Scripts: "write/", Nodes: 1, Lock: writes, Rival: reads, Channel: ReadWriteChannelOf, IsReentrant: true, HasTokens: true},
		{Name: "multi", IsMinor: true, Acquire: "acquire_all", Nodes: 1, Lock: multi, Rival: multi, Channel: ChannelOf, IsReentrant: true, TakesSeveral: true},
		{Name: "group", IsMinor: true, Scripts: "group/", Acquire: "acquire_all", Nodes: 1, Lock: group, Rival: group, Channel: ChannelOf, IsReentrant: true},
		{
			Name: "permit", Scripts: "semaphore/", Nodes: 1, Lock: permit, Rival: permit, Channel: plainChannel, HasPermits: true,
			TakesSeveral: true, GivesSeveral: true,
		},
		{Name: "semaphore", Scripts: "plain_semaphore/", Nodes: 1, take: takePlain, want: wantPlain, Channel: plainChannel, TakesSeveral: true, GivesSeveral: true},
		{Name: "latch", Scripts: "latch/", Nodes: 1, take: closeLatch, want: awaitLatch, Channel: latchChannel, IsUntagged: true, GivesSeveral: true},
		{Name: "redlock", Nodes: 3, Lock: redlock, Rival: redlock, IsReentrant: true},
	}
}

// KindsOnOneServer returns the kinds that need one server.
func KindsOnOneServer() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k.Nodes > 1 })
}

// KindsWithHolders returns all kinds except the counts.
func KindsWithHolders() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return k.Lock == nil })
}

// KindsWithTokens returns the kinds that draw fencing tokens.
func KindsWithTokens() []Kind {
	return slices.DeleteFunc(Kinds(), func(k Kind) bool { return !k.HasTokens })
}

// KindNamed returns the kind with a name, if it exists.
func KindNamed(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds()[i], true
}

func onOne(lock func(*core.Client, string) core.Lock) func([]*core.Client, string) core.Lock {
	return func(clients []*core.Client, key string) core.Lock { return lock(clients[0], key) }
}

// Taken is a lock that a caller holds, or a count that it changed.
type Taken struct {
	Ctx      context.Context //nolint:containedctx // of the hold
	Hold     *core.Hold      // nil for a count
	GiveBack func() error
}

// On returns a lock of a kind on one server.
func (k Kind) On(locks *core.Client, key string) core.Lock { return k.Lock([]*core.Client{locks}, key) }

// Take takes a lock of a kind on one server. It re-enters a reentrant lock, so that the first release is a partial one.
func (k Kind) Take(ctx context.Context, locks *core.Client, key string) (Taken, error) {
	if k.take != nil {
		return k.take(ctx, locks, key)
	}
	lock := k.On(locks, key)
	outer, err := takeOnce(ctx, lock)
	if err != nil || !k.IsReentrant {
		return outer, err
	}
	inner, err := takeOnce(outer.Ctx, lock)
	if err != nil {
		return Taken{}, errors.Join(err, outer.GiveBack())
	}
	return Taken{outer.Ctx, outer.Hold, func() error { return errors.Join(inner.GiveBack(), outer.GiveBack()) }}, nil
}

// Want acquires a lock that a caller of Take excludes. It waits until that caller gives its lock back.
func (k Kind) Want(ctx context.Context, locks *core.Client, key string) (Taken, error) {
	if k.want != nil {
		return k.want(ctx, locks, key)
	}
	return takeOnce(ctx, k.Rival([]*core.Client{locks}, key))
}

func takeOnce(ctx context.Context, lock core.Lock) (Taken, error) {
	held, hold, err := lock.Acquire(ctx)
	return Taken{held, hold, func() error { return hold.Release(context.Background()) }}, err
}

// MultiLockOf returns a MultiLock of three names in the slot of a key.
func MultiLockOf(locks *core.Client, key string) core.Lock {
	tag := Tagged(key)
	tag = tag[strings.Index(tag, "{") : strings.Index(tag, "}")+1]
	return locks.MultiLock(key, tag+":b", tag+":c")
}

// GroupLockOf returns a lock of three values of a group.
func GroupLockOf(locks *core.Client, group string) core.Lock {
	return locks.GroupLock(group, "a", "b", "c")
}

// takePlain takes the only permit of a semaphore without leases.
func takePlain(ctx context.Context, locks *core.Client, key string) (Taken, error) {
	if _, err := locks.PlainSemaphore(key).TrySetPermits(ctx, 1); err != nil {
		return Taken{}, err
	}
	return wantPlain(ctx, locks, key)
}

func wantPlain(ctx context.Context, locks *core.Client, key string) (Taken, error) {
	s := locks.PlainSemaphore(key)
	return Taken{GiveBack: func() error { return s.Release(context.Background(), 1) }}, s.Acquire(ctx, 1)
}

// closeLatch closes a latch, and awaitLatch waits until it is open.
func closeLatch(ctx context.Context, locks *core.Client, key string) (Taken, error) {
	l := locks.CountDownLatch(key)
	_, err := l.TrySetCount(ctx, 1)
	return Taken{GiveBack: func() error { return l.CountDown(context.Background()) }}, err
}

func awaitLatch(ctx context.Context, locks *core.Client, key string) (Taken, error) {
	return Taken{GiveBack: func() error { return nil }}, locks.CountDownLatch(key).Await(ctx)
}
