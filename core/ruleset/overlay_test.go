package ruleset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// A file is laid over the options of a method, field by field. Each value has its own place.
func TestSet_Overlay(t *testing.T) {
	t.Parallel()
	pay := ruleset.GRPC("/shop.Orders/Pay")
	lower := fromProto(ruleset.Rule{Endpoint: pay, Key: "order:#{req.id}", WaitTime: time.Second, OnBusy: failpolicy.Skip})
	for name, tc := range map[string]struct {
		text string
		want map[string]string // values of fields, with their places
	}{
		"nothing": {"rules: []\n", map[string]string{"key": "order:#{req.id} shop.proto:10:5", "wait_time": "1s shop.proto:10:5", "on_busy": "skip shop.proto:10:5"}},
		"one field": {
			"rules:\n- {grpc: /shop.Orders/Pay, wait_time: 5s}\n",
			map[string]string{"key": "order:#{req.id} shop.proto:10:5", "wait_time": "5s locks.yaml:2:39", "on_busy": "skip shop.proto:10:5"},
		},
		"the key": {
			"rules:\n- {grpc: /shop.Orders/Pay, key: a}\n",
			map[string]string{"key": "a locks.yaml:2:33", "wait_time": "1s shop.proto:10:5"},
		},
		"defaults of the file": {
			"profiles: {default: {on_lost: fail, wait_time: 9s}}\nrules: []\n",
			map[string]string{"wait_time": "1s shop.proto:10:5", "on_lost": "fail default, locks.yaml:1:31"},
		},
		"a profile": {
			"profiles: {slow: {lease_time: 9s, wait_time: 9s}}\nrules:\n- {grpc: /shop.Orders/Pay, profile: slow}\n",
			map[string]string{"wait_time": "1s shop.proto:10:5", "lease_time": "9s profile slow, locks.yaml:1:31"},
		},
		"the kill switch": {
			"disabled: true\nrules: []\n",
			map[string]string{"key": "order:#{req.id} shop.proto:10:5", "disabled": "true locks.yaml:1:11"},
		},
		"a wildcard does not reach it": {
			"rules:\n- {grpc: '*', key: a, wait_time: 7s}\n",
			map[string]string{"key": "order:#{req.id} shop.proto:10:5", "wait_time": "1s shop.proto:10:5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, err := mustLoad(t, tc.text).Overlay(pay, lower...)
			if err != nil || len(rules) != 1 {
				t.Fatalf("got %d rules, %v", len(rules), err)
			}
			text := dumpText(t, ruleset.Dump{Rules: rules})
			for field, want := range tc.want {
				value, place, _ := strings.Cut(want, " ")
				found := slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
					return strings.Contains(line, field+": ") && strings.Contains(line, value) && strings.HasSuffix(line, "# "+place)
				})
				if !found {
					t.Errorf("%s is not %s in\n%s", field, want, text)
				}
			}
		})
	}
}

func TestSet_Overlay_WithoutLowerLayer(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "rules:\n- {grpc: '/shop.Orders/*', name: all, key: a}\n- {grpc: /shop.Orders/Pay, name: pay, key: b}\n- {grpc: /shop.Orders/Look, none: true}\n- {func: close, wait_time: 1s}\n")
	for e, want := range map[ruleset.Endpoint][]string{
		ruleset.GRPC("/shop.Orders/Pay"):  {"pay"},
		ruleset.GRPC("/shop.Orders/Ship"): {"all"},
		ruleset.GRPC("/shop.Orders/Look"): nil,
		ruleset.GRPC("/shop.Stock/Take"):  nil,
		ruleset.Func("open"):              nil,
	} {
		rules, err := set.Overlay(e)
		if err != nil || !slices.Equal(namesOf(rules), want) {
			t.Errorf("%s: got %q, %v, want %q", e, namesOf(rules), err, want)
		}
	}
	_, err := set.Overlay(ruleset.Func("close"))
	wantOnlyProblem(t, err, `locks.yaml:5:3: rule of func close: key: missing: write a template such as "order:pay:#{in.OrderID}"`)
}

// Empty sets can be laid over lower layers, too.
func TestSet_Overlay_EmptySets(t *testing.T) {
	t.Parallel()
	pay := ruleset.GRPC("/shop.Orders/Pay")
	for _, set := range []*ruleset.Set{nil, {}, mustLoad(t, "rules: []\n")} {
		if rules, err := set.Overlay(pay); err != nil || rules != nil {
			t.Errorf("got %q, %v", namesOf(rules), err)
		}
		rules, err := set.Overlay(pay, fromProto(ruleset.Rule{Endpoint: pay, Name: "pay", Key: "a"})...)
		if err != nil || len(rules) != 1 || rules[0].WaitTime != ruleset.DefaultWaitTime {
			t.Errorf("got %q, %v", namesOf(rules), err)
		}
		rules, err = set.Overlay(pay, fromProto(ruleset.Rule{Endpoint: pay, None: true})...)
		if err != nil || rules != nil {
			t.Errorf("none: got %q, %v", namesOf(rules), err)
		}
	}
}

// A mistake in a lower layer is reported with its place and the spelling of that layer.
func TestSet_Overlay_Problems(t *testing.T) {
	t.Parallel()
	pay := ruleset.GRPC("/shop.Orders/Pay")
	for name, tc := range map[string]struct {
		text  string
		lower []ruleset.Rule
		want  string
	}{
		"a strategy":   {"rules: []\n", []ruleset.Rule{{Endpoint: pay, Key: "a", OnBusy: failpolicy.Fallback}}, `shop.proto:10:5: rule of grpc /shop.Orders/Pay: on_busy: the strategy needs the name of a handler: write fallback: "name"`},
		"a word":       {"rules: []\n", []ruleset.Rule{{Endpoint: pay, Key: "a", Fallback: "q"}}, `fallback: "q" is never used: write on_busy: STRATEGY_FALLBACK, or remove it`},
		"a kind":       {"rules: []\n", []ruleset.Rule{{Endpoint: pay, Keys: []string{"a", "b"}, Kind: ruleset.Fair}}, "write one template, or kind: KIND_REENTRANT"},
		"a time":       {"rules: []\n", []ruleset.Rule{{Endpoint: pay, Key: "a", LeaseTime: ruleset.NoWait}}, `lease_time: "none" belongs to wait_time: write a time such as "30s", or "watchdog"`},
		"two names":    {"rules: []\n", []ruleset.Rule{{Endpoint: pay, Key: "a"}, {Endpoint: pay, Key: "b"}}, "shop.proto:20:5: rule of grpc /shop.Orders/Pay: name: declared twice (the first is at shop.proto:10:5): remove one, or give each its own name"},
		"no key":       {"rules: []\n", []ruleset.Rule{{Endpoint: pay, WaitTime: time.Second}}, `key: missing: write a template such as "order:pay:#{req.order_id}"`},
		"none beneath": {"rules:\n- {grpc: /shop.Orders/Pay, wait_time: 1s}\n", []ruleset.Rule{{Endpoint: pay, None: true}}, "locks.yaml:2:39: rule of grpc /shop.Orders/Pay: wait_time: shop.proto:10:5 says that the endpoint needs no lock: write none: false, too, to lock it after all"},
		"another name": {"rules:\n- {grpc: /shop.Orders/Pay, name: py, wait_time: 1s}\n", []ruleset.Rule{{Endpoint: pay, Name: "pay", Key: "a"}}, `or, to change the rule of the .proto or the program, give its name: "pay"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mustLoad(t, tc.text).Overlay(pay, fromProto(tc.lower...)...)
			wantOnlyProblem(t, err, tc.want)
		})
	}
}
