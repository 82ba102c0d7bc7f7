package core

// FairLock names a lock that goes to who has waited longest, in whatever process and language:
// Redisson's RedissonFairLock, with which it shares the layout in Redis. Each waiter stands in a
// queue in Redis and gets messages for it alone; so callers of one client do not pass the lock on,
// and a lock that is wanted costs some round trips more than [Client.Lock]. One attempt
// ([WaitTime] 0) takes no place in the queue, and fails while others are in it.
//
// A waiter that goes away leaves the queue within milliseconds. One whose process has died is
// passed over after 0.75 s of a free lock, one that hangs after 1.1 s: by who waits behind it, or
// by callers with one attempt, the third of them at the latest, if they come within five minutes
// of each other. One of Redisson's that still seems to listen is passed over after half a minute,
// a minute where somebody looks after it less often than every 0.6 s. A waiter that was stopped
// for so long has lost its place and goes to the end.
//
// To be known as alive, who waits looks every 0.5 s; one who has 300 others before it looks every
// 1.25 s, and is passed over that much later if it has died. One whose ACL has none of the lock's
// channels keeps its place and has its turn (if a round trip takes it less than 0.2 s), but finds
// out late: the lock is free for up to 0.5 s first. So is one that is released by such a client.
//
// The queue lists each waiter with an allowance of 300 s, as Redisson does: its fairLockWaitTimeout
// must not be more. It must not share a name with another kind. Redis 6.0.6 is needed.
func (c *Client) FairLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Fair, name: name}
}
