package aspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// letter is a message of these tests.
type letter struct {
	tenant  string
	body    []byte
	decoded int // how often the body was read
}

// letters describes a transport with letters about orders, which the name pay names.
func letters() aspect.Messages[*letter] {
	type content struct {
		ID string `json:"id"`
	}
	return aspect.Messages[*letter]{
		Prefix: "letter/", Noun: "letter", Payloads: map[string]any{"pay": content{}},
		Variables: func(t reflect.Type) []aspect.MessageVariable[*letter] {
			return []aspect.MessageVariable[*letter]{
				aspect.TextVariable("state", func(*letter) string { return "sealed" }),
				aspect.HeaderVariable("stamp", func(l *letter) map[string]string {
					if l.tenant == "" {
						return nil
					}
					return map[string]string{"tenant": l.tenant}
				}),
				aspect.JSONVariable("body", t, func(l *letter) []byte {
					l.decoded++
					return l.body
				}),
			}
		},
	}
}

func mustGuard(tb testing.TB, a *aspect.Aspect, rules ...ruleset.Rule) *aspect.MessageGuard[*letter] {
	tb.Helper()
	set, err := ruleset.NewSet(rules)
	if err != nil {
		tb.Fatal(err)
	}
	g, err := aspect.NewMessageGuard(a, set, letters())
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func payLetter(key string) ruleset.Rule {
	return ruleset.Rule{Endpoint: ruleset.Func("letter/pay"), Key: key, WaitTime: ruleset.NoWait}
}

func TestMessageGuard_Behaviour(t *testing.T) {
	t.Parallel()
	endpoint := ruleset.Func("letter/pay")
	start := func(p adaptertest.MessageProgram) (func() error, func(context.Context, adaptertest.Call) error, error) {
		m := letters()
		of := func(do func(context.Context, string) error) func(context.Context, *letter) error {
			return func(ctx context.Context, l *letter) error {
				var content struct{ ID string }
				if err := json.Unmarshal(l.body, &content); err != nil {
					return err
				}
				return do(ctx, content.ID)
			}
		}
		m.Fallbacks = map[string]func(context.Context, *letter) error{"queue": of(p.Queue)}
		g, err := aspect.NewMessageGuard(p.Aspect, p.Rules, m)
		if err != nil {
			return nil, nil, err
		}
		return g.Check, func(ctx context.Context, c adaptertest.Call) error {
			o := g.Run(ctx, "pay", &letter{tenant: c.Tenant, body: []byte(`{"id": "` + c.ID + `"}`)}, of(p.Pay))
			return o.Result()
		}, nil
	}
	adaptertest.Run(t, adaptertest.Adapter{
		Endpoint: endpoint, ID: "body.id", Tenant: "stamp.tenant", Code: func(s failpolicy.Status) int { return s.HTTP },
		Start: func(_ testing.TB, p *adaptertest.Program) (adaptertest.Server, error) {
			return adaptertest.ServeMessages(p, endpoint, start)
		},
	})
}

// A name that is not in Payloads has the rules of wildcards. Without them its handler runs without a lock.
func TestMessageGuard_UnlistedName(t *testing.T) {
	t.Parallel()
	for path, locked := range map[string]bool{"letter/*": true, "letter/pay": false} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rule := payLetter("order:#{body.number}")
				rule.Endpoint = ruleset.Func(path)
				ran := false
				o := mustGuard(t, mustAspect(t, newBench(t).locks), rule).Run(t.Context(), "cancel", &letter{body: []byte(`{"number": 42}`)}, func(ctx context.Context, _ *letter) error {
					ran = true
					if hold := aspect.HoldFrom(ctx); (hold != nil) != locked {
						t.Errorf("the handler has the hold %v", hold)
					}
					return errHandler
				})
				want(t, "ran", ran, true)
				want(t, "result", o.Result(), errHandler)
			})
		})
	}
}

// A sender may choose any name. The guard does not keep names that are not in Payloads.
func TestMessageGuard_ForgetsUnlistedNames(t *testing.T) {
	t.Parallel()
	for path, locked := range map[string]bool{"letter/*": true, "letter/pay": false, "*": true} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rule := payLetter("order:42")
				rule.Endpoint = ruleset.Func(path)
				g, held := mustGuard(t, mustAspect(t, newBench(t).locks), rule), 0
				for i := range 20 {
					o := g.Run(t.Context(), fmt.Sprintf("cancel:%d", i), &letter{}, func(ctx context.Context, _ *letter) error {
						if aspect.HoldFrom(ctx) != nil {
							held++
						}
						return nil
					})
					want(t, "result", o.Result(), nil)
				}
				want(t, "all held", held == 20, locked)
				if n := g.Len(); n > 1 {
					t.Errorf("the table contains %d names", n)
				}
			})
		})
	}
}

