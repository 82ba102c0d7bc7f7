package ruleset

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// curlyQuotes are those of word processors and chats, of several languages. To YAML
// they are letters.
const curlyQuotes = "“”„‟«»‘’‚‛‹›"

// curlyText is a text between a pair of them. Inside of single ones there may be an
// apostrophe.
const curlyText = `([“”„‟«»]([^“”„‟«»]*)[“”‟«»]|[‘’‚‛‹›](.*?)[‘’‛‹›])`

var (
	// curlyInBlock is a line whose value is between such quotes, and curlyInFlow such a
	// value in […] or {…}.
	curlyInBlock = regexp.MustCompile(`^\s*(?:- +)*(?:[\w.-]+:\s+)?` + curlyText + `\s*(?:$|\s#)`)
	curlyInFlow  = regexp.MustCompile(`(?:^|[\s\[{,])` + curlyText + `\s*(?:$|[,\]}]|\s#)`)

	// curlyWhole is a value that is such a text.
	curlyWhole = regexp.MustCompile(`^` + curlyText + `$`)

	// curlyStart is the begin of a line up to a value that begins with one.
	curlyStart = regexp.MustCompile(`^\s*(?:- +)*(?:[\w.-]+:\s+)?[\[{\s]*(?:[\w.-]+:\s+)?[` + curlyQuotes + `]`)
)

// isCurly reports a value that begins with a quote that is none to YAML. Only a
// message may, between straight ones.
func (f *fileReader) isCurly(v value) bool {
	n := v.node
	if n.Kind != yaml.ScalarNode || !startsCurly(n.Value) {
		return false
	}
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if v.field == "message" && n.Style&quoted != 0 {
		return false
	}
	line := f.source.line(n.Line)
	corrected := straightened(line, v.flow)
	if inner := curlyWhole.FindStringSubmatch(n.Value); inner != nil && n.Style&quoted != 0 {
		corrected = strings.Replace(line, n.Value, inner[2]+inner[3], 1)
	}
	f.reportf(n, v.field, "%s", curlyMessage(n.Value, corrected))
	return true
}

func startsCurly(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune(curlyQuotes, r)
}

// curlyMessage is about a text that begins with a curly quote; corrected is its line,
// "" where that is not clear.
func curlyMessage(text, corrected string) string {
	_, size := utf8.DecodeRuneInString(text)
	message := text[:size] + " is part of the text, and no quote to YAML: write straight quotes"
	if corrected != "" {
		message += ": " + strings.TrimSpace(corrected)
	}
	return message
}

// straightened is a line with straight quotes where values have curly ones, "" if it is
// not clear where they end.
func straightened(line string, flow bool) string {
	expression := curlyInBlock
	if flow {
		expression = curlyInFlow
	}
	const limit = 1000 // nobody wrote longer lines by hand
	var out strings.Builder
	for len(line) <= limit {
		at := expression.FindStringSubmatchIndex(line)
		if at == nil {
			break
		}
		inner := line[max(at[4], at[6]):max(at[5], at[7])]
		out.WriteString(line[:at[2]] + quoteYAML(strings.TrimSpace(inner)))
		line = line[at[3]:]
	}
	if out.Len() == 0 {
		return ""
	}
	return out.String() + line
}

// curly finds a value that begins with a curly quote, and what YAML makes of the rest of it.
func (e *syntaxError) curly() (place, string) {
	for line := max(e.begin.line, e.at.line-1, 1); line <= e.at.line; line++ {
		text := e.source.line(line)
		if start := curlyStart.FindString(text); start != "" {
			_, size := utf8.DecodeLastRuneInString(start)
			before := start[:len(start)-size]
			return place{line, utf8.RuneCountInString(before) + 1}, curlyMessage(text[len(before):], straightened(text, strings.Contains(e.context, "flow")))
		}
	}
	return place{}, ""
}
