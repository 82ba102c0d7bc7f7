// Package routers puts the routes of chi and of echo under the locks of rules, with
// package httplock. What the functions here do is what there is to copy.
//
// A rule names a route as its router has it: POST /orders/{id}/pay with chi,
// POST /orders/:id/pay with echo. Both routers leave a path with needless escapes as it
// came, and a key has the value that the handler reads.
package routers
