// Package redisstore is the only code that knows how a lock looks in Redis. One
// embedded Lua file per operation, and typed Go in front of it.
//
// Every script is harmless when it is executed twice, because a command without an
// answer is sent again by the callers of this package, never by go-redis. Layouts,
// channels and messages are Redisson's.
//
// # How a command travels
//
// An operation prepares a Call (operations.go, typed.go). Its Wait finds the route to the
// master of the key (routes.go, nodes.go), runs the hooks of the caller's client (hooks.go,
// command.go) and hands the command to the pipelines of that node (pipelines.go). Nearly
// always there is one pipeline (pipeline.go): one connection, made with all that the
// caller's client says about connections (connect.go, dialing.go), on which the calls of
// all goroutines follow each other. A command is appended to a buffer and to a queue
// (queue.go); somebody writes the buffer (sending.go), somebody reads (receiving.go, resp.go),
// and a reply belongs to the command at the front of the queue. So there is one rule that
// must never break: what is queued is sent, once, in the order of the queue, and a
// connection of which anything else is true is closed.
//
// A caller waits for its answer only (answer.go) until that is slow: one goroutine for each
// node looks at what waits (shareddeadline.go, flow.go) and notifies those
// who then listen to their contexts and limits, too. If a connection says nothing for long, a
// second one is made and takes the calls that come after; who waits on the first may send
// again there, once, or get a late answer (Late). A connection that says nothing for the
// timeout is closed, whether there is another one or not. Whether the node is silent or the
// connection is, finds out health.go by pings beside the calls.
//
// In a Cluster each master has pipelines and a health of its own (nodes.go), made when the
// first key of it is wanted. They are closed in the background when the master has left.
//
// A call that replicas have to acknowledge (acks.go, acker.go) travels neither way: WAIT is
// about what its own connection has written, and holds up all that comes behind it. It takes a
// connection of the caller's pool, for the script and the WAIT in one pipeline. Its answer is
// that of the script, so its fate is, too; too few acknowledgements, or no answer to the WAIT,
// make it a ShortfallError beside that. How many there are is in replicas.go; redirections,
// which go-redis would follow without the WAIT, are in redirect.go.
//
// Renewals are batches of go-redis's own (renew.go), and subscriptions are its PubSub
// (subscriptions.go): neither is in the way of a call.
//
// # Why not a pipeline of go-redis
//
// A Pipeline is one batch: it takes a connection from the pool, and those that come while it
// is on its way wait for another connection or for its end. The auto-pipeline forms such
// batches by itself, and so a call waits for a batch that it is not part of, or for the
// timer that fills it; a batch that hangs takes all of its calls down with it, and nobody
// sees when one of them was sent, or that it was not. In a Cluster it mixes masters in a
// batch. Here a call is written at once, or with those of the same moment, knows its own fate,
// and hangs with one connection at most. What is go-redis's remains so: how connections are made, hooks,
// redirections (nodes.go), errors and their predicates.
package redisstore
