package aspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// payAs returns the rule pay with another kind of lock.
func payAs(kind ruleset.Kind) ruleset.Rule {
	return withKind(kind, pay())
}

// withKind returns a rule with another kind of lock.
func withKind(kind ruleset.Kind, rule ruleset.Rule) ruleset.Rule {
	rule.Kind = kind
	if kind == ruleset.Semaphore {
		rule.Permits = 1
	}
	return rule
}

// takeAs takes a lock of the kind that blocks the rule pay of a kind.
func (b *bench) takeAs(t *testing.T, kind ruleset.Kind) (release func()) {
	t.Helper()
	if kind == ruleset.Read {
		kind = ruleset.Write
	}
	p := mustCompile(t, mustAspect(t, b.locks), payAs(kind))
	taken, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
			close(taken)
			<-free
			return nil
		}})
	}()
	<-taken
	return func() {
		close(free)
		<-done
	}
}

// counter returns the key of the token counter of a fenced lock.
func counter(name string) string { return "redisson_lock_token:{" + name + "}" }

// tokenOf runs a rule and returns the token that its handler saw.
func tokenOf(t *testing.T, p *aspect.Point, id string) (token int64) {
	t.Helper()
	out := p.Run(t.Context(), &call{in: order{ID: id}, handle: func(ctx context.Context, g aspect.Grant) error {
		held, ok := core.Held(ctx, "order:"+id)
		if !ok || held.Token() != g.Token || g.Hold.Token() != g.Token {
			t.Errorf("got the tokens %d, %d and %d", g.Token, g.Hold.Token(), held.Token())
		}
		token = g.Token
		return nil
	}})
	want(t, "verdict", out.Verdict, aspect.VerdictRan)
	return token
}

// acquiredKinds records the kinds of the acquisitions that core reports.
type acquiredKinds struct{ list []core.Kind }

func (s *acquiredKinds) observer() *core.Observer {
	return &core.Observer{AcquireEnd: s.observeAcquireEnd}
}

func (s *acquiredKinds) observeAcquireEnd(_ context.Context, r core.AcquireResult) {
	s.list = append(s.list, r.Kind)
}

// eachKind runs a test in a bubble for each kind of lock.
func eachKind(t *testing.T, test func(t *testing.T, kind ruleset.Kind)) {
	t.Helper()
	for _, kind := range ruleset.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, kind) })
		})
	}
}

func TestKind_TakesItsLock(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		seen, obs := &acquiredKinds{}, &record{}
		b := newBench(t, core.WithObserver(seen.observer()))
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), payAs(kind))
		var tokens []int64
		for range 3 {
			tokens = append(tokens, tokenOf(t, p, "42"))
		}
		if kind.Traits().Token {
			want(t, "tokens rise", tokens[0] > 0 && tokens[1] > tokens[0] && tokens[2] > tokens[1], true)
		} else {
			want(t, "tokens", slices.Max(tokens), 0)
		}
		for _, got := range seen.list {
			want(t, "kind for core's observers", got, core.Kind(kind))
		}
		want(t, "kind for the observers", obs.last(t).Kind, kind)
		b.wantFree(t, "order:42")
	})
}

func TestKind_Busy(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		b := newBench(t)
		defer b.takeAs(t, kind)()
		rule := payAs(kind)
		rule.WaitTime = time.Second
		begin := time.Now()
		out := mustCompile(t, mustAspect(t, b.locks), rule).Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "cause", out.Cause, failpolicy.Busy)
		want(t, "waited", time.Since(begin), time.Second)
		status := failpolicy.Busy.Status()
		if kind == ruleset.Semaphore {
			status = failpolicy.Overload.Status()
			want(t, "message", out.Refusal().Message, "The maximum number of concurrent requests is already in progress")
		}
		want(t, "status", out.Status, status)
	})
}

// A nested call has the token of the hold that it re-enters.
func TestKind_TokenOfANestedCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), payAs(ruleset.Fenced))
		p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, outer aspect.Grant) error {
			return p.Run(ctx, &call{in: order{ID: "42"}, handle: func(_ context.Context, inner aspect.Grant) error {
				want(t, "there is an outer token", outer.Token > 0, true)
				want(t, "inner token", inner.Token, outer.Token)
				return nil
			}}).Err
		}})
		b.wantFree(t, "order:42")
	})
}

