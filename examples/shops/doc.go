// Package shops is a folder of small programs, one for each case in which teams
// usually reach for a distributed lock:
//
//   - duplicate: one request submitted several times makes one order
//   - stock: many buyers of one item, and exactly as many sales as pieces
//   - cart: several items at once, in any order, without a deadlock
//   - batch: workers that share batches, core only
//   - likes: a switch per user and post, and values with colons in a key
//   - cron: a job that one instance of the fleet runs
//   - transaction: the lock goes around the transaction, not into it
//   - prices: readers that do not wait for each other, and a writer that is alone
//   - queue: first come, first served, whatever instance they came to
//   - reports: at most five at a time, in all instances
//   - nested: services that call each other under one lock
//
// Each runs with nothing but Go, shows the mistake beside the right way, checks
// itself, and exits with 1 if anything is not as promised:
//
//	go -C examples run ./shops/stock
//	go -C examples run ./shops/stock -redis redis://localhost:6379
//
// The Redis is an embedded one without -redis. What stands for a database is a map
// that takes a millisecond to answer.
package shops
