package ruleset

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

// This file checks the combinations of fields of one rule. It does not report a field of a lower layer that
// a higher layer makes useless: the author of the lower layer could not foresee it, and the author of the
// higher layer cannot remove it.

// clash is a field that has no effect together with other fields, or contradicts them. In the text, a word in <…>
// is spelled as in the place of the problem.
type clash struct {
	field   string
	others  []string // the fields that decide whether it clashes
	always  bool     // it is a problem even if a higher layer sets one of the others, and is then reported there
	applies func(r *Resolved) bool
	text    string
	beside  string // the end of the text if both fields are in one place
}

// clashes is the table of the combinations that a rule cannot have.
var clashes = []clash{ //nolint:gochecknoglobals // a table that is only read
	{"kind", []string{"keys"}, true, func(r *Resolved) bool {
		return len(r.Keys) > 1 && r.Kind.isKnown() && !r.Kind.Traits().Several
	}, "a {noun} has one key, and <keys> has {n} templates: write one template, or <kind: reentrant>", ""},
	{"permits", []string{"kind"}, false, func(r *Resolved) bool {
		return r.Permits > 0 && r.Kind.isKnown() && !r.Kind.Traits().Permits
	}, "a {noun} has no permits: remove it, or write <kind: semaphore>", ""},
	{"token", []string{"kind"}, false, func(r *Resolved) bool {
		return r.Kind.Traits().Token && !r.Token
	}, "a {noun} has a token in any case: remove <token>, or write another kind, such as <reentrant>", ""},
	{"token", []string{"keys"}, true, func(r *Resolved) bool {
		return r.Token && len(r.Keys) > 1
	}, "a token belongs to one key, and <keys> has {n} templates: write one template, or remove <token>", ""},
	{"token", []string{"kind"}, true, func(r *Resolved) bool {
		return r.Token && r.Kind.Traits().Shared
	}, "several calls hold a {noun} at a time, and one token cannot order them: remove <token>, or write another kind, such as {alone}", ""},
	{"debounce", []string{"kind"}, true, func(r *Resolved) bool {
		return r.Debounce > 0 && r.Kind.Traits().Shared
	}, "a {noun} has no last holder, so the window would never start: remove <debounce>, or write another kind, such as {alone}", ""},
	{"fallback", strategies(), false, func(r *Resolved) bool {
		return r.Fallback != "" && !uses(r, failpolicy.Fallback)
	}, "{fallback} is never used: write <on_busy: fallback>, or remove it", ""},
	{"wait_time", []string{"debounce"}, false, func(r *Resolved) bool {
		return r.Debounce > 0 && r.WaitTime != NoWait
	}, "a debounced call never waits: remove <wait_time>", " or <debounce>"},
	{"lease_time", []string{"debounce"}, false, func(r *Resolved) bool {
		return r.Debounce > 0 && r.LeaseTime != Watchdog
	}, "the watchdog holds the lock of a debounced handler, and the window begins after it: remove <lease_time>", ""},
	{"max_hold", []string{"lease_time"}, false, func(r *Resolved) bool {
		return r.MaxHold > 0 && r.LeaseTime != Watchdog && r.Debounce <= 0
	}, "a fixed lease ends by itself: remove <max_hold>, or write <lease_time: watchdog>", ""},
	{"on_busy", []string{"debounce"}, true, func(r *Resolved) bool {
		return r.Debounce > 0 && r.OnBusy == failpolicy.Proceed && layerOf(r, "on_busy") >= layerOf(r, "debounce")
	}, "proceeding inside the window undoes <debounce>: write another strategy", ", or remove one"},
	{"response", strategies(), false, func(r *Resolved) bool {
		return r.Response != "" && !hasBody(r)
	}, "never used: write <on_busy: null_response>, or remove it", ""},
	{"max_waiters", []string{"debounce"}, false, func(r *Resolved) bool {
		return r.Debounce > 0 && r.MaxWaiters > 0
	}, "no call waits under this rule: remove it", ""},
	{"max_waiters", []string{"wait_time"}, false, func(r *Resolved) bool {
		return r.WaitTime == NoWait && r.MaxWaiters > 0 && !(r.Debounce > 0 && decides(r, "max_waiters", "debounce"))
	}, "no call waits under this rule: remove it", ""},
	{"on_overload", []string{"debounce"}, false, func(r *Resolved) bool {
		return r.Debounce > 0 && r.OnOverload != failpolicy.Error
	}, "no call waits under this rule, so it never has an overload: remove it", ""},
	{"on_overload", []string{"wait_time"}, false, func(r *Resolved) bool {
		return r.WaitTime == NoWait && r.OnOverload != failpolicy.Error && !(r.Debounce > 0 && decides(r, "on_overload", "debounce"))
	}, "no call waits under this rule, so it never has an overload: remove it", ""},
}