// If there are several rules, the grant has the last token and the last lock.
func TestKind_TokenOfSeveralRules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks),
			ruleset.Rule{Name: "first", Key: "a", Kind: ruleset.Fenced},
			ruleset.Rule{Name: "second", Key: "b", Kind: ruleset.Fenced},
			ruleset.Rule{Name: "third", Key: "c"},
		)
		far := time.Now().Add(time.Hour).UnixMicro()
		b.rdb.Set(t.Context(), counter("b"), far, 0)
		p.Run(t.Context(), &call{handle: func(ctx context.Context, g aspect.Grant) error {
			want(t, "token", g.Token, far+1)
			want(t, "token of the hold", g.Hold.Token(), 0)
			first, _ := core.Held(ctx, "a")
			want(t, "token of the first is another one", first.Token() > 0 && first.Token() < far, true)
			return nil
		}})
	})
}

func TestKind_Debounce(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		if kind.Traits().Shared {
			return // package ruleset refuses a debounce of this kind
		}
		b := newBench(t)
		p := mustCompile(t, mustAspect(t, b.locks), withKind(kind, submit()))
		first := tokenOf(t, p, "42")
		b.wantHeld(t, "order:42")
		out := p.Run(t.Context(), &call{in: order{ID: "42"}})
		want(t, "inside the window", out.Cause, failpolicy.Debounced)
		time.Sleep(5*time.Second + 100*time.Millisecond) // virtual time
		if second := tokenOf(t, p, "42"); kind == ruleset.Fenced && second <= first {
			t.Errorf("token %d after %d, want a larger one", second, first)
		}
		failing := &call{in: order{ID: "43"}, handle: func(context.Context, aspect.Grant) error { return errHandler }}
		want(t, "failure", p.Run(t.Context(), failing).Err, errHandler)
		b.wantFree(t, "order:43")
	})
}

// A dry run of a fenced rule creates no counter and takes no token.
func TestKind_DryRun(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		b, obs := newBench(t), &record{}
		rule := payAs(kind)
		rule.DryRun = true
		p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
		c := &call{in: order{ID: "42"}, handle: func(_ context.Context, g aspect.Grant) error {
			want(t, "grant", g, aspect.Grant{Unlocked: aspect.UnlockedDryRun})
			b.wantHeld(t, "order:42"+aspect.ShadowSuffix)
			return nil
		}}
		p.Run(t.Context(), c)
		want(t, "cause", obs.last(t).Cause, "")
		if keys := b.rdb.Keys(t.Context(), "*").Val(); len(keys) > 0 && kind != ruleset.Semaphore { // the size of a semaphore stays in Redis
			t.Errorf("keys left in Redis: %q", keys)
		}
		defer b.takeAs(t, kind)()
		p.Run(t.Context(), c)
		want(t, "cause", obs.last(t).Cause, failpolicy.Busy)
	})
}

func TestKind_OneKeyRefusesAList(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	for _, kind := range ruleset.Kinds() {
		for field, rule := range map[string]ruleset.Rule{
			"key":     {Name: "x", Key: "stock:#{in.Items}"},
			"keys[0]": {Name: "x", Keys: []string{"stock:#{in.Items}"}},
		} {
			_, err := a.Compile(site(t), withKind(kind, rule))
			if kind == ruleset.Reentrant {
				want(t, "of a reentrant lock", err, nil)
				continue
			}
			invalid, ok := errors.AsType[*ruleset.InvalidError](err)
			if !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != field ||
				!strings.Contains(invalid.Problems[0].Message, "a "+kind.Traits().Noun+" has one") {
				t.Errorf("%s of a %s lock: got %v", field, kind, err)
			}
		}
		if _, err := a.Compile(site(t), withKind(kind, ruleset.Rule{Name: "x", Keys: []string{"stock:#{in.ID}"}})); err != nil {
			t.Errorf("a list of one template: %v", err)
		}
	}
}

func TestKind_OneKeyRefusesSeveralTemplates(t *testing.T) {
	t.Parallel()
	_, err := mustAspect(t, offline(t)).Compile(site(t), ruleset.Rule{Name: "x", Kind: ruleset.Fenced, Keys: []string{"a", "b"}})
	if err == nil || !strings.Contains(err.Error(), "Kind: a fenced lock has one key, and Keys has 2 templates") {
		t.Errorf("got %v", err)
	}
}

