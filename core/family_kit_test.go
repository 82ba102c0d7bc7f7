package core_test

import (
	"context"
	"errors"
	"strings"

	"github.com/interlock-go/interlock/core"
)

// member is a kind of the family as a test of all kinds sees it: somebody has it, and somebody
// else who wants it has to wait until it is given back.
type member struct {
	kind    string
	channel func(key string) string // what the channels of its waiters begin with; nil: there are none
	have    func(ctx context.Context, locks *core.Client, key string) (has, error)
	want    func(ctx context.Context, locks *core.Client, key string) (has, error)

	untagged bool // its names have no braces
	// What is about several keys, which have to be on one node for that.
	takesSeveral, renewsSeveral, givesSeveral bool
}

// has is what somebody has.
type has struct {
	ctx      context.Context //nolint:containedctx // that of the hold
	hold     *core.Hold      // nil where nothing is held
	giveBack func() error
}

// family are all kinds that one Redis gives.
func family() []member {
	permits := func(locks *core.Client, key string) core.Lock { return locks.Semaphore(key, 1).Lock }
	return []member{
		{kind: "reentrant", channel: channelOf, have: twice((*core.Client).Lock), want: once((*core.Client).Lock)},
		{kind: "fenced", channel: channelOf, have: twice((*core.Client).FencedLock), want: once((*core.Client).FencedLock), takesSeveral: true},
		{kind: "spin", have: twice((*core.Client).SpinLock), want: once((*core.Client).SpinLock)},
		{kind: "fair", channel: channelOf, have: twice((*core.Client).FairLock), want: once((*core.Client).FairLock), takesSeveral: true},
		{kind: "read", channel: rwChannelOf, have: twice((*core.Client).ReadLock), want: once((*core.Client).WriteLock), renewsSeveral: true},
		{kind: "write", channel: rwChannelOf, have: twice((*core.Client).WriteLock), want: once((*core.Client).ReadLock)},
		{kind: "multi", channel: channelOf, have: twice(multiOf), want: once(multiOf), takesSeveral: true},
		{
			kind: "permit", channel: func(key string) string { return "redisson_sc:" + inSlotOf(key) },
			have: once(permits), want: once(permits), takesSeveral: true, givesSeveral: true,
		},
		{
			kind: "semaphore", channel: func(key string) string { return "redisson_sc:" + inSlotOf(key) },
			have: havePlain, want: wantPlain, takesSeveral: true, givesSeveral: true,
		},
		{
			kind: "latch", channel: func(key string) string { return "redisson_countdownlatch__channel__{" + key + "}" },
			have: haveLatch, want: wantLatch, untagged: true, givesSeveral: true,
		},
	}
}

// once acquires a lock.
func once(lock func(*core.Client, string) core.Lock) func(context.Context, *core.Client, string) (has, error) {
	return func(ctx context.Context, locks *core.Client, key string) (has, error) {
		held, hold, err := lock(locks, key).Acquire(ctx)
		return has{held, hold, func() error { return hold.Release(context.Background()) }}, err
	}
}

// twice enters it again, so that a release is a partial one first.
func twice(lock func(*core.Client, string) core.Lock) func(context.Context, *core.Client, string) (has, error) {
	return func(ctx context.Context, locks *core.Client, key string) (has, error) {
		outer, err := once(lock)(ctx, locks, key)
		if err != nil {
			return has{}, err
		}
		inner, err := once(lock)(outer.ctx, locks, key)
		if err != nil {
			return has{}, errors.Join(err, outer.giveBack())
		}
		return has{outer.ctx, outer.hold, func() error { return errors.Join(inner.giveBack(), outer.giveBack()) }}, nil
	}
}

// multiOf are three locks in the slot of a key.
func multiOf(locks *core.Client, key string) core.Lock {
	tag := inSlotOf(key)
	tag = tag[strings.Index(tag, "{") : strings.Index(tag, "}")+1]
	return locks.MultiLock(key, tag+":b", tag+":c")
}

// havePlain has the only permit of a semaphore without leases.
func havePlain(ctx context.Context, locks *core.Client, key string) (has, error) {
	if _, err := locks.PlainSemaphore(key).TrySetPermits(ctx, 1); err != nil {
		return has{}, err
	}
	return wantPlain(ctx, locks, key)
}

func wantPlain(ctx context.Context, locks *core.Client, key string) (has, error) {
	s := locks.PlainSemaphore(key)
	return has{giveBack: func() error { return s.Release(context.Background(), 1) }}, s.Acquire(ctx, 1)
}

// haveLatch closes a latch, and wantLatch waits until it is open.
func haveLatch(ctx context.Context, locks *core.Client, key string) (has, error) {
	l := locks.CountDownLatch(key)
	_, err := l.TrySetCount(ctx, 1)
	return has{giveBack: func() error { return l.CountDown(context.Background()) }}, err
}

func wantLatch(ctx context.Context, locks *core.Client, key string) (has, error) {
	return has{giveBack: func() error { return nil }}, locks.CountDownLatch(key).Await(ctx)
}
