// Package faultproxy is a test kit: a proxy in front of Redis, inside the test process, that injects faults at exact
// commands. Tests of any package of the module, and core/redistest, call it. It knows nothing of locks.
//
// It reads the protocol (RESP2 and RESP3), so that a fault hits one command and not "about 300 ms": the reply to the
// second EVALSHA is lost, the third PEXPIRE arrives after everything else. It passes pipelines, pub/sub connections and
// handshakes, and matches every reply to its command. It does not support CLIENT REPLY OFF and MONITOR, which break
// that match.
//
// A fault is a [Rule] made by a method of [Proxy]. It applies to every command that its [Match] accepts, on all
// connections, until [Rule.Remove]. [Nth] and [Once] make it hit one command. If several rules match, the first added
// applies.
package faultproxy
