// Interlock looks at lock rules, and at locks in a Redis, from the command line. For
// rules it needs the rule file; the more it is told about the program that uses the
// rules, the more it finds. It starts no server. Only the commands wire, doctor, ls, who
// and release ask a Redis.
//
//	go get -tool github.com/interlock-go/interlock/core/cmd/interlock
//	go tool interlock check locks.yaml
//
// The first line is needed once in a module: it notes the command, and what that is
// made of, in go.mod and go.sum. Below, interlock stands for go tool interlock.
//
// The commands:
//
//	check    find what is wrong with a rule file
//	dump     show the rules in force, with the source of every value
//	key      the Redis keys that a request would lock
//	hash     the hashed form of a key, as traces and logs show it
//	wire     what Redisson needs to share the locks of a Redis
//	doctor   try what locks need from a Redis, and say what to change
//	ls       the locks in a Redis: who holds them, for how long, who waits
//	who      all that Redis knows of a lock: holders, leases, waiters
//	release  take a lock from its holders, after a question
//	schema   the JSON Schema of rule files, for editors
//	proto    the .proto file of the lock options, to compile yours with
//	version  which Interlock this is
//
// `interlock help check` and `interlock check --help` say more about one. Flags may
// stand before and after arguments; - in place of the rule file is the standard input,
// which messages call stdin. Exit codes: 0 in order, 1 problems were found, 2
// it cannot be done (a wrong call, an unreadable file).
//
// # What check is told, and what it finds then
//
//	interlock check locks.yaml --descriptors image.binpb --routes routes.json --strict
//
// By the rule file alone: everything that loading it finds; keys and conditions that
// do not compile, path parameters that the rule's own route lacks.
//
// check knows the rules of files and of .proto files, and none that are written in Go
// (ruleset.WithRules): an entry for a gRPC method or a function may lack a key here, of
// which a note says that it has to be elsewhere. An entry for HTTP without a key is an
// error here even if the program has it; an endpoint that has its rule in Go counts
// as one without (see uncovered in the rule file).
//
// With --descriptors (compiled .proto files, by `buf build -o image.binpb` or `protoc
// --include_imports --include_source_info -o image.binpb`) the rules of gRPC methods
// are laid over the options of the .proto files: message fields that do not exist,
// responses that are no reply, rules for methods that do not exist, methods that
// change something and have no rule (see uncovered in the rule file). Without a rule
// file the options are checked by themselves. The methods of all services in the
// image count as the program's. Without --descriptors a key over req may have any
// field, and rules that have no key are left alone.
//
// With --routes (by WriteRoutes of package ginlock or httplock, for example from a test of
// the program) rules are judged for each route that they apply to: path parameters, registered
// variables and fallbacks, typed bodies; rules that match no route, routes that change
// something and have no rule. Without it a name that is near a variable is an error, and any
// other may be one that the program registers.
//
// With --against (the rule file in force) what changes is listed. What a reload would
// refuse is an error: programs with the old and with the new file would hold different
// locks. Calls that run unlocked from now on, by a rule that is gone, switched off, or hidden by
// a more exact one, by another when, or by a strategy proceed, are a warning: it is what a reload
// logs as an error.
// What is gone has its place on line 1 of the new file.
//
// Errors are what the program would not start with. Warnings, which --strict makes
// count: one lock for all requests of an endpoint; a function that waits before it is
// skipped, which runs in every instance, one after the other; two rules that two endpoints take
// in opposite orders, so that two requests can wait for each other until the wait
// time is over (of the locks of an endpoint that others take, too, the first 100); disabled, dry_run and allow_rekey for the whole file; a profile that no
// rule has; a service that is probably misspelt; what the rule file calls a warning.
// Notes say what could not be judged, and never count.
//
// Rules of functions are checked without the type of their argument, which only the
// program knows. The array of --format json has severity (error, warning, note), file, line,
// column, endpoint, rule, field and message. A test of the program is the best place to write
// the routes file: it compares the file with the one under version control.
//
// # Keys and locks
//
//	interlock key locks.yaml 'POST /orders/42/pay' --prefix shop: --hash
//	interlock ls shop: --redis redis://localhost:6379
//
// key serves the request with the adapters of gin, net/http and gRPC, which show the keys instead
// of taking the locks: with the routes of the program, or else with the routes that
// the rules name. ls, who and release show the locks of every process, of Go and of
// Java, by their keys in Redis: a prefix is that of the lock client. No command takes Redis
// longer than a fraction of a millisecond, except the list of connections that who asks for:
// some milliseconds for thousands of them. No more than a portion is in memory. Which
// rights the user of Redis needs for that says examples/operating/README.md, under Rights.
//
// Input is bounded, so that a file without an end is an error. Output has visible
// characters only: other characters of a key, a holder or a file are written as in JSON, \u001b.
package main
