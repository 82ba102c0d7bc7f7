package keyexpr_test

import (
	"errors"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/interlock-go/interlock/keyexpr"
)

type order struct {
	ID    int64
	Note  *string
	Price float64
	Data  []byte
	Shop  shop
	Items []item
	Tags  []string
}

type shop struct{ Code string }

type item struct {
	SKU string
	N   int
}

// badTemplates are compiled against the request schema.
var badTemplates = []string{
	// names
	`order:#{path.orderID}`,
	`order:#{path.ordrId}`,
	`order:#{path.nothingLikeIt}`,
	`order:#{orderId}`,
	`order:#{pathh.orderId}`,
	`order:#{path}`,
	`order:#{query}`,
	`order:#{path.orderId.x}`,
	`order:#{path.orderId[0]}`,
	`order:#{query.id[0][1]}`,
	`order:#{method.x}`,
	"first\u00e4:#{method}:\u00fc#{path.x}",
	"a:#{path.orderId +\n   path.y}",
	// all problems at once
	`#{path.a}:#{path.b}:#{upcase(method)}`,
	// habits of SpEL and JavaScript
	`order:#{#orderId}`,
	`order:#{#order.id}`,
	`order:#{#order.getId()}`,
	`order:#{header.X-Id}`,
	`order:#{header.X-Request-Id}`,
	`order:#{path.orderId ?: "x"}`,
	`order:#{T(java.lang.Math).random()}`,
	`order:#{@bean.name()}`,
	`order:#{path.orderId.toString()}`,
	`order:#{path.orderId.toLowerCase()}`,
	`order:#{body.getId()}`,
	`order:#{body.id === 1}`,
	// other template languages
	`order:${path.orderId}`,
	`order:${orderId}`,
	`order:{{path.orderId}}`,
	`order:{{.orderId}}`,
	`order:%s`,
	`order:#orderId`,
	`order:#getOrderId()`,
	`order:#order.toString()`,
	`order:${order.getId()}`,
	`order:{orderId}`,
	`order:orderId:x`,
	`a:${orderId}:#{path.shop}`,
	// sums outside of parts
	`'order:' + #{path.orderId}`,
	`"order:" + #{path.orderId}`,
	`#{path.orderId} + ':x'`,
	`#{path.orderId} + #{path.shop}`,
	`a:#{path.orderId} + ":b:" + #{path.shop}`,
	`'order:' + #orderId`,
	`#shop + ':' + #order.id`,
	`'order:' + #order.getId()`,
	`#order.getId() + ':' + #{path.shop}`,
	`'order:' + #{path.orderId} + #shop`,
	`'order:' + ${orderId}`,
	// syntax
	``,
	`   `,
	`order:##{path.orderId}`,
	`order:#{path.orderId`,
	`order:#{path.orderId}}`,
	`{a}:#{path.orderId}}:x`,
	`order:#{"abc}`,
	`order:#{}`,
	`order:#{ }`,
	`order:#{path.orderId +}`,
	`order:#{path.orderId]}`,
	`order:#{(path.orderId}`,
	"order\n:#{path.orderId}",
	"order\xff:#{path.orderId}",
	`order%~:#{path.orderId}`,
	// different values, same key
	`#{path.shop}#{path.orderId}`,
	`#{path.shop}%#{path.orderId}`,
	`#{path.shop}1#{path.orderId}`,
	// types
	`order:#{1.5}`,
	`order:#{body.a / 2}`,
	`order:#{({"a": 1})}`,
	`order:#{path.orderId + 1}`,
	`order:#{method == 1}`,
	`order:#{[1.5]}`,
	`order:#{query.a[:]}:#{query.b[:]}`,
	`order:#{filter(body.items, .sku)}:#{map(query.b[:], 1)}`,
	`order:#{nil}`,
	`order:#{""}`,
	`order:#{b"x"}`,
	`order:#{"x" matches "("}`,
	`order:#{body.id matches body.pattern}`,
	`order:#{path.orderId matches "^" + header["X-Pattern"] ? 1 : 2}`,
	// functions
	`order:#{now()}`,
	`order:#{::now()}`,
	`order:#{date("2020-01-01")}`,
	`order:#{reduce([1], #acc, 0)}`,
	`order:#{toJSON(body)}`,
	`order:#{repeat("x", 3)}`,
	`order:#{uppr(method)}`,
	`order:#{string()}`,
	`order:#{string([1])}`,
	`order:#{$env}`,
	`order:#{$env.path}`,
	`order:#{$get(1, 2)}`,
	`order:#{$evaluation}`,
	`order:#{#}`,
	`order:#{map(query.a[:], #foo)}`,
	`order:#{count(body.a, count(body.b, count(body.c, true) > 0) > 0)}`,
}

