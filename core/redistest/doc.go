// Package redistest is a Redis inside the process. It is for tests of code that takes locks, and for demos on
// machines without a Redis server.
//
//	func TestPay_Busy(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			srv := redistest.New(t)
//			locks, err := core.New(srv.Client(), core.WithPrefix("shop:"))
//			if err != nil {
//				t.Fatal(err)
//			}
//			t.Cleanup(func() { _ = locks.Close(t.Context()) }) // t.Context() is canceled by then, so Close waits for no hold
//
//			srv.Take("shop:order:pay:42", time.Hour) // another client holds the lock
//			err = pay(t.Context(), locks, "42")
//			if !errors.Is(err, core.ErrNotAcquired) {
//				t.Errorf("got %v, want a busy order", err)
//			}
//		})
//	}
//
// [New] is for tests. It needs no port, is closed with the test, and works inside a [testing/synctest] bubble.
// Keys expire by the clock of the bubble, so a wait of ten seconds, or a lease of thirty, takes no time. [Start]
// listens on a TCP port instead, for demos and for several processes.
//
// # In a bubble
//
// Create the server and the client inside the bubble, and close the client with a context that has a deadline or is
// canceled: the watchdog renews a forgotten hold for ever, and Close waits for that hold. Without Close the bubble
// fails with "main bubble goroutine has exited but blocked goroutines remain".
//
// The code under test needs a wait time, from [core.WaitTime] or from its rule. Without one, package core waits
// until the context is canceled, in the example above for an hour.
//
// Open a rule file with ruleset.Open, and apply a change with the Reload of the result. With ruleset.Watch a change
// comes into force after a second by the clock of the bubble.
//
// # Faults
//
// A [Server] can do to a program what a real Redis rarely does on demand. It can hold a key as another client
// ([Server.Take], [Server.Free]), end a lease ([Server.Expire]), be unreachable ([Server.Down], [Server.Up]), and
// execute a command without answering ([Server.LoseNextReply], [Server.LoseReply]). It can answer as if it had
// replicas ([Server.Replicas]).
//
// The server has no keyspace notifications. For [core.WithLossNotice], Take, Free and Expire publish the notification of
// the key. Commands of clients, and leases that end by the clock, publish none. So core.Client.Preflight reports for a client
// with WithLossNotice that no notification arrived: test Preflight on a real Redis.
//
// Keys are full Redis keys: for a lock client with a prefix, the prefix belongs to the key. ([core.Held] and
// [core.MustHold] take the name without it.) Take is for locks. To leave no permit of a semaphore free, acquire
// the permits with a second client.
//
// # Not for production
//
// The server is built on miniredis, a model of Redis written in Go. Every script runs in a new Lua state: at best
// 8,000 scripts a second, whatever the concurrency, with 200 kB of garbage each. A real Redis runs ten times as
// many and leaves no garbage. All data is in the process and is lost with it, other machines cannot share it, and
// there are no cluster, no replication and no sharded pub/sub. In FIPS mode (GODEBUG=fips140) the server works only
// outside of testing/synctest bubbles. Also run tests that pass here on a real Redis.
package redistest
