// Package redistest is a Redis inside the process: for tests of code that takes
// locks, and for demos on machines without a Redis server.
//
//	func TestPay_Busy(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := redistest.New(t)
//			locks, err := core.New(srv.Client(), core.WithPrefix("shop:"))
//			if err != nil {
//				t.Fatal(err)
//			}
//			t.Cleanup(func() { _ = locks.Close(t.Context()) }) // when the test is over: it waits for no hold that was left
//
//			srv.Take("shop:order:pay:42", time.Hour) // somebody else holds the lock
//			err = pay(t.Context(), locks, "42")
//			if !errors.Is(err, core.ErrNotAcquired) {
//				t.Errorf("got %v, want a busy order", err)
//			}
//		})
//	}
//
// [New] is for tests. It needs no port, is closed with the test, and works inside a
// [testing/synctest] bubble: keys expire by the clock of the bubble, so that a wait of ten
// seconds, or a lease of thirty, takes no time. [Start] listens on a TCP port instead, for
// demos and for several processes.
//
// # In a bubble
//
// Make the server and the client inside, and close the client, with a context that ends: a
// hold that was left is renewed for ever, and Close waits for it. Without it the bubble ends
// in "main bubble goroutine has exited but blocked goroutines remain".
//
// The code under test needs a wait time, by [core.WaitTime] or its rule: without one package
// core waits until the context ends, above for an hour.
//
// Give it a rule file by ruleset.Open, and take a change into force by Reload of what that
// gives. ruleset.Watch gives the same, but waits for the system to tell of changes: that stops
// the clock of the bubble, and the test hangs.
//
// # What it can do
//
// A [Server] can do to a program what a real Redis rarely does on demand: hold a key
// as a stranger ([Server.Take], [Server.Free]), end a lease ([Server.Expire]), be
// unreachable ([Server.Down], [Server.Up]), and execute a command without answering
// ([Server.LoseNextReply], [Server.LoseReply]). It can answer as if it had replicas
// ([Server.Replicas]). Keys are full Redis keys: of a lock client with a prefix, the prefix
// belongs to the key ([core.Held] and [core.MustHold] take the name without it). Take is for
// locks: to have no permit of a semaphore free, acquire them by a second client.
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
