package grpclock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
)

func TestOverlay_OfARuleFileOverOptionsChangesWhatItNames(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, method, entry, want string }{
		{"on_busy only", "Refuse", "on_busy: null_response", "OK | null | (empty)"},
		{"status only, another strategy stays", "Skip", "message: no", "OK | skipped | (empty)"},
		{"disabled", "Refuse", "disabled: true", "OK | Refuse 1"},
		{"disabled taken back", "Off", "disabled: false, wait_time: none", busy},
		{"dry run", "Refuse", "dry_run: true", "OK | Refuse 1"},
		{"key replaced", "Refuse", `key: "other:#{req.item}"`, "OK | Refuse 1"},
		{"one of two, by its name", "Both", "name: item, on_busy: error", busy},
		{"a rule beside the option", "Plain", `key: "till:#{req.item}", wait_time: none`, busy},
		{"a lock where the option has none", "Count", `key: "till:#{req.item}", wait_time: none`, busy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "rules:\n  - {grpc: "+tillMethod(tt.method)+", "+tt.entry+"}\n")
			b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(set)).checked()
			b.redis.Take("till:1", time.Minute)
			if got := b.sell(t.Context(), tt.method, sale("1", 1)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOverlay_OfWaitTimeOnly(t *testing.T) {
	t.Parallel()
	set := load(t, "rules:\n  - {grpc: "+tillMethod("Refuse")+", wait_time: 10m}\n")
	b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(set)).checked()
	b.redis.Take("till:1", time.Minute)
	answer := make(chan string)
	go func() { answer <- b.sell(t.Context(), "Refuse", sale("1", 1)) }()
	select {
	case got := <-answer:
		t.Errorf("did not wait: %q", got)
	case <-time.After(50 * time.Millisecond): // waiting, or not yet begun: both are right
		b.redis.Free("till:1")
		if got := <-answer; got != "OK | Refuse 1" {
			t.Errorf("got %q", got)
		}
	}
}

func TestOverlay_OfARuleFileOverCodeAndOptions(t *testing.T) {
	t.Parallel()
	code := ruleset.Rule{Endpoint: ruleset.GRPC(tillMethod("Refuse")), Key: "code", OnBusy: failpolicy.NullResponse, Response: `{"text": "code"}`}
	b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithRules(code)).checked()
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | null | code" {
		t.Errorf("options over code: got %q, want the key of the option and the answer of the code", got)
	}
	set := load(t, "rules:\n  - {grpc: "+tillMethod("Refuse")+", response: '{\"text\": \"file\"}'}\n", ruleset.WithRules(code))
	b = prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(set)).checked()
	b.redis.Take("till:1", time.Minute)
	if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != "OK | null | file" {
		t.Errorf("a file over options over code: got %q", got)
	}
}

func TestOverlay_WildcardsDoNotReachMethodsWithOptions(t *testing.T) {
	t.Parallel()
	set := load(t, "rules:\n  - {grpc: /till.v1.Till/*, key: all, wait_time: none}\n")
	b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(set)).checked()
	b.redis.Take("all", time.Minute)
	for method, want := range map[string]string{"Plain": busy, "Count": busy, "Refuse": "OK | Refuse 1", "Free": "OK | Free 1"} {
		if got := b.sell(t.Context(), method, sale("1", 1)); got != want {
			t.Errorf("%s: got %q, want %q", method, got, want)
		}
	}
}

func TestOverlay_DefaultsAndSwitchesOfTheFileReachOptions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"profiles: {default: {on_busy: skip}}\n" + elsewhere:         "OK | skipped | (empty)",
		"disabled: true\n" + elsewhere:                               "OK | Refuse 1",
		"dry_run: true\n" + elsewhere:                                "OK | Refuse 1",
		"profiles: {default: {message: closed today}}\n" + elsewhere: "Aborted | interlock/LOCK_BUSY | closed today",
	} {
		b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(load(t, text))).checked()
		b.redis.Take("till:1", time.Minute)
		if got := b.sell(t.Context(), "Refuse", sale("1", 1)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestOverlay_MistakesAreFoundByCheck(t *testing.T) {
	t.Parallel()
	for entry, wants := range map[string][]string{
		"{grpc: /till.v1.Till/Both, name: itme, wait_time: 1s}": {
			`locks.yaml:2:5: rule "itme" of grpc /till.v1.Till/Both: key: missing`, `give its name: "day" or "item"`,
		},
		"{grpc: /till.v1.Till/Plain, wait_time: 1s}":    {`locks.yaml:2:5: rule of grpc /till.v1.Till/Plain: key: missing`},
		"{grpc: /till.v1.Till/Refus, wait_time: 1s}":    {`locks.yaml:2:`, `did you mean "/till.v1.Till/Refuse"?`},
		`{grpc: /till.v1.Till/Skip, key: "#{req.itm}"}`: {`locks.yaml:2:`, "write req.item"},
		`{grpc: /till.v1.Till/Null, fallback: till}`:    {`locks.yaml:2:`, `fallback: "till" is never used`},
	} {
		b := prepareTill(t, patient, sold, tillQueue(), grpclock.WithSet(load(t, "rules:\n  - "+entry+"\n")))
		err := b.guard.Check(b.server)
		if err == nil {
			t.Errorf("%s: no error", entry)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", entry, err, want)
			}
		}
	}
}
