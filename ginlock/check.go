package ginlock

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
)

// Check returns every problem of the guard's rules with the routes of an engine,
// joined; nil if there is none. Call it when all routes are registered and before
// the server starts. It compiles the rules of [Guard.Middleware] for all routes.
//
//   - Rules of Middleware: templates, conditions and fallbacks that do not fit a
//     route; rules that match no route.
//   - Rules of [Guard.Handle]: what Handle returned.
//   - Rules of [Guard.Handler]: those that fit no route of the engine at all. On
//     which route such a handler is, only its first request tells; Handle is exact.
//   - Two guards with a rule of the same name on one route.
//   - [WithBody] and [WithBuffer] for routes that do not exist.
//   - An engine that hands over path values undecoded, which would give one
//     resource several keys.
func (g *Guard) Check(engine *gin.Engine) error {
	if engine == nil {
		return errors.New("ginlock: Check: the engine is nil")
	}
	g.mu.Lock()
	chained, placed, declared := slices.Clone(g.chained), slices.Clone(g.placed), slices.Clone(g.declared)
	g.mu.Unlock()

	k := newCheck(g, engine)
	for _, d := range declared {
		k.declared(d)
	}
	for _, e := range placed {
		k.add(e.broken)
	}
	for _, h := range chained {
		k.chained(h)
	}
	k.clashes(declared, placed)
	k.options()
	k.engine(engine)
	return errors.Join(k.problems...)
}

// check is one run of [Guard.Check].
type check struct {
	guard    *Guard
	routes   []route
	labels   []string
	problems []error
	seen     map[string]bool
}

// route is one route of an engine.
type route struct {
	ruleset.Endpoint

	params []string
}

func newCheck(g *Guard, engine *gin.Engine) *check {
	k := &check{guard: g, seen: make(map[string]bool)}
	for _, info := range engine.Routes() {
		e := canonical(ruleset.Route(info.Method, info.Path))
		k.routes = append(k.routes, route{e, pathParams(info.Path)})
		k.labels = append(k.labels, e.Label())
	}
	return k
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
	if text := err.Error(); !k.seen[text] {
		k.seen[text] = true
		k.problems = append(k.problems, err)
	}
}

// declared compiles a set for all routes.
func (k *check) declared(d *declared) {
	used := make(map[*ruleset.Resolved]bool)
	for _, r := range k.routes {
		for _, rule := range d.set.Match(r.Endpoint) {
			used[rule] = true
		}
		if e := d.add(r.Endpoint, r.params); e != nil {
			k.add(e.broken)
		}
	}
	for _, rule := range d.set.Rules() {
		if rule.Endpoint.Transport == ruleset.TransportHTTP && !used[rule] {
			k.add(rule.Problem("endpoint", k.unmatched(rule.Endpoint)))
		}
	}
}

// unmatched says that no route has the endpoint, and which one may be meant.
func (k *check) unmatched(e ruleset.Endpoint) string {
	if slices.Contains(k.labels, canonical(e).Label()) && canonical(e) != e {
		return fmt.Sprintf("matches no route: write %q, without the backslash", canonical(e).Label())
	}
	if near := failpolicy.Nearest(e.Label(), k.labels); near != "" {
		return fmt.Sprintf("matches no route: did you mean %q?", near)
	}
	return "matches no route: write a method and the path as registered, the base path of the group included"
}

// chained looks for a route that rules of Handler fit.
func (k *check) chained(h *chained) {
	compiled := h.routes.all()
	for _, e := range compiled {
		k.add(e.broken)
	}
	if len(compiled) > 0 {
		return
	}
	var best error
	for _, r := range k.routes {
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

// clashes finds rules that two guards have for one route.
func (k *check) clashes(sets []*declared, placed []*endpoint) {
	for _, r := range k.routes {
		var here []*endpoint
		for _, d := range sets {
			if e, _ := d.routes.find(r.Endpoint); e != nil && e.broken == nil {
				here = append(here, e)
			}
		}
		for _, e := range placed {
			if e.route == r.Endpoint && e.broken == nil {
				here = append(here, e)
			}
		}
		for i, e := range here {
			for _, other := range here[:i] {
				k.add(e.clash(other))
			}
		}
	}
}

// options finds routes named in options that do not exist.
func (k *check) options() {
	k.known("WithBody", slices.Collect(maps.Keys(k.guard.cfg.bodies)))
	k.known("WithBuffer", slices.Collect(maps.Keys(k.guard.cfg.buffers)))
}

func (k *check) known(option string, routes []ruleset.Endpoint) {
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