// strategies lists the fields whose value is a strategy, in order.
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

// message returns the text of the clash, spelled for the place at. origin is the end of the text if the other
// field comes from elsewhere.
func (k *clash) message(r *Resolved, at Source, origin string) string {
	text := k.text
	if origin == "" {
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
	).Replace(text) + origin
}

var spelledWord = regexp.MustCompile(`<[a-z_]+(: [a-z_]+)?>`)

// checkTogether reports the combinations of fields that a rule cannot have.
func checkTogether(r *Resolved, reportf func(field, format string, args ...any)) {
	for _, k := range clashes {
		field, other := k.field, k.others[0]
		open := r.broken.hasAny("profile") && !allDeclared(r, k.others)
		switch {
		case open || r.broken.hasAny(append(k.others, field)...) || !k.applies(r) || !k.always && !decides(r, field, k.others...):
			continue
		case layerOf(r, other) > layerOf(r, field) || layerOf(r, other) == layerOf(r, field) && r.declared(other) && !r.declared(field):
			field, other = other, field
		}
		origin := ""
		if len(k.others) == 1 {
			origin = originOf(r, other, field)
		}
		reportf(field, "%s", k.message(r, r.placeOf(field), origin))
	}
	if r.Kind.Traits().Permits && r.Source("permits").Layer == layerNone && !r.broken.hasAny("kind", "permits", "profile") {
		reportf("kind", "a %s needs the number of calls that may run at once, across all instances: add %s",
			r.Kind.Traits().Noun, r.placeOf("kind").example("permits", "5"))
	}
	if r.Fallback == "" && !r.broken.hasAny(append(strategies(), "fallback", "profile")...) {
		checkFallback(r, reportf)
	}
}

// checkFallback reports strategies without the name of their handler. A higher layer that names another
// profile may have removed the name together with the profile.
func checkFallback(r *Resolved, reportf func(field, format string, args ...any)) {
	values := []failpolicy.Strategy{r.OnBusy, r.OnBackend, r.OnKey, r.OnOverload}
	for i, field := range strategies() {
		if values[i] != failpolicy.Fallback {
			continue
		}
		if r.declared(field) && r.Source("profile").Layer > r.Source(field).Layer {
			at := r.placeOf("profile")
			reportf("profile", "does not name the handler that %s of %s needs: write %s", at.spell(field), r.Source(field).where(), at.example("fallback", `"name"`))
			continue
		}
		reportf(field, "the strategy needs the name of a handler: write %s", r.placeOf(field).example("fallback", `"name"`))
	}
}

func allDeclared(r *Resolved, fields []string) bool {
	return !slices.ContainsFunc(fields, func(f string) bool { return !r.declared(f) })
}

// layerOf returns the layer that decides the value of a field. For a value of a default or a profile, it
// is the layer that names the profile.
func layerOf(r *Resolved, field string) Layer {
	layer := r.Source(field).Layer
	if layer < LayerCode {
		return max(layer, r.Source("profile").Layer)
	}
	return layer
}

// decides reports whether the rule itself sets the field, and no higher layer decides the values of the others.
func decides(r *Resolved, field string, others ...string) bool {
	return r.declared(field) && !slices.ContainsFunc(others, func(other string) bool {
		return layerOf(r, other) > r.Source(field).Layer
	})
}

// originOf returns the place of a field in brackets, for a message about another field. It returns "" if both
// fields are in one layer, or if no author set the field.
func originOf(r *Resolved, field, other string) string {
	from := r.Source(field)
	if from.Layer == r.Source(other).Layer || from.Layer <= LayerDefault && from.File == "" && field == "kind" {
		return ""
	}
	return " (" + r.placeOf(other).spell(field) + " comes from " + from.where() + ")"
}

// applyDebounce gives a debounced rule the values that a debounce implies: no call waits, the watchdog holds
// the lock, and a call inside the window does not proceed. It replaces the values of lower layers.
func applyDebounce(r *Resolved) {
	if r.Debounce <= 0 {
		return
	}
	if r.OnBusy == failpolicy.Proceed {
		r.OnBusy = failpolicy.Error
		r.sources["on_busy"] = r.Source("debounce")
	}
	if r.WaitTime != NoWait && r.declared("wait_time") {
		r.sources["wait_time"] = r.Source("debounce")
	}
	if r.LeaseTime != Watchdog && r.declared("lease_time") {
		r.sources["lease_time"] = r.Source("debounce")
	}
	r.WaitTime, r.LeaseTime = NoWait, Watchdog
}

// applyLease removes the limit of a rule with a fixed lease. It removes only a limit of a lower layer, because
// checkTogether reports a limit of the same layer.
func applyLease(r *Resolved) {
	if r.LeaseTime != Watchdog && r.MaxHold != 0 {
		r.MaxHold = 0
		delete(r.sources, "max_hold")
	}
}