func TestMessageGuard_ComputesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		byState, byOrder := payLetter("state:#{state}"), payLetter("order:#{body.id}")
		byState.Name, byState.When, byOrder.Name = "state", `(body.id ?? "42") == "42"`, "order"
		byState.OnKey = failpolicy.Proceed
		g := mustGuard(t, mustAspect(t, newBench(t).locks), byState, byOrder)
		for _, body := range []string{`{"id": "42"}`, "", "null", `{"id"`} {
			l := &letter{body: []byte(body)}
			o := g.Run(t.Context(), "pay", l, func(context.Context, *letter) error { return nil })
			want(t, body+": ran", o.Verdict == aspect.VerdictRan, strings.HasSuffix(body, "}"))
			want(t, body+": decoded", l.decoded, 1)
		}
	})
}

// The document of a message is a fault of its sender, and no error quotes it.
func TestMessageGuard_BadDocument(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := mustGuard(t, mustAspect(t, newBench(t).locks), payLetter("order:#{body.id}"))
		for document, text := range map[string]string{"": "body is missing", `{}`: "body.id is empty", "4711": "key", `{"id": 4711}`: "key", `{"id": "a", "ID": "4711"}`: "key"} {
			o := g.Run(t.Context(), "pay", &letter{body: []byte(document)}, func(context.Context, *letter) error {
				t.Error("the handler ran")
				return nil
			})
			want(t, document, o.Cause, failpolicy.Key)
			want(t, document, o.Postponed(), false)
			if err := o.Result(); !strings.Contains(err.Error(), text) || strings.Contains(errors.Join(err, o.Reason).Error(), "4711") {
				t.Errorf("%s: got %v: %v", document, err, o.Reason)
			}
		}
	})
}

// The handler of a name never runs if the rules of the name do not compile.
func TestMessageGuard_BrokenRule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := mustGuard(t, mustAspect(t, newBench(t).locks), payLetter("order:#{body.number}"))
		problem := g.Check()
		if problem == nil || !strings.Contains(problem.Error(), "letter/pay") {
			t.Errorf("Check: got %v", problem)
		}
		o := g.Run(t.Context(), "pay", &letter{}, func(context.Context, *letter) error {
			t.Error("the handler ran")
			return nil
		})
		want(t, "postponed", o.Postponed(), false)
		want(t, "reason", o.Reason.Error(), problem.Error())
		want(t, "refusal", *o.Refusal(), *aspect.Misconfigured(ruleset.Func("letter/pay"), o.Reason))
	})
}

func TestMessageGuard_MisspeltName(t *testing.T) {
	t.Parallel()
	rule := payLetter("order")
	rule.Endpoint = ruleset.Func("letter/pya")
	err := mustGuard(t, mustAspect(t, newBench(t).locks), rule).Check()
	if err == nil || !strings.Contains(err.Error(), `matches no letter: did you mean "letter/pay"?`) {
		t.Errorf("got %v", err)
	}
}

// A message is postponed if its handler did not run, for a reason that passes by itself.
func TestOutcome_Postponed(t *testing.T) {
	t.Parallel()
	taken := func(b *bench) { b.redis.Take("order:42", time.Hour) }
	for name, test := range map[string]struct {
		rule    ruleset.Rule
		prepare func(b *bench)
		handler func(ctx context.Context) error
		want    bool
	}{
		"taken":            {prepare: taken, want: true},
		"no answer":        {prepare: func(b *bench) { b.redis.Down() }, want: true},
		"skipped":          {rule: ruleset.Rule{OnBusy: failpolicy.Skip}, prepare: taken},
		"without the lock": {rule: ruleset.Rule{OnBusy: failpolicy.Proceed}, prepare: taken},
		"inner refusal":    {handler: func(context.Context) error { return &aspect.RefusedError{RetryAfter: time.Second} }},
		"lost": {rule: ruleset.Rule{LeaseTime: time.Second}, handler: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				if test.prepare != nil {
					test.prepare(b)
				}
				rule := payLetter("order:42")
				rule.OnBusy, rule.LeaseTime = test.rule.OnBusy, test.rule.LeaseTime
				o := mustGuard(t, mustAspect(t, b.locks), rule).Run(t.Context(), "pay", &letter{}, func(ctx context.Context, _ *letter) error {
					if test.want || test.handler == nil && rule.OnBusy != failpolicy.Proceed {
						t.Error("the handler ran")
					}
					if test.handler == nil {
						return nil
					}
					return test.handler(ctx)
				})
				want(t, "postponed", o.Postponed(), test.want)
			})
		})
	}
}
