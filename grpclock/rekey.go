package grpclock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// rekeyed reports a rule of which callers under the old set and under this one would
// hold different locks. Where a mistake makes the other lock, the mistake is the news.
func (c *checker) rekeyed(k methodKey, old, next *method) {
	if next == nil || next.err == nil {
		c.compareLocks(k.path, old.rules(), next.rules())
	}
}

func (c *checker) compareLocks(path string, old, next []*ruleset.Resolved) {
	if c.set.Settings().AllowRekey {
		return
	}
	for _, p := range ruleset.RekeyedAt(old, next) {
		c.add(p, path)
	}
}

// rekeyedElsewhere is rekeyed for the methods that a set names and the old table does
// not have: without [Guard.Check] those that nobody has called here yet. Other programs
// may hold their locks. What the .proto says of a method without a descriptor is not
// known, so nothing is said of it.
func (c *checker) rekeyedElsewhere(old *table) {
	known := map[string]bool{}
	for k := range old.methods {
		known[k.path] = true
	}
	for _, r := range slices.Concat(c.set.Rules(), old.set.Rules()) {
		e := r.Endpoint
		if e.Transport != ruleset.TransportGRPC || strings.HasSuffix(e.Path, "*") || known[e.Path] {
			continue
		}
		known[e.Path] = true
		d := describe(e.Path, c.guard.config.descriptors)
		options, problems := optionsOf(d)
		if d == nil || len(problems) > 0 { // those are told when it is called
			continue
		}
		before, beforeErr := old.set.Overlay(e, options...)
		after, err := c.set.Overlay(e, options...)
		if beforeErr == nil && err == nil {
			c.compareLocks(e.Path, before, after)
		}
	}
}
