package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/core/ruleset"
)

// describe turns the comment of a Go field into a sentence about a file.
func describe(field, comment string) (string, error) {
	if text, ok := descriptions()[field]; ok {
		return text, nil
	}
	if comment == "" {
		return "", fmt.Errorf("%s has no comment", field)
	}
	text, err := fileWords(strings.Join(strings.Fields(comment), " "))
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return text, nil
}

var (
	fieldIs  = regexp.MustCompile(`^\w+ (is |says (what))?`) // "WaitTime is how long …"
	link     = regexp.MustCompile(`\[([\w.]+)\]`)
	goFields = regexp.MustCompile(`\b[A-Z]\w+\b`)
)

// fileWords replaces Go's names: the field's own at the start, links, and other
// fields.
func fileWords(comment string) (string, error) {
	var unknown []string
	text := fieldIs.ReplaceAllString(comment, "$2")
	text = link.ReplaceAllStringFunc(text, func(name string) string {
		word, ok := linkWords()[strings.Trim(name, "[]")]
		if !ok {
			unknown = append(unknown, name)
		}
		return word
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("what is %s in a file? Add it to linkWords", strings.Join(unknown, ", "))
	}
	fields := map[string]string{"Key": "key", "Keys": "keys"}
	text = goFields.ReplaceAllStringFunc(text, func(name string) string {
		if word, ok := fields[name]; ok {
			return word
		}
		return name
	})
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:], nil
}

// linkWords are the words of a file for what comments link to.
func linkWords() map[string]string {
	return map[string]string{
		"Reentrant": "reentrant", "Fenced": "fenced", "Spin": "spin", "Fair": "fair",
		"Read": "read", "Write": "write", "Semaphore": "semaphore", "Encode": "encode",
		"NoWait": "none", "WaitForever": "forever", "Watchdog": "watchdog",
		"MaxDuration": "87600h", "MaxPermits": "2147483647", "DefaultWaitTime": "10s",
		"failpolicy.Error": "error", "failpolicy.Cancel": "cancel",
		"failpolicy.Fallback": "fallback", "failpolicy.NullResponse": "null_response",
		"Settings.Uncovered": "uncovered",
	}
}

// descriptions replace comments that speak to programmers.
func descriptions() map[string]string {
	const (
		strategies = " error: refuse. skip: do not run the handler, and call that a success. null_response: do not run it, and answer null or the rule's response." +
			" fallback: run the handler that fallback names. proceed: run the handler without the lock. Default: error."
		severities = " error: start-up and reload fail. warn: it is reported. ignore: nothing."
	)
	return map[string]string{
		"Rule.on_busy":     "What to do when the lock stays taken, and with a call inside a debounce window." + strategies,
		"Rule.on_backend":  "What to do when Redis does not answer or cannot tell." + strategies,
		"Rule.on_key":      "What to do with a request that yields no key." + strategies,
		"Rule.on_overload": "What to do when too many callers wait already." + strategies,
		"Rule.on_lost": "What a loss of the lock does to the running handler. cancel: its context ends. ignore: nothing." +
			" fail: its context ends, and the caller gets an error in any case. Default: cancel.",
		"Rule.key_format": "How values enter the key. encode: what would make two keys ambiguous is percent-encoded. strict: such values are refused," +
			" for keys that are shared with programs which do not encode. Default: encode.",
		"Rule.profile": "The profile whose values count where the rule sets none: one under profiles, or quick (3s wait, 10s lease)," +
			" normal (5s, 30s), heavy (10s, 60s), long (10s, watchdog).",
		"Rule.status": "What a refused client sees, for each cause: an HTTP status, a gRPC code or both. What is left out is as without a rule: busy is 409, ABORTED, and for a semaphore 429, RESOURCE_EXHAUSTED.",
		"Settings.unmatched": "What becomes of a rule that matches no endpoint of the program." + severities +
			" Default: error.",
		"Settings.uncovered": "What becomes of an endpoint that changes something and has no rule, not even none: true. Such are HTTP methods other than" +
			" GET, HEAD, OPTIONS and TRACE, and gRPC methods whose idempotency_level is not NO_SIDE_EFFECTS." + severities + " Default: ignore.",
	}
}

// defaults are the values of what is not set, by the names that [describe] takes.
func defaults() (map[string]any, error) {
	rules, err := ruleset.Resolve([]ruleset.Rule{{Key: "a"}})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(ruleset.Dump{Rules: rules, NoSources: true})
	if err != nil {
		return nil, err
	}
	var dump struct {
		Settings map[string]any   `json:"settings"`
		Rules    []map[string]any `json:"rules"`
	}
	if err := json.Unmarshal(text, &dump); err != nil {
		return nil, err
	}
	values := map[string]any{}
	for field, value := range dump.Settings {
		values["Settings."+field] = value
	}
	for field, value := range dump.Rules[0] {
		if rules[0].Source(field).Layer == ruleset.LayerDefault {
			values["Rule."+field] = value
		}
	}
	return values, nil
}
