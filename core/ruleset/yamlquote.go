package ruleset

import (
	"regexp"
	"strings"
)

var lineParts = regexp.MustCompile(`^(\s*(?:- +)*(?:[\w.-]+:\s+)?)(\S.*?)\s*$`)

// quoteValue puts everything after the key of a line into quotes.
func quoteValue(line string) (string, bool) {
	parts := lineParts.FindStringSubmatch(line)
	if parts == nil {
		return "", false
	}
	return parts[1] + quoteYAML(parts[2]), true
}

// quoteTemplates puts the values of a line that contain #{…} into quotes, where they
// are not; flow says that the line begins inside of […] or {…}. It reports whether it
// changed anything and all templates of the line end in it.
func quoteTemplates(line string, flow bool) (string, bool) {
	q := newQuoter(line, 0)
	if flow {
		q.depth = 1
	}
	q.run()
	return q.out.String(), q.first > 0 && !q.lost
}

// quoter goes through one line of YAML.
type quoter struct {
	in    string
	pos   int
	out   strings.Builder
	depth int  // of […] and {…}
	first int  // 1 + the place of the first template that is not quoted
	lost  bool // a quote or a template does not end in the line
}

// newQuoter begins at a depth of […] and {…}. Lines that nobody wrote by hand are not
// worth the time.
func newQuoter(line string, depth int) *quoter {
	const limit = 1000
	return &quoter{in: line, depth: depth, lost: len(line) > limit}
}

func (q *quoter) run() {
	for q.pos < len(q.in) && !q.lost {
		q.next()
	}
}

// next copies what begins at pos.
func (q *quoter) next() {
	rest := q.in[q.pos:]
	switch c := rest[0]; {
	case c == '[' || c == '{':
		q.depth++
		q.copy(1)
	case q.depth > 0 && (c == ']' || c == '}'):
		q.depth--
		q.copy(1)
	case q.depth > 0 && c == ',', c == ' ', c == '\t', strings.HasPrefix(rest, "- "):
		q.copy(1)
	case c == '"' || c == '\'':
		if end := quoteEnd(rest[1:], rest[:1]); end >= 0 {
			q.copy(1 + end)
		} else {
			q.lost = true
		}
	case c == '#' && !strings.HasPrefix(rest, "#{"):
		q.copy(len(rest))
	default:
		q.plain()
	}
}

func (q *quoter) copy(n int) {
	q.out.WriteString(q.in[q.pos : q.pos+n])
	q.pos += n
}

// plain copies a key or a value without quotes, and puts it into quotes if it has a
// template.
func (q *quoter) plain() {
	start, template := q.pos, false
	for q.pos < len(q.in) && !q.lost {
		rest := q.in[q.pos:]
		if strings.HasPrefix(rest, "#{") {
			q.template(rest)
			template = true
			continue
		}
		if !template && isColon(rest, q.depth) {
			end := q.pos + 1
			q.pos = start
			q.copy(end - start)
			return
		}
		if q.depth > 0 && strings.ContainsAny(rest[:1], ",]}") || strings.HasPrefix(rest, " # ") {
			break
		}
		q.pos++
	}
	text := strings.TrimRight(q.in[start:q.pos], " \t")
	if template {
		q.out.WriteString(quoteYAML(text))
	} else {
		q.out.WriteString(text)
	}
	q.out.WriteString(q.in[start+len(text) : q.pos])
}

// isColon reports whether rest begins with a colon that ends a key.
func isColon(rest string, depth int) bool {
	return rest == ":" || strings.HasPrefix(rest, ": ") || depth > 0 && len(rest) > 1 && rest[0] == ':' && strings.ContainsAny(rest[1:2], ",[]{}")
}

// template passes over a #{…} with the braces and quotes in it.
func (q *quoter) template(rest string) {
	if q.first == 0 {
		q.first = q.pos + 1
	}
	depth := 0
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '{':
			depth++
		case '}':
			depth--
		case '"', '\'':
			if end := quoteEnd(rest[i+1:], rest[i:i+1]); end >= 0 {
				i += end
			}
		}
		if depth == 0 {
			q.pos += i + 1
			return
		}
	}
	q.lost = true
}
