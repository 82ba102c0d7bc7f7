package strictyaml

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// commentTexts returns texts with #{ in all places, and the places where it begins a comment.
func commentTexts() map[string]struct{ text, want string } {
	return map[string]struct{ text, want string }{
		"plain":                    {"a: b #{x}\nc: d#{x}\ne: f\t#{x}\n", "1:6 3:6"},
		"plain, empty":             {"a: #{x}\nb:\n  #{x}\nc:\n\n# why\n#{x}\n", "1:4 3:3 7:1"},
		"plain, lines":             {"a: b\n  c#{x}\n  d#{x} #{x}\n\n  #{x}\ne: f\n", "3:9 5:3"},
		"plain, odd spaces":        {"a: b\u00a0\u2003c\u3000 #{x}\n", "1:10"},
		"plain, wide characters":   {"ключ: \"#{x}\" #{x}\n日: 𝄞 #{x}\n", "1:14 2:6"},
		"single quotes":            {"a: ' #{x} '' #{x}' #{x}\n", "1:20"},
		"single quotes, lines":     {"a: 'b\n  #{y}\n\n  ''\n #{x}' #{x}\n", "5:8"},
		"double quotes":            {`a: " #{x} \" #{x} \\" #{x}`, "1:23"},
		"double quotes, lines":     {"a: \"b \\\n  #{x} \\\"\n  #{y}\n\n  #{x}\" #{x}\n", "5:9"},
		"other quotes":             {"a: '\" #{x}'\nb: \"' #{x}\"\nc: it's #{x}\nd: 5\" #{x}\n", "3:9 4:7"},
		"empty quotes":             {"a: '' #{x}\nb: \"\" #{x}\n'': #{x}\n", "1:7 2:7 3:5"},
		"literal":                  {"a: |\n  b #{x}\n  #{x}\n    #{x}\n\n  #{x}\nc: d\n", ""},
		"literal, header":          {"a: | #{x}\n  #{x}\nb: |2- #{x}\n  #{x}\n", "1:6 3:8"},
		"literal, less indented":   {"a:\n  b: |\n    c\n   #{x}\n  #{x}\n#{x}\n", "4:4 5:3 6:1"},
		"literal, given indent":    {"a: |1\n   b\n #{x}\n#{x}\n", "4:1"},
		"literal, begins empty":    {"a: |\n\n\n  #{x}\n\n#{x}\n", "6:1"},
		"literal, all empty":       {"a: |\n\nb: |+\n\n\nc: |-\n#{x}\n", "7:1"},
		"literal, kept lines":      {"a: |+\n  b\n\n\n  #{x}\n\n #{x}\n", "7:2"},
		"literal, at the top":      {"--- |\n #{x}\n #{x}\n#{x}\n", "4:1"},
		"literal, at the margin":   {"--- |\n#{x}\n #{x}\n", ""},
		"literal, tabs":            {"a: |\n  \t#{x}\n  b\t #{x}\n", ""},
		"literal in a list":        {"- |\n #{x}\n- - |\n   #{x}\n  #{x}\n", "5:3"},
		"folded":                   {"a: >\n  b #{x}\n  #{x}\n\n    #{x}\n  c\n #{x}\n", "7:2"},
		"folded, header":           {"a: >+1 #{x}\n #{x}\n#{x}\n", "1:8 3:1"},
		"flow list":                {"a: [b, #{x}\n  c #{x}\n  , '#{x}' #{x}\n #{x}\n] #{x}\n", "1:8 2:5 3:12 4:2 5:3"},
		"flow list, empty":         {"a: [ #{x}\n] #{x}\nb: []\nc: [] #{x}\n", "1:6 2:3 4:7"},
		"flow list, words":         {"a: [b#c #{x}\n, d]\n", "1:9"},
		"flow mapping":             {"{a: b #{x}\n, c: #{x}\n, d #{x}\n, 'e': 'f'} #{x}\n", "1:7 2:6 3:5 4:13"},
		"flow in flow":             {"[[a] #{x}\n, {b: [c], #{x}\n d: e}, f: g #{x}\n, ? h #{x}\n]\n", "1:6 2:12 3:14 4:7"},
		"brackets in quotes":       {"a: ['] #{x}', \"} #{x}\"] #{x}\n", "1:25"},
		"brackets in comments":     {"a: [b # ] #{x}\n #{ ]\n] #{x}\n", "2:2 3:3"},
		"block list":               {"- a #{x}\n- #{x}\n- - #{x}\n-\n #{x}\n-  #{x}\n  a: b\n", "1:5 2:3 3:5 5:2 6:4"},
		"question marks":           {"? a #{x}\n: b #{x}\n? #{x}\n  c\n#{x}\n: d\n", "1:5 2:5 3:3 5:1"},
		"anchors":                  {"a: &b #{x}\n  c #{x}\nd: &e '#{x} f #{x}' #{x}\ng: *b #{x}\nh: &i\nj: &k [l] #{x}\n", "1:7 2:5 3:21 4:7 6:11"},
		"anchor of a block":        {"a: &b |\n  #{x}\n#{x}\nc: &d\n  #{x}\n  e: f\n", "3:1 5:3"},
		"tags":                     {"a: !b #{x}\n  c #{x}\nd: !!str ' #{x}' #{x}\ne: !<f> | #{x}\n  #{x}\ng: [!h , !i j #{x}\n]\nk: !l\n", "1:7 2:5 3:18 4:11 6:15"},
		"tag and anchor":           {"a: !b &c #{x}\n  \"#{x}\"\nd: &e !f {g: h} #{x}\n", "1:10 3:17"},
		"a directive":              {"%YAML 1.1 #{x}\n---\na: b\n", "1:11"},
		"behind the end":           {"a: b\n... #{x}\n#{x}\n", "2:5 3:1"},
		"quotes like the comment":  {"a: 'b\n  #{x}\n ' #{x}\n", "3:4"},
		"markers":                  {"#{x}\n--- #{x}\na: b\n", "1:1 2:5"},
		"Windows":                  {"a: b #{x}\r\nc: |\r\n  #{x}\r\n#{x}\r\nd: \"\r\n  #{x}\" #{x}\r\n", "1:6 4:1 6:9"},
		"tabs":                     {"a:\tb\t#{x}\nc:\t\"\t#{x}\"\t#{x}\n\t#{x}\n", "1:6 2:12 3:2"},
		"comments":                 {"# #{x}\na: b # \"#{x} ' #{x}\n## #{x}\n#{x} #{x}\nc: d #\t#{x}\n", "4:1"},
		"comments with quotes":     {"a: b # it's\nc: d #{x}\n#{'\ne: 'f'\n#{\"\ng: \"h\" #{x}\n", "2:6 3:1 5:1 6:8"},
		"comment marks in a value": {"a: b#c #{x}\nd: \"e # f\" #{x}\ng: h:#{x}\n", "1:8 2:12"},
		"no line at the end":       {"a: b\n #{", "2:2"},
		"nothing else":             {"a:\n#{x}", "2:1"},
	}
}

