// Package adaptertest tests the behaviour that every adapter of a transport has: each strategy for each cause and in each
// layer of rules, reload, loss, panics, hints, the problems that are found at start-up, and that no answer shows a client
// a key, an owner or a text of Redis. A test describes its adapter by an [Adapter] and calls [Run]:
//
//	func TestBehaviour(t *testing.T) { adaptertest.Run(t, shop) }
//
// The tests run in real time against an embedded Redis. None depends on the speed of the machine.
package adaptertest
