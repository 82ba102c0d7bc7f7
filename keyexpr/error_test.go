package keyexpr_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/interlock-go/interlock/keyexpr"
)

func TestError_Unknown(t *testing.T) {
	t.Parallel()
	schema, err := keyexpr.NewSchema(
		keyexpr.Variable{Name: "path", Keyed: &keyexpr.Keyed{Noun: "path parameter", Known: []string{"id"}}},
		keyexpr.Variable{Name: "route", Type: keyexpr.TypeFor[string]()})
	if err != nil {
		t.Fatal(err)
	}
	for template, want := range map[string]keyexpr.Error{
		"a:#{user}":        {Unknown: "user"},
		"a:#{user.name}":   {Unknown: "user"},
		"a:#{path.tenant}": {Unknown: "tenant", Of: "path"},
		"a:#{route.x}":     {},
	} {
		_, err := keyexpr.Compile(template, schema)
		found, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || found.Unknown != want.Unknown || found.Of != want.Of {
			t.Errorf("%s: got %+v, want %q of %q", template, found, want.Unknown, want.Of)
		}
	}
}

// The message of a problem contains no control characters, and its caret is in the right place.
func TestError_ShowsInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"a\x1b[31m#{kez}":    "\n  | a\ufffd[31m#{kez}\n  |         ^",
		"\u202e#{kez}":       "\n  | \ufffd#{kez}\n  |    ^",
		"a\t#{kez}":          "\n  | a #{kez}\n  |     ^",
		"straße\u00a0#{kez}": "\n  | straße\ufffd#{kez}\n  |          ^",
	} {
		_, err := keyexpr.Compile(template, requestSchema(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, want %q in it", template, err, want)
		}
	}
}

// wrappings contains larger expressions around an operand, with several lines and characters of several
// bytes. @ stands for the operand.
var wrappings = []string{
	`@`, ` @ `, `"b:" + @`, `upper(@)`, `(@)`, `@ ?? "ü"`, `"ünï" + @`, "path.orderId +\n\t@", `string(@)`, `[1, @][0]`, `{"→": @}["→"]`, `not @`, `-@`, `@ == "漢字" ? 1 : 2`,
	`path.orderId == "→" ? @ : "x"`, `map(["ä"], @)`, `any(body.xs, # == @)`, "\n\n@\n", `"\u00e9" in [@]`,
	"/* ü */ @", "// →\n@", `1 < 2 and @`, `first([@])`, `@ | string()`, `body.a ?? (@)`,
}

// beforeParts contains texts before the part of a template.
var beforeParts = []string{``, `a:`, `ключ:`, `#{path.orderId}:`, `→#{path.shop}→`, `#{"ü" + method}:`, "{}:"}

// The position of an unknown name is correct in every expression, and the caret is under the name.
func TestError_PositionInExpressions(t *testing.T) {
	t.Parallel()
	const name = "nowhere"
	random := rand.New(rand.NewPCG(1, 2))
	const tries = 2000
	found := 0
	for range tries {
		expression := name
		for range 1 + random.IntN(3) {
			expression = strings.Replace(wrappings[random.IntN(len(wrappings))], "@", expression, 1)
		}
		template := beforeParts[random.IntN(len(beforeParts))] + "#{" + expression + "}"
		_, err := keyexpr.Compile(template, requestSchema(t))
		problem := problemAbout(err, name)
		if problem == nil {
			if err == nil {
				t.Fatalf("%q compiles", template)
			}
			continue // the expression has another problem, such as a slice of a text that does not parse
		}
		found++
		before, _, _ := strings.Cut(template, name)
		line, column := strings.Count(before, "\n")+1, utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])+1
		if problem.Line != line || problem.Column != column || problem.Template != template {
			t.Errorf("%q: got %d:%d, want %d:%d", template, problem.Line, problem.Column, line, column)
		}
		checkCaret(t, problem, name)
	}
	if found < tries*8/10 {
		t.Errorf("only %d of %d templates report the unknown name", found, tries)
	}
}

