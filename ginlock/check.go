package ginlock

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
)

// Check returns every problem of the guard's rules with the routes of an engine, or
// of several, joined; nil if there is none. Call it when all routes are registered and
// before the servers start. It compiles the rules of [Guard.Middleware] for all routes,
// and remembers the routes: reloads are checked against them.
//
//   - Rules of Middleware: templates, conditions and fallbacks that do not fit a
//     route.
//   - Rules of Middleware that match no route, as severe as the rule file's unmatched
//     says: an error, a warning to observers ([aspect.WarningObserver]), or nothing.
//   - Routes with a method other than GET, HEAD, OPTIONS and TRACE that have no rule,
//     as severe as the file's uncovered says. A rule of Middleware counts, one that says
//     `none: true` included, and one of [Guard.Handle]. On which routes a
//     [Guard.Handler] is cannot be known: use Handle for them, or say `none: true`.
//   - Rules of Handle: what Handle returned.
//   - Rules of Handler: those that fit no route at all. On which route such a handler
//     is, only its first request tells; Handle is exact.
//   - A rule of the same name twice on one route.
//   - Rules of Handle and Middleware that take one key as locks of different kinds: see
//     [ruleset.MixedKinds].
//   - [WithBody] and [WithBuffer] for routes that do not exist.
//   - An engine that hands over path values undecoded, which would give one
//     resource several keys.
//   - Rules that use client_ip in an engine that lets every client choose it, which is
//     gin's default: a warning to observers.
//
// Check cannot see whether the handler of Middleware is on the chain of a route: gin
// puts it there only for routes that are registered after Use, below that group.
// Before the first route, on the engine, is the place where none is left out.
//
// A rule has to match a route of any engine that Check was ever given: where engines
// share a rule file, give it all of them at once.
func (g *Guard) Check(engine *gin.Engine, more ...*gin.Engine) error {
	engines := slices.Concat([]*gin.Engine{engine}, more)
	for _, e := range engines {
		if e == nil {
			return errors.New("ginlock: Check: the engine is nil")
		}
		routes := routesOf(e)
		g.remember(routes)
		g.routing.add(routes)
	}
	g.mu.Lock()
	g.checked = true
	chained, noted := slices.Clone(g.chained), slices.Clone(g.noted)
	g.mu.Unlock()

	k := newCheck(g, g.knownRoutes())
	for _, err := range noted {
		k.add(err)
	}
	k.all()
	for _, h := range chained {
		k.chained(h)
	}
	k.options()
	for _, e := range engines {
		k.engine(e)
		k.addresses(e, chained)
	}
	g.aspect.Warn(k.warnings...)
	return k.err()
}

// check is one run of [Guard.Check], or of what a reload has of it.
type check struct {
	guard   *Guard
	known   known
	labels  []string
	handled []*endpoint                      // of Handle
	placed  map[ruleset.Endpoint][]*endpoint // the same by their routes
	sets    []*generation                    // of Middleware

	problems []error
	warnings []*ruleset.Problem
	told     map[string]bool
}

func newCheck(g *Guard, k known) *check {
	c := &check{guard: g, known: k, placed: make(map[ruleset.Endpoint][]*endpoint), told: make(map[string]bool)}
	for _, r := range k.routes {
		c.labels = append(c.labels, r.Label())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c.handled = slices.Clone(g.placed)
	for _, e := range c.handled {
		c.placed[e.route] = append(c.placed[e.route], e)
	}
	for _, d := range g.declared {
		if now := d.now.Load(); now != nil {
			c.sets = append(c.sets, now)
		}
	}
	return c
}

// add notes an error, and every error that is joined in it, once.
func (k *check) add(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			k.add(e)
		}
		return
	}
	if text := err.Error(); !k.told[text] {
		k.told[text] = true
		k.problems = append(k.problems, err)
	}
}

// err is every problem: those of rule files by file and line, after the others.
func (k *check) err() error {
	place := func(err error) ruleset.Source {
		if p, ok := errors.AsType[*ruleset.Problem](err); ok && p.Source.File != "" {
			return p.Source
		}
		return ruleset.Source{}
	}
	slices.SortStableFunc(k.problems, func(a, b error) int {
		x, y := place(a), place(b)
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return errors.Join(k.problems...)
}

// chained looks for a route that rules of Handler fit.
func (k *check) chained(h *chained) {
	served := false
	for e := range h.routes.all().endpoints() {
		k.add(e.broken)
		served = true
	}
	if served {
		return
	}
	var best error
	for _, r := range k.known.routes {
		e := k.guard.compileRules(k.guard.trial, r.Endpoint, r.params, h.rules)
		if e.broken == nil {
			return
		}
		if best == nil || problemCount(e.broken) < problemCount(best) {
			best = e.broken
		}
	}
	if best != nil {
		k.add(fmt.Errorf("ginlock: Handler at %s fits no route of the engine: %w", h.where, best))
	}
}

func problemCount(err error) int {
	if invalid, ok := errors.AsType[*ruleset.InvalidError](err); ok {
		return len(invalid.Problems)
	}
	return 1
}

// options finds routes named in options that do not exist.
func (k *check) options() {
	k.exist("WithBody", slices.Collect(maps.Keys(k.guard.cfg.bodies)))
	k.exist("WithBuffer", slices.Collect(maps.Keys(k.guard.cfg.buffers)))
}

func (k *check) exist(option string, routes []ruleset.Endpoint) {
	for _, e := range routes {
		if !slices.Contains(k.labels, e.Label()) {
			k.add(fmt.Errorf("ginlock: %s: route %q: %s", option, e.Label(), k.unmatched(e)))
		}
	}
}

// engine finds settings under which one path value has several spellings.
func (k *check) engine(engine *gin.Engine) {
	if (engine.UseRawPath || engine.UseEscapedPath) && !engine.UnescapePathValues {
		k.add(errors.New("ginlock: the engine hands over path values undecoded, so that one resource would have several keys: set UnescapePathValues = true"))
	}
}