// Every exclusive kind has tokens if the rule asks for them.
func TestKind_TokenOnRequest(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, kind ruleset.Kind) {
		if kind.Traits().Shared {
			return // package ruleset refuses a token of this kind
		}
		b := newBench(t)
		rule := payAs(kind)
		rule.Token = true
		p := mustCompile(t, mustAspect(t, b.locks), rule)
		if first, second := tokenOf(t, p, "42"), tokenOf(t, p, "42"); first <= 0 || second <= first {
			t.Errorf("got the tokens %d and %d, want rising ones", first, second)
		}
		rule.DryRun = true
		p = mustCompile(t, mustAspect(t, b.locks), rule)
		want(t, "token of a dry run", p.Run(t.Context(), &call{in: order{ID: "43"}}).Cause, "")
		want(t, "counter of a dry run", b.rdb.Exists(t.Context(), counter("order:43"), counter("order:43"+aspect.ShadowSuffix)).Val(), 0)
	})
}

func TestKind_TokenNeedsOneKey(t *testing.T) {
	t.Parallel()
	_, err := mustAspect(t, offline(t)).Compile(site(t), ruleset.Rule{Name: "x", Key: "stock:#{in.Items}", Token: true})
	if err == nil || !strings.Contains(err.Error(), "Key: yields a list of keys, and a token belongs to one") {
		t.Errorf("got %v", err)
	}
}

// A message uses the field names of the layer that contains the rule.
func TestKind_ListOfKeysInTheWordsOfTheLayer(t *testing.T) {
	t.Parallel()
	a := mustAspect(t, offline(t))
	for layer, words := range map[ruleset.Layer][2]string{
		ruleset.LayerCode:  {"or Kind: ruleset.Reentrant", "or remove Token"},
		ruleset.LayerProto: {"or kind: KIND_REENTRANT", "or remove token"},
		ruleset.LayerYAML:  {"or kind: reentrant", "or remove token"},
	} {
		source := ruleset.Source{Layer: layer}
		if layer != ruleset.LayerCode {
			source.File = "f"
		}
		for i, rule := range []ruleset.Rule{{Kind: ruleset.Fair}, {Token: true}} {
			rule.Endpoint, rule.Key = ruleset.Func("pay"), "stock:#{in.Items}"
			set, err := ruleset.BuildSet([]ruleset.Declared{{Rule: rule, Source: source}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.CompileResolved(site(t), set.Rules()...)
			if err == nil || !strings.HasSuffix(err.Error(), words[i]) {
				t.Errorf("%s: got %v, want %q at its end", layer, err, words[i])
			}
		}
	}
}

// If the client already uses a name as another kind of lock, that is a fault of the program, whatever the
// rule's strategy for keys is.
func TestKind_AnotherKindOfTheSameName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, obs := newBench(t), &record{}
		a := mustAspect(t, b.observe(t, obs.observer()))
		inner := payAs(ruleset.Spin)
		inner.OnKey = failpolicy.Proceed
		wantMisconfigured(t, obs, mustCompile(t, a, pay()), mustCompile(t, a, inner))
	})
}

// wantMisconfigured runs inner inside outer and fails the test unless inner is refused at once as a fault of the program.
func wantMisconfigured(t *testing.T, obs *record, outer, inner *aspect.Point) {
	t.Helper()
	outer.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
		begin := time.Now()
		out := inner.Run(ctx, &call{in: order{ID: "42"}})
		want(t, "verdict", out.Verdict, aspect.VerdictRefused)
		want(t, "status", out.Status, failpolicy.Status{HTTP: 500, GRPC: 13 /* INTERNAL */})
		want(t, "message", out.Refusal().Message, "The request could not be completed")
		want(t, "waited", time.Since(begin), 0)
		if !errors.Is(out.Reason, core.ErrInvalid) || !errors.Is(obs.failures[0].Err, core.ErrInvalid) {
			t.Errorf("got %v, observers got %v", out.Reason, obs.failures[0].Err)
		}
		return nil
	}})
}

