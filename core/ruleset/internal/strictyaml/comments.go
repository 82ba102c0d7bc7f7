package strictyaml

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

var (
	// commentMark is a # that begins a comment, unless it is in quotes or in a block.
	commentMark = regexp.MustCompile(`(?m)(?:^|[ \t])#`)
	// numbered is the number behind one.
	numbered = regexp.MustCompile("\ue000(\\d+)\ue000")
)

// findComments finds the comments that begin with #{, as no comment of a careful author does. Behind
// each # that may begin one it writes a number: what no value has afterwards was a comment. Only the
// first of a line counts, since the others are in that comment.
func (d *Doc) findComments() {
	d.comments = map[int]int{}
	text := strings.Join(d.lines, "\n")
	if !strings.Contains(text, "#{") {
		return
	}
	marks, n := commentMark.FindAllStringIndex(text, -1), -1
	document, p := d.parse([]byte(commentMark.ReplaceAllStringFunc(text, func(mark string) string {
		n++
		return mark + "\ue000" + strconv.Itoa(n) + "\ue000"
	})))
	if p.Message != "" {
		return
	}
	inValue := make([]bool, len(marks))
	markValues(document, inValue)
	line, begin, last := 1, 0, 0
	for n, at := range marks {
		hash := at[1] - 1
		line += strings.Count(text[begin:hash], "\n")
		begin = hash
		if inValue[n] || line == last {
			continue
		}
		if last = line; strings.HasPrefix(text[hash:], "#{") {
			d.comments[line] = 1 + utf8.RuneCountInString(text[1+strings.LastIndexByte(text[:hash], '\n'):hash])
		}
	}
}

// markValues notes the numbers that are in values.
func markValues(n *yaml.Node, inValue []bool) {
	for _, found := range numbered.FindAllStringSubmatch(n.Value, -1) {
		if i, err := strconv.Atoi(found[1]); err == nil && i < len(inValue) {
			inValue[i] = true
		}
	}
	for _, child := range n.Content {
		markValues(child, inValue)
	}
}

const (
	isComment     = "YAML takes #{…} after a space for a comment: quote the whole value"
	commentOrText = "YAML takes #{ for a comment: write # { if it is one; if not, quote the whole value"
)

// isSwallowed reports a value of which YAML took the rest, or all of it, for a
// comment: key: order #{path.id}.
func (d *Doc) isSwallowed(v Value) bool {
	n := v.Node
	column := d.comments[n.Line]
	if n.Kind != yaml.ScalarNode || column <= n.Column {
		return false
	}
	_, rest := d.cut(n.Line, n.Column)
	before := strings.TrimSpace(string([]rune(rest)[:min(column-n.Column, utf8.RuneCountInString(rest))]))
	switch before {
	case n.Value:
		d.report(Problem{n.Line, column, v.Field, isComment + d.corrected(v)})
	case quotedText.FindString(before):
		d.report(Problem{n.Line, column, v.Field, isComment})
	default:
		return false // it stands behind another value
	}
	delete(d.comments, n.Line)
	return true
}

// ReportComments reports the comments that begin with #{ and belong to no value that was
// read. Where their line has another problem, that comes first. It is called last.
func (d *Doc) ReportComments() {
	for _, line := range slices.Sorted(maps.Keys(d.comments)) {
		if !d.told[line] {
			d.report(Problem{line, d.comments[line], "", commentOrText})
		}
	}
}
