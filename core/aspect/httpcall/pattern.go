package httpcall

import "strings"

// Params returns the names of the wildcards in a path: {id} and {rest...} of net/http, {id:[0-9]+} and * of chi, :id of
// echo.
func Params(path string) []string {
	var names []string
	for _, segment := range strings.Split(path, "{")[1:] {
		name, _, _ := strings.Cut(segment, "}")
		name, _, _ = strings.Cut(name, ":")
		if name = strings.TrimSuffix(name, "..."); name != "$" {
			names = append(names, name)
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		if name, is := strings.CutPrefix(segment, ":"); is && name != "" {
			names = append(names, name)
		}
	}
	if strings.HasSuffix(path, "/*") {
		names = append(names, "*")
	}
	return names
}

// GinParams returns the names of the parameters in a path of gin: :id and *rest, but not \:id.
func GinParams(path string) []string {
	var names []string
	for segment := range strings.SplitSeq(strings.ReplaceAll(path, `\:`, ""), "/") {
		if at := strings.IndexAny(segment, ":*"); at >= 0 && segment[at+1:] != "" {
			names = append(names, segment[at+1:])
		}
	}
	return names
}
