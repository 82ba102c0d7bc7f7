package readmetest_test

import (
	"regexp"
	"strings"
	"testing"
)

// block is a block of code in a page.
type block struct {
	file  string // path from the root
	line  int    // the number of the first line of code
	code  string // without the fences
	given string // the parameters of the comment before it: <!-- given: locks *core.Client -->
}

var fencedBlock = regexp.MustCompile("(?ms)^(?:<!-- given: ([^\n]*) -->\n)?```(\\w*)\n(.*?)^```$")

// blocks returns the blocks of the pages in a language.
func blocks(t *testing.T, language string, pages ...string) []block {
	t.Helper()
	var found []block
	for _, page := range pages {
		text := read(t, page)
		for _, m := range fencedBlock.FindAllStringSubmatchIndex(text, -1) {
			if text[m[4]:m[5]] != language {
				continue
			}
			b := block{file: page, line: 1 + strings.Count(text[:m[6]], "\n"), code: text[m[6]:m[7]]}
			if m[2] >= 0 {
				b.given = text[m[2]:m[3]]
			}
			found = append(found, b)
		}
		if begun, given := strings.Count(text, "\n```")%2, strings.Count(text, "<!-- given:"); begun != 0 || given > strings.Count(text, "-->\n```go\n") {
			t.Fatalf("%s: a block has no end, or a comment <!-- given: … --> has no Go block", page)
		}
	}
	return found
}

// comment is a package comment with the parameters of its Go blocks.
type comment struct {
	folder          string
	given           string
	goes, yaml, pbs int // the number of blocks in each language, so that none is overlooked
}

var comments = []comment{
	{folder: "core", goes: 3, given: "ctx context.Context, locks *core.Client, order string, pay func(context.Context, string) error, " +
		"charge func(context.Context) (string, error)"},
	{folder: "core/aspect", goes: 2, yaml: 1, given: "ctx context.Context, locks *core.Client, rules *ruleset.Live, " +
		"payment struct{ OrderID string }, charge func(context.Context, struct{ OrderID string }) (string, error), " +
		"closeDay func(context.Context, time.Time) (int, error)"},
	{folder: "core/aspect/adaptertest", goes: 1, given: "shop adaptertest.Adapter"},
	{folder: "core/aspect/httplock", goes: 2, given: "locks *core.Client, rules *ruleset.Live, pay, ship http.HandlerFunc, " +
		"r interface{ With(middlewares ...func(http.Handler) http.Handler) interface{ Post(string, http.HandlerFunc) } }, guard *httplock.Guard"},
	{folder: "core/redistest", goes: 1, given: "pay func(context.Context, *core.Client, string) error"},
	{folder: "core/ruleset", goes: 1, yaml: 2, given: "r *gin.Engine, guard *ginlock.Guard, tel *telemetry.Telemetry"},
	{folder: "failpolicy"},
	{folder: "ginlock", goes: 3, given: "locks *core.Client, guard *ginlock.Guard, r *gin.Engine, pay gin.HandlerFunc"},
	{folder: "grpclock", goes: 3, pbs: 1, given: "locks *core.Client, " +
		"recovery, authentication grpc.UnaryServerInterceptor, orders interface{ RegisterOrdersServer(grpc.ServiceRegistrar, any) }, shop any"},
	{folder: "grpclock/connectlock", goes: 2, given: "locks *core.Client, rules *ruleset.Live, mux *http.ServeMux, authentication connect.Interceptor, shop any, " +
		"ordersconnect struct{ OrdersName string; NewOrdersHandler func(any, ...connect.HandlerOption) (string, http.Handler) }"},
	{folder: "keyexpr"},
	{folder: "telemetry", goes: 1, given: "rdb redis.UniversalClient"},
	{folder: "telemetry/lockz", goes: 1, given: "rdb redis.UniversalClient, admin *http.ServeMux"},
}

var (
	indented  = regexp.MustCompile(`(?m)^//\t.*\n(?://(?:\t.*)?\n)*`)
	languages = map[string]*regexp.Regexp{
		"go":    regexp.MustCompile(`(?m)^\S.*:= |^err = |^func \w+\(`),
		"yaml":  regexp.MustCompile(`(?m)^rules:$`),
		"proto": regexp.MustCompile(`(?m)^service \w+ \{`),
	}
)

// commentBlocks returns the blocks of a package comment by language. A block in neither language is
// text.
func commentBlocks(t *testing.T, c comment) map[string][]block {
	t.Helper()
	path, found := c.folder+"/doc.go", map[string][]block{}
	for _, m := range indented.FindAllStringIndex(read(t, path), -1) {
		text := read(t, path)
		code := strings.ReplaceAll(text[m[0]:m[1]], "//\t", "")
		code = strings.TrimRight(strings.ReplaceAll(code, "//\n", "\n"), "\n") + "\n"
		b := block{file: path, line: 1 + strings.Count(text[:m[0]], "\n"), code: strings.ReplaceAll(code, "\n…\n", "\n// …\n"), given: c.given}
		for language, is := range languages {
			if is.MatchString(code) {
				found[language] = append(found[language], b)
			}
		}
	}
	return found
}

// all returns the blocks of every page and package comment in a language.
func all(t *testing.T, language string) []block {
	t.Helper()
	found := blocks(t, language, pages...)
	for _, c := range comments {
		of := commentBlocks(t, c)
		if len(of["go"]) != c.goes || len(of["yaml"]) != c.yaml || len(of["proto"]) != c.pbs {
			t.Errorf("%s/doc.go has %d Go, %d YAML and %d proto blocks, want %d, %d and %d: update comments in this test",
				c.folder, len(of["go"]), len(of["yaml"]), len(of["proto"]), c.goes, c.yaml, c.pbs)
		}
		found = append(found, of[language]...)
	}
	return found
}
