// Package adaptertest is the behaviour that every adapter of a transport has, as tests:
// each strategy for each cause and in each layer of rules, reload, loss, panics, hints,
// what is judged at start-up, and that no answer tells a client what is none of its
// business. An adapter gets all of it by an [Adapter]:
//
//	func TestBehaviour(t *testing.T) { adaptertest.Run(t, shop) }
//
// The tests run in real time against an embedded Redis. None depends on how fast the
// machine is.
package adaptertest
