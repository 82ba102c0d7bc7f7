package redisstore

// ModeField is in the hash of a read/write lock beside its holders, and in front of them: kinds of
// another layout see it in their way.
const ModeField = "mode"

// newReadWrite makes the two kinds of RReadWriteLock, which are one lock. A reader is one of
// several and has keys of its own, which it does not declare: a script over several keys fails
// while their slot moves.
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
	reader.acquire, reader.force = scriptOf("rw", "rw_outlast", "rw_acquire_read"), scriptOf("rw_force_read", "holder", "rw", "rw_force")

	writer.Name, writer.noun, writer.Waits, writer.Suffix = "write", "write lock", Announced, ":write"
	writer.terms = func(args []any, t *Terms) []any { return append(args, t.Wait.Milliseconds()) }
	writer.acquire, writer.force = scriptOf("token", "rw", "rw_others", "rw_acquire_write"), scriptOf("rw_force_write", "holder", "rw", "rw_force")
	return &reader, &writer
}
