// Package routers locks routes of chi, echo v4 and echo v5 by rules, with package httplock. Copy its
// functions.
//
// A rule names a route in the spelling of its router: POST /orders/{id}/pay for chi, POST
// /orders/:id/pay for echo. These routers leave needless escapes in a path, and a key contains the
// value that the handler reads.
package routers
