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
// Files: [Load] reads rules written in YAML, [LoadFile] does so from a file, [Open] and
// [Watch] also again when it has changed. A file has the fields of [Rule] and
// [Settings] by the names of their tags, an endpoint as http, grpc or func, and
// durations as Go writes them ("1m30s") or as none, forever and watchdog. Its profiles
// are under profiles, its defaults in the profile default; services names the programs
// that a rule is for ([WithService]). What is in a file is laid over what the program
// and its .proto files say. Reading is strict: whatever is misspelled, of another type,
// empty, given twice, or swallowed by YAML is a problem with its line and column.
//
// A [Set] and a [Resolved] rule never change after they were built and are safe
// for concurrent use.
package ruleset