// The position of an unknown name is correct in every condition.
func TestError_PositionInConditions(t *testing.T) {
	t.Parallel()
	const name = "nowhere"
	found := 0
	for _, outer := range wrappings {
		for _, inner := range wrappings {
			condition := strings.Replace(outer, "@", strings.Replace(inner, "@", name, 1), 1)
			_, err := keyexpr.CompileCondition(condition, requestSchema(t))
			problem := problemAbout(err, name)
			if problem == nil {
				continue
			}
			found++
			before, _, _ := strings.Cut(condition, name)
			if line := strings.Count(before, "\n") + 1; problem.Line != line || problem.Template != condition {
				t.Errorf("%q: got line %d of %q, want %d", condition, problem.Line, problem.Template, line)
			}
			checkCaret(t, problem, name)
		}
	}
	if all := len(wrappings) * len(wrappings); found < all*9/10 {
		t.Errorf("only %d of %d conditions report the unknown name", found, all)
	}
}

// problemAbout returns the problem of an unknown name.
func problemAbout(err error, name string) *keyexpr.Error {
	all := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		all = several.Unwrap()
	}
	for _, err := range all {
		if problem, ok := errors.AsType[*keyexpr.Error](err); ok && problem.Unknown == name {
			return problem
		}
	}
	return nil
}

// checkCaret checks that the caret is under the name.
func checkCaret(t *testing.T, problem *keyexpr.Error, name string) {
	t.Helper()
	lines := strings.Split(problem.Error(), "\n")
	for i, line := range lines[1:] {
		if !strings.HasSuffix(line, "^") {
			continue
		}
		above, column := []rune(lines[i]), utf8.RuneCountInString(line)-1
		if column > len(above) || !strings.HasPrefix(string(above[column:]), name) {
			t.Errorf("%q: the caret is in the wrong place:\n%v", problem.Template, problem)
		}
		return
	}
	t.Errorf("%q: the caret is missing: %v", problem.Template, problem)
}

// A template that does not parse has an error with a position inside the template.
func TestError_PositionInTruncatedTemplates(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{
		`ü:#{path.orderId}:#{map(filter(body.items, .n > 1), upper(.sku))}:x`, `#{(body.a?.b["c"][0] ?? "d") + (method not in ["a"] ? 'e' : "f")}`,
		"#{path.orderId +\n  /* → */ body.x}:`",
	} {
		for cut := range whole {
			for _, template := range []string{whole[:cut], whole[cut:], whole[:cut] + "}" + whole[cut:], whole[:cut] + "\x00" + whole[cut:], whole[:cut] + "\"" + whole[cut:]} {
				_, err := keyexpr.Compile(template, requestSchema(t))
				if err == nil {
					continue
				}
				problem, ok := errors.AsType[*keyexpr.Error](err)
				if !ok {
					t.Fatalf("%q: %v is not an *Error", template, err)
				}
				lines := strings.Split(template, "\n")
				if problem.Line < 1 || problem.Line > len(lines) || problem.Column < 1 || problem.Column > utf8.RuneCountInString(lines[problem.Line-1])+1 {
					t.Errorf("%q: the problem is at %d:%d: %v", template, problem.Line, problem.Column, err)
				}
				if problem.Message == "" || strings.Contains(problem.Message, "\n") {
					t.Errorf("%q: got message %q", template, problem.Message)
				}
			}
		}
	}
}

// A problem without a template is shown without the line and the caret.
func TestError_WithoutTemplate(t *testing.T) {
	t.Parallel()
	for want, problem := range map[string]*keyexpr.Error{
		"keyexpr: 1:1: it is bad":                            {Line: 1, Column: 1, Message: "it is bad"},
		"keyexpr: 9:1: it is bad":                            {Template: "a", Line: 9, Column: 1, Message: "it is bad"},
		"keyexpr: 0:0: it is bad\n  write x":                 {Template: "a", Message: "it is bad", Suggestion: "x"},
		"keyexpr: 1:2: it is bad\n  | ab\n  |  ^\n  write b": {Template: "ab", Line: 1, Column: 2, Message: "it is bad", Suggestion: "b"},
	} {
		if got := problem.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
