// Package ruleset contains the declarative form of a lock: its key, its times, and the answer to a
// call that does not get it. A [Rule] is data: its templates are strings, which package core/aspect
// compiles.
//
// A zero field of a [Rule] is not set. Its value comes from the profile, and otherwise from the
// built-in defaults. Several declarations of one rule are layers: a higher layer replaces the
// fields that it sets. The result, a [Resolved] rule, has every field set and records the place
// from which each value comes. Nothing is repaired silently: [NewSet], [Load] and [Resolve] return their
// problems together, as one [*InvalidError]. Each problem has its place and explains what is wrong
// and what to write instead. Keys and conditions are compiled later, by package core/aspect, which reports
// their mistakes.
//
// A [Set] and a [Resolved] rule do not change after they are built and are safe for concurrent
// use.
//
// # Three places
//
// A rule can be declared in Go, beside its method in a .proto file (package grpclock), and in a rule
// file. The three places are layers, the lowest first. A higher layer replaces the fields that it sets, one by
// one. A profile is below all three: it sets only fields that no layer sets, even if the profile is in the
// rule file. The layers of a rule depend on the function to which the program passes it:
//
//	the rule is passed to                               layers, the lowest first
//	ginlock.Guard.Middleware, in a set                  Go (WithRules), file
//	grpclock.WithSet and connectlock.WithSet, in a set  Go (WithRules), .proto, file
//	grpclock.WithRules and connectlock.WithRules        Go, .proto
//	httplock.Guard.Handle, with httplock.WithSet        Go (the rule of Handle, or WithRules: not both), file
//	aspect.Wrap, with aspect.WithSet                    Go (the rule of Wrap, or WithRules: not both), file
//	ginlock.Guard.Handle and ginlock.Guard.Handler      Go
//
// So a file never changes a rule of the last row. If a file has a rule for the same route, a request takes
// the locks of both rules, and the two rules need different names. An adapter ignores the rules for other
// transports: a func: rule has no effect in a program that has only a guard for HTTP.
//
// # Rule files
//
// The people who run the service write its rule file. Its rules have the fields of [Rule], under the names
// that [Fields] lists. The fields of [Settings], such as dry_run, are at the top. The name of an endpoint is
// http, grpc or func. A duration is written as in Go ("1m30s"), or as none, forever or watchdog:
//
//	# yaml-language-server: $schema=locks.schema.json
//	profiles:
//	  default:              # for every rule of the file
//	    wait_time: 5s
//	  checkout:
//	    lease_time: 20s     # or watchdog
//	rules:
//	  - http: POST /orders/:orderId/pay
//	    profile: checkout
//	    key: "order:pay:#{path.orderId}"
//	    on_busy: skip
//	  - http: POST /imports
//	    key: 'import:#{header["X-Tenant"]}'  # in single quotes, because the key contains "
//	  - http: POST /admin/*
//	    key: "admin:#{route}"
//	    wait_time: none     # or 3s, or forever
//	  - http: POST /admin/login
//	    none: true          # no lock, on purpose
//	  - grpc: /shop.v1.Orders/Pay
//	    key: "order:pay:#{req.order_id}"
//	  - func: close-day
//	    key: close-day
//	    on_busy: skip
//	    wait_time: none
//
// The first line is for editors: `interlock schema` writes the schema file, and [Schema] returns its
// text.
//
//   - Quote keys. In YAML " #" begins a comment. A key that a comment cuts off is an error, not a
//     shorter key. Reading is strict: a field that is misspelled, of another type, empty, given
//     twice, or hidden in a comment is reported with its line and column. Some problems are reported
//     only after an unknown field is corrected. Loading does not find mistakes inside keys: Check of
//     an adapter and `interlock check` report them.
//   - POST /admin/* matches everything below that path, and "* /admin/*" does so for any method. If
//     several endpoints with rules match a call, only the rules of the most exact one apply.
//   - Wildcards do not match infrastructure. "*" does not match gRPC's health checking, reflection
//     and similar methods ([Endpoint.Infrastructure]). A rule for any method does not match CORS
//     preflights. A rule that names the service, or OPTIONS, does. HTTP has no reserved names: write
//     `none: true` for /healthz and /metrics.
//   - A rule takes the fields that it does not set from the profile that it names, and then from the
//     profile default. A token that the kind of a rule cannot have is an error, wherever it comes
//     from. A kind without permits ignores the permits of a profile.
//   - Several programs can share a file: write services: [shop-api] in a rule and pass
//     [WithService] in the program.
//   - Settings at the top apply to the whole file. disabled: true is the kill switch: handlers run
//     unlocked and are counted. dry_run: true counts what would have happened. unmatched: warn
//     permits rules that match no endpoint. uncovered: error requires a rule, or none: true, for
//     each endpoint that may modify data.
//
// # Loading and reloading
//
// [Open] reads a file and reads it again when Reload is called. [Watch] also reads it again after an
// editor or a Kubernetes ConfigMap changes it. [Load] reads a text. Adapters accept the results:
//
//	rules, err := ruleset.Watch("locks.yaml") // adapters notify the observers of their lock client
//	if err != nil {
//		return err // the problems of the file, each with its line and what to write instead
//	}
//	defer rules.Close()
//	r.Use(guard.Middleware(rules)) // before the routes; gRPC: grpclock.WithSet(rules)
//	// … the routes …
//	if err := guard.Check(r); err != nil {
//		return err // a key that does not compile, a rule that matches no route
//	}
//	return r.Run(":8080")
//
// Replace a file by renaming a complete one. It comes into force when it has not changed for a second.
// At start-up, a file with mistakes is refused, and the error lists them. At a reload it is
// refused, too: the old rules stay in force, and package telemetry counts and logs the refusal. Without
// an observer, slog logs it. A reload that does not fit the program's endpoints is refused in the same
// way. A reload that removes or disables a rule, changes a when, or changes a strategy to proceed lets calls run
// unlocked: it comes into force and is logged as an error. A file with disabled: true is logged as an
// error at start-up, too.
//
// A reload must not change a key, a prefix, a kind or a number of permits in one step, because instances
// with the old file and with the new one would not exclude each other. Change key: old to keys: [old,
// new], roll that out, then write key: new. Or write allow_rekey: true. The locks of all rules of an
// endpoint are compared together.
//
// The command core/cmd/interlock checks a file before it is deployed.
//
// # Kinds
//
// A rule whose kind is not [Reentrant] names its kind:
//
//	rules:
//	  - http: GET /prices/:id
//	    key: "price:#{path.id}"
//	    kind: read
//	  - http: PUT /prices/:id
//	    key: "price:#{path.id}"
//	    kind: write
//	    token: true           # each later writer has a larger number
//	  - http: POST /reports
//	    key: reports
//	    kind: semaphore
//	    permits: 5            # at once, across all instances
//
// examples/choosing/README.md explains how to choose a kind, a wait time and a lease time.
package ruleset

// The files follow the data, from values to a file that is watched. Each of them uses only files above it.
//
//	text                              words and names
//	kind, endpoint, rule, settings    what a rule can say, as Go values
//	source, problem, problemlog       the place of a value, and messages in the words of the place
//	shown                             a value as YAML and JSON
//	fieldtypes, duration, fields      the table of fields: how each place writes a field, and which values are wrong
//	declared, profiles, hints, file   what Go, .proto files and rule files declare, layer by layer
//	resolved                          one rule of all its layers
//	together, check, mixedkinds,
//	names, resolve                    the layers are laid over each other, and checked
//	dump, set                         a set that adapters match calls with
//	reload, diff                      two sets are compared
//	options, load                     from declarations and files to a set
//	content, subscribers, observers,
//	live, watch                       a file that is read again, and its followers
