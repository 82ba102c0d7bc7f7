package aspect

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/ruleset"
)

// notForRules lists the kinds of core that no rule can have. A handler cannot hold a plain semaphore or a latch, a
// Redlock needs other clients than the adapter's, and a group lock needs a group beside its values.
var notForRules = []string{"group", "latch", "plain_semaphore", "redlock"}

// Several packages list the kinds of lock, and none of them can import all others. No list lacks a kind that another
// list has.
func TestKinds_SameInEveryPackage(t *testing.T) {
	t.Parallel()
	inRedis := inRedis()
	want := forRules(slices.Sorted(maps.Keys(inRedis)))
	for place, got := range map[string][]string{
		"the constants of core.Kind":    forRules(constantsOfKind(t, "..")),
		"the constants of ruleset.Kind": constantsOfKind(t, "../ruleset"),
		"ruleset.Kinds":                 texts(slices.Values(ruleset.Kinds())),
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want the kinds of redisstore.Kinds, %q", place, got, want)
		}
	}
	for _, kind := range ruleset.Kinds() {
		if k := inRedis[string(kind)]; k != nil && k.TakesSeveral() != kind.Traits().Several {
			t.Errorf("%s takes several keys: %v in a rule, %v in Redis", kind, kind.Traits().Several, k.TakesSeveral())
		}
	}
}

func forRules(kinds []string) []string {
	return slices.DeleteFunc(kinds, func(kind string) bool { return slices.Contains(notForRules, kind) })
}

// inRedis returns the kinds of the store by name.
func inRedis() map[string]*redisstore.Kind {
	all := make(map[string]*redisstore.Kind)
	for _, field := range reflect.ValueOf(redisstore.NewKinds()).Fields() {
		kind := field.Interface().(*redisstore.Kind)
		all[kind.Name] = kind
	}
	return all
}

func texts(kinds func(yield func(ruleset.Kind) bool)) (all []string) {
	for kind := range kinds {
		all = append(all, string(kind))
	}
	slices.Sort(all)
	return all
}

// constantsOfKind returns the values of the constants of type Kind in the package in dir.
func constantsOfKind(t *testing.T, dir string) (values []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !isKind(spec.Type) {
				return true
			}
			for _, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					text, _ := strconv.Unquote(literal.Value)
					values = append(values, text)
				}
			}
			return true
		})
	}
	slices.Sort(values)
	return values
}

func isKind(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "Kind"
}
