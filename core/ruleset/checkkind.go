package ruleset

import "cmp"

// checkKindOfKeys reports several keys of a kind that has one. Neither can give way to
// the other, whatever their layers are: it is told where the higher one is written.
func (c *checker) checkKindOfKeys() {
	r := c.rule
	if len(r.Keys) < 2 || r.Kind.TakesSeveral() || !r.Kind.isKnown() || r.broken.hasAny("kind", "keys") {
		return
	}
	keys, kind := c.layerOf("keys"), c.layerOf("kind")
	if keys > kind || keys == kind && !r.declared("kind") {
		c.reportf("keys", "%d templates, and a %s has one key: write one template, or %s%s",
			len(r.Keys), r.Kind.Noun(), r.placeOf("keys").example("kind", "reentrant"), c.cameFrom("kind", "keys"))
		return
	}
	at := r.placeOf("kind")
	c.reportf("kind", "a %s has one key, and %s has %d templates: write one template, or %s%s",
		r.Kind.Noun(), at.spell("keys"), len(r.Keys), at.example("kind", "reentrant"), c.cameFrom("keys", "kind"))
}

// checkPermits reports a semaphore without a number, and a number without a semaphore.
func (c *checker) checkPermits() {
	r := c.rule
	switch {
	case !r.Kind.isKnown() || r.broken.hasAny("kind", "permits", "profile"):
	case r.Kind.traits().permits && r.Source("permits").Layer == LayerNone:
		c.reportf("kind", "a %s has to know how many calls may run at once, across all instances: write %s beside it", r.Kind.Noun(), r.placeOf("kind").example("permits", "5"))
	case !r.Kind.traits().permits && r.Permits > 0 && c.isOver("permits", "kind"):
		c.reportf("permits", "a %s has no permits: remove it, or write %s%s", r.Kind.Noun(), r.placeOf("permits").example("kind", "semaphore"), c.kindCameFrom("permits"))
	}
}

// kindCameFrom says beside a problem of a field where the kind has its value, if anybody gave it one.
func (c *checker) kindCameFrom(told string) string {
	if c.rule.Source("kind") == (Source{Layer: LayerDefault}) {
		return ""
	}
	return c.cameFrom("kind", told)
}

// checkToken reports a token of several keys, and a lock that has one without.
func (c *checker) checkToken() {
	r, at := c.rule, c.rule.placeOf("token")
	switch {
	case r.Kind.HasToken() && !r.Token && c.isOver("token", "kind") && !r.broken.hasAny("token"):
		c.reportf("token", "a %s has a token in any case: remove %s, or write another kind, such as %s%s",
			r.Kind.Noun(), at.spell("token"), at.spell(string(Reentrant)), c.kindCameFrom("token"))
	case r.Token && len(r.Keys) > 1 && !r.broken.hasAny("keys"):
		c.reportf("token", "a token belongs to one key, and %s has %d templates: write one template, or remove %s%s",
			at.spell("keys"), len(r.Keys), at.spell("token"), c.cameFrom("keys", "token"))
	}
}

// checkSharing reports what a lock cannot have that several calls hold at a time.
func (c *checker) checkSharing() {
	r := c.rule
	if !r.Kind.Shared() || r.broken.hasAny("kind") {
		return
	}
	if r.Token {
		c.notShared("token", "one token cannot order them")
	}
	if r.Debounce > 0 {
		c.notShared("debounce", "there is no last one after whom the window could begin")
	}
}

// notShared reports the field, or the kind if it is written over the field.
func (c *checker) notShared(field, why string) {
	r := c.rule
	told, other := field, "kind"
	if c.layerOf("kind") > c.layerOf(field) {
		told, other = other, told
	}
	at := r.placeOf(told)
	c.reportf(told, "several calls hold a %s at a time, and %s: remove %s, or write another kind, such as %s%s", r.Kind.Noun(), why,
		at.spell(field), at.spell(string(cmp.Or(r.Kind.traits().alone, Reentrant))), c.cameFrom(other, told))
}
