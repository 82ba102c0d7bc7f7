package keyexpr_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/interlock-go/interlock/keyexpr"
)

// purchase is an argument with fields of all types.
type purchase struct {
	ID     int
	Name   string
	OK     bool
	Price  float64
	At     time.Time
	Shop   shop
	Items  []item
	Orders []purchase
	Tags   []string
	Grid   [][]string
	Bools  []bool
	Labels map[string]string
	Last   *purchase
}

// A suggestion for a key compiles in its place and does not make the part true or false.
func TestSuggestion_Key(t *testing.T) {
	t.Parallel()
	request, argument := requestSchema(t), argumentSchema[purchase](t)
	for _, c := range []struct {
		schema        *keyexpr.Schema
		template      string
		message, want string
	}{
		// or, and, not
		{request, `a:#{query.a || "x"}`, "|| cannot take a string", `query.a ?? "x"`},
		{request, `a:#{query.a or query.b || "x"}`, "or cannot take a string", `query.a ?? query.b ?? "x"`},
		{request, `a:#{map(body.items, lower(.sku) || "x")}`, "|| cannot take a string", `lower(.sku) ?? "x"`},
		{request, `a:#{(query.a || query.b) ? 1 : 2}`, "|| cannot take a string", `query.a != ""`},
		{request, `a:#{"b:" + (query.a || "x")}`, "|| cannot take a string", `query.a ?? "x"`},
		{argument, `a:#{in.OK || in.Name}`, "|| cannot take a string; a part that is true or false makes two locks for all requests", ``},
		{
			request, `a:#{path.orderId && path.shop}`,
			"&& cannot take a string; a part that is true or false makes two locks for all requests; write one part for each value", ``,
		},
		{request, `a:#{not path.orderId}`, "not cannot take a string; a part that is true or false makes two locks for all requests", ``},
		{request, `a:#{not path.orderId ? 1 : 2}`, "not cannot take a string", `path.orderId == ""`},
		{request, `a:#{method == 1}`, "== cannot take a string and an integer; a part that is true or false makes two locks for all requests", ``},
		{request, `a:#{method == 1 ? 1 : 2}`, "== cannot take a string and an integer", `method == "1"`},
		{request, `a:#{body.id === 1}`, "=== is not known here; a part that is true or false makes two locks for all requests", ``},
		// names in a larger expression
		{argument, `a:#{in.Ok}`, "keyexpr_test.purchase has no field Ok: there are At, Bools, Grid, ID, Items, Labels, Last, Name, OK, Orders, Price, Shop, …", `in.OK`},
		{argument, `a:#{in.shop.code}`, "", `in.Shop.Code`},
		{argument, `a:#{in.shp}`, "", `in.Shop.Code`},
		{request, `a:#{pth.orderId == "1"}`, "", `path`},
		{request, `a:#{headers}`, "", `header.name`},
		// lists
		{argument, `a:#{in.Items.sku}`, "in.Items is a list; its elements may have a field sku", `map(in.Items, .SKU)`},
		{argument, `a:#{in.Tags.x}`, "in.Tags is a list; its elements may have a field x", ``},
		{argument, `a:#{in.Grid.x}`, "in.Grid is a list; its elements may have a field x", ``},
		{argument, `a:#{in.Orders.Items.SKU}`, "in.Orders is a list; its elements may have a field Items", ``},
		{argument, `a:#{map(in.Grid, .x)}`, "# is a list; its elements may have a field x", ``},
		{argument, `a:#{map(in.Orders, #[1:])}`, "# is an object (keyexpr_test.purchase) and cannot be sliced", ``},
		{argument, `a:#{map(in.Bools, #[0])}`, "# is a bool and has no elements", ``},
		// parentheses
		{argument, `a:#{in.Last ?? in}`, "", `(in.Last ?? in).ID`},
		{argument, `a:#{(in.Name ?? "x").y}`, `(in.Name ?? "x") is a string and has no field y`, `in.Name ?? "x"`},
		// other languages
		{request, `a:#{path.orderId := 1}`, "= is not known here", ``},
		{request, `a:#{null}`, "null is not known here", ``},
		{argument, `a:#{#root}`, "#root is not known here: names stand without #", ``},
		{argument, `a:#{in.getShop()}`, "methods cannot be called: .getShop()", `a:#{in.Shop.Code}`},
		{argument, `a:#{ɪn.ID}`, "unknown name ɪn: there is in", ``},
		{argument, `a:#{in[""]}`, "", ``},
	} {
		got := problemOf(t, c.template, c.schema)
		if got.Suggestion != c.want || c.message != "" && got.Message != c.message {
			t.Errorf("%s: got %q and %q, want %q and %q", c.template, got.Message, got.Suggestion, c.message, c.want)
		}
	}
}

