package ruleset

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// What belongs together in a rule. What a higher layer makes useless is not a mistake: the author
// of the lower one did not know, and the author of the higher one cannot remove it.

// clash is a field that says nothing beside others, or contradicts them. In the text <words> are
// spelled as in the place of the problem.
type clash struct {
	field  string
	others []string // the fields that decide about it
	always bool     // neither gives way to a higher layer: the problem is where the higher one is written
	is     func(c *checker, r *Resolved) bool
	text   string
	beside string // the end of the text where the other field does not come from elsewhere
}

// clashes is the table of all that cannot stand together.
var clashes = []clash{ //nolint:gochecknoglobals // a table that is only read
	{"kind", []string{"keys"}, true, func(_ *checker, r *Resolved) bool {
		return len(r.Keys) > 1 && r.Kind.isKnown() && !r.Kind.Traits().Several
	}, "a {noun} has one key, and <keys> has {n} templates: write one template, or <kind: reentrant>", ""},
	{"permits", []string{"kind"}, false, func(_ *checker, r *Resolved) bool {
		return r.Permits > 0 && r.Kind.isKnown() && !r.Kind.Traits().Permits
	}, "a {noun} has no permits: remove it, or write <kind: semaphore>", ""},
	{"token", []string{"kind"}, false, func(_ *checker, r *Resolved) bool {
		return r.Kind.Traits().Token && !r.Token
	}, "a {noun} has a token in any case: remove <token>, or write another kind, such as <reentrant>", ""},
	{"token", []string{"keys"}, true, func(_ *checker, r *Resolved) bool {
		return r.Token && len(r.Keys) > 1
	}, "a token belongs to one key, and <keys> has {n} templates: write one template, or remove <token>", ""},
	{"token", []string{"kind"}, true, func(_ *checker, r *Resolved) bool {
		return r.Token && r.Kind.Traits().Shared
	}, "several calls hold a {noun} at a time, and one token cannot order them: remove <token>, or write another kind, such as {alone}", ""},
	{"debounce", []string{"kind"}, true, func(_ *checker, r *Resolved) bool {
		return r.Debounce > 0 && r.Kind.Traits().Shared
	}, "several calls hold a {noun} at a time, and there is no last one after whom the window could begin: remove <debounce>, or write another kind, such as {alone}", ""},
	{"fallback", strategies(), false, func(_ *checker, r *Resolved) bool {
		return r.Fallback != "" && !uses(r, failpolicy.Fallback)
	}, "{fallback} is never used: write <on_busy: fallback>, or remove it", ""},
	{"wait_time", []string{"debounce"}, false, func(_ *checker, r *Resolved) bool {
		return r.Debounce > 0 && r.WaitTime != NoWait
	}, "a debounced call never waits: remove <wait_time>", " or <debounce>"},
	{"lease_time", []string{"debounce"}, false, func(_ *checker, r *Resolved) bool {
		return r.Debounce > 0 && r.LeaseTime != Watchdog
	}, "a debounced handler is held by the watchdog, and the window begins after it: remove <lease_time>", ""},
	{"on_busy", []string{"debounce"}, true, func(c *checker, r *Resolved) bool {
		return r.Debounce > 0 && r.OnBusy == failpolicy.Proceed && c.layerOf("on_busy") >= c.layerOf("debounce")
	}, "proceeding inside the window undoes <debounce>: write another strategy", ", or remove one"},
	{"response", strategies(), false, func(_ *checker, r *Resolved) bool {
		return r.Response != "" && !hasBody(r)
	}, "never used: write <on_busy: null_response>, or remove it", ""},
	{"max_waiters", []string{"debounce"}, false, func(_ *checker, r *Resolved) bool {
		return r.Debounce > 0 && r.MaxWaiters > 0
	}, "nobody waits under this rule: remove it", ""},
	{"max_waiters", []string{"wait_time"}, false, func(c *checker, r *Resolved) bool {
		return r.WaitTime == NoWait && r.MaxWaiters > 0 && !(r.Debounce > 0 && c.isOver("max_waiters", "debounce"))
	}, "nobody waits under this rule: remove it", ""},
	{"on_overload", []string{"debounce"}, false, func(_ *checker, r *Resolved) bool {
		return r.Debounce > 0 && r.OnOverload != failpolicy.Error
	}, "nobody waits under this rule, so there is no overload: remove it", ""},
	{"on_overload", []string{"wait_time"}, false, func(c *checker, r *Resolved) bool {
		return r.WaitTime == NoWait && r.OnOverload != failpolicy.Error && !(r.Debounce > 0 && c.isOver("on_overload", "debounce"))
	}, "nobody waits under this rule, so there is no overload: remove it", ""},
}

