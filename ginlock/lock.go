package ginlock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
	"github.com/interlock-go/interlock/core/aspect/httpcall"
	"github.com/interlock-go/interlock/core/ruleset"
)

// Lock returns a handler that runs the rest of its chain while it holds a lock:
//
//	r.POST("/orders/:orderId/pay", ginlock.Lock(locks, "order:pay:#{path.orderId}"), pay)
//
// A request waits up to [ruleset.DefaultWaitTime] and is then refused. key is the Key of a [ruleset.Rule]. It is a constant
// of the program, because Lock keeps each different key until the end of the client: write #{path.orderId}, not the id. A
// rule after the key sets other fields, and leaves Key and Endpoint empty:
//
//	ginlock.Lock(locks, "order:pay:#{path.orderId}", ruleset.Rule{WaitTime: 3 * time.Second, OnBusy: failpolicy.Skip})
//
// The lock works like a [Guard.Handler] with that rule, without the options of a guard: a rule that needs a registered
// variable, a fallback or a buffer needs a guard. The name of the rule, the label in metrics and spans, is the route
// unless the rule has a Name. A request takes the locks of all Lock handlers and guards on its chain, in the order of the
// chain. Rules of one route need different names; the names of several Lock handlers are numbered: "POST /orders (2)". A
// request without a route (404, 405) takes the lock, too, unless the rule reads path or route: then it passes unlocked.
//
// Lock panics if the rule is wrong, as gin does if a route is wrong. Only the route shows which path parameters exist:
// call [Check] after all routes are registered. Otherwise the route answers 500, and its first request shows the reason
// in c.Errors. [aspect.Of] returns the kill switch.
func Lock(locks *core.Client, key string, further ...ruleset.Rule) gin.HandlerFunc {
	where := "Lock at " + httpcall.CallSite()
	rule, err := httpcall.LockRule(key, further)
	g, problem := guardOf(locks)
	if err := errors.Join(err, problem); err != nil {
		panic("ginlock: " + where + ": " + err.Error())
	}
	h := g.handlerAt(where, []ruleset.Rule{rule})
	if err := ruleset.Invalid(h.problems()...); err != nil {
		panic("ginlock: " + strings.TrimPrefix(err.Error(), "ruleset: "))
	}
	return h.handler
}

// Check compares the rules that [Lock] got for a client with the routes of one or more engines, like [Guard.Check]. If the
// program has a guard for the same engines, call the Check of the guard instead: it checks the rules of both together.
func Check(locks *core.Client, engine *gin.Engine, more ...*gin.Engine) error {
	g, err := guardOf(locks)
	if err != nil {
		return fmt.Errorf("ginlock: Check: %w", err)
	}
	return g.Check(engine, more...)
}

// lockGuardKey is the key of the value that guardOf keeps on a client.
type lockGuardKey struct{}

// guardOf returns the guard in which Lock places the rules of a client. It has no options and no sets.
func guardOf(locks *core.Client) (*Guard, error) {
	a, err := aspect.Of(locks)
	if err != nil {
		return nil, err
	}
	shared := locks.ForAdapters().Shared(lockGuardKey{}, func() any {
		cfg, _ := newConfig(nil) // no options, no problems
		return newGuard(locks, a, cfg)
	})
	return shared.(*Guard), nil //nolint:errcheck,forcetypeassert // the only value under this key
}
