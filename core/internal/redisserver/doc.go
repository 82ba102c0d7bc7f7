// Package redisserver starts real redis-server processes for a test and kills them when the test ends. It does not depend on
// locks, so the tests of any package can import it.
//
// A test that calls [Start], [StartCluster] or [StartSentinel] is skipped if redis-server is not on PATH. It fails
// instead if INTERLOCK_REQUIRE_REDIS=1 is set, so that a build cannot pass by skipping. [Each] runs a test on the
// embedded Redis of core/redistest and on a real one. If INTERLOCK_REDIS_SERVERS names more binaries, such as other
// versions or Valkey, it also runs the test on each of these.
//
// Only servers of [StartDurable] keep data on disk. The servers listen on 127.0.0.1 and share nothing, so a test may stop,
// kill or flush its server while other tests run.
package redisserver
