// Package adaptertest tests the behaviour that all adapters share. It tests each strategy for each cause and in each layer of
// rules, reloads, lost locks, panics, hints, and the problems that Check reports at start-up. It also tests that no answer
// contains a key, an owner, or a message from Redis. A test describes its adapter with an [Adapter] and calls [Run]:
//
//	func TestBehaviour(t *testing.T) { adaptertest.Run(t, shop) }
//
// An adapter for HTTP uses [ServeHTTP], or [CallHTTP] if its server is not built on net/http.
//
// The tests run in real time against an embedded Redis. None depends on the speed of the machine.
package adaptertest
