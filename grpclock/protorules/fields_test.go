package protorules_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/lockpb"
	"github.com/interlock-go/interlock/grpclock/protorules"
)

// row contains a field of the option in the text form, and the change that the field makes to a rule.
type row struct {
	field, written string
	want           func(r *ruleset.Rule)
}

var rows = []row{
	{"name", `name: "pay"`, func(r *ruleset.Rule) { r.Name = "pay" }},
	{"key", `key: "k"`, func(r *ruleset.Rule) { r.Key = "k" }},
	{"keys", `keys: ["a", "b"]`, func(r *ruleset.Rule) { r.Keys = []string{"a", "b"} }},
	{"kind", `kind: KIND_REENTRANT`, func(r *ruleset.Rule) { r.Kind = ruleset.Reentrant }},
	{"kind", `kind: KIND_FENCED`, func(r *ruleset.Rule) { r.Kind = ruleset.Fenced }},
	{"kind", `kind: KIND_SPIN`, func(r *ruleset.Rule) { r.Kind = ruleset.Spin }},
	{"kind", `kind: KIND_FAIR`, func(r *ruleset.Rule) { r.Kind = ruleset.Fair }},
	{"kind", `kind: KIND_READ`, func(r *ruleset.Rule) { r.Kind = ruleset.Read }},
	{"kind", `kind: KIND_WRITE`, func(r *ruleset.Rule) { r.Kind = ruleset.Write }},
	{"kind", `kind: KIND_SEMAPHORE`, func(r *ruleset.Rule) { r.Kind = ruleset.Semaphore }},
	{"wait_time", `wait_time: "1m30s"`, func(r *ruleset.Rule) { r.WaitTime = 90 * time.Second }},
	{"wait_time", `wait_time: "none"`, func(r *ruleset.Rule) { r.WaitTime = ruleset.NoWait }},
	{"wait_time", `wait_time: "forever"`, func(r *ruleset.Rule) { r.WaitTime = ruleset.WaitForever }},
	{"lease_time", `lease_time: "30s"`, func(r *ruleset.Rule) { r.LeaseTime = 30 * time.Second }},
	{"lease_time", `lease_time: "watchdog"`, func(r *ruleset.Rule) { r.LeaseTime = ruleset.Watchdog }},
	{"max_hold", `max_hold: "1m"`, func(r *ruleset.Rule) { r.MaxHold = time.Minute }},
	{"on_busy", `on_busy: STRATEGY_ERROR`, func(r *ruleset.Rule) { r.OnBusy = failpolicy.Error }},
	{"on_busy", `on_busy: STRATEGY_NULL_RESPONSE`, func(r *ruleset.Rule) { r.OnBusy = failpolicy.NullResponse }},
	{"on_backend", `on_backend: STRATEGY_PROCEED`, func(r *ruleset.Rule) { r.OnBackend = failpolicy.Proceed }},
	{"on_key", `on_key: STRATEGY_SKIP`, func(r *ruleset.Rule) { r.OnKey = failpolicy.Skip }},
	{"on_overload", `on_overload: STRATEGY_FALLBACK`, func(r *ruleset.Rule) { r.OnOverload = failpolicy.Fallback }},
	{"on_lost", `on_lost: ON_LOST_FAIL`, func(r *ruleset.Rule) { r.OnLost = failpolicy.Fail }},
	{"fallback", `fallback: "queue"`, func(r *ruleset.Rule) { r.Fallback = "queue" }},
	{"when", `when: "req.amount > 100"`, func(r *ruleset.Rule) { r.When = "req.amount > 100" }},
	{"debounce", `debounce: "5s"`, func(r *ruleset.Rule) { r.Debounce = 5 * time.Second }},
	{"max_waiters", `max_waiters: 7`, func(r *ruleset.Rule) { r.MaxWaiters = 7 }},
	{"permits", `permits: 3`, func(r *ruleset.Rule) { r.Permits = 3 }},
	{"token", `token: true`, func(r *ruleset.Rule) { r.Token = true }},
	{"status", `status: {busy: {http: 423 grpc: "FAILED_PRECONDITION"}}`, func(r *ruleset.Rule) {
		r.Status.Busy = failpolicy.Status{HTTP: 423, GRPC: 9 /* FAILED_PRECONDITION */}
	}},
	{"status", `status: {debounced: {http: 420}}`, func(r *ruleset.Rule) { r.Status.Debounced.HTTP = 420 }},
	{"status", `status: {backend: {grpc: "INTERNAL"}}`, func(r *ruleset.Rule) { r.Status.Backend.GRPC = 13 /* INTERNAL */ }},
	{"status", `status: {key: {http: 422}}`, func(r *ruleset.Rule) { r.Status.Key.HTTP = 422 }},
	{"status", `status: {overload: {http: 503}}`, func(r *ruleset.Rule) { r.Status.Overload.HTTP = 503 }},
	{"status", `status: {lost: {grpc: "DATA_LOSS"}}`, func(r *ruleset.Rule) { r.Status.Lost.GRPC = 15 /* DATA_LOSS */ }},
	{"status", `status: {deadline: {http: 408}}`, func(r *ruleset.Rule) { r.Status.Deadline.HTTP = 408 }},
	{"response", `response: "{}"`, func(r *ruleset.Rule) { r.Response = "{}" }},
	{"message", `message: "try again"`, func(r *ruleset.Rule) { r.Message = "try again" }},
	{"prefix", `prefix: "shop:"`, func(r *ruleset.Rule) { r.Prefix = "shop:" }},
	{"key_format", `key_format: KEY_FORMAT_STRICT`, func(r *ruleset.Rule) { r.KeyFormat = ruleset.Strict }},
	{"profile", `profile: "quick"`, func(r *ruleset.Rule) { r.Profile = "quick" }},
	{"disabled", `disabled: true`, func(r *ruleset.Rule) { r.Disabled = true }},
	{"dry_run", `dry_run: true`, func(r *ruleset.Rule) { r.DryRun = true }},
	{"none", `none: true`, func(r *ruleset.Rule) { r.None = true }},
}

