package strictyaml

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

var (
	// commentMark matches each # that begins a comment unless it is inside quotes or a block.
	commentMark = regexp.MustCompile(`(?m)(?:^|[ \t])#`)
	// numbered matches the number that findComments writes after such a #.
	numbered = regexp.MustCompile("\ue000(\\d+)\ue000")
)

// findComments returns the columns of the comments that begin with #{, by line. A careful author writes
// no such comment. findComments writes a number after each # that may begin a comment and parses the
// result: the numbers that are missing from all values were written into comments. It considers only the
// first comment of a line, which contains the others.
func findComments(in lines) map[int]int {
	comments := map[int]int{}
	text := strings.Join(in, "\n")
	if !strings.Contains(text, "#{") {
		return comments
	}
	marks, n := commentMark.FindAllStringIndex(text, -1), -1
	document, p := parse([]byte(commentMark.ReplaceAllStringFunc(text, func(mark string) string {
		n++
		return mark + "\ue000" + strconv.Itoa(n) + "\ue000"
	})), in)
	if p.Message != "" {
		return comments
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
			comments[line] = 1 + utf8.RuneCountInString(text[1+strings.LastIndexByte(text[:hash], '\n'):hash])
		}
	}
	return comments
}

// markValues marks the numbers that are in values.
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
