package grpclock_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
)

// warnings collects what observers are warned of.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) observer() *core.Observer {
	return &core.Observer{Rules: &aspect.Observer{Warning: w.observeWarning}}
}

func (w *warnings) observeWarning(p *ruleset.Problem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, p.Error())
}

func (w *warnings) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.list, "\n")
}

// byConstantKeys is the text without the warnings of keys that all requests share, and
// those.
func (w *warnings) byConstantKeys() (others, constant string) {
	var texts [2][]string
	for text := range strings.Lines(w.text()) {
		i := 0
		if strings.Contains(text, "is one lock for all requests") {
			i = 1
		}
		texts[i] = append(texts[i], strings.TrimSuffix(text, "\n"))
	}
	return strings.Join(texts[0], "\n"), strings.Join(texts[1], "\n")
}

func TestSettings_UnmatchedAndUncoveredAreAsSevereAsTheFileSays(t *testing.T) {
	t.Parallel()
	const (
		unmatched = `locks.yaml:3:12: rule of grpc /till.v1.Till/Plan: grpc: matches no method: did you mean "/till.v1.Till/Plain"?`
		uncovered = `rule of grpc /till.v1.Till/Plain: missing, and the method may change something: add a rule, or write `
		rules     = "rules:\n  - {grpc: /till.v1.Till/Plan, key: k}\n"
	)
	for _, tt := range []struct {
		name, text, err, warning string
	}{
		{"unmatched by default", "dry_run: false\n" + rules, unmatched, ""},
		{"unmatched: error", "unmatched: error\n" + rules, unmatched, ""},
		{"unmatched: warn", "unmatched: warn\n" + rules, "", unmatched},
		{"unmatched: ignore", "unmatched: ignore\n" + rules, "", ""},
		{"uncovered: error", "uncovered: error\n" + elsewhere, uncovered, ""},
		{"uncovered: warn", "uncovered: warn\n" + elsewhere, "", uncovered},
		{"uncovered: ignore", "uncovered: ignore\n" + elsewhere, "", ""},
		{"covered by a wildcard", "uncovered: error\nrules: [{grpc: /till.v1.Till/*, key: k}]\n", "", ""},
		{"covered by none", "uncovered: error\nrules: [{grpc: /till.v1.Till/Plain, none: true}]\n", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			seen := &warnings{}
			b := prepareTill(t, patient, sold, tillQueue(), core.WithObserver(seen.observer()), grpclock.WithSet(load(t, tt.text)))
			healthgrpc.RegisterHealthServer(b.server, health.NewServer()) // needs no rule
			reflection.Register(b.server)
			text := ""
			if err := b.guard.Check(b.server); err != nil {
				text = err.Error()
			}
			if !strings.Contains(text, tt.err) || (text == "") != (tt.err == "") || strings.Contains(text, "\n") {
				t.Errorf("got error %q, want one with %q", text, tt.err)
			}
			got, constant := seen.byConstantKeys()
			if !strings.Contains(constant, `tillpb/till.proto: rule "day" of grpc /till.v1.Till/Both: key: "till:day" is one lock`) {
				t.Errorf("got warnings %q of constant keys, want that of the .proto", constant)
			}
			if !strings.Contains(got, tt.warning) || (got == "") != (tt.warning == "") || strings.Contains(got, "\n") {
				t.Errorf("got warnings %q, want one with %q", got, tt.warning)
			}
		})
	}
}

// A wildcard that reaches only methods with options of their own applies nowhere.
func TestSettings_WildcardBelowOptionsIsUnmatched(t *testing.T) {
	t.Parallel()
	files, service := readLate(t, late(t, payLock, chatLock), nil)
	b := prepare(t, &shop{}, grpclock.WithDescriptors(files), grpclock.WithRules(
		ruleset.Rule{Endpoint: ruleset.GRPC("/late.v1.Orders/*"), Key: "k"}))
	err := b.guard.Check(dynamicServer(b.guard, service))
	if err == nil || !strings.Contains(err.Error(), "applies to no method") {
		t.Errorf("got %v", err)
	}
}

// A wildcard is not for health checks and reflection, which have to answer while work waits; a rule
// that names such a method is.
func TestWildcard_LeavesInfrastructureAlone(t *testing.T) {
	t.Parallel()
	const health, reflect = "/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	for _, tt := range []struct {
		rule, method string
		want         codes.Code
	}{
		{"*", health, codes.OK},
		{"*", reflect, codes.OK},
		{"*", path("Pay"), codes.Aborted},
		{health, health, codes.Aborted},
		{"/grpc.health.v1.Health/*", health, codes.Aborted},
		{reflect, reflect, codes.Aborted},
	} {
		b := prepare(t, &shop{}, grpclock.WithRules(ruleset.Rule{Endpoint: ruleset.GRPC(tt.rule), Key: "one", WaitTime: ruleset.NoWait}))
		b.redis.Take("one", time.Hour)
		var err error
		if tt.method == reflect {
			info := &grpc.StreamServerInfo{FullMethod: tt.method, IsClientStream: true, IsServerStream: true}
			err = b.guard.StreamServerInterceptor()(b.shop, quietStream{ctx: t.Context()}, info, func(any, grpc.ServerStream) error { return nil })
		} else {
			_, err = b.guard.UnaryServerInterceptor()(t.Context(), order("1"), &grpc.UnaryServerInfo{FullMethod: tt.method}, nothing)
		}
		if got := status.Code(err); got != tt.want {
			t.Errorf("%s under %s: got %s, want %s", tt.method, tt.rule, got, tt.want)
		}
	}
}
