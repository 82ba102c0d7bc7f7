// Package redisserver is a test kit: it starts real redis-server processes for one
// test and ends them with it.
//
// A test that calls [Start], [StartCluster] or [StartSentinel] is skipped where no
// redis-server is on PATH, and fails instead when INTERLOCK_REQUIRE_REDIS=1 is set,
// so that a build cannot pass by skipping. [Each] runs a test on the embedded Redis
// of core/redistest and on a real one; and on more of them, such as other versions or
// Valkey, where INTERLOCK_REDIS_SERVERS names their binaries.
//
// The servers keep nothing on disk, but for those of [StartDurable], listen on
// 127.0.0.1 and share nothing: one test may stop, kill or flush its server while others
// run.
package redisserver
