package strictyaml

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Quote puts s into the quotes of YAML that need no escapes where possible.
func Quote(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.ContainsAny(s, `"\`) {
		return strconv.Quote(s)
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// lineParts are the dashes and the name of a line, and its value.
var lineParts = regexp.MustCompile(`^(\s*(?:- +)*(?:[\pL\pN_.-]+:\s+)?)(\S.*?)\s*$`)

// quoteValue puts everything after the name of a line into quotes; "" if there is nothing.
func quoteValue(line string) string {
	parts := lineParts.FindStringSubmatch(line)
	if parts == nil {
		return ""
	}
	return strings.TrimSpace(parts[1] + Quote(parts[2]))
}

// What a plain text in […] or {…} consists of.
const (
	flowBegin = `(?::?#\{[^{}]*\}|:?[^\s,\[\]{}:#"'])`
	flowPart  = `(?::?#\{[^{}]*\}|:?[^\s,\[\]{}:#])`
)

// flowTexts are the quoted and the plain texts of a line in […] or {…}. A template is
// part of a plain text.
var flowTexts = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|` + flowBegin + `(?:#?` + flowPart + `|[ \t]+` + flowPart + `)*`)

// quotedText is a text in quotes.
var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'`)

// quoteTemplates puts the values of a line that contain #{…} into quotes; flow says that
// the line begins inside of […] or {…}. It is "" where it is not clear how to do so.
func quoteTemplates(line string, flow bool) string {
	line, _, _ = strings.Cut(line, " # ")
	parts := lineParts.FindStringSubmatch(line)
	switch {
	case parts == nil:
		return ""
	case !flow && !strings.ContainsAny(parts[2][:1], "[{"):
		if strings.ContainsAny(parts[2][:1], `"'`) || !strings.Contains(parts[2], "}") {
			return ""
		}
		return quoteValue(line)
	}
	line = flowTexts.ReplaceAllStringFunc(strings.TrimSpace(line), func(part string) string {
		if !strings.Contains(part, "#{") || strings.ContainsAny(part[:1], `"'`) {
			return part
		}
		return Quote(part)
	})
	if openTemplate(line) >= 0 {
		return ""
	}
	return line
}

// openTemplate is the place of the first #{ of a line that is not in quotes, -1 if there
// is none.
func openTemplate(line string) int {
	return strings.Index(flowTexts.ReplaceAllStringFunc(line, func(part string) string {
		if strings.ContainsAny(part[:1], `"'`) {
			return strings.Repeat("x", len(part))
		}
		return part
	}), "#{")
}

// corrected shows the line of a value with the value in quotes; "" where that is not
// clear.
func (d *Doc) corrected(v Value) string {
	if v.Flow || v.Key != nil && v.Key.Line != v.Node.Line {
		return ""
	}
	return after(quoteValue(d.line(v.Node.Line)))
}

// after is an example behind a message, if there is one.
func after(example string) string {
	if example == "" {
		return ""
	}
	return ": " + example
}

// curlyQuotes are those of word processors and chats, of several languages. To YAML
// they are letters.
const curlyQuotes = "“”„‟«»‘’‚‛‹›"

// curlyText is a text between a pair of them. Inside of single ones there may be an
// apostrophe.
var curlyText = regexp.MustCompile(`[“”„‟«»]([^“”„‟«»]*)[“”‟«»]|[‘’‚‛‹›]([^‘’‚‛‹›]*)[‘’‛‹›]`)

// curlyStart is the begin of a line up to a value that begins with one.
var curlyStart = regexp.MustCompile(`^\s*(?:- +)*(?:[\pL\pN_.-]+:\s+)?[\[{\s]*(?:[\pL\pN_.-]+:\s+)?[` + curlyQuotes + `]`)

// isCurly reports a value that begins with a quote that is none to YAML. Only a text
// of several lines may, between straight ones.
func (d *Doc) isCurly(v Value) bool {
	n := v.Node
	isQuoted := n.Style&(quotes|blocks) != 0
	first, _ := utf8.DecodeRuneInString(n.Value)
	if n.Kind != yaml.ScalarNode || !strings.ContainsRune(curlyQuotes, first) || isQuoted && v.Field == "message" {
		return false
	}
	line := d.line(n.Line)
	if isQuoted {
		before, _ := d.cut(n.Line, n.Column)
		line = before + n.Value
	}
	d.Reportf(n, v.Field, "%s", curlyMessage(n.Value, line))
	return true
}

// curlyMessage is about a text that begins with a curly quote, in a line.
func curlyMessage(text, line string) string {
	_, size := utf8.DecodeRuneInString(text)
	straight := strings.TrimSpace(curlyText.ReplaceAllStringFunc(line, func(found string) string {
		inner := strings.TrimFunc(found, func(r rune) bool { return strings.ContainsRune(curlyQuotes, r) })
		return Quote(strings.TrimSpace(inner))
	}))
	if yaml.Unmarshal([]byte(straight), new(yaml.Node)) != nil || curlyStart.MatchString(straight) {
		straight = ""
	}
	return text[:size] + " is part of the text, and no quote to YAML: write straight quotes" + after(straight)
}
