package httplock

import (
	"cmp"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Lock returns a middleware that runs a handler while it holds a lock:
//
//	mux.Handle("POST /orders/{id}/pay", httplock.Lock(locks, "order:pay:#{path.id}")(http.HandlerFunc(pay)))
//	r.With(httplock.Lock(locks, "order:pay:#{path.id}")).Post("/orders/{id}/pay", pay) // chi
//
// A request waits up to [ruleset.DefaultWaitTime] and is then refused. key is the Key of a [ruleset.Rule]. It is a constant
// of the program, because Lock keeps each different key until the end of the client: write #{path.id}, not the id. A rule
// after the key sets other fields, such as WaitTime, and leaves Key and Endpoint empty. A rule that needs a registered
// variable, a fallback or a buffer needs a [Guard]. The name of the rule, the label in metrics and spans, is the Pattern
// that the router matched, unless the rule has a Name. If a handler has several locks, a request takes all of them, and
// their names are numbered: "POST /orders (2)".
//
// Lock panics if the rule is wrong. Only a request shows the Pattern: if the key reads a path value that the Pattern does
// not have, or reads a path value although there is no Pattern, the answer is 500, and observers get a warning.
// [Guard.Handle] knows the pattern and finds such a mistake at once. [Guard.Check] includes a Lock only after its first
// request. Observers get a warning if the program drops the middleware without using it. [aspect.Of] returns the kill
// switch.
func Lock(locks *core.Client, key string, further ...ruleset.Rule) func(http.Handler) http.Handler {
	where := "Lock at " + httpcall.CallSite()
	rule, err := httpcall.LockRule(key, further)
	g, problem := guardOf(locks)
	if err := errors.Join(err, problem); err != nil {
		panic("httplock: " + where + ": " + err.Error())
	}
	l := g.lockAt(where, rule)
	if err := ruleset.Invalid(l.problems()...); err != nil {
		panic("httplock: " + strings.TrimPrefix(err.Error(), "ruleset: "))
	}
	mark := l.returned.Watch(g.aspect, &ruleset.Problem{Message: where + ": the program has dropped the middleware, so it locks nothing: put it around a handler"})
	return func(next http.Handler) http.Handler {
		mark.Use()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := call{cfg: &g.cfg, entry: l.at(r.Pattern), w: httpcall.WriterOf(w), r: r, next: next}
			c.serve(g.aspect, l)
		})
	}
}

// lockGuardKey is the key of the value that guardOf keeps on a client.
type lockGuardKey struct{}

// guardOf returns the guard in which Lock places the rules of a client. It has no options and no set.
func guardOf(locks *core.Client) (*Guard, error) {
	a, err := aspect.Of(locks)
	if err != nil {
		return nil, err
	}
	shared := locks.ForAdapters().Shared(lockGuardKey{}, func() any {
		cfg, _ := newConfig(nil) // no options, no problems
		return newGuard(a, cfg)
	})
	return shared.(*Guard), nil //nolint:errcheck,forcetypeassert // the only value under this key
}

// lock is the state of the middleware that one call of [Lock] returns.
type lock struct {
	guard    *Guard
	where    string // "Lock at file:line"
	rule     ruleset.Rule
	places   httpcall.Places           // by the route of the Pattern
	problems func() []*ruleset.Problem // returns the problems that the rule has for every Pattern
	returned aspect.Returned           // the middlewares
}

// lockAt returns the lock for a call of Lock at where. The same rule at the same where gets the same lock, so the program
// may call Lock for every request.
func (g *Guard) lockAt(where string, rule ruleset.Rule) *lock {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.locks {
		if l.where == where && reflect.DeepEqual(l.rule, rule) {
			return l
		}
	}
	l := &lock{guard: g, where: where, rule: rule}
	l.problems = sync.OnceValue(func() []*ruleset.Problem { return httpcall.ProblemsAt(where, g.routes.Compile(unrouted(), rule).Err) })
	g.locks = append(g.locks, l)
	return l
}

// at returns the entry for the Pattern of a request. For a known Pattern, at takes no lock and does not allocate.
func (l *lock) at(pattern string) *httpcall.Entry {
	route := cutPattern(cmp.Or(pattern, "*"))
	return l.places.At(route, func() *httpcall.Entry { return l.place(route) })
}

// place compiles the rule for a route and puts it into force. It refuses requests without a Pattern if the rule reads a
// path, because their path values are not known.
func (l *lock) place(route ruleset.Endpoint) *httpcall.Entry {
	e := l.guard.routes.Compile(route, l.guard.numbers.Name(l, route, []ruleset.Rule{l.rule})...)
	e.Extra.AnyMethod = route.Method == "*"
	if e.Err == nil && route == unrouted() && (e.Point.Uses("path") || e.Point.Uses("route")) {
		return &httpcall.Entry{Endpoint: route, Err: errors.New("Lock has met a request without a Pattern, so that its path values are not known: " +
			"put Lock around the handlers of a router that sets the Pattern, or set the Pattern before Lock")}
	}
	l.guard.routes.Place(e)
	return e
}
