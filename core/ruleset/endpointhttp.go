package ruleset

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/failpolicy"
)

func (e Endpoint) httpProblem() string {
	text := strings.TrimSpace(e.Label())
	method, path := meantMethod(e.Method), meantPath(e.Path)
	switch {
	case e.Path == "" && strings.HasPrefix(e.Method, "/"):
		return fmt.Sprintf("%q has no method: write %q", text, "POST "+oneStar(e.Method))
	case e.Path == "" || e.Method == "":
		return fmt.Sprintf("%q is no route: write a method and a path such as %q", text, e.examples().endpoint)
	case strings.HasPrefix(e.Method, "/"):
		return fmt.Sprintf("%q: the method comes first: write %q", text, strings.ToUpper(e.Path)+" "+e.Method)
	case strings.ContainsAny(e.Method, ",|/+"):
		return fmt.Sprintf("%q: a rule has one method, or * for any: write a rule for each method", text)
	case strings.ContainsAny(e.Path, " \t"):
		return fmt.Sprintf("%q: a path has no spaces: write a method and a path such as %q", text, e.examples().endpoint)
	case slices.Contains([]string{"ANY", "ALL"}, strings.ToUpper(e.Method)) && strings.HasPrefix(e.Path, "/"):
		return fmt.Sprintf("%q: a * stands for any method: write %q", text, "* "+oneStar(e.Path))
	case method == "":
		return fmt.Sprintf("%q: %+q is no method: write one such as POST, in capitals, or * for any", text, e.Method)
	case method != e.Method && strings.EqualFold(method, e.Method):
		return fmt.Sprintf("%q: methods are upper case: write %q", text, method+" "+path)
	case method != e.Method:
		return fmt.Sprintf("%q: %+q is no method that is known: write %q", text, e.Method, method+" "+path)
	case e.Path == "*":
		return ""
	case strings.Contains(e.Path, "://"):
		return fmt.Sprintf("%q: a route has no scheme and no host: write %q", text, method+" "+path)
	case e.Path[0] != '/':
		return fmt.Sprintf("%q: a path begins with a slash: write %q", text, method+" "+path)
	}
	return starProblem(text, e)
}

// meantMethod is the method itself if it may be one: *, or a word in capitals that is not
// nearly a known one. It is the method that was probably meant otherwise, "" if that is
// not clear.
func meantMethod(method string) string {
	upper := strings.ToUpper(method)
	known := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}
	if method == "*" || slices.Contains(known, upper) {
		return upper
	}
	if near := failpolicy.Nearest(upper, known); near != "" {
		return near
	}
	if strings.Trim(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return upper
	}
	return ""
}

// meantPath is the path itself, that of a URL such as https://example.org/orders?page=1,
// or with the slash that is missing.
func meantPath(path string) string {
	if address, err := url.Parse(path); err == nil && address.Host != "" {
		path = address.Path
	}
	if path == "*" || strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// oneStar is a path with one star where others have two.
func oneStar(path string) string {
	if before, _, found := strings.Cut(path+"/", "/**/"); found {
		return before + "/*"
	}
	return path
}

// starProblem finds a * that is not at the end or not after a slash, and two of them.
// Gin's "/*name" is none.
func starProblem(text string, e Endpoint) string {
	at := strings.IndexByte(e.Path, '*')
	if at < 0 {
		return ""
	}
	before, rest := strings.TrimSuffix(e.Path[:at], "/"), e.Path[at+1:]
	meant := e.Method + " " + before + "/*"
	switch {
	case e.Path[at-1] != '/':
		return fmt.Sprintf("%q: a * stands for everything below a slash: write %q", text, meant)
	case rest == "*" || strings.HasPrefix(rest, "*/"):
		return fmt.Sprintf("%q: one * stands for everything below: write %q", text, meant)
	case strings.ContainsAny(rest, "/*"):
		return fmt.Sprintf("%q: a * stands only at the end: write %q", text, meant)
	}
	return ""
}
