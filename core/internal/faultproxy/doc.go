// Package faultproxy is a test kit: a proxy in front of Redis, inside the test process, that injects faults at exact
// commands. Tests of any package of the module call it, as does core/redistest. It does not depend on locks.
//
// The proxy reads the protocol (RESP2 and RESP3), so that a fault applies to one command instead of a period of time.
// For example, the reply to the second EVALSHA is lost, or the third PEXPIRE arrives after everything else. The proxy
// passes pipelines, pub/sub connections and handshakes, and matches every reply to its command. It does not support
// CLIENT REPLY OFF and MONITOR, which break that match.
//
// A fault is a [Rule] that a method of [Proxy] adds. It applies to every command that its [Match] accepts, on all
// connections, until [Rule.Remove]. [Nth] and [Once] limit it to one command. If several rules match, the rule that
// was added first applies.
package faultproxy
