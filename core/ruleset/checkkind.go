package ruleset

import (
	"slices"

	"github.com/interlock-go/interlock/failpolicy"
)

// kindWords are what Redisson and others call a kind.
var kindWords = map[string]Kind{ //nolint:gochecknoglobals // a table that is only read
	"rlock": Reentrant, "redissonlock": Reentrant, "lock": Reentrant, "reentrantlock": Reentrant, "kindreentrant": Reentrant,
	"rfencedlock": Fenced, "redissonfencedlock": Fenced, "fencedlock": Fenced, "fencing": Fenced, "kindfenced": Fenced,
	"redissonspinlock": Spin, "rspinlock": Spin, "spinlock": Spin, "kindspin": Spin,
	"redissonfairlock": Fair, "rfairlock": Fair, "fairlock": Fair, "kindfair": Fair,
	"redissonreadlock": Read, "rreadlock": Read, "readlock": Read, "shared": Read, "kindread": Read,
	"redissonwritelock": Write, "rwritelock": Write, "writelock": Write, "exclusive": Write, "kindwrite": Write,
	"rpermitexpirablesemaphore": Semaphore, "redissonpermitexpirablesemaphore": Semaphore, "permitexpirablesemaphore": Semaphore,
	"permitsemaphore": Semaphore, "rsemaphore": Semaphore, "redissonsemaphore": Semaphore, "permits": Semaphore, "kindsemaphore": Semaphore,
}

// checkKind says what to write in place of a word that is no kind.
func checkKind(word string) error {
	known := words(Kinds())
	if slices.Contains(known, word) {
		return nil
	}
	meant, ok := kindWords[foldKey(word)]
	if !ok {
		meant = Kind(failpolicy.Nearest(word, known))
	}
	return &failpolicy.UnknownWordError{What: "kind", Word: word, Known: known, Suggestion: string(meant)}
}

// checkKindOfKeys reports several keys of a kind that has one. Neither can give way to
// the other, whatever their layers are: it is told where the higher one is written.
func (c *checker) checkKindOfKeys() {
	r := c.rule
	if len(r.Keys) < 2 || r.Kind.TakesSeveral() || checkKind(string(r.Kind)) != nil || r.broken.hasAny("kind", "keys") {
		return
	}
	keys, kind := c.layerOf("keys"), c.layerOf("kind")
	if keys > kind || keys == kind && !r.declared("kind") {
		c.look("keys")
		c.reportf("keys", "%d templates, and a %s has one key: write one template%s", len(r.Keys), r.Kind.Noun(), c.orKind("keys"))
		return
	}
	c.look("kind")
	c.reportf("kind", "a %s has one key, and %s has %d templates: write one template%s", r.Kind.Noun(), c.spell("keys"), len(r.Keys), c.orKind("kind"))
}

// orKind is the other way to have several keys.
func (c *checker) orKind(told string) string {
	other := "kind"
	if told == "kind" {
		other = "keys"
	}
	return ", or " + example(c.inFile(), "kind", c.spell("reentrant")) + c.cameFrom(other, told)
}

// checkPermits reports a semaphore without a number, and a number without a semaphore.
func (c *checker) checkPermits() {
	r := c.rule
	switch {
	case checkKind(string(r.Kind)) != nil || r.broken.hasAny("kind", "permits", "profile"):
	case r.Kind == Semaphore && r.Source("permits").Layer == LayerNone:
		c.look("kind")
		c.reportf("kind", "a semaphore has to know how many calls may run at once, across all instances: write %s beside it", example(c.inFile(), "permits", "5"))
	case r.Kind != Semaphore && r.Permits > 0 && c.isOver("permits", "kind"):
		c.look("permits")
		c.reportf("permits", "a %s has no permits: remove it, or write %s%s", r.Kind.Noun(), example(c.inFile(), "kind", c.spell("semaphore")), c.kindCameFrom("permits"))
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
	r := c.rule
	switch {
	case r.Kind == Fenced && !r.Token && c.isOver("token", "kind") && !r.broken.hasAny("token"):
		c.look("token")
		c.reportf("token", "a %s has a token in any case: remove %s, or write another kind, such as %s%s",
			r.Kind.Noun(), c.spell("token"), c.spell(string(Reentrant)), c.kindCameFrom("token"))
	case r.Token && len(r.Keys) > 1 && !r.broken.hasAny("keys"):
		c.look("token")
		c.reportf("token", "a token belongs to one key, and %s has %d templates: write one template, or remove %s%s",
			c.spell("keys"), len(r.Keys), c.spell("token"), c.cameFrom("keys", "token"))
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
	told := field
	if c.layerOf("kind") > c.layerOf(field) {
		told = "kind"
	}
	other := "kind"
	if told == "kind" {
		other = field
	}
	c.look(told)
	c.reportf(told, "several calls hold a %s at a time, and %s: remove %s, or write another kind, such as %s%s", r.Kind.Noun(), why,
		c.spell(field), c.spell(string(r.Kind.alone())), c.cameFrom(other, told))
}

// alone is the kind that one call holds at a time, to write in place of a shared one.
func (k Kind) alone() Kind {
	if k == Read {
		return Write
	}
	return Reentrant
}
