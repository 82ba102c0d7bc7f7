// Package ruleset is the declarative form of a lock: which key, for how long, and
// what to do when it is not acquired. A [Rule] is data; templates are strings here and
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
//
// # Three places
//
// A rule can stand in Go, beside its method in a .proto file (package grpclock), and in a
// file. What a later one sets wins, field by field, in this order. The rules in Go that a
// file may change are those given to it, by [WithRules]; those that a program puts on a
// route or around a function by itself stand alone.
//
// # Rule files
//
// A file is for the people who run the service. It has the fields of [Rule] and [Settings] by
// the names that [Fields] lists, an endpoint as http, grpc or func, and durations as Go writes them
// ("1m30s") or as none, forever and watchdog:
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
//	    key: 'import:#{header["X-Tenant"]}'  # in single quotes: " is a part of it
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
// The first line is for editors: `interlock schema` writes that file, [Schema] gives it.
//
//   - Quote keys. In YAML " #" begins a comment; a key that is cut off by one is an
//     error, not a shorter key. Reading is strict: whatever is misspelled, of another type,
//     empty, given twice, or swallowed by YAML is a problem with its line and column. Those
//     inside of keys, and what follows from a field that is not known, come when the file
//     itself is right.
//   - POST /admin/* stands for all below that path, "* /admin/*" for any method. Where several
//     endpoints with rules match, the most exact one applies alone.
//   - Wildcards leave infrastructure alone: "*" does not cover gRPC's health checking, reflection
//     and the like ([Endpoint.Infrastructure]), and a rule for any method does not cover CORS
//     preflights. A rule that names the service, or OPTIONS, does. HTTP has no such names: write
//     `none: true` for /healthz and /metrics.
//   - Of a profile that a rule names, and then of the profile default, come the fields that the
//     rule does not write. A token that the kind of a rule cannot have is an error, wherever
//     it comes from; permits of a profile are left out by a kind without them.
//   - Several programs can share a file: services: [shop-api] in a rule, and [WithService] in
//     the program.
//   - For the whole file, at its top: disabled: true is the kill switch (handlers run unlocked,
//     counted), dry_run: true counts what would have happened, unmatched: warn permits rules
//     that match no endpoint, uncovered: error demands a rule, or none: true, for each endpoint
//     that changes something.
//
// # Loading, and loading again
//
// [Open] reads a file, and again when Reload is called, and [Watch] when it changes, by an
// editor or as a Kubernetes ConfigMap; [Load] reads a text. Adapters take what they give:
//
//	rules, err := ruleset.Watch("locks.yaml") // adapters notify the observers of their lock client
//	if err != nil {
//		return err // every problem, each with its line and what to write instead
//	}
//	defer rules.Close()
//	r.Use(guard.Middleware(rules)) // before the routes; gRPC: grpclock.WithSet(rules)
//	// … the routes …
//	if err := guard.Check(r); err != nil {
//		return err // a rule that fits no route
//	}
//	return r.Run(":8080")
//
// Replace a file by renaming a complete one; it is taken when it has been still for a
// second. A file with a mistake is refused at start-up, with all its mistakes. At a
// reload it leaves the old rules in force, is logged (by package telemetry, or without an
// observer by slog), and counted; so is one that does not fit the program's endpoints. One
// that lets calls run unlocked (a rule that is gone or switched off, another when, a strategy
// proceed) is applied, and logged as an error, too; so is a file with disabled: true, also at
// start-up.
//
// A reload must not change a key, a prefix, a kind or a number of permits in one step: instances
// with the old file and with the new one would not exclude each other. Change key: old to
// keys: [old, new], roll that out, then write key: new. Or say allow_rekey: true. All rules
// of an endpoint count together.
//
// The command core/cmd/interlock checks a file before it is deployed.
//
// # Kinds
//
// A rule with another kind than [Reentrant] says so:
//
//	rules:
//	  - http: GET /prices/:id
//	    key: "price:#{path.id}"
//	    kind: read
//	  - http: PUT /prices/:id
//	    key: "price:#{path.id}"
//	    kind: write
//	    token: true           # a number that is larger for every later writer
//	  - http: POST /reports
//	    key: reports
//	    kind: semaphore
//	    permits: 5            # at once, across all instances
//
// Which kind to take, with which wait time and lease time, is in examples/choosing/README.md.
package ruleset