// spelled is the text for a rule and the place of the problem; came says where the other field has
// its value.
func (k *clash) spelled(r *Resolved, at Source, came string) string {
	text := k.text
	if came == "" {
		text += k.beside
	}
	text = spelledWord.ReplaceAllStringFunc(text, func(word string) string {
		field, value, isExample := strings.Cut(strings.Trim(word, "<>"), ": ")
		if isExample {
			return at.example(field, value)
		}
		return at.spell(field)
	})
	return strings.NewReplacer(
		"{noun}", r.Kind.Traits().Noun, "{n}", strconv.Itoa(len(r.Keys)), "{fallback}", strconv.Quote(r.Fallback),
		"{alone}", at.spell(string(cmp.Or(r.Kind.Traits().alone, Reentrant))),
	).Replace(text) + came
}

var spelledWord = regexp.MustCompile(`<[a-z_]+(: [a-z_]+)?>`)

// strategies are the fields with a strategy, in order.
func strategies() []string { return []string{"on_busy", "on_backend", "on_key", "on_overload"} }

func uses(r *Resolved, s failpolicy.Strategy) bool {
	policy := r.Policy()
	return policy.Uses(s)
}

func hasBody(r *Resolved) bool {
	policy := r.Policy()
	_, body := policy.Replies()
	return body
}

// checkTogether looks at what belongs together.
func (c *checker) checkTogether() {
	r := c.rule
	for _, k := range clashes {
		told, other := k.field, k.others[0]
		open := r.broken.hasAny("profile") && !allDeclared(r, k.others)
		switch {
		case open || r.broken.hasAny(append(k.others, told)...) || !k.is(c, r) || !k.always && !c.isOver(told, k.others...):
			continue
		case c.layerOf(other) > c.layerOf(told) || c.layerOf(other) == c.layerOf(told) && r.declared(other) && !r.declared(told):
			told, other = other, told
		}
		came := ""
		if len(k.others) == 1 {
			came = c.cameFrom(other, told)
		}
		c.reportf(told, "%s", k.spelled(r, r.placeOf(told), came))
	}
	if r.Kind.Traits().Permits && r.Source("permits").Layer == layerNone && !r.broken.hasAny("kind", "permits", "profile") {
		c.reportf("kind", "a %s has to know how many calls may run at once, across all instances: write %s beside it",
			r.Kind.Traits().Noun, r.placeOf("kind").example("permits", "5"))
	}
	if r.Fallback == "" && !r.broken.hasAny(append(strategies(), "fallback", "profile")...) {
		c.checkHandler()
	}
}

func allDeclared(r *Resolved, fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return !r.declared(f) })
}

// layerOf is the layer that decides about a field: that of its value, or of the profile
// from which the value comes, or does not come.
func (c *checker) layerOf(field string) Layer {
	layer := c.rule.Source(field).Layer
	if layer < LayerCode {
		return max(layer, c.rule.Source("profile").Layer)
	}
	return layer
}

// isOver reports whether the rule itself sets the field, and no higher layer decided about
// the others after it.
func (c *checker) isOver(field string, others ...string) bool {
	return c.rule.declared(field) && !slices.ContainsFunc(others, func(other string) bool {
		return c.layerOf(other) > c.rule.Source(field).Layer
	})
}

// checkHandler reports strategies that lack the name of their handler. Where a higher
// layer took another profile, the name went with the one before.
func (c *checker) checkHandler() {
	r := c.rule
	values := []failpolicy.Strategy{r.OnBusy, r.OnBackend, r.OnKey, r.OnOverload}
	for i, field := range strategies() {
		if values[i] != failpolicy.Fallback {
			continue
		}
		if r.declared(field) && r.Source("profile").Layer > r.Source(field).Layer {
			at := r.placeOf("profile")
			c.reportf("profile", "does not name the handler that %s of %s needs: write %s", at.spell(field), r.Source(field).where(), at.example("fallback", `"name"`))
			continue
		}
		c.reportf(field, "the strategy needs the name of a handler: write %s", r.placeOf(field).example("fallback", `"name"`))
	}
}

// cameFrom says in brackets where a field has its value if somebody set it, and not in a line beside
// the other one, in the words of that.
func (c *checker) cameFrom(field, other string) string {
	from := c.rule.Source(field)
	if from.Layer == c.rule.Source(other).Layer || from.Layer <= LayerDefault && from.File == "" && field == "kind" {
		return ""
	}
	return " (" + c.rule.placeOf(other).spell(field) + " comes from " + from.where() + ")"
}