func TestFindComments(t *testing.T) {
	t.Parallel()
	for name, tc := range commentTexts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := commentPlaces(t, tc.text); got != tc.want {
				t.Errorf("got comments at %q, want %q:\n%s", got, tc.want, tc.text)
			}
			if got := triedPlaces(tc.text); got != tc.want {
				t.Errorf("the parser has comments at %q, want %q:\n%s", got, tc.want, tc.text)
			}
		})
	}
}

// commentPlaces returns the places of the comments that findComments finds.
func commentPlaces(t *testing.T, text string) string {
	t.Helper()
	d := Parse([]byte(text), func(p Problem) { t.Fatal(p) })
	var places []string
	for _, line := range slices.Sorted(maps.Keys(d.comments)) {
		places = append(places, fmt.Sprintf("%d:%d", line, d.comments[line]))
	}
	return strings.Join(places, " ")
}

// triedPlaces finds comments by trying: a comment begins at the first # of a line after which an inserted
// letter changes no value.
func triedPlaces(text string) string {
	var places []string
	values, offset := values(text), 0
	for i, line := range strings.SplitAfter(text, "\n") {
		for at := range line {
			begins := line[at] == '#' && (at == 0 || strings.Contains(" \t", line[at-1:at]))
			if !begins || !inComment(text, offset+at+1, values) {
				continue
			}
			if strings.HasPrefix(line[at:], "#{") {
				places = append(places, fmt.Sprintf("%d:%d", i+1, 1+len([]rune(line[:at]))))
			}
			break
		}
		offset += len(line)
	}
	return strings.Join(places, " ")
}

func inComment(text string, at int, before string) bool {
	return values(text[:at]+"x"+text[at:]) == before
}

// values returns what the parser reads, without comments and places. It returns "" for a text that is not
// YAML.
func values(text string) string {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
		return ""
	}
	var out strings.Builder
	nodes := []*yaml.Node{doc.Content[0]}
	for len(nodes) > 0 {
		n := nodes[len(nodes)-1]
		nodes = nodes[:len(nodes)-1]
		fmt.Fprintf(&out, "%d %q %q %q %d\n", n.Kind, n.Value, n.Anchor, n.Tag, len(n.Content))
		nodes = slices.Concat(nodes, n.Content)
	}
	return out.String()
}
