// Package preview lets the command interlock ask the adapters which locks a request would take.
// Package aspect and the command call it.
package preview

// Key is the key of a context under which a call carries a function. Package aspect calls the
// function with the rules of the call and its values, and neither takes a lock nor runs the handler.
type Key struct{}
