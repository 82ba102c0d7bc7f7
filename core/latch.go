package core

import (
	"context"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// CountDownLatch is a count that opens for all who wait when it is down to zero. It comes from a
// [Client]: the zero value cannot be used.
type CountDownLatch struct{ counted }

// CountDownLatch names a latch: Redisson's RCountDownLatch, with which it shares the layout in
// Redis. It is open as long as it has no count. Operations are kept beside it as those of
// [Client.PlainSemaphore]. In a Cluster a name with braces is [ErrInvalid]: Redisson's channel would be
// in another slot.
func (c *Client) CountDownLatch(name string) CountDownLatch {
	return CountDownLatch{counted{Lock{client: c, kind: c.kinds.Latch, name: name}}}
}

// TrySetCount closes a latch that is open, and reports whether it did: n is how often it has to be
// counted down. It is attempted as [Semaphore.TrySetPermits].
func (l CountDownLatch) TrySetCount(ctx context.Context, n int) (bool, error) {
	if err := checkCount("TrySetCount", n, 1); err != nil {
		return false, err
	}
	return l.operate(ctx, "begin", n)
}

// CountDown counts one down. The last one opens the latch; of one that is open it changes nothing.
// It is attempted even when ctx has ended, and goes on after [ErrUnavailable] as
// [Semaphore.TrySetPermits] does: do not repeat it unless the error says that it was not executed.
func (l CountDownLatch) CountDown(ctx context.Context) error {
	_, err := l.operate(ctx, "down", 1)
	return err
}

// Count is how often the latch has to be counted down until it opens. It asks the master.
func (l CountDownLatch) Count(ctx context.Context) (int, error) {
	counts, err := l.counts(ctx)
	return counts.Left, err
}

// Await waits until the latch is open, as [WaitTime] says. All who wait go on together, each after
// a look of its own. The errors are those of [Lock.Acquire]: a latch that stays closed is
// [ErrNotAcquired].
func (l CountDownLatch) Await(ctx context.Context, opts ...AcquireOption) error {
	_, err := l.lock.acquire(ctx, opts)
	return err
}

// Delete opens the latch, whatever its count, and reports whether it was closed. It deletes no lock, but
// does not tell a count from another, such as the number of a semaphore that other clients have in use.
func (l CountDownLatch) Delete(ctx context.Context) (bool, error) {
	key, err := l.lock.client.key(l.lock.kind, l.lock.name)
	if err != nil {
		return false, err
	}
	if err := l.ofItsKind(key); err != nil {
		return false, err
	}
	deleted, _, err := ask(ctx, l.lock, "Delete", (*redisstore.Store).Force)
	return deleted, err
}