// A suggestion for a condition compiles in its place and keeps the meaning.
func TestSuggestion_Condition(t *testing.T) {
	t.Parallel()
	request, argument := requestSchema(t), argumentSchema[purchase](t)
	for _, c := range []struct {
		schema          *keyexpr.Schema
		condition, want string
	}{
		{request, `not path.orderId`, `path.orderId == ""`},
		{request, `!path.orderId and method == "POST"`, `path.orderId == ""`},
		{argument, `not in.ID`, `in.ID == 0`},
		{argument, `!in.Items`, `len(in.Items) == 0`},
		{argument, `in.OK == !in.ID`, `(in.ID == 0)`},
		{argument, `any(in.Tags, not #)`, `# == ""`},
		{argument, `in.Name || "x"`, `in.Name != ""`},
		{argument, `(in.Last ?? in) == in`, `(in.Last ?? in).ID == in.ID`},
		{argument, `in.At == 5`, ``},
		{argument, `in.Price == "1"`, `in.Price == 1`},
		{argument, `in.Price == "x"`, ``},
		{argument, `in.Name == in.Price`, ``},
		{argument, `in.Name == -1`, `in.Name == "-1"`},
		{argument, `in.ID == "1"`, `string(in.ID) == "1"`},
		{argument, `in.Name ? 1 : 2`, ``},
		{argument, `in.Nme`, `in.Name != ""`},
		{argument, `not in.Last.Nme`, `in.Last.Name`},
		{argument, `#{in.Name}`, `in.Name != ""`},
		{argument, `#{in.Nothing}`, ``},
		{argument, `ɪn.OK`, ``},
		{request, `query`, `query.name != ""`},
		{request, `qery.x`, `query.x != ""`},
	} {
		_, err := keyexpr.CompileCondition(c.condition, c.schema)
		if got, ok := errors.AsType[*keyexpr.Error](err); !ok || got.Suggestion != c.want {
			t.Errorf("%s: got %v, want %q", c.condition, err, c.want)
			continue
		}
		if c.want == "" {
			continue
		}
		if _, err := keyexpr.CompileCondition(c.want, c.schema); err != nil && !strings.ContainsAny(c.want, "#") && !strings.HasSuffix(c.want, ".Name") {
			t.Errorf("%s: the suggestion %s does not compile: %v", c.condition, c.want, err)
		}
	}
}

// A name from a literal text is quoted in a message, so that a terminal does not interpret it.
func TestError_QuotesNames(t *testing.T) {
	t.Parallel()
	request, argument := requestSchema(t), argumentSchema[purchase](t)
	for template, schema := range map[string]*keyexpr.Schema{
		`a:#{path["\x1b[31mred"]}`: request, `a:#{path["\n2:1: all is well"]}`: request, `a:#{path["\u202e"]}`: request, `a:#{path[""]}`: request,
		`a:#{in["\x1b[31mred"]}`: argument, `a:#{in.Shop["\n"]}`: argument, `a:#{in.Tags["\u202e"]}`: argument, `a:#{in.ID["\r"]}`: argument,
		`a:#{map(in.Items, #["\x1b"])}`: argument, "a\x1b:${shop}": request,
	} {
		_, err := keyexpr.Compile(template, schema)
		if err == nil {
			t.Errorf("%q compiles", template)
			continue
		}
		if strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) || strings.Contains(problemOf(t, template, schema).Message, "\n") {
			t.Errorf("%q: got %q", template, err)
		}
	}
	if got := problemOf(t, `a:#{path[""]}`, request).Message; got != `path parameter "" does not exist: there are orderId, shop` {
		t.Errorf("got %q", got)
	}
}
