// Package routers locks routes of chi and echo by rules, with package httplock. Copy its
// functions.
//
// A rule names a route in the spelling of its router: POST /orders/{id}/pay for chi, POST
// /orders/:id/pay for echo. Both routers leave needless escapes in a path, and a key contains the
// value that the handler reads.
package routers
