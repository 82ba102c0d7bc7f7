package ruleset_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
)

// For a field name of another library, the message contains the name of the field in a rule file.
func TestLoad_ForeignFieldNames(t *testing.T) {
	t.Parallel()
	for field, names := range map[string][]string{
		"wait_time":   {"waitTime", "wait-time", "WaitTime", "waitTimeout", "timeout", "acquireTimeout", "wait_tme"},
		"lease_time":  {"leaseTime", "ttl", "TTL", "expire", "expiry", "lockTimeout", "lease"},
		"max_hold":    {"maxHold", "max-hold", "holdTime", "maxLease", "max_hld"},
		"on_busy":     {"onBusy", "failStrategy", "strategy", "lockTimeoutStrategy", "onbussy"},
		"on_backend":  {"onBackend", "onBackendDown"},
		"on_lost":     {"onLost", "releaseTimeoutStrategy", "onLoss"},
		"fallback":    {"fallbackMethod", "fallback_handler", "customLockTimeoutStrategy", "falback"},
		"key":         {"lockKey", "lockName", "Key"},
		"keys":        {"lockKeys", "Keys", "kyes"},
		"kind":        {"type", "lockType", "Kind"},
		"when":        {"condition", "When"},
		"prefix":      {"keyPrefix", "lock_prefix", "prefx"},
		"max_waiters": {"maxWaiters", "max-waiters", "maxwaiter"},
		"dry_run":     {"dryRun", "dry-run", "DryRun"},
		"key_format":  {"keyFormat", "KeyFormat"},
		"message":     {"Message", "mesage"},
		"disabled":    {"Disabled", "disable"},
		"status":      {"httpStatus", "statusCode", "Status"},
	} {
		for _, name := range names {
			p := onlyProblem(t, "rules:\n- func: a\n  "+name+": x\n")
			if p.Field != name || p.Source.Line != 3 || p.Source.Column != 3 || !strings.Contains(p.Message+" ", "write "+field+" ") && !strings.Contains(p.Message, "write "+field+",") {
				t.Errorf("%s: got %s, want it to advise %s", name, p, field)
			}
		}
	}
}

// The message about a field in the wrong place names the right place.
func TestLoad_MisplacedFields(t *testing.T) {
	t.Parallel()
	const rule = "rules:\n- {func: a, key: a}\n"
	for text, want := range map[string]string{
		"key: a\n" + rule:                                "belongs to a rule: write it below rules:, in an entry that begins with a dash",
		"wait_time: 5s\n" + rule:                         "belongs to a rule: write it below rules:, in an entry that begins with a dash",
		"alow_rekey: true\n" + rule:                      "unknown field: write allow_rekey",
		"colour: red\n" + rule:                           "unknown field: a rule file has disabled, dry_run, allow_rekey, unmatched, uncovered, profiles, rules",
		"profiles: {p: {key: a}}\n" + rule:               "belongs to a single rule: remove it here",
		"profiles: {p: {http: GET /}}\n" + rule:          "belongs to a single rule: remove it here",
		"profiles: {p: {ttl: 5s}}\n" + rule:              "unknown field: write lease_time",
		"rules:\n- {func: a, key: a, uncovered: warn}\n": "belongs to the top of the file: write it without indentation",
		"rules:\n- {func: a, key: a, profiles: {}}\n":    "belongs to the top of the file: write it without indentation",
		"rules:\n- {func: a, key: a, 'a b': x}\n":        "unknown field: a rule has http, grpc, func, services, name, key",
		"uncovered: warning\n" + rule:                    `unknown severity "warning": write "warn"`,
		"uncovered: eror\n" + rule:                       `unknown severity "eror": write "error"`,
	} {
		if p := onlyProblem(t, text); !strings.HasPrefix(p.Message, want) {
			t.Errorf("%q: got %s, want %s", text, p, want)
		}
	}
}

// For a word that another library uses as a value, the message contains the word of a rule file.
func TestLoad_ForeignWords(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"on_busy: EXCEPTION":                  "error",
		"on_busy: Skip":                       "skip",
		"on_busy: RETURN_NULL":                "null_response",
		"on_busy: CONTINUE":                   "proceed",
		"on_key: falback":                     "fallback",
		"on_lost: FAIL_FAST":                  "fail",
		"on_lost: cancelled":                  "cancel",
		"kind: ReentrantLock":                 "reentrant",
		"kind: RFencedLock":                   "fenced",
		"kind: spinlock":                      "spin",
		"kind: RFairLock":                     "fair",
		"kind: RReadLock":                     "read",
		"kind: semafore":                      "semaphore",
		"kind: RPermitExpirableSemaphore":     "semaphore",
		"key_format: Strict":                  "strict",
		"key_format: encoded":                 "encode",
		"status: {busy: {grpc: aborted}}":     "ABORTED",
		"status: {busy: {grpc: Unavailable}}": "UNAVAILABLE",
	} {
		p := onlyProblem(t, "rules:\n- func: a\n  key: a\n  "+entry+"\n")
		if !strings.Contains(p.Message, "write "+want) && !strings.Contains(p.Message, fmt.Sprintf("write %q", want)) {
			t.Errorf("%s: got %s, want it to advise %s", entry, p, want)
		}
		if p.Source.Line != 4 || p.Source.Column < 8 {
			t.Errorf("%s: got a problem at %s", entry, p.Source)
		}
	}
}

