package redisstore

import "time"

// ModeField is the field that contains the mode in the hash of a read/write lock. It comes before the
// holders. Kinds with another layout treat such a hash as a lock of another client.
const ModeField = "mode"

// LongestMark is the longest time for which the mark of a waiting writer keeps out new readers
// (longestMark in rw_acquire_write.lua). The next attempt of the writer has to come sooner.
const LongestMark = 900 * time.Millisecond

// newReadWrite returns the two kinds of RReadWriteLock, which share one key.
//
//	key                              hash: "mode", which is "read" or "write"; a field with a hold
//	                                 count for each reader; a field that ends in ":write" for the
//	                                 writer; "interlock_until", the end of the writer's lease while
//	                                 readers inside it make the lock last longer
//	{key}:<reader>:rwlock_timeout:n  exists as long as the n-th hold of a reader
//	{key}:interlock_writer           mark of a writer that waits for readers
//	channel                          redisson_rwlock:{key}; "1" wakes all waiters of a client, "0" one
//
// The scripts declare the lock only, because a script over several keys fails while their slot moves.
// All begin with rw.lua. Scripts that examine the leases of readers follow rw_others.lua. Scripts that
// change a lease follow rw_outlast.lua and rw_lasts.lua.
//
//	acquire:  rw_acquire_read, rw_acquire_write  a reader enters beside readers, a writer only alone
//	force:    rw_force_read, rw_force_write      ends all holds of one mode
//	others:   rw_sethold, rw_renew, rw_refresh, rw_handoff, rw_release, rw_state, rw_clear
func newReadWrite() (read, write *Kind) {
	operation := func(name string) script { return scriptOf("rw", "rw_others", "rw_"+name) }
	leasing := func(name string) script { return scriptOf("rw", "rw_others", "rw_outlast", "rw_lasts", "rw_"+name) }
	rw := Kind{Family: "read/write lock", names: names{channel: ReadWriteChannel}, scripts: scripts{
		hold: leasing("sethold"), renew: leasing("renew"), refresh: leasing("refresh"),
		handOff: scriptOf("token", "rw", "rw_others", "rw_outlast", "rw_lasts", "rw_handoff"),
		release: operation("release"), state: operation("state"), clear: operation("clear"),
	}}
	reader, writer := rw, rw

	reader.Name, reader.noun, reader.Shares = "read", "read lock", Unlimited
	reader.terms = func(args []any, t *Terms) []any { return append(args, t.Under) }
	reader.acquire, reader.force = scriptOf("rw", "rw_outlast", "rw_acquire_read"), scriptOf("rw_force_read", "holder", "rw", "rw_others", "rw_force")

	writer.Name, writer.noun, writer.Waits, writer.Suffix = "write", "write lock", Announced, ":write"
	writer.terms = func(args []any, t *Terms) []any { return append(args, t.Wait.Milliseconds()) }
	writer.acquire, writer.force = scriptOf("token", "rw", "rw_others", "rw_acquire_write"), scriptOf("rw_force_write", "holder", "rw", "rw_others", "rw_force")
	return &reader, &writer
}
