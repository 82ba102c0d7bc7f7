// Interlock checks lock rules and shows locks in a Redis from the command line. For rules it needs the
// rule file. It finds more mistakes if it also gets the routes and the .proto files of the program. It
// starts no server. Only the commands wire, doctor, ls, who and release connect to a Redis.
//
//	go mod edit -tool github.com/interlock-go/interlock/core/cmd/interlock
//	go mod tidy
//	go tool interlock check locks.yaml
//
// The first two lines are needed once for a module: they add the command and its dependencies to
// go.mod and go.sum. Below, interlock stands for go tool interlock.
//
// The commands:
//
//	check    find the mistakes in a rule file
//	dump     show the rules in force, with the source of every value
//	key      show the Redis keys that a request would lock
//	hash     show the hashed form of a key, as in traces and logs
//	wire     show how Redisson shares the locks of a Redis
//	doctor   try what locks need from a Redis, and say what to change
//	ls       list the locks in a Redis: holders, leases, waiters of fair locks
//	who      show one lock in a Redis: holders, leases, waiters
//	release  take a lock from its holders, after a question
//	schema   print the JSON Schema of rule files, for editors
//	proto    write the .proto file of the lock options, to compile yours with
//	version  print the version of Interlock
//
// `interlock help check` and `interlock check --help` print the manual of a command. Flags may
// stand before and after arguments. - in place of the rule file means the standard input,
// which messages call stdin. Exit codes: 0 no problems, 1 problems were found, 2
// the command could not run (a wrong call, an unreadable file).
//
// # The inputs of check
//
//	interlock check locks.yaml --descriptors image.binpb --routes routes.json --strict
//
// check first loads the rule file. If loading reports mistakes, such as an unknown field, check reports only these.
// Once the file can be loaded, check reports keys and conditions that do not compile, and path parameters that the
// rule's own route does not have.
//
// check and dump read the rules in rule files and .proto files. They cannot see rules in Go, which the
// program passes to ruleset.WithRules, to Handle of a guard, or to aspect.Wrap. A rule for a gRPC method or a
// function may lack a key in the file: a note reports that the key has to be elsewhere. A rule for HTTP
// without a key is an error even if the program has the key. An endpoint whose rule is in Go counts
// as an endpoint without a rule (see uncovered in the rule file).
//
// With --descriptors (compiled .proto files, by `buf build -o image.binpb` or `protoc --include_imports
// --include_source_info -o image.binpb`) the rules of gRPC methods are laid over the options of the .proto
// files. Then check also reports message fields that do not exist, responses that do not fit the reply,
// rules for methods that do not exist, and methods that change something and have no rule (see uncovered
// in the rule file). Without a rule file, check checks the options alone. The methods of all services in the
// descriptors count as the program's methods. Without --descriptors, a key may read any field of req, and rules
// without a key are not checked.
//
// With --routes (by WriteRoutes of package ginlock or httplock, for example from a test of the program)
// rules are checked for each route to which they apply: path parameters, registered variables and
// fallbacks, typed bodies. Then check also reports rules that match no route, and routes that change
// something and have no rule. Without --routes, a name that resembles a variable is an error. Any other
// name may be a variable that the program registers.
//
// With --against (the rule file in force) check lists the changes. A change that a reload would refuse is
// an error, because programs with the old and with the new file would hold different locks. A change that
// lets calls run unlocked is a warning, although a reload logs it as an error. A change does so if it removes
// or disables a rule, hides it with a more exact rule, changes its when, or changes a strategy to proceed. A
// removed rule is reported on line 1 of the new file.
//
// With an error the program would not start, or would refuse the reload. Warnings count as errors with
// --strict. There are warnings for:
//
//   - one lock for all requests of an endpoint
//   - a function that waits before it is skipped: it runs in every instance, one after the other
//   - two rules that two endpoints take in opposite orders, so that two requests can wait for each other
//     until the wait time has passed. Among the locks of an endpoint that other endpoints take, too, the
//     first 100 are compared.
//   - disabled, dry_run and allow_rekey for the whole file
//   - a profile that no rule uses
//   - a service that is probably misspelt
//   - a problem for which the rule file sets the severity warn
//
// Notes do not affect the exit code. A note reports one of these:
//
//   - a check that needs --routes, --descriptors, the program's variables or a key declared elsewhere
//   - a --service that no rule names
//   - that the limit of 100 locks was reached
//   - with --against, any other change
//
// Rules of functions are checked without the type of their argument, which only the program
// contains. Each object in the array of --format json has severity (error, warning, note), file,
// line, column, endpoint, rule, field and message. Write the routes file in a test of the program that
// compares it with the file under version control.
//
// # Keys and locks
//
//	interlock key locks.yaml 'POST /orders/42/pay' --prefix shop: --hash
//	interlock ls shop: --redis redis://localhost:6379
//
// key serves the request with the adapters of gin, net/http and gRPC, which show the keys instead of
// taking the locks. It uses the routes of the program or, without --routes, the routes that the rules
// name. ls, who and release show the locks of every process, of Go and of Java, by their keys in Redis. A
// key begins with the prefix of the lock client. No command occupies Redis for more than a fraction of a
// millisecond, except that who requests the list of connections, which takes some milliseconds for
// thousands of connections. The commands keep only a portion of the locks in memory. Section Rights of
// examples/operating/README.md lists the rights that the user of Redis needs.
//
// The size of inputs is limited, so an endless file is an error. Output contains only visible characters.
// Other characters of a key, a holder or a file are escaped as in JSON: \u001b.
package main
