package ruleset

import (
	"fmt"
	"strings"
)

func (e Endpoint) grpcProblem() string {
	path := e.Path
	service, method, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case path == "*":
		return ""
	case path == "/*", service == "*" && (method == "*" || method == "**"):
		return fmt.Sprintf("%q: a * alone stands for every method: write \"*\"", path)
	case strings.ContainsAny(strings.TrimSpace(path), " \t"):
		return fmt.Sprintf("%q: a full method has no spaces: write one such as %q", path, e.examples().endpoint)
	case path != strings.TrimSpace(path):
		return fmt.Sprintf("%q has blanks around it: write %q", path, strings.TrimSpace(path))
	case !ok && strings.Count(path, ".") > 1 && path[0] != '/':
		cut := strings.LastIndexByte(path, '.')
		return fmt.Sprintf("%q is no full method: write %q", path, "/"+path[:cut]+"/"+path[cut+1:])
	case !ok || service == "" || method == "" || strings.Contains(method, "/"):
		return fmt.Sprintf("%q is no full method: write one such as %q", path, e.examples().endpoint)
	case strings.Contains(service, "*"):
		return fmt.Sprintf("%q: a * stands for the methods of one service, as in \"/shop.Orders/*\", or alone for every method: write one of these", path)
	case method == "**":
		return fmt.Sprintf("%q: one * stands for everything below: write %q", path, "/"+service+"/*")
	case method != "*" && strings.Contains(method, "*"):
		return fmt.Sprintf("%q: a * stands for whole names: write %q", path, "/"+service+"/*")
	case path[0] != '/':
		return fmt.Sprintf("%q: a full method begins with a slash: write %q", path, "/"+path)
	}
	return ""
}
