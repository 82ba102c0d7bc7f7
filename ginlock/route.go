package ginlock

import (
	"path"
	"strings"

	"github.com/interlock-go/interlock/core/ruleset"
)

// canonical is an endpoint as [gin.Context.FullPath] spells it: without the
// backslash that registers a colon as itself.
func canonical(e ruleset.Endpoint) ruleset.Endpoint {
	e.Path = strings.ReplaceAll(e.Path, `\:`, ":")
	return e
}

// pathParams are the names of the parameters of a path as it was registered.
func pathParams(pattern string) []string {
	var names []string
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ':', '*':
			name, _, _ := strings.Cut(pattern[i+1:], "/")
			names = append(names, name)
			i += len(name)
		}
	}
	return names
}

// under is a path below the base path of a group, as gin joins them.
func under(base, relative string) string {
	if relative == "" {
		return base
	}
	joined := path.Join(base, relative)
	if strings.HasSuffix(relative, "/") && !strings.HasSuffix(joined, "/") {
		return joined + "/"
	}
	return joined
}
