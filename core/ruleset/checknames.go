package ruleset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

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
