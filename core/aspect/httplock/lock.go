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
// A request waits up to [ruleset.DefaultWaitTime] and is then refused. key is the Key of a [ruleset.Rule]. A rule after it
// sets other fields, such as WaitTime, and leaves Key and Endpoint empty. A rule that needs a registered variable, a fallback or a buffer needs a [Guard]. The name of the rule, the label
// in metrics and spans, is the Pattern that the router matched, unless the rule has a Name.
//
// Lock panics if the rule is wrong. Only a request shows the Pattern: if the key reads a path value that the Pattern does
// not have, or reads a path value although there is no Pattern, the answer is 500, and observers get a warning.
// [Guard.Handle] knows the pattern and finds such a mistake at once. [Guard.Check] knows only the Locks that have served a
// request. [aspect.Of] returns the kill switch.
func Lock(locks *core.Client, key string, further ...ruleset.Rule) func(http.Handler) http.Handler {
	where := "Lock at " + httpcall.CallSite()
	rule, err := httpcall.LockRule(key, further)
	shared, problem := sharedOf(locks)
	if err := errors.Join(err, problem); err != nil {
		panic("httplock: " + where + ": " + err.Error())
	}
	l := shared.lockAt(where, rule)
	if len(l.problems) > 0 {
		panic("httplock: " + strings.TrimPrefix(ruleset.Invalid(l.problems...).Error(), "ruleset: "))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := call{cfg: &shared.cfg, entry: l.at(r.Pattern), w: httpcall.WriterOf(w), r: r, next: next}
			c.serve(shared.aspect, l)
		})
	}
}

// lock is the state of the middleware that one call of [Lock] returns.
type lock struct {
	shared   *lockShared
	where    string // "Lock at file:line"
	rule     ruleset.Rule
	problems []*ruleset.Problem // the problems that the rule has for every Pattern
	places   httpcall.Places    // by the route of the Pattern
}

// unrouted returns the route of requests without a Pattern.
func unrouted() ruleset.Endpoint { return ruleset.Route("*", "*") }

// at returns the entry for the Pattern of a request. For a known Pattern, at takes no lock and does not allocate.
func (l *lock) at(pattern string) *httpcall.Entry {
	route := cutPattern(cmp.Or(pattern, "*"))
	return l.places.At(route, func() *httpcall.Entry { return l.place(route) })
}

// place compiles the rule for a route and puts it into force. It refuses requests without a Pattern if the rule reads a
// path, because their path values are not known.
func (l *lock) place(route ruleset.Endpoint) *httpcall.Entry {
	e := l.shared.routes.Compile(route, l.shared.numbers.Name(l, route, []ruleset.Rule{l.rule})...)
	if e.Err == nil && route == unrouted() && (e.Point.Uses("path") || e.Point.Uses("route")) {
		return &httpcall.Entry{Endpoint: route, Err: errors.New("Lock has met a request without a Pattern, so that its path values are not known: " +
			"put Lock around the handlers of a router that sets the Pattern, or set the Pattern before Lock")}
	}
	l.shared.routes.Place(e)
	return e
}

// lockShared is the state that all Locks of a client share.
type lockShared struct {
	aspect  *aspect.Aspect
	cfg     config
	routes  *aspect.Registry[ruleset.Endpoint, httpcall.Endpoint]
	numbers httpcall.Numbers

	mu    sync.Mutex
	locks []*lock
}

// lockSharedKey is the key of the value that sharedOf keeps on a client.
type lockSharedKey struct{}

// sharedOf returns the state that all Locks of a client share.
func sharedOf(locks *core.Client) (*lockShared, error) {
	a, err := aspect.Of(locks)
	if err != nil {
		return nil, err
	}
	shared := locks.ForAdapters().Shared(lockSharedKey{}, func() any { return newLockShared(a) })
	return shared.(*lockShared), nil //nolint:errcheck,forcetypeassert // the only value under this key
}

func newLockShared(a *aspect.Aspect) *lockShared {
	cfg, _ := newConfig(nil) // no options, no problems
	s := &lockShared{aspect: a, cfg: cfg}
	s.routes = aspect.NewRegistry(a, aspect.Adapter[ruleset.Endpoint, httpcall.Endpoint]{
		Transport: ruleset.TransportHTTP,
		Endpoint:  func(route ruleset.Endpoint) ruleset.Endpoint { return route },
		Compile:   s.compile,
	})
	return s
}

// lockAt returns the lock for a call of Lock at where. The same rule at the same where gets the same lock, so the program
// may call Lock for every request.
func (s *lockShared) lockAt(where string, rule ruleset.Rule) *lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		if l.where == where && reflect.DeepEqual(l.rule, rule) {
			return l
		}
	}
	l := &lock{shared: s, where: where, rule: rule, problems: httpcall.ProblemsAt(where, s.routes.Compile(unrouted(), rule).Err)}
	s.locks = append(s.locks, l)
	return l
}

// compile implements [aspect.Adapter].Compile.
func (s *lockShared) compile(_ *ruleset.Set, route ruleset.Endpoint, rules []*ruleset.Resolved) (*aspect.Point, httpcall.Endpoint, error) {
	return s.cfg.Compile(s.aspect, httpcall.Route{
		Endpoint: route, Params: httpcall.Params(route.Path), AnyParam: route == unrouted(), AnyMethod: route.Method == "*",
	}, rules)
}
