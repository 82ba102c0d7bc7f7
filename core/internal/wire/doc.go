// Package wire sends scripts to Redis and returns their replies. Package redisstore calls it; package core and the
// other internal packages use its errors and fates. Package wire does not depend on locks. For each script the caller
// learns when the script was sent and what Redis replied. Without a reply, the caller learns the [Fate] of the script:
// whether the script may have been executed.
//
//	call := way.Call(time.Now(), script, key, 1, key, "argument")
//	reply, fate, err := call.Wait(ctx, limit)
//
// # How a command travels
//
// A [Call] (call.go) finds the node of its key (redis.go, cluster.go) and runs the hooks of the caller's client
// (hooks.go, command.go). The innermost hook hands the command to the node (node.go), which has lines (lines.go).
// Nearly always there is a single pipeline (pipeline.go): one connection (origin.go, connect.go), on which the commands
// of all goroutines follow each other. A command is appended to a buffer and to a queue. One goroutine writes the
// buffer, one reads, and a reply belongs to the command at the front of the queue. One invariant must never break:
// every queued command is sent once, in the order of the queue. A connection that may violate this invariant is closed.
//
// Wire uses the connection options and the hooks of the caller's client, and in a Cluster its slots. The pool and the
// Limiter of that client do not affect commands.
//
// Wire does not use the Pipeline of go-redis, because a Pipeline sends batches. A call would wait for the batch
// before its own, and a batch that hangs would block all of its calls. The caller could not see when, or whether, a
// call was sent.
//
// # The files
//
// Each line of this list uses the lines above it:
//
//	life, resp, flow, meaning                   helpers and values
//	errors, text                                every error, its [Fate], and the messages that may be logged
//	health                                      whether a node answers
//	connect, credentials, sentinel              setup of a connection
//	command, hooks                              one sending of a script, and the hooks around it
//	pipeline                                    one connection with many commands under way
//	origin, lines, acks, node                   the connections to one node
//	cluster, redis, call                        the nodes, a Redis, and one call
//
// # Mechanisms
//
// Each mechanism serves a promise of package core, or saves a cost that the benchmarks of core measure. The second
// column quotes the comment of package core. The tests are examples; more of them stand beside each.
//
//	mechanism                                        | promised                                  | tests
//	Fate; no command is sent twice by go-redis       | A lock has one holder at most             | TestCall_Wait_LostReply, TestCall_Wait_NotResentByGoRedis, TestHooks_CannotSendTwice
//	when a command was sent                          | The client counts the lease from the      | TestDeadline_CountsFromTheSending
//	Late: an answer after the limit                  | a failed Acquire leaves nothing behind    | TestCall_Wait_AgainForALateReply
//	one pipeline for all commands of a node          | share one connection to each node         | TestLines_Storm, TestPipeline_EveryCallerGetsItsAnswer
//	which goroutine writes or reads (pipeline)       | Without contention, Acquire is one round  | TestPipeline_Sending_LoneWriter, TestPipeline_Receiving_LoneCaller
//	attempts beside a pipeline that hangs            | If Redis does not answer, the error is    | TestLines_HangingConnection, TestLines_SilentConnectionIsReplacedSlowly
//	a pipeline that leaves: answers, or sent again   | breaks at the end of the                  | TestLines_LeavingIsBounded, TestLines_ManyHang
//	slow and silent (health)                         | answers slowly counts as available        | TestSlow_EveryFreeLockIsAcquired, TestSlow_SilenceIsStillNoticed
//	the shared deadline (lines.watch)                | callers fail at once until                | TestSlow_NextCallerFailsAtOnce, TestPipeline_Sending_LargeBatch
//	time in which the process did not run            | answers slowly counts as available        | TestSilence_SleepOfTheProcessIsNotAnOutage, TestHealth_SkipSleep
//	redirections, and nodes that leave (cluster)     | LOADING, BUSY, NOREPLICAS, CLUSTERDOWN    | TestCall_Wait_RedirectionLoop, TestCluster_MasterLeavesWhileConnecting, TestCluster_HeldWhileItsSlotMoves
//	the Sentinels are asked regularly                | Safety across a failover                  | TestSentinel_LockContendFailover, TestSentinel_ConnectionsFollowTheName
//	a replica is left; connections get old           | LOADING, BUSY, NOREPLICAS, CLUSTERDOWN    | TestLines_MasterBecomesReplica, TestLines_ConnMaxLifetime
//	new credentials, new connections                 | If Redis does not answer, the error is    | TestNew_CredentialsRotate, TestNew_CredentialsFail
//	functions of the caller in goroutines (dialer)   | If Redis does not answer, the error is    | TestDialer_Blocks, TestDialer_PanicIsAnError
//	exchanges that replicas acknowledge (acker)      | replicas that acknowledge                 | TestReplicas_Acknowledge, TestReplicas_OtherCallersDoNotWait
//	hooks see each sending once, cannot change it    | A client frees only locks that it holds   | TestHooks_SeeEveryOperation, TestHooks_ChangedKeysAreRefused
//	the queue is bounded                             | a few hundred                             | TestLines_QueueIsBounded
//	the meaning of a reply; texts without a key      | Redis did not answer, or answered with    | TestMeaningOf, TestReplyText_Arguments
package wire