// applyDebounce gives a debounced rule what debouncing means: nobody waits, the lock
// lives as long as the handler, and a call inside of the window does not proceed, whatever
// lower layers say.
func (c *checker) applyDebounce() {
	r := c.rule
	if r.Debounce <= 0 {
		return
	}
	if r.OnBusy == failpolicy.Proceed {
		r.OnBusy = failpolicy.Error
		c.replaced("on_busy")
	}
	if r.WaitTime != NoWait && r.declared("wait_time") {
		c.replaced("wait_time")
	}
	if r.LeaseTime != Watchdog && r.declared("lease_time") {
		c.replaced("lease_time")
	}
	r.WaitTime, r.LeaseTime = NoWait, Watchdog
}

// replaced makes the debounce the source of what a lower layer set.
func (c *checker) replaced(field string) {
	c.rule.sources[field] = c.rule.Source("debounce")
}

// checkNames reports rules of one endpoint that are not told apart by a name.
func (r *resolver) checkNames(rules []*Resolved, together map[Endpoint][]*Resolved) {
	for _, all := range together {
		slices.SortStableFunc(all, func(a, b *Resolved) int { return cmp.Compare(a.origin.Layer, b.origin.Layer) })
	}
	for _, rule := range rules {
		all := together[rule.Endpoint]
		switch {
		case len(all) < 2 || rule.broken.hasAny("endpoint", "name"):
		case rule.None:
			r.problems = append(r.problems, rule.Problem("none", noneBeside(rule, all)))
		case !rule.declared("name"):
			r.nameless(rule, all)
		}
	}
}

// noneBeside says what to do about a rule that says that there is none, beside others.
func noneBeside(rule *Resolved, all []*Resolved) string {
	lower := all[0]
	if lower.origin.Layer >= rule.origin.Layer {
		return fmt.Sprintf("%d rules on one endpoint, and this one says that it needs none: remove it, or the others", len(all))
	}
	message := fmt.Sprintf("the rule %q is declared in %s, and none says that there is none: write name: %q and disabled: true to switch it off",
		lower.Name, lower.origin.where(), lower.Name)
	if len(all) > 2 {
		message += ", and so for the others"
	}
	return message
}

// nameless reports a rule without a name beside others. Where one of a higher layer
// has a name, most likely it was to change this one, and lacks the rest for that reason.
func (r *resolver) nameless(rule *Resolved, all []*Resolved) {
	named := slices.DeleteFunc(slices.Clone(all), func(n *Resolved) bool { return !n.declared("name") || n.broken.hasAny("name") })
	lower := slices.DeleteFunc(slices.Clone(named), func(n *Resolved) bool { return n.lowest >= rule.origin.Layer })
	if len(lower) > 0 {
		r.namelessOver(rule, lower)
		return
	}
	i := slices.IndexFunc(named, func(n *Resolved) bool { return n.lowest > rule.origin.Layer })
	if i < 0 {
		r.problems = append(r.problems, rule.Problem("name",
			fmt.Sprintf("%d rules on one endpoint need names: write %s", len(all), rule.origin.example("name", strconv.Quote(suggestName(rule))))))
		return
	}
	r.forgetMissingKey(named[i])
	r.problems = append(r.problems, named[i].Problem("name", fmt.Sprintf(
		"%d rules on one endpoint need names, and the one in %s has none: leave name out to change the rule of %s, or give that one a name, too",
		len(all), rule.origin.where(), rule.origin.Layer.owner())))
}

// namelessOver reports a rule without a name over those of lower layers that have some.
func (r *resolver) namelessOver(rule *Resolved, lower []*Resolved) {
	r.forgetMissingKey(rule)
	names := make([]string, len(lower))
	for i, n := range lower {
		names[i] = rule.origin.example("name", strconv.Quote(n.Name))
	}
	message := "write " + strings.Join(names, " or ") + " to change the rule of " + lower[0].lowest.owner()
	if rule.declared("key") || rule.declared("keys") {
		message += ", or another name for one more rule"
	}
	r.problems = append(r.problems, rule.Problem("name", fmt.Sprintf("%d rules on one endpoint need names: %s", len(lower)+1, message)))
}

// forgetMissingKey takes back that a rule has no key, for something better to say.
func (r *resolver) forgetMissingKey(rule *Resolved) {
	r.problems = slices.DeleteFunc(r.problems, func(p *Problem) bool {
		return p.Endpoint == rule.Endpoint && p.Rule == rule.Name && errors.Is(p, errKeyMissing)
	})
}

// where is the place of a declaration in a sentence: "declared in …".
func (s Source) where() string {
	if place := s.position(); place != "" {
		return place
	}
	return s.Layer.owner()
}

// owner is who has the rules of a layer.
func (l Layer) owner() string {
	switch l {
	case LayerYAML:
		return "the file"
	case LayerProto:
		return "the .proto"
	default:
		return "the program"
	}
}