// A reader that asks for the write lock is refused at once as a fault of the program. The reason is only for
// the log.
func TestKind_WriteInsideOfRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, obs := newBench(t), &record{}
		a := mustAspect(t, b.observe(t, obs.observer()))
		write := payAs(ruleset.Write)
		write.OnKey, write.OnBusy = failpolicy.Proceed, failpolicy.Proceed
		wantMisconfigured(t, obs, mustCompile(t, a, payAs(ruleset.Read)), mustCompile(t, a, write))
		b.wantFree(t, "order:42")
	})
}

func TestKind_ReadInsideOfWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		a := mustAspect(t, b.locks)
		reader := mustCompile(t, a, payAs(ruleset.Read))
		var inner aspect.Outcome
		mustCompile(t, a, payAs(ruleset.Write)).Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
			inner = reader.Run(ctx, &call{in: order{ID: "42"}})
			return nil
		}})
		want(t, "verdict of the reader", inner.Verdict, aspect.VerdictRan)
		want(t, "its cause", inner.Cause, "")
		b.wantFree(t, "order:42")
	})
}

// The kind limits the number of concurrent calls across two clients, also in a dry run. A further call is
// busy.
func TestKind_CallsAtATime(t *testing.T) {
	t.Parallel()
	const crowd = 5
	for kind, in := range map[ruleset.Kind]int{ruleset.Read: crowd, ruleset.Semaphore: 3} {
		for _, dry := range []bool{false, true} {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { callAtOnce(t, kind, dry, crowd, in) })
			})
		}
	}
}

// callAtOnce makes calls that take a second each and fails the test unless `in` of them hold the lock.
func callAtOnce(t *testing.T, kind ruleset.Kind, dry bool, calls, in int) {
	t.Helper()
	b := newBench(t)
	rule := payAs(kind)
	rule.WaitTime, rule.DryRun = ruleset.NoWait, dry
	if kind == ruleset.Semaphore {
		rule.Permits = in
	}
	obs := &record{}
	points := []*aspect.Point{
		mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule),
		mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule),
	}
	done := make(chan struct{})
	for i := range calls {
		go func() {
			points[i%2].Run(t.Context(), &call{in: order{ID: "42"}, handle: func(context.Context, aspect.Grant) error {
				time.Sleep(time.Second) // virtual time
				return nil
			}})
			done <- struct{}{}
		}()
		time.Sleep(100 * time.Millisecond) // virtual time
	}
	for range calls {
		<-done
	}
	busy := 0
	for _, d := range obs.decisions {
		if d.Cause == failpolicy.Busy {
			busy++
		}
	}
	want(t, "decisions", len(obs.decisions), calls)
	want(t, "busy calls", busy, calls-in)
}

// A call may pass a guard twice, for example after a layer that copies the request. The call re-enters the lock that it
// holds. A semaphore has no re-entry: the call uses the permit that it holds.
func TestKind_SameCallTwice(t *testing.T) {
	t.Parallel()
	for _, kind := range []ruleset.Kind{
		ruleset.Reentrant, ruleset.Fair, ruleset.Fenced, ruleset.Spin, ruleset.Read, ruleset.Write, ruleset.Semaphore,
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dry run %v", kind, dry), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { callTwice(t, kind, dry) })
			})
		}
	}
}

func callTwice(t *testing.T, kind ruleset.Kind, dry bool) {
	t.Helper()
	b, obs := newBench(t), &record{}
	rule := payAs(kind)
	rule.WaitTime, rule.DryRun = ruleset.NoWait, dry
	if kind == ruleset.Semaphore {
		rule.Permits = 1
	}
	p := mustCompile(t, mustAspect(t, b.observe(t, obs.observer())), rule)
	inner := &call{in: order{ID: "42"}}
	out := p.Run(t.Context(), &call{in: order{ID: "42"}, handle: func(ctx context.Context, _ aspect.Grant) error {
		want(t, "inner verdict", p.Run(ctx, inner).Verdict, aspect.VerdictRan)
		want(t, "inner runs", inner.handled, 1)
		stranger := p.Run(core.Detach(ctx), &call{in: order{ID: "42"}})
		want(t, "a call beside it is refused", stranger.Verdict == aspect.VerdictRefused, !dry && kind != ruleset.Read)
		return nil
	}})
	want(t, "outer verdict", out.Verdict, aspect.VerdictRan)
	want(t, "cause of the inner call", obs.decisions[0].Cause, "")
	b.wantFree(t, "order:42")
}
