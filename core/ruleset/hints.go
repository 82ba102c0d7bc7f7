package ruleset

import "github.com/interlock-go/interlock/core/ruleset/internal/strictyaml"

// fieldWords maps the names that the Java annotations and other lock libraries use to the fields of a rule.
// A misspelled field needs no line here.
var fieldWords = map[string]string{ //nolint:gochecknoglobals // a table that is only read
	"wait": "wait_time", "timeout": "wait_time", "waittimeout": "wait_time", "acquiretimeout": "wait_time",
	"lease": "lease_time", "ttl": "lease_time", "expire": "lease_time", "expiry": "lease_time", "expiration": "lease_time", "locktimeout": "lease_time",
	"holdtime": "max_hold", "maxlease": "max_hold",
	"strategy": "on_busy", "failstrategy": "on_busy", "locktimeoutstrategy": "on_busy", "releasetimeoutstrategy": "on_lost",
	"fallbackmethod": "fallback", "customlocktimeoutstrategy": "fallback",
	"lockkey": "key", "lockname": "key", "lockkeys": "keys", "locktype": "kind", "type": "kind", "condition": "when", "keyprefix": "prefix",
	"rpc": "grpc", "fullmethod": "grpc",
}

// endpointKeys lists the keys that a rule has only in files.
func endpointKeys() []string { return []string{"http", "grpc", "func", "services"} }

func ruleHints() map[string]strictyaml.Hint {
	hints := map[string]strictyaml.Hint{}
	for word, field := range fieldWords {
		hints[word] = strictyaml.Hint{Meant: field}
	}
	for _, word := range []string{"endpoint", "route", "path", "url", "uri", "method"} {
		hints[word] = strictyaml.Hint{Meant: "http", Message: "unknown field: write http: POST /orders/:id/pay, grpc: /shop.Orders/Pay or func: close-day"}
	}
	return addMisplaced(hints, "belongs to the top of the file: write it without indentation", "profiles", "rules", "unmatched", "uncovered", "allow_rekey")
}

func profileHints() map[string]strictyaml.Hint {
	return addMisplaced(ruleHints(), "belongs to a single rule: remove it here", append(endpointKeys(), namesOf(singleFields())...)...)
}

func topHints() map[string]strictyaml.Hint {
	hints := addMisplaced(map[string]strictyaml.Hint{}, "belongs to a rule: write it below rules:, in an entry that begins with a dash",
		append(endpointKeys(), Fields()[1:]...)...)
	for _, setting := range append(namesOf(settingFields), "profile") { // profiles is meant
		delete(hints, strictyaml.FoldKey(setting))
	}
	return hints
}

// addMisplaced adds a hint with the message for each of the fields, which belong elsewhere.
func addMisplaced(hints map[string]strictyaml.Hint, message string, fields ...string) map[string]strictyaml.Hint {
	for _, field := range fields {
		hints[strictyaml.FoldKey(field)] = strictyaml.Hint{Message: message}
	}
	return hints
}
