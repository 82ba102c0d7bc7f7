// Package redistest is a Redis inside the process: for tests of code that takes
// locks, and for demos on machines without a Redis server.
//
//	func TestPay_Busy(t *testing.T) {
//		srv := redistest.New(t)
//		srv.Take("order:42", time.Minute) // somebody else holds the lock
//		// … run the code under test with srv.Client(), expect "busy"
//	}
//
// [New] is for tests. It needs no port, is closed with the test, and works inside a
// [testing/synctest] bubble: keys expire by the clock of the bubble, so that a test
// of a 30-second lease takes no time. [Start] listens on a TCP port instead, for
// demos and for several processes.
//
// A [Server] can do to a program what a real Redis rarely does on demand: hold a key
// as a stranger ([Server.Take], [Server.Free]), end a lease ([Server.Expire]), be
// unreachable ([Server.Down], [Server.Up]), and execute a command without answering
// ([Server.LoseNextReply], [Server.LoseReply]). It can answer as if it had replicas
// ([Server.Replicas]). Keys are full Redis keys: of a lock
// client with a prefix, the prefix belongs to the key.
//
// # Not for production
//
// Behind it is miniredis, a model of Redis written in Go. Every script runs in a new
// Lua state: at best 8,000 scripts a second, whatever the concurrency, with 200 kB of
// garbage each; a real Redis runs ten times as many and leaves none. All data is in
// the process and gone with it, other machines share nothing, and there is no
// cluster, no replication and no sharded pub/sub. What passes here should be run on
// a real Redis too.
package redistest
