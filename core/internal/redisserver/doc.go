// Package redisserver is a test kit: it starts real redis-server processes for one test and ends them with it.
// Tests of any package of the module call it. It does not depend on locks.
//
// A test that calls [Start], [StartCluster] or [StartSentinel] is skipped if redis-server is not on PATH. It fails
// instead if INTERLOCK_REQUIRE_REDIS=1 is set, so that a build cannot pass by skipping. [Each] runs a test on the
// embedded Redis of core/redistest and on a real one. If INTERLOCK_REDIS_SERVERS names more binaries, such as other
// versions or Valkey, it also runs the test on each of these.
//
// Only servers of [StartDurable] keep data on disk. The servers listen on 127.0.0.1 and share nothing: one
// test may stop, kill or flush its server while others run.
package redisserver