func TestFields_EachChangesOneField(t *testing.T) {
	t.Parallel()
	for _, row := range rows {
		t.Run(row.written, func(t *testing.T) {
			t.Parallel()
			got := onlyRule(t, pay(t, lock(row.written)))
			want := ruleset.Rule{Endpoint: ruleset.GRPC("/shop.v1.Orders/Pay")}
			row.want(&want)
			if !reflect.DeepEqual(got.Rule, want) {
				t.Errorf("got %+v, want %+v", got.Rule, want)
			}
			if _, set := got.Fields[row.field]; !set || len(got.Fields) != 1 {
				t.Errorf("got sources of %v, want one of %s", got.Fields, row.field)
			}
		})
	}
}

// An explicit zero value overrides the value of a rule in code.
func TestFields_ZeroIsSet(t *testing.T) {
	t.Parallel()
	for field, written := range map[string]string{
		"name": `name: ""`, "key": `key: ""`, "fallback": `fallback: ""`, "when": `when: ""`,
		"max_waiters": `max_waiters: 0`, "permits": `permits: 0`, "status": `status: {}`, "response": `response: ""`,
		"message": `message: ""`, "prefix": `prefix: ""`, "profile": `profile: ""`, "disabled": `disabled: false`,
		"dry_run": `dry_run: false`, "token": `token: false`, "none": `none: false`,
	} {
		got := onlyRule(t, pay(t, lock(written)))
		if _, set := got.Fields[field]; !set || len(got.Fields) != 1 {
			t.Errorf("%s: got sources of %v, want one of %s", written, got.Fields, field)
		}
	}
	for _, unset := range []string{
		`keys: []`, `kind: KIND_UNSPECIFIED`, `on_busy: STRATEGY_UNSPECIFIED`, `on_lost: ON_LOST_UNSPECIFIED`, `key_format: KEY_FORMAT_UNSPECIFIED`,
	} {
		if got := onlyRule(t, pay(t, lock(unset))); len(got.Fields) != 0 {
			t.Errorf("%s: got sources of %v, want none", unset, got.Fields)
		}
	}
}

