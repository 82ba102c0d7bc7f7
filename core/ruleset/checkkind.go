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
		c.reportf("keys", "%d templates, and a %s lock has one key: write one template%s", len(r.Keys), r.Kind, c.orKind("keys"))
		return
	}
	c.look("kind")
	c.reportf("kind", "a %s lock has one key, and %s has %d templates: write one template%s", r.Kind, c.spell("keys"), len(r.Keys), c.orKind("kind"))
}

// orKind is the other way to have several keys.
func (c *checker) orKind(told string) string {
	other := "kind"
	if told == "kind" {
		other = "keys"
	}
	return ", or " + example(c.inFile(), "kind", c.spell("reentrant")) + c.cameFrom(other, told)
}
