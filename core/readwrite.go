package core

// ReadLock names the lock of the readers of name, which is shared with [Client.WriteLock]: any
// number of readers hold it at a time, or one writer. It is Redisson's RReadWriteLock.readLock,
// with which it shares the layout in Redis. Every reader has a lease of its own, with a key of
// its own beside the lock; a reader that has died keeps nobody out when its lease is over,
// whatever the others do. One of Redisson's without those keys may live, since some versions do not
// renew them all: it keeps writers out as long as the lock lasts, up to half a minute after others.
//
// Readers and writers of one client queue together, first come first served; readers that are
// next to each other get in together. Writers do not starve, in whatever process: when one
// waits for readers, no more of them are let in, also by a [WaitTime] of 0, until it has had its
// turn, or 0.9 s after it gave up. After a writer the readers that wait have theirs. Redisson's
// readers know nothing of that: they pass a writer that waits.
//
// A reader cannot become a writer: who holds the lock as a reader, by its context, and wants
// to write gets [ErrInvalid] at once, since another reader may want the same. A writer can read:
// with the context of the write lock the read lock is acquired in one round trip, by whoever
// waits. It is another hold, which goes on when the write lock is released, as a reader's. Its
// context ends with the one that it was acquired with; so one that is to go on is moved by
// [Hold.Handover]:
//
//	writing, w, err := locks.WriteLock("map").Acquire(ctx)
//	…
//	_, r, err := locks.ReadLock("map").Acquire(writing)
//	…
//	reading, r := r.Handover()
//	err = w.Release(ctx) // waiting readers get in, writers do not
//
// Each of the two has its own lease, and neither makes that of the other longer or shorter. When
// the lease of the writer is over, or it has left ([Hold.Leave]), the reader inside goes on as one
// whose writer was released. Nobody notifies others of that moment: waiting readers of this
// library find out by themselves, those of Redisson when the reader ends. Who acquires the read
// lock with the context of a writer that was taken away in Redis gets [ErrLost].
//
// A plain lock of the name is in the way of readers and writers. It is not in the way of
// Redisson's, which does not see it: one name is for one kind of lock. [WithToken] is not for
// readers. [Lock.State] tells the readers and the writer, whose field ends in ":write";
// [Lock.ForceRelease] of the read lock frees it from readers only, and that of the write lock from
// a writer, with the readers inside of it.
func (c *Client) ReadLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Read, name: name}
}

// WriteLock names the lock of the writers of name: see [Client.ReadLock]. It is Redisson's
// RReadWriteLock.writeLock. A writer is alone. In a run the lock is handed off from writer
// to writer of the client. An end of its lease that is put off, by whatever hold of it,
// is never brought forward again by another.
func (c *Client) WriteLock(name string) Lock {
	return Lock{client: c, kind: c.kinds.Write, name: name}
}