func TestLoad_WrongStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]string{
		"409":                            `status: 409 is a number: write busy: {http: 423, grpc: ABORTED}`,
		"{}":                             `status: empty: write busy: {http: 423, grpc: ABORTED}, or remove the line`,
		"{http: 409}":                    `status.http: belongs to a cause: write busy: {http: 423, grpc: ABORTED}`,
		"{busy: 409}":                    `status.busy: 409 is a number: write {http: 423, grpc: ABORTED}`,
		"{busy: {}}":                     `status.busy: empty: write {http: 423, grpc: ABORTED}, or remove the line`,
		"{locked: {http: 409}}":          `status.locked: unknown field: write busy`,
		"{redis: {http: 409}}":           `status.redis: unknown field: write backend`,
		"{canceled: {http: 409}}":        `status.canceled: a caller that is gone sees no status: remove it`,
		"{bussy: {http: 409}}":           `status.bussy: unknown field: write busy`,
		"{busy: {http: 200}}":            `status.busy.http: 200 is not the status of an error: write one of 400 to 599, such as 409`,
		"{busy: {http: 600}}":            `status.busy.http: 600 is not the status of an error: write one of 400 to 599, such as 409`,
		"{busy: {http: '409'}}":          `status.busy.http: "409" is text: write a plain decimal number without quotes, such as 409`,
		"{busy: {http: CONFLICT}}":       `status.busy.http: "CONFLICT" is text: write a plain decimal number without quotes, such as 409`,
		"{busy: {grpc: 10}}":             `status.busy.grpc: 10 is a number: write the code's name, ABORTED`,
		"{busy: {grpc: OK}}":             `status.busy.grpc: `,
		"{busy: {grpc: [ABORTED]}}":      `status.busy.grpc: a list: write a code such as ABORTED`,
		"{busy: {code: 409}}":            `status.busy.code: unknown field: a status has http, grpc`,
		"{busy: {http: 409, http: 423}}": `status.busy.http: given twice: remove this one, or the first in line 4`,
	} {
		p := onlyProblem(t, "rules:\n- func: a\n  key: a\n  status: "+status+"\n")
		if !strings.Contains(p.Error(), "rule of func a: "+want) {
			t.Errorf("%s: got %s, want %s", status, p, want)
		}
	}
}

func TestLoad_WrongServices(t *testing.T) {
	t.Parallel()
	for services, want := range map[string]string{
		"shop":            `services: "shop" is text: write services: ["shop"]`,
		"[]":              "services: no program would have the rule: name one, or remove the line",
		"[Shop]":          `services[0]: "Shop" is not the name of this program, and the rule would be left out: write "shop"`,
		"[till, 'shop ']": `services[1]: "shop " is not the name of this program, and the rule would be left out: write "shop"`,
		"[10]":            `services[0]: 10 is a number: write it as text, in quotes: "10"`,
		"[shop, '']":      "services[1]: empty: write a value, or remove the line",
		"":                `services: empty: write services: ["…", "…"], or remove the line`,
		"{shop: true}":    `services: a mapping: write services: ["…", "…"]`,
	} {
		p := onlyProblem(t, "rules:\n- func: a\n  key: a\n  services: "+services+"\n")
		if !strings.HasSuffix(p.Error(), "rule of func a: "+want) {
			t.Errorf("%s: got %s, want %s", services, p, want)
		}
	}
}

func TestLoad_Services(t *testing.T) {
	t.Parallel()
	const text = `
rules:
  - {func: a, key: a, services: [shop, billing]}
  - {func: b, key: b, services: [billing]}
  - {func: c, key: c}
`
	for service, want := range map[string]string{"shop": "a c", "billing": "a b c", "stock": "c"} {
		var names []string
		for _, r := range mustLoad(t, text, ruleset.WithService(service)).Rules() {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %q, want %q", service, got, want)
		}
	}
}

func TestLoad_SourcesOfParts(t *testing.T) {
	t.Parallel()
	r := onlyRule(t, `rules:
  - func: a
    keys:
      - a
      - b
    status:
      busy:
        http: 423
`)
	for field, want := range map[string]string{
		"keys": "locks.yaml:4:7", "keys[1]": "locks.yaml:5:9", "status.busy.http": "locks.yaml:8:15", "status.key.http": "locks.yaml:7:7", "when": "locks.yaml:2:5",
	} {
		if got := r.Problem(field, "bad").Source.String(); got != want {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

func TestLoad_WindowsFile(t *testing.T) {
	t.Parallel()
	unix := "rules:\n  - func: a\n    key: a\n    when: |\n      in.A\n      && in.B\n"
	a, b := onlyRule(t, unix), onlyRule(t, "\ufeff"+strings.ReplaceAll(unix, "\n", "\r\n"))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got %+v and %+v", a, b)
	}
}