// names returns the field names of m.
func names(m protoreflect.MessageDescriptor) []string {
	var list []string
	for i := range m.Fields().Len() {
		list = append(list, string(m.Fields().Get(i).Name()))
	}
	return list
}

func TestFields_MatchRule(t *testing.T) {
	t.Parallel()
	lock := names((*lockpb.Lock)(nil).ProtoReflect().Descriptor())
	if ofRule := ruleset.Fields()[1:]; !slices.Equal(lock, ofRule) { // the endpoint is the method
		t.Errorf("fields of lock.proto: %q\nof ruleset.Rule: %q", lock, ofRule)
	}
}

// A field without a row above is read like the field of a rule file.
func TestFields_ReadLikeRuleFile(t *testing.T) {
	t.Parallel()
	fields := (*lockpb.Lock)(nil).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field, name := fields.Get(i), string(fields.Get(i).Name())
		if slices.ContainsFunc(rows, func(r row) bool { return r.field == name }) {
			continue
		}
		samples := []string{"true", "3"}
		switch {
		case field.Enum() != nil:
			prefix := strings.TrimSuffix(string(field.Enum().Values().ByNumber(0).Name()), "UNSPECIFIED")
			samples = []string{strings.ToLower(strings.TrimPrefix(string(field.Enum().Values().ByNumber(2).Name()), prefix))}
		case field.Kind() == protoreflect.StringKind:
			samples = []string{`"5s"`, `"text"`}
		}
		accepted := slices.ContainsFunc(samples, func(sample string) bool {
			file := fmt.Sprintf("rules: [{grpc: /shop.v1.Orders/Pay, key: k, %s: %s}]", name, sample)
			want, err := ruleset.Load("locks.yaml", []byte(file))
			if err != nil {
				return false
			}
			written := sample
			if field.Enum() != nil {
				written = string(field.Enum().Values().ByNumber(2).Name())
			}
			declared, problems := protorules.Of(pay(t, lock(fmt.Sprintf("key: \"k\" %s: %s", name, written))))
			got, err := ruleset.BuildSet(declared)
			if err != nil || len(problems) > 0 || !reflect.DeepEqual(got.Rules()[0].Rule, want.Rules()[0].Rule) {
				t.Errorf("%s: %s: got %v, %v, %v", name, sample, declared, problems, err)
			}
			return true
		})
		if !accepted {
			t.Errorf("%s: no rule file accepts any of %q: write a row for it", name, samples)
		}
	}
}

func TestFields_StatusesMatchFailpolicy(t *testing.T) {
	t.Parallel()
	inGo := reflect.TypeFor[failpolicy.Statuses]()
	if got := (*lockpb.Statuses)(nil).ProtoReflect().Descriptor().Fields().Len(); got != inGo.NumField() {
		t.Errorf("lock.proto has %d causes, failpolicy.Statuses %d", got, inGo.NumField())
	}
	if got := (*lockpb.Status)(nil).ProtoReflect().Descriptor().Fields().Len(); got != reflect.TypeFor[failpolicy.Status]().NumField() {
		t.Errorf("lock.proto has %d fields of a status", got)
	}
}

