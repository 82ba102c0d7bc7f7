package ruleset

// fieldWords are the names that the Java annotations and other lock libraries have for the fields of
// a rule. What is merely misspelled needs no line here.
var fieldWords = map[string]string{ //nolint:gochecknoglobals // a table that is only read
	"wait": "wait_time", "timeout": "wait_time", "waittimeout": "wait_time", "acquiretimeout": "wait_time",
	"lease": "lease_time", "ttl": "lease_time", "expire": "lease_time", "expiry": "lease_time", "expiration": "lease_time", "locktimeout": "lease_time",
	"strategy": "on_busy", "failstrategy": "on_busy", "locktimeoutstrategy": "on_busy", "releasetimeoutstrategy": "on_lost",
	"fallbackmethod": "fallback", "customlocktimeoutstrategy": "fallback",
	"lockkey": "key", "lockname": "key", "lockkeys": "keys", "locktype": "kind", "type": "kind", "condition": "when", "keyprefix": "prefix",
	"rpc": "grpc", "fullmethod": "grpc",
}

func ruleHints() map[string]hint {
	hints := map[string]hint{}
	for word, field := range fieldWords {
		hints[word] = hint{meant: field}
	}
	for _, word := range []string{"endpoint", "route", "path", "url", "uri", "method"} {
		hints[word] = hint{meant: "http", message: "unknown field: write http: POST /orders/:id/pay, grpc: /shop.Orders/Pay or func: close-day"}
	}
	return belongs(hints, "belongs to the top of the file: write it without indentation", "profiles", "rules", "unmatched", "uncovered", "allow_rekey")
}

func profileHints() map[string]hint {
	return belongs(ruleHints(), "belongs to a single rule: remove it here", append([]string{"http", "grpc", "func", "services"}, namesOf(singleFields)...)...)
}

func topHints() map[string]hint {
	hints := belongs(map[string]hint{}, "belongs to a rule: write it below rules:, in an entry that begins with a dash", ruleTable.names()...)
	for _, setting := range append(namesOf(settingFields), "profile") { // profiles is meant
		delete(hints, foldKey(setting))
	}
	return hints
}

// belongs adds what to say of fields that stand in the wrong place.
func belongs(hints map[string]hint, message string, fields ...string) map[string]hint {
	for _, field := range fields {
		hints[foldKey(field)] = hint{message: message}
	}
	return hints
}
