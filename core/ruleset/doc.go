// Package ruleset is the declarative form of a lock: which key, for how long, and
// what to do when it is not had. A [Rule] is data; templates are strings here and
// are compiled by core/aspect.
//
// Contract: a zero field of a [Rule] is "not set". What is not set comes from the
// profile, then from the built-in defaults. Several declarations of the same rule are
// overlaid: what a later layer sets wins. The result, a [Resolved] rule, has every
// field set and knows where each value comes from. Nothing is repaired
// silently: [NewSet] and [Resolve] report every problem at once, each with its
// place, what is wrong and what to write instead, as one [*InvalidError].
//
// A [Set] and a [Resolved] rule never change after they were built and are safe
// for concurrent use.
package ruleset