// badArgumentTemplates are compiled against the schema of an argument.
var badArgumentTemplates = []string{
	`order:#{in}`,
	`order:#{in.Id}`,
	`order:#{in.Idd}`,
	`order:#{in.shop.code}`,
	`order:#{in.Shop}`,
	`order:#{in.Items}`,
	`order:#{in.Items.SKU}`,
	`order:#{map(in.Items, .Sku)}`,
	`order:#{in.Data}`,
	`order:#{in.Price}`,
	`order:#{in.ID.x}`,
	`order:#{in.Shop == in.Shop}`,
	`order:#{#in.ID}`,
	`order:#{id}`,
	`order:{id}`,
	`order:#{path.id}`,
	`order:#{request.shop.code}`,
	`order:#{path["ID"][0].x}`,
	`order:#{path.nothing}`,
	`order:#{path[0].id}`,
	`order:#{in[path]}`,
	`order:#{in["Idd"]}`,
}

var badConditions = []string{
	``,
	`path.orderId`,
	`#{method == "POST"}`,
	`method = "POST"`,
	`path.x == "1"`,
	`method == 1`,
	`#orderId == "1"`,
	`query.a and 1`,
}

func TestCompile_Errors(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	golden.Assert(t, errorTexts(t, badTemplates, func(source string) error {
		_, err := keyexpr.Compile(source, schema)
		return err
	}), "templates.golden")
}

func TestCompile_ArgumentErrors(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[order](t)
	golden.Assert(t, errorTexts(t, badArgumentTemplates, func(source string) error {
		_, err := keyexpr.Compile(source, schema)
		return err
	}), "arguments.golden")
}

func TestCompileCondition_Errors(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	golden.Assert(t, errorTexts(t, badConditions, func(source string) error {
		_, err := keyexpr.CompileCondition(source, schema)
		return err
	}), "conditions.golden")
}

func errorTexts(t *testing.T, sources []string, compile func(string) error) string {
	t.Helper()
	var b strings.Builder
	for _, source := range sources {
		err := compile(source)
		if err == nil {
			t.Errorf("%q compiles", source)
			continue
		}
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Line < 1 || problem.Column < 1 {
			t.Errorf("%q: %v has no position", source, err)
		}
		if strings.Contains(err.Error(), "$") && !strings.Contains(source, "$") {
			t.Errorf("%q: the error shows an internal name: %v", source, err)
		}
		b.WriteString("=== " + strings.ToValidUTF8(source, "\\xff") + "\n" + strings.ToValidUTF8(err.Error(), "\\xff") + "\n")
	}
	return b.String()
}

func TestFormat_PrefixIsTooLong(t *testing.T) {
	t.Parallel()
	_, err := keyexpr.Format{Prefix: strings.Repeat("x", 465)}.Compile("x", requestSchema(t))
	if err == nil || !strings.Contains(err.Error(), "write one of at most 464") {
		t.Errorf("got %v", err)
	}
}

func TestCompile_TooLong(t *testing.T) {
	t.Parallel()
	_, err := keyexpr.Compile(strings.Repeat("x", keyexpr.MaxTemplateLength+1), requestSchema(t))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("got %v, want a short error", err)
	}
	_, err = keyexpr.Compile("#{"+strings.Repeat("1+", keyexpr.MaxNodes)+"1}", requestSchema(t))
	if err == nil {
		t.Error("no limit of nodes")
	}
}

// A constant does not depend on a request, so it is not a request's fault when it is
// too long, and it is not shortened behind anybody's back.
func TestCompile_LongConstant(t *testing.T) {
	t.Parallel()
	if _, err := keyexpr.Compile(strings.Repeat("x", keyexpr.DefaultMaxLength), requestSchema(t)); err != nil {
		t.Errorf("of the limit: %v", err)
	}
	_, err := keyexpr.Compile(strings.Repeat("x", keyexpr.DefaultMaxLength+1), requestSchema(t))
	if failure, ok := errors.AsType[*keyexpr.Error](err); !ok || failure.Line != 1 || !strings.Contains(failure.Message, "513 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestError_TellsTheNameThatNothingHas(t *testing.T) {
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

// The picture of a template commands no terminal, and its caret is where it belongs.
func TestError_PictureShowsWhatIsNotVisible(t *testing.T) {
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

// The parser uses b of a < b < c twice, so that chains inside of chains double with each
// level. A template of 500 bytes would take for ever.
func TestCompile_ChainsOfComparisonsInsideOfEachOther(t *testing.T) {
	t.Parallel()
	chains := func(depth int) string {
		expression := `len(path.orderId)`
		for range depth {
			expression = `len(string(1 < ` + expression + ` < 9))`
		}
		return expression
	}
	if _, err := keyexpr.Compile(`#{`+chains(3)+`}`, requestSchema(t)); err != nil {
		t.Errorf("three levels: %v", err)
	}
	for _, depth := range []int{6, 24} {
		_, err := keyexpr.Compile(`order:#{`+chains(depth)+`}`, requestSchema(t))
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Line != 1 || problem.Column != 9 || !strings.Contains(err.Error(), "has more than 200 nodes") || !strings.Contains(err.Error(), "\n  |         ^") {
			t.Errorf("%d levels: got %v", depth, err)
		}
		if _, err := keyexpr.CompileCondition(chains(depth)+` == 4`, requestSchema(t)); !errors.As(err, &problem) {
			t.Errorf("%d levels in a condition: got %v", depth, err)
		}
	}
}
