package ruleset

// Words from elsewhere: of the Java annotation, of other lock libraries, and of the
// wrong place in the file. What is merely misspelled needs no line here.

// ruleWords are names that other libraries have for the fields of a rule.
var ruleWords = map[string][]string{ //nolint:gochecknoglobals // a table that is only read
	"wait_time":  {"wait", "waittimeout", "timeout", "acquiretimeout", "maxwait", "trytime"},
	"lease_time": {"lease", "ttl", "expire", "expires", "expiry", "expiration", "locktime", "locktimeout", "holdtime", "watchdog"},
	"on_busy":    {"failstrategy", "strategy", "locktimeoutstrategy", "onfail", "onfailure", "onerror", "ontimeout"},
	"on_backend": {"onredis", "onredisdown", "onunavailable"},
	"on_lost":    {"releasetimeoutstrategy", "onloss", "onexpired"},
	"fallback":   {"fallbackmethod", "fallbackhandler", "handler", "customlocktimeoutstrategy"},
	"key":        {"lockkey", "spel", "template"},
	"keys":       {"lockkeys"},
	"kind":       {"type", "locktype"},
	"when":       {"condition", "if"},
	"prefix":     {"keyprefix", "lockprefix"},
	"none":       {"nolock", "skip", "ignore"},
	"grpc":       {"rpc", "grpcmethod", "fullmethod"},
	"status":     {"httpstatus", "statuscode"},
}

func ruleHints() map[string]hint {
	hints := map[string]hint{
		"enabled":  {meant: "disabled", message: "unknown field: write disabled, which says the opposite"},
		"timeunit": {message: "unknown field: write the unit into the time, such as wait_time: 10s"},
		"unit":     {message: "unknown field: write the unit into the time, such as wait_time: 10s"},
		"lockname": {message: "unknown field: write key for the lock, or name for the rule in metrics"},
	}
	for name, words := range ruleWords {
		for _, w := range words {
			hints[w] = hint{meant: name}
		}
	}
	for _, w := range []string{"endpoint", "route", "path", "url", "uri", "method"} {
		hints[w] = hint{meant: "http", message: "unknown field: write http: POST /orders/:id/pay, grpc: /shop.Orders/Pay or func: close-day"}
	}
	for _, w := range []string{"profiles", "rules", "unmatched", "uncovered", "allow_rekey"} {
		hints[foldKey(w)] = hint{message: "belongs to the top of the file: write it without indentation"}
	}
	return hints
}

func profileHints() map[string]hint {
	hints := ruleHints()
	for _, w := range append([]string{"http", "grpc", "func", "services"}, namesOf(singleFields)...) {
		hints[foldKey(w)] = hint{message: "belongs to a single rule: remove it here"}
	}
	return hints
}

func topHints() map[string]hint {
	hints := map[string]hint{
		"default":  {message: "unknown field: write profiles: {default: …}"},
		"defaults": {message: "unknown field: write profiles: {default: …}"},
		"settings": {message: "unknown field: the settings stand at the top of the file themselves"},
		"locks":    {meant: "rules"},
		"version":  {message: "unknown field: remove it"},
	}
	for _, name := range ruleTable.names() {
		if name != "disabled" && name != "dry_run" && name != "profile" {
			hints[foldKey(name)] = hint{message: "belongs to a rule: write it below rules:, in an entry that begins with a dash"}
		}
	}
	return hints
}
