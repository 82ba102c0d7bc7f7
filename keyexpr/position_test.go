package keyexpr_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/interlock-go/interlock/keyexpr"
)

// wrappings put an operand into a larger expression, in lines and beside characters of
// several bytes. @ is the operand.
var wrappings = []string{
	`@`, ` @ `, `"b:" + @`, `upper(@)`, `(@)`, `@ ?? "ü"`, `"ünï" + @`, "path.orderId +\n\t@", `string(@)`, `[1, @][0]`, `{"→": @}["→"]`, `not @`, `-@`, `@ == "漢字" ? 1 : 2`,
	`path.orderId == "→" ? @ : "x"`, `map(["ä"], @)`, `any(body.xs, # == @)`, "\n\n@\n", `"\u00e9" in [@]`,
	"/* ü */ @", "// →\n@", `1 < 2 and @`, `first([@])`, `@ | string()`, `body.a ?? (@)`,
}

// beforeParts are what stands before the part in a template.
var beforeParts = []string{``, `a:`, `ключ:`, `#{path.orderId}:`, `→#{path.shop}→`, `#{"ü" + method}:`, "{}:"}

// Wherever an unknown name stands: the position is its own, and the caret is under it.
func TestError_PositionInAnyExpression(t *testing.T) {
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
			continue // it has another problem, such as a slice of a text that does not parse
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
		t.Errorf("only %d of %d templates say that the name is unknown", found, tries)
	}
}

// The same is so in a condition.
func TestError_PositionInAnyCondition(t *testing.T) {
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
		t.Errorf("only %d of %d conditions say that the name is unknown", found, all)
	}
}

// problemAbout is the problem whose name nothing has.
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

// checkCaret looks for the name above the caret.
func checkCaret(t *testing.T, problem *keyexpr.Error, name string) {
	t.Helper()
	lines := strings.Split(problem.Error(), "\n")
	for i, line := range lines[1:] {
		if !strings.HasSuffix(line, "^") {
			continue
		}
		above, column := []rune(lines[i]), utf8.RuneCountInString(line)-1
		if column > len(above) || !strings.HasPrefix(string(above[column:]), name) {
			t.Errorf("%q: the caret stands elsewhere:\n%v", problem.Template, problem)
		}
		return
	}
	t.Errorf("%q: there is no caret: %v", problem.Template, problem)
}

// Whatever does not parse: the error has a position inside of the template.
func TestError_PositionOfWhatIsCutOff(t *testing.T) {
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
					t.Fatalf("%q: %v is no *Error", template, err)
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
