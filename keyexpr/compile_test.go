package keyexpr_test

import (
	"errors"
	"reflect"
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
	// several problems
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
	`path.orderId`,
	`order:path.orderId`,
	`path.nothing`,
	`header.X-Order`,
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
	// different values with the same key
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
	`order:in.ID`,
	`order:%s`,
	`order:#{path.id}`,
	`order:#{req.shop.code}`,
	`order:#{user.id}`,
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

// A constant that is too long is an error at start-up, because it does not depend on a request. Otherwise the
// key would be shortened silently.
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

// The parser uses the b of a < b < c twice, so each level of nested chains doubles the work.
// Without a limit, a template of 500 bytes would never finish compiling.
func TestCompile_NestedComparisons(t *testing.T) {
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

func TestPrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"shop:": "shop:order:1", "#{path.id}": "#{path.id}order:1", "{a}": "{a}order:1", "": "order:1"} {
		template, err := keyexpr.Format{Prefix: prefix}.Compile("order:#{path.orderId}", requestSchema(t))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.Key(path("1").env(t)); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", prefix, got, err, want)
		}
	}
}

func TestPrefix_NotCountedInPositions(t *testing.T) {
	t.Parallel()
	_, err := keyexpr.Format{Prefix: "shop:"}.Compile("order:#{path.orderID}", requestSchema(t))
	problem, ok := errors.AsType[*keyexpr.Error](err)
	if !ok || problem.Column != len("order:#{path.o") || problem.Template != "order:#{path.orderID}" {
		t.Errorf("got %+v", problem)
	}
}

func TestPrefix_LeavesRoom(t *testing.T) {
	t.Parallel()
	template := compile(t, "#{path.orderId}", keyexpr.Format{Prefix: strings.Repeat("p", keyexpr.MaxPrefixLength)})
	key, err := template.Key(path("readable-order-" + strings.Repeat("1", keyexpr.DefaultMaxLength)).env(t))
	if err != nil || len(key) != keyexpr.DefaultMaxLength || !strings.Contains(key, "readable-") {
		t.Errorf("got %q, %v", key, err)
	}
}

// A template whose literal text is longer than a key is refused. Otherwise only the hash would distinguish
// its keys, and Strict would refuse every request.
func TestCompile_LongLiterals(t *testing.T) {
	t.Parallel()
	for _, format := range []keyexpr.Format{{}, {Strict: true}} {
		_, err := format.Compile(strings.Repeat("k", 511)+"#{path.orderId}", requestSchema(t))
		if err != nil {
			t.Errorf("room for one character: got %v", err)
		}
		_, err = format.Compile(strings.Repeat("k", 510)+"#{path.orderId}:#{path.shop}", requestSchema(t))
		if err == nil || !strings.Contains(err.Error(), "every key has at least 513 bytes; at most 512 are allowed") {
			t.Errorf("no room for a character: got %v", err)
		}
	}
}

func TestPrefix_CheckedLikeText(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"a\n", "\xff"} {
		if _, err := (keyexpr.Format{Prefix: prefix}).Compile("order:#{path.orderId}", requestSchema(t)); err == nil {
			t.Errorf("%q was accepted", prefix)
		}
	}
}

// A constant part is checked like literal text.
func TestCompile_ConstantParts(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`o:#{"a"}:#{1 + 1}`: "o:a:2", `#{"a:b"}`: "a:b", `#{"#"}{x}`: "#{x}", `#{"#{"}x}`: "#{x}", `o:#{true}`: "o:true", `o:#{upper("a") + "%41"}`: "o:A%41",
	} {
		template := compile(t, template)
		if key, ok := template.Constant(); !ok || key != want {
			t.Errorf("%v: got %q, %v, want %q", template, key, ok, want)
		}
		if key, err := template.Key(nil); err != nil || key != want { // a constant reads no variable
			t.Errorf("%v: got %q, %v, want %q", template, key, err, want)
		}
	}
	for _, template := range []string{`o:#{"a\nb"}`, `o:#{"\x7f"}`, `o:#{"x" + "%~"}`, `o:#{upper("\u0085")}`, `o:#{[1, 2][5] ?? ""}`} {
		if _, err := keyexpr.Compile(template, requestSchema(t)); err == nil {
			t.Errorf("%s compiles", template)
		}
	}
}

func TestCompile_NilSchema(t *testing.T) {
	t.Parallel()
	if key, ok := compileFor(t, "nightly", nil).Constant(); !ok || key != "nightly" {
		t.Errorf("got %q, %v", key, ok)
	}
	_, err := keyexpr.Compile("#{a}", nil)
	if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Message != "unknown name a: there are none" {
		t.Errorf("got %v", err)
	}
	if c, err := keyexpr.CompileCondition("1 < 2", nil); err != nil {
		t.Error(err)
	} else if ok, err := c.Eval(keyexpr.Values(nil)); err != nil || !ok {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestCompile_OrdersProblems(t *testing.T) {
	t.Parallel()
	_, err := keyexpr.Compile("${a}:#{path.x}\n:#{path.y}:#{z}", requestSchema(t))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v, want joined errors", err)
	}
	var at [][2]int
	for _, e := range joined.Unwrap() {
		problem, ok := errors.AsType[*keyexpr.Error](e)
		if !ok {
			t.Fatalf("got %T", e)
		}
		at = append(at, [2]int{problem.Line, problem.Column})
	}
	// The third problem is the line break.
	if want := [][2]int{{1, 1}, {1, 13}, {1, 15}, {2, 9}, {2, 14}}; !reflect.DeepEqual(at, want) {
		t.Errorf("got %v, want %v", at, want)
	}
}

func TestCompile_WhiteSpaceAtEnds(t *testing.T) {
	t.Parallel()
	for template, column := range map[string]int{
		` order:#{path.orderId}`: 1, `order:#{path.orderId} `: 22, ` nightly`: 1, `nightly `: 8, "nightly\u3000": 8, "\u00a0nightly": 1,
		`#{path.orderId} `: 16, `#{" order:" + path.orderId}`: 0, `#{path.orderId + ": "}`: 0, `#{" "}a`: 0, "order\u200b:#{path.orderId}": 6, "\ufefforder": 1, "a\u00a0b": 2,
	} {
		_, err := keyexpr.Compile(template, requestSchema(t))
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || column > 0 && problem.Column != column {
			t.Errorf("%q: got %v, want an error in column %d", template, err, column)
		}
	}
	if _, err := (keyexpr.Format{Prefix: " shop:"}).Compile(`order:#{path.orderId}`, requestSchema(t)); err == nil {
		t.Error("a prefix that begins with white space is accepted")
	}
	for _, template := range []string{`nightly report`, `order #{path.orderId} of #{path.shop}`, `#{ path.orderId }`, `#{" a" == "b" ? "c" : "d"}`} {
		if _, err := (keyexpr.Format{Prefix: "shop: "}).Compile(template, requestSchema(t)); err != nil {
			t.Errorf("%q: %v", template, err)
		}
	}
}
