package ruleset_test

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// judged loads a file, and asks the schema about it: both must say the same.
func judged(t *testing.T, text string, valid bool) {
	t.Helper()
	value, err := instance(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := compiledSchema(t).Validate(value); (err == nil) != valid {
		t.Errorf("the schema says %v, want valid: %v:\n%s", err, valid, text)
	}
	if _, err := ruleset.Load("locks.yaml", []byte(text), ruleset.WithService("shop")); (err == nil) != valid {
		t.Errorf("Load says %v, want valid: %v:\n%s", err, valid, text)
	}
}

// The schema is written by hand: it and the loader have to agree about the file as a whole.
func TestSchema_JudgesTheTopOfAFile(t *testing.T) {
	t.Parallel()
	const rule = "rules: [{func: a, key: a}]\n"
	for text, valid := range map[string]bool{
		rule:                                                      true,
		"rules: []\n":                                             true,
		"rules:\n":                                                false,
		"rules: {}\n":                                             false,
		"rules: a\n":                                              false,
		"{}\n":                                                    false,
		"[]\n":                                                    false,
		"disabled: true\n" + rule:                                 true,
		"disabled: 1\n" + rule:                                    false,
		"dry_run: false\n" + rule:                                 true,
		"dry_run: 'true'\n" + rule:                                false,
		"allow_rekey: true\n" + rule:                              true,
		"allow_rekey: [true]\n" + rule:                            false,
		"allow_rekeys: true\n" + rule:                             false,
		"unmatched: warn\n" + rule:                                true,
		"unmatched: error\n" + rule:                               true,
		"unmatched: ignore\n" + rule:                              true,
		"unmatched: warning\n" + rule:                             false,
		"uncovered: warn\n" + rule:                                true,
		"uncovered: off\n" + rule:                                 false,
		"uncovered:\n" + rule:                                     false,
		"profiles: {}\n" + rule:                                   true,
		"profiles: []\n" + rule:                                   false,
		"profiles:\n" + rule:                                      false,
		"profiles: {default: {}}\n" + rule:                        true,
		"profiles: {p: {wait_time: 5s}}\n" + rule:                 true,
		"profiles: {p: {wait_time: 5}}\n" + rule:                  false,
		"profiles: {p: 5s}\n" + rule:                              false,
		"profiles: {p:}\n" + rule:                                 false,
		"profiles: {'': {wait_time: 5s}}\n" + rule:                false,
		"profiles: {p: {key: a}}\n" + rule:                        false,
		"profiles: {p: {name: a}}\n" + rule:                       false,
		"profiles: {p: {none: true}}\n" + rule:                    false,
		"profiles: {p: {profile: quick}}\n" + rule:                false,
		"profiles: {p: {services: [a]}}\n" + rule:                 false,
		"profiles: {p: {func: a}}\n" + rule:                       false,
		"profiles: {p: {kind: fair, permits: 3}}\n" + rule:        true, // a rule may say another kind
		"profiles: {p: {status: {busy: {http: 423}}}}\n" + rule:   true,
		"profiles: {p: {status: {}}}\n" + rule:                    false,
		"profiles: {p: {response: '1', on_busy: skip}}\n" + rule:  true,
		"profiles: {p: {disabled: true, dry_run: true}}\n" + rule: true,
	} {
		judged(t, text, valid)
	}
}

// And about each field of a rule: a right value, and wrong ones.
func TestSchema_JudgesEveryField(t *testing.T) {
	t.Parallel()
	for field, values := range map[string]struct{ right, wrong []string }{
		"name":        {[]string{"a", "a b", "ä", "a-b_c.d"}, []string{"''", "' '", "1", "[a]", "{a: b}", `"a\nb"`, "'${a}'", "'{{a}}'"}},
		"wait_time":   {[]string{"1ms", "5s", "1h30m", "none", "forever", "1.5s"}, []string{"''", "5", "'5'", "watchdog", "5 s", "5S", "1d", "true", "[5s]", "0s", "infinite"}},
		"lease_time":  {[]string{"1ms", "30s", "watchdog"}, []string{"none", "forever", "30", "30sec", "0", "{}"}},
		"on_backend":  {[]string{"error", "skip", "null_response", "proceed"}, []string{"fail", "ERROR", "''", "true", "[error]"}},
		"on_key":      {[]string{"error", "skip"}, []string{"ignore", "1"}},
		"on_lost":     {[]string{"cancel", "ignore", "fail"}, []string{"error", "Cancel"}},
		"when":        {[]string{"'true'", "query.mode == \"a\"", "\"a\\nb\""}, []string{"''", "' '", "true", "'#{a}'", "[a]"}},
		"debounce":    {[]string{"5s", "1ms"}, []string{"none", "watchdog", "5", "0s", "''"}},
		"max_waiters": {[]string{"0", "1", "100"}, []string{"-1", "1.5", "'1'", "true", "none"}},
		"token":       {[]string{"true", "false"}, []string{"1", "yes", "'true'", "[]"}},
		"message":     {[]string{"a", "''", "\"a\\nb\"", "'10'"}, []string{"10", "[a]", "true"}},
		"prefix":      {[]string{"'shop:'", "''", "a"}, []string{"'#{a}'", "1", "[a]", `"\u0085"`, `"a\x9f"`, `"\x7f"`}},
		"key_format":  {[]string{"encode", "strict"}, []string{"Strict", "none", "''"}},
		"profile":     {[]string{"quick", "long"}, []string{"''", "default", "1", "[quick]"}},
		"disabled":    {[]string{"true", "false"}, []string{"off", "0"}},
		"dry_run":     {[]string{"true", "false"}, []string{"'false'", "no"}},
		"services":    {[]string{"[shop]", "[shop, till]"}, []string{"[]", "shop", "['']", "[1]", "{shop: 1}"}},
		"status": {
			[]string{"{busy: {http: 423}}", "{lost: {grpc: ABORTED}}", "{backend: {http: 503, grpc: UNAVAILABLE}, key: {http: 422}}"},
			[]string{"{}", "409", "{busy: 409}", "{busy: {}}", "{busy: {http: 399}}", "{busy: {http: 600}}", "{busy: {grpc: aborted}}", "{busy: {grpc: 10}}", "{locked: {http: 409}}"},
		},
		"kind": {[]string{"reentrant", "fenced", "spin", "fair", "read", "write"}, []string{"Fair", "RLock", "''", "[fair]"}},
	} {
		for valid, list := range map[bool][]string{true: values.right, false: values.wrong} {
			for _, value := range list {
				judged(t, fmt.Sprintf("rules:\n- {func: a, key: a, %s: %s}\n", field, value), valid)
			}
		}
	}
}

// And about the place of a rule: blanks around it are none of it.
func TestSchema_JudgesEndpoints(t *testing.T) {
	t.Parallel()
	const control = `\u0085`
	for endpoint, valid := range map[string]bool{
		"http: ' POST /a '":               true,
		"grpc: ' /a.B/C '":                true,
		"grpc: ' * '":                     true,
		"grpc: '/a.B/* '":                 true,
		"func: ' a '":                     true,
		"grpc: '/a.B/C d'":                false,
		"grpc: '/a .B/C'":                 false,
		"grpc: '/ a.B/C'":                 false,
		`http: "POST /a` + control + `"`:  false,
		`http: "POST /a` + control + `b"`: false,
		`grpc: "/a.B/C` + control + `"`:   false,
		`grpc: "/a.B/C` + control + `d"`:  false,
		`func: "a` + control + `b"`:       false,
		`func: "` + control + `"`:         false,
	} {
		judged(t, "rules: [{"+endpoint+", key: k}]\n", valid)
	}
	for _, wildcard := range []string{"http: 'POST /* '", "grpc: '/a.B/* '", "grpc: '* '", "func: 'a/* '"} {
		judged(t, "rules: [{"+wildcard+"}]\n", false) // no lower layer brings a key
	}
}
