package ruleset

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// comment is one that begins with #{, as no comment of a careful author does.
type comment struct {
	at       place
	of       *yaml.Node // the value that it was probably meant for, nil if there is none
	flow     bool       // inside of […] or {…}
	reported bool
}

// findComments finds the comments that begin with #{: not what stands in quotes, in
// blocks and inside of words. Nobody needs more of them than can be reported.
func findComments(s *source, root *yaml.Node) []*comment {
	if !s.mayHaveComments() {
		return nil
	}
	c := commentFinder{source: s, at: place{1, 1}, blank: true}
	c.visit(&holder{node: root})
	c.pass(nil, func(string) bool { return false })
	return c.found
}

// mayHaveComments reports whether a #{ stands where a comment might begin. In most
// files none does.
func (s *source) mayHaveComments() bool {
	return slices.ContainsFunc(s.lines, func(line string) bool {
		return strings.HasPrefix(line, "#{") || strings.Contains(line, " #{") || strings.Contains(line, "\t#{")
	})
}

// commentFinder goes through the text from node to node. The nodes say what is a
// scalar; everything between them is indicators, white space and comments.
type commentFinder struct {
	source *source
	at     place
	blank  bool      // what is before would end a word, so that a # begins a comment
	last   *holder   // what has just ended, nil after an indicator
	open   []*holder // the […] and {…} around
	found  []*comment
}

// holder is a node that a comment may have been meant for.
type holder struct {
	node   *yaml.Node
	parent *holder
	margin int  // column of the name or the dash before: what belongs to it is indented deeper
	name   bool // the name of a value
	flow   bool // inside of […] or {…}
	texts  bool // a text, or a list of texts, and no name
	end    int  // line of the end
}

// isEmpty reports a value of which nothing is written.
func (h *holder) isEmpty() bool { return h.node.Value == "" && h.node.Tag == "!!null" }

// isText reports a text, or a list of texts.
func (h *holder) isText() bool {
	isScalar := func(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode }
	isList := h.node.Kind == yaml.SequenceNode
	return !h.name && (isScalar(h.node) || isList && !slices.ContainsFunc(h.node.Content, func(n *yaml.Node) bool { return !isScalar(n) }))
}

// claimant is the holder that a comment behind h belongs to, nil if none does.
func (h *holder) claimant(at place) *holder {
	if h.end == at.line || h.flow || h.isEmpty() {
		return h
	}
	for h != nil && (at.column <= h.margin || !h.texts) {
		h = h.parent
	}
	return h
}

// visit goes to a node and through it.
func (c *commentFinder) visit(h *holder) {
	h.texts = h.isText()
	c.pass(h, func(string) bool {
		return c.at.line > h.node.Line || c.at.line == h.node.Line && c.at.column >= h.node.Column
	})
	switch h.node.Kind {
	case yaml.ScalarNode:
		c.scalar(h)
	case yaml.SequenceNode, yaml.MappingNode:
		c.collection(h)
	}
}

// collection goes through a list or a mapping. One in […] is the pair of a: b alone,
// which has no brackets of its own.
func (c *commentFinder) collection(h *holder) {
	isFlow := h.node.Style&yaml.FlowStyle != 0
	if isFlow {
		c.properties(h)
	}
	closed := isFlow && strings.HasPrefix(c.rest(), bracket(h.node))
	if closed {
		c.open = append(c.open, h)
	}
	margin := h.node.Column
	for i, n := range h.node.Content {
		isName := h.node.Kind == yaml.MappingNode && i%2 == 0
		if isName {
			margin = n.Column
		}
		c.visit(&holder{node: n, parent: h, margin: margin, name: isName, flow: isFlow})
	}
	if !closed {
		return
	}
	c.pass(nil, func(rest string) bool { return rest != "" && strings.ContainsAny(rest[:1], "]}") })
	c.at.column++
	c.open = c.open[:len(c.open)-1]
	c.blank = false
	c.end(h)
}

// bracket is what opens a collection in flow style.
func bracket(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "["
	}
	return "{"
}

// scalar goes to the end of a text.
func (c *commentFinder) scalar(h *holder) {
	c.properties(h)
	if h.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		header := c.at.line
		c.pass(h, func(string) bool { return c.at.line > header })
	}
	start := c.at
	c.at.line, c.at.column = c.source.endFrom(h.node, start)
	c.blank = c.blank && c.at == start
	c.end(h)
}

// end notes what has ended just here.
func (c *commentFinder) end(h *holder) { c.last, h.end = h, c.at.line }

// properties passes over the anchor and the tag before a node.
func (c *commentFinder) properties(h *holder) {
	if rest := c.rest(); !strings.HasPrefix(rest, "&") && !strings.HasPrefix(rest, "!") {
		return
	}
	c.blank = false
	if h.node.Value == "" && h.node.Style&^yaml.TaggedStyle == 0 { // there is nothing behind them
		c.pass(h, func(rest string) bool { return rest == "" || strings.ContainsAny(rest[:1], " \t,]}") })
		return
	}
	c.pass(h, func(rest string) bool { return c.blank && strings.TrimLeft(rest, " \t&!#") == rest && rest != "" })
}

// rest is what is left of the line.
func (c *commentFinder) rest() string { return c.source.from(c.at.line, c.at.column) }

// pass passes over indicators, white space and comments until there is what it looks
// for; next comes after that.
func (c *commentFinder) pass(next *holder, isThere func(rest string) bool) {
	for c.at.line <= len(c.source.lines) {
		rest := c.rest()
		switch {
		case isThere(rest):
			return
		case rest == "", c.blank && rest[0] == '#':
			c.note(next, rest)
			c.at, c.blank = place{c.at.line + 1, 1}, true
		case rest[0] == ' ', rest[0] == '\t':
			c.at.column++
			c.blank = true
		default:
			c.at.column++
			c.blank, c.last = false, nil
		}
	}
}

// note keeps a comment that begins with #{.
func (c *commentFinder) note(next *holder, text string) {
	if !strings.HasPrefix(text, "#{") || len(c.found) == maxProblems {
		return
	}
	found := comment{at: c.at, flow: len(c.open) > 0}
	if h := c.holder(next); h != nil && h.texts {
		found.of = h.node
	}
	c.found = append(c.found, &found)
}

// holder is what a comment here may have been meant for: what is before it, what is
// around it, or else what comes next.
func (c *commentFinder) holder(next *holder) *holder {
	switch {
	case c.last != nil:
		return c.last.claimant(c.at)
	case len(c.open) > 0:
		return c.open[len(c.open)-1]
	default:
		return next
	}
}