func TestFields_EnumsMatchRuleWords(t *testing.T) {
	t.Parallel()
	words := func(get func(ruleset.Rule) string, field string, values protoreflect.EnumValueDescriptors) []string {
		var list []string
		for i := 1; i < values.Len(); i++ {
			list = append(list, get(onlyRule(t, pay(t, lock(field+": "+string(values.Get(i).Name())))).Rule))
		}
		return list
	}
	check := func(what string, got, want []string) {
		if !slices.Equal(got, want) {
			t.Errorf("%s: lock.proto has %q, rules have %q", what, got, want)
		}
	}
	check("kind", words(func(r ruleset.Rule) string { return string(r.Kind) }, "kind", lockpb.Kind(0).Descriptor().Values()), texts(ruleset.Kinds()))
	check("strategy", words(func(r ruleset.Rule) string { return string(r.OnKey) }, "on_key", lockpb.Strategy(0).Descriptor().Values()), texts(failpolicy.Strategies()))
	check("on_lost", words(func(r ruleset.Rule) string { return string(r.OnLost) }, "on_lost", lockpb.OnLost(0).Descriptor().Values()), texts(failpolicy.LossChoices()))
	check("key_format", words(func(r ruleset.Rule) string { return string(r.KeyFormat) }, "key_format", lockpb.KeyFormat(0).Descriptor().Values()), []string{"encode", "strict"})
}

func texts[T ~string](list []T) []string {
	var words []string
	for _, w := range list {
		words = append(words, string(w))
	}
	return words
}

// Options and rule files accept the same spellings of durations.
func TestFields_Durations(t *testing.T) {
	t.Parallel()
	texts := []string{
		"10s", "250ms", "1m30s", "1.5h", "1ms", "none", "forever", "watchdog", // some of them valid
		"", " ", "10", "0", "0s", "-5s", "10 s", "10S", "10sec", "1d", "soon", "None", "FOREVER", "infinite", "1us", "100000h", "5s5", "+5s", ".5s", "1e3s", "٣s",
	}
	for _, field := range []string{"wait_time", "lease_time", "max_hold", "debounce"} {
		for _, text := range texts {
			file := fmt.Sprintf("rules:\n  - {grpc: /shop.v1.Orders/Pay, key: k, %s: %q}\n", field, text)
			fromFile, inFile := ruleset.Load("locks.yaml", []byte(file))
			declared, problems := protorules.Of(pay(t, lock(fmt.Sprintf("key: \"k\" %s: %q", field, text))))
			fromOption, inOption := ruleset.BuildSet(declared)
			if inOption == nil {
				inOption = ruleset.Invalid(problems...)
			}
			if (inFile == nil) != (inOption == nil) {
				t.Errorf("%s: %q: in a file: %v, in an option: %v", field, text, inFile, inOption)
				continue
			}
			if inFile != nil {
				continue
			}
			a, b := fromFile.Rules()[0], fromOption.Rules()[0]
			if a.WaitTime != b.WaitTime || a.LeaseTime != b.LeaseTime || a.MaxHold != b.MaxHold || a.Debounce != b.Debounce {
				t.Errorf("%s: %q: in a file %v, %v, %v, %v; in an option %v, %v, %v, %v", field, text, a.WaitTime, a.LeaseTime, a.MaxHold, a.Debounce, b.WaitTime, b.LeaseTime, b.MaxHold, b.Debounce)
			}
		}
	}
}

// A number without a unit is the same error in an option and in a rule file.
func TestFields_DurationsWithoutUnit(t *testing.T) {
	t.Parallel()
	times := regexp.MustCompile(`\d+(\.\d+)?(ms|s|h)\b`)
	for _, text := range []string{"1", "5", "99", "100", "1.5", "2500.5", "86400", "86401", "10000000", "10000000000h"} {
		file := fmt.Sprintf("rules:\n  - {grpc: /shop.v1.Orders/Pay, key: k, debounce: %s}\n", text)
		_, err := ruleset.Load("locks.yaml", []byte(file))
		_, problems := protorules.Of(pay(t, lock(fmt.Sprintf("key: \"k\" debounce: %q", text))))
		if err == nil || len(problems) != 1 {
			t.Fatalf("%s: got %v and %v, want a problem of each", text, err, problems)
		}
		_, said, _ := strings.Cut(err.Error(), ": write ")
		want := times.ReplaceAllString(said, `"$0"`)
		if !strings.HasSuffix(problems[0].Message, ": write "+want) {
			t.Errorf("%s: got %q, want it to end with %q", text, problems[0].Message, want)
		}
	}
}
