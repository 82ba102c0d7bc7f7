// Package routers locks routes of chi and of echo by rules, with package httplock. Copy its
// functions.
//
// A rule names a route in the spelling of its router: POST /orders/{id}/pay for chi,
// POST /orders/:id/pay for echo. Both routers leave needless escapes in a path, and a key has
// the value that the handler reads.
package routers
