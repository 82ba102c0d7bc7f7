package routes

import (
	"cmp"
	"strings"
)

// Match finds the route that serves a request, as gin's router does: segment by
// segment a fixed text goes before a parameter, and that before the rest of the
// path. path is decoded. The second result are the values of its parameters.
func Match(list []Route, method, path string) (Route, map[string]string, bool) {
	if !strings.HasPrefix(path, "/") {
		return Route{}, nil, false
	}
	var best Route
	var values map[string]string
	found := false
	for _, r := range list {
		if r.Method != method && r.Method != "*" {
			continue
		}
		params, ok := match(r.Path, path)
		if ok && (!found || closer(r, best) > 0) {
			best, values, found = r, params, true
		}
	}
	return best, values, found
}

// match compares a path with a pattern.
func match(pattern, path string) (params map[string]string, ok bool) {
	params = map[string]string{}
	for pattern != "" && path != "" {
		var want, got string
		want, pattern = first(pattern)
		s := segmentOf(want)
		if s.kind == kindRest {
			params[s.name] = path
			return params, true
		}
		got, path = first(path)
		value, fits := s.match(got)
		if !fits || s.kind == kindParam && value == "" && path == "" { // gin admits an empty value, but not at the end
			return nil, false
		}
		if s.kind == kindParam {
			params[s.name] = value
		}
	}
	return params, pattern == "" && path == ""
}

// first is what stands between the first two slashes, and what begins with the
// second.
func first(path string) (segment, rest string) {
	path = path[1:]
	if end := strings.IndexByte(path, '/'); end >= 0 {
		return path[:end], path[end:]
	}
	return path, ""
}

// kind is what a segment of a pattern admits, from the vaguest to the most exact.
type kind uint8

const (
	kindRest kind = iota
	kindParam
	kindText
)

// segment is one part of a pattern between slashes.
type segment struct {
	kind kind
	text string // what it is, or begins with
	name string // of the parameter
}

func segmentOf(s string) segment {
	if name, ok := strings.CutPrefix(s, "*"); ok {
		return segment{kind: kindRest, name: name}
	}
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == ':':
			return segment{kind: kindParam, text: plain(s[:i]), name: s[i+1:]}
		}
	}
	return segment{kind: kindText, text: plain(s)}
}

// plain is a text without the backslashes that keep colons.
func plain(s string) string { return strings.ReplaceAll(s, `\:`, ":") }

// match compares a segment of a path; of a parameter the value is what remains.
func (s segment) match(got string) (value string, ok bool) {
	if s.kind == kindText {
		return "", got == s.text
	}
	value, ok = strings.CutPrefix(got, s.text)
	return value, ok
}

// closer compares two routes that both match: positive if a is the more exact one.
func closer(a, b Route) int {
	p, q := strings.Split(a.Path, "/"), strings.Split(b.Path, "/")
	for i := range min(len(p), len(q)) {
		s, t := segmentOf(p[i]), segmentOf(q[i])
		if c := cmp.Or(cmp.Compare(s.kind, t.kind), cmp.Compare(len(s.text), len(t.text))); c != 0 {
			return c
		}
	}
	return cmp.Compare(btoi(a.Method != "*"), btoi(b.Method != "*"))
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Params are the names of the parameters of a pattern.
func Params(pattern string) []string {
	var names []string
	for s := range strings.SplitSeq(pattern, "/") {
		if name := segmentOf(s).name; name != "" {
			names = append(names, name)
		}
	}
	return names
}
