// Package faultproxy is a test kit: a proxy in front of Redis, inside the test
// process, that injects faults at exact commands.
//
// It reads the protocol (RESP2 and RESP3), so that a fault hits one command and not
// "about 300 ms": the reply of the second EVALSHA is lost, the third PEXPIRE arrives
// after everything else. Pipelines, pub/sub connections and handshakes pass through
// it with every reply matched to its command. CLIENT REPLY OFF and MONITOR are not
// supported: they break that match.
//
// A fault is a [Rule] made by a method of [Proxy]. It applies to every command that
// its [Match] accepts, on all connections, until [Rule.Remove]; [Nth] and [Once] make
// it hit one. Of several rules that match, the first added applies.
package faultproxy
