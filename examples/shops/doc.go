// Package shops is a folder of small programs, one for each common use of a distributed
// lock:
//
//   - duplicate: a request that is submitted several times creates one order
//   - stock: many buyers of one item, but only as many sales as pieces
//   - cart: several items at once, in any order, without a deadlock
//   - batch: workers that share batches, core only
//   - likes: a toggle per user and post, and values with colons in a key
//   - cron: a job that one instance of the fleet runs
//   - transaction: the lock is outside the transaction
//   - prices: readers that do not wait for each other, and a writer that excludes them
//   - queue: first come, first served, in all instances
//   - reports: at most five at a time, in all instances
//   - nested: services that call each other under one lock
//
// Each program needs only Go. It shows the mistake and the correct way, checks its own
// results, and exits with 1 if a result is wrong:
//
//	go -C examples run ./shops/stock
//	go -C examples run ./shops/stock -redis redis://localhost:6379
//
// Without -redis the Redis is embedded. A map that takes a millisecond to answer stands for
// a database.
package shops
