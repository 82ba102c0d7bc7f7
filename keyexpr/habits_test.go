package keyexpr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/keyexpr"
)

// problemOf returns the first problem of a template.
func problemOf(tb testing.TB, template string, schema *keyexpr.Schema) *keyexpr.Error {
	tb.Helper()
	_, err := keyexpr.Compile(template, schema)
	problem, ok := errors.AsType[*keyexpr.Error](err)
	if !ok {
		tb.Errorf("%s: got %v, want an *Error", template, err)
		return &keyexpr.Error{}
	}
	return problem
}

// The suggestion is the intended expression, wherever the wrong name is. The golden files contain more
// suggestions.
func TestSuggestion_Request(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	for template, want := range map[string]string{
		// names
		`#{path.order_id}`:             `path.orderId`,
		`#{path["order-id"]}`:          `path.orderId`,
		`#{path.oderId}`:               `path.orderId`,
		`#{path.orderIdd}`:             `path.orderId`,
		`#{path.shp}`:                  `path.shop`,
		`#{path.quite_other}`:          ``,
		`#{order_id}`:                  `path.orderId`,
		`#{shop}`:                      `path.shop`,
		`#{req.order_id}`:              `path.orderId`,
		`#{user.order_id}`:             ``,
		`#{boddy.id}`:                  `body`,
		`#{Body.id}`:                   `body`,
		`#{qery.id}`:                   `query`,
		`#{headers.x}`:                 `header`,
		`#{principle}`:                 `principal`,
		`#{methd}`:                     `method`,
		`#{zzz}`:                       ``,
		`#{header}`:                    `header.name`,
		`#{lower(path)}`:               `path.orderId`,
		`#{path + "x"}`:                `path.orderId`,
		`#{query.id[0][0]}`:            `query.id[0]`,
		`#{query.id[-1]}`:              `query.id[:]`,
		`#{header["A"][-2]}`:           `header.A[:]`,
		`#{path[0]}`:                   ``,
		`a#{path.shop}#{path.orderId}`: `a#{path.shop}:#{path.orderId}`,
		`#{body}#{method}#{path.shop}`: `#{body}:#{method}#{path.shop}`,
		// functions
		`#{Lower(method)}`:              `#{lower(method)}`,
		`#{to_lower(method)}`:           `#{lower(method)}`,
		`#{strin(method)}`:              `#{string(method)}`,
		`#{md5(method)}`:                ``,
		`#{body.id.toString()}`:         `#{string(body.id)}`,
		`#{body.id.String()}`:           `#{string(body.id)}`,
		`#{body.toLowerCase()}`:         `#{lower(body)}`,
		`#{body.toUpperCase()}`:         `#{upper(body)}`,
		`#{body.x.trim()}`:              `#{trim(body.x)}`,
		`#{body.x.length()}`:            `#{len(body.x)}`,
		`#{body.x.size()}`:              `#{len(body.x)}`,
		`#{body.x.isEmpty() ? 1 : 2}`:   `#{len(body.x) == 0 ? 1 : 2}`,
		`#{body.x.concat("a")}`:         `#{body.x + "a"}`,
		`#{body.x.equals("a") ? 1 : 2}`: `#{body.x == "a" ? 1 : 2}`,
		`#{body.x.get("a")}`:            `#{body.x.a}`,
		`#{body.getOrder()}`:            `#{body.order}`,
		`#{body.x.hashCode()}`:          ``,
		// habits
		`#{#body.id}`:                            `#{body.id}`,
		`#{#principal}`:                          `#{principal}`,
		`#{#shop}`:                               `#{path.shop}`,
		`#{#shpo}`:                               `#{body.shpo}`,
		`#{#principle}`:                          `#{principal}`,
		`#{body.id !== 1 ? 1 : 2}`:               `#{body.id != 1 ? 1 : 2}`,
		`#{body.id = 1 ? 1 : 2}`:                 `#{body.id == 1 ? 1 : 2}`,
		`#{body.x ?: "a"}`:                       `#{body.x ?? "a"}`,
		`#{method ?: path.shop}`:                 `#{method ?? path.shop}`,
		`#{header.X-Trace-Id}`:                   `#{header["X-Trace-Id"]}`,
		`#{query.a-b-c-d}`:                       `#{query["a-b-c-d"]}`,
		`#{lower(header.X-Id)}`:                  `#{lower(header["X-Id"])}`,
		`#{header.X-Id ?? "a"}`:                  `#{header["X-Id"] ?? "a"}`,
		`#{header.X-Trace-Id ?? query.a ?? "b"}`: `#{header["X-Trace-Id"] ?? query.a ?? "b"}`,
		`#{@bean}`:                               `the name of a registered variable`,
		`#{body.items[*].sku}`:                   `#{map(body.items, .sku)}`,
		`#{body.a.items[*].sku.code}`:            `#{map(body.a.items, .sku.code)}`,
		`#{body.ids[*]}`:                         `#{body.ids[:]}`,
		`#{#order.items.![sku]}`:                 `#{map(body.order.items, .sku)}`,
		`#{body.items.?[qty > 3]}`:               `#{filter(body.items, .qty > 3)}`,
		`#{body.x == null ? "a" : "b"}`:          `#{body.x == nil ? "a" : "b"}`,
		`#{body.x eq 'null' ? 1 : 2}`:            `#{body.x == 'null' ? 1 : 2}`,
		`#{body.x ne 1 ? 1 : 2}`:                 `#{body.x != 1 ? 1 : 2}`,
		`#{#user.id + '_' + #order.getId()}`:     `#{body.user.id + '_' + body.order.id}`,
		`#{#order.getItems().size()}`:            `#{len(body.order.items)}`,
		`#{T(java.lang.Math).abs(1)}`:            ``,
		`#{body.iban.substring(0, 4)}`:           `#{body.iban[0:4]}`,
		`#{substring(body.iban, 4)}`:             `#{body.iban[4:]}`,
		`#{body.x.startsWith("ab") ? 1 : 2}`:     `#{body.x[:2] == "ab" ? 1 : 2}`,
		`#{body.x endsWith "ab" ? 1 : 2}`:        `#{body.x[-2:] == "ab" ? 1 : 2}`,
		`#{contains(body.tags, "vip") ? 1 : 2}`:  `#{"vip" in body.tags[:] ? 1 : 2}`,
		`#{in.ID}`:                               ``,
		`#{contains(query.q, "vip") ? 1 : 2}`:    `#{"vip" in query.q[:] ? 1 : 2}`,
		`#{contains(path.shop, "vip")}`:          ``,
		`#{trimPrefix(body.x, "a")}`:             ``,
		`#{body.x.startsWith(query.q)}`:          ``,
		`#{path.get(orderId)}`:                   ``,
		`#{path[orderId]}`:                       `path.orderId`,
		`#{body.items.map(x => x.id)}`:           ``,
		`#{map(body.items, x -> x.id)}`:          ``,
		`#{find(body.items, .main).sku}`:         `#{first(filter(body.items, .main)).sku}`,
		`#{count(body.items, .n > 1)}`:           `#{len(filter(body.items, .n > 1))}`,
		`#{map(body.items, .sku.toLowerCase())}`: `#{map(body.items, lower(.sku))}`,
		`#{max(body.a, body.b)}`:                 `#{body.a > body.b ? body.a : body.b}`,
		`a:#{#shop}:#{body.getId()}:#{method}`:   `a:#{path.shop}:#{body.id}:#{method}`,
		`a:${shop}:#{#orderId}`:                  `a:#{path.shop}:#{path.orderId}`,
		// other languages
		`a:${orderId}:b`:             `a:#{path.orderId}:b`,
		`a:${shop}:${orderId}`:       `a:#{path.shop}:#{path.orderId}`,
		`a:${unknown}`:               `a:#{body.unknown}`,
		`a:${a.b.c}`:                 `a:#{body.a.b.c}`,
		`a:{{orderId}}`:              `a:#{path.orderId}`,
		`a:{{ .orderId }}`:           `a:#{path.orderId}`,
		`a:{{.Order.ID}}`:            `a:#{body.Order.ID}`,
		`a:#order.id:b`:              `a:#{body.order.id}:b`,
		`a:%d:%v`:                    `a:#{path.orderId}:#{path.orderId}`,
		`/orders/{orderId}`:          `/orders/#{path.orderId}`,
		`orders:orderId`:             `orders:#{path.orderId}`,
		`/orders/:orderId/x`:         `/orders/:#{path.orderId}/x`,
		`a:#{path.shop}:${orderId}`:  `a:#{path.shop}:#{path.orderId}`,
		`a:#{path.shop}:{{orderId}}`: `a:#{path.shop}:#{path.orderId}`,
		// sums outside of parts
		`'a:'+#{path.orderId}`:                 `a:#{path.orderId}`,
		` 'a:' + #{path.orderId} `:             `a:#{path.orderId}`,
		`#{path.orderId} + ':a'`:               `#{path.orderId}:a`,
		`#{path.orderId}+":a"`:                 `#{path.orderId}:a`,
		`'it"s:' + #{path.orderId}`:            `it"s:#{path.orderId}`,
		`'{a}' + #{path.orderId}`:              `{a}#{path.orderId}`,
		`'a:' + 'b:' + #{path.orderId}`:        `a:b:#{path.orderId}`,
		`'a+b:' + #{path.orderId}`:             `a+b:#{path.orderId}`,
		`'a:shop:' + #{path.orderId}`:          `a:shop:#{path.orderId}`,
		`'a#b:' + #{path.orderId}`:             `a#b:#{path.orderId}`,
		`'a:' + #{"}" + path.shop}`:            `a:#{"}" + path.shop}`,
		`#{path.shop} + #{path.orderId}`:       `#{path.shop}:#{path.orderId}`,
		`#{path.shop} + '/' + #{path.orderId}`: `#{path.shop}/#{path.orderId}`,
		`#{path.shop} + '' + #{path.orderId}`:  `#{path.shop}:#{path.orderId}`,
		`'a:'+#{path.shop}+#{path.orderId}`:    `a:#{path.shop}+#{path.orderId}`,
		`a:#{path.shop} + ':' + #{method}`:     `a:#{path.shop}:#{method}`,
		`'a:' + #{path.shop}:b`:                `a:#{path.shop}:b`,
		`'a:' + #{path.shop} + #orderId`:       `a:#{path.shop}:#{path.orderId}`,
		`#shop + #{path.orderId}`:              `#{path.shop}:#{path.orderId}`,
		`"order:" + #orderId + ":x"`:           `order:#{path.orderId}:x`,
		`'order:' + #order.id`:                 `order:#{body.order.id}`,
		`#shop + ':' + #orderId`:               `#{path.shop}:#{path.orderId}`,
		`#shop + #orderId`:                     `#{path.shop}:#{path.orderId}`,
		// syntax
		`##{path.shop}`:                 `#{"#{"} for a literal "#{", or #{"#"} before a part for a literal "#"`,
		`a:#{path.shop`:                 `"}" after the expression`,
		`a:#{  }:b`:                     `#{path.orderId}`,
		`a#{path.shop}5#{path.orderId}`: `a separator such as : first`,
		`a#{path.shop}%#{path.orderId}`: `a separator such as : first`,
	} {
		if got := problemOf(t, template, schema); got.Suggestion != want {
			t.Errorf("%s: %s: got %q, want %q", template, got.Message, got.Suggestion, want)
		}
	}
}

// Every suggestion that is a whole template or expression compiles.
func TestSuggestion_Compiles(t *testing.T) {
	t.Parallel()
	schema := requestSchema(t)
	for _, template := range badTemplates {
		_, err := keyexpr.Compile(template, schema)
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok {
			t.Errorf("%s: got %v", template, err)
			continue
		}
		written := problem.Suggestion
		switch {
		case written == "", strings.Contains(written, "…"), strings.Contains(written, "such as"), strings.Contains(written, ", or "),
			strings.Contains(written, "after the"), strings.Contains(written, "the name of"), strings.HasSuffix(written, "(value)"):
			continue // the suggestion is a sentence
		}
		if !strings.Contains(written, "#{") {
			written = "#{" + written + "}"
		}
		if _, err := keyexpr.Compile(written, schema); err != nil && strings.Contains(err.Error(), "unknown name") {
			t.Errorf("%s: the suggestion %s does not compile: %v", template, written, err)
		}
	}
}

func TestSuggestion_Argument(t *testing.T) {
	t.Parallel()
	schema := argumentSchema[order](t)
	for template, want := range map[string]string{
		`#{in.id}`:                  `in.ID`,
		`#{in.Nte}`:                 `in.Note`,
		`#{in.tags[0]}`:             `in.Tags`,
		`#{in.Shop.code}`:           `in.Shop.Code`,
		`#{in.Shop.Cde}`:            `in.Shop.Code`,
		`#{in.Items[0].sku}`:        `in.Items[0].SKU`,
		`#{map(in.Items, .sku)}`:    `.SKU`,
		`#{map(in.Items, #.Sku)}`:   `.SKU`,
		`#{in.Items.sku}`:           `map(in.Items, .SKU)`,
		`#{in.Items[0]}`:            `in.Items[0].SKU`,
		`#{first(in.Items)}`:        `first(in.Items).SKU`,
		`#{filter(in.Items, true)}`: `map(filter(in.Items, true), .SKU)`,
		`#{code}`:                   ``,
		`#{shop.code}`:              `in.Shop.Code`,
		`#{#id}`:                    `#{in.ID}`,
		`a:#order.id`:               `a:#{in.ID}`,
		`a:#order.shop.code`:        `a:#{in.Shop.Code}`,
		`a:${order.nothing}`:        `a:#{…}`,
		`#{#shop.code}`:             `#{in.Shop.Code}`,
		`#{#in.shop.code}`:          `#{in.Shop.Code}`,
		`#{in.getShop()}`:           `#{in.Shop.Code}`,
		`a:${id}`:                   `a:#{in.ID}`,
		`a:${shop.code}`:            `a:#{in.Shop.Code}`,
		`a:{{.ID}}`:                 `a:#{in.ID}`,
		`a:%d`:                      `a:#{in.`,
	} {
		got := problemOf(t, template, schema)
		if got.Suggestion != want && !(strings.HasSuffix(want, "in.") && strings.HasPrefix(got.Suggestion, want)) {
			t.Errorf("%s: %s: got %q, want %q", template, got.Message, got.Suggestion, want)
		}
	}
}

// A message lists all names if there are few. Otherwise it lists the first ones.
func TestSuggestion_Listing(t *testing.T) {
	t.Parallel()
	keyed := func(names ...string) *keyexpr.Schema {
		return schemaOf(t, keyexpr.Variable{Name: "path", Keyed: &keyexpr.Keyed{Noun: "path parameter", Known: names}})
	}
	for want, schema := range map[string]*keyexpr.Schema{
		"path parameter zz does not exist: there are none":                                              keyed(),
		"path parameter zz does not exist: there is aa":                                                 keyed("aa"),
		"path parameter zz does not exist: there are aa, bb":                                            keyed("bb", "aa"),
		"path parameter zz does not exist: there are aa, bb, cc, dd, ee, ff, gg, hh, ii, jj, kk, ll":    keyed(strings.Fields("ll kk jj ii hh gg ff ee dd cc bb aa")...),
		"path parameter zz does not exist: there are aa, bb, cc, dd, ee, ff, gg, hh, ii, jj, kk, ll, …": keyed(strings.Fields("aa bb cc dd ee ff gg hh ii jj kk ll mm nn")...),
	} {
		if got := problemOf(t, `#{path.zz}`, schema); got.Message != want {
			t.Errorf("got %q, want %q", got.Message, want)
		}
	}
}

// Literal text that merely resembles another language compiles.
func TestSuggestion_IntendedLiterals(t *testing.T) {
	t.Parallel()
	for _, template := range []string{
		`nightly-report`, `100%`, `a%zb`, `{order}`, `{order}:#{path.orderId}`, `order:unknown`, `:`, `a:b:c`, `#`, `a#`, `# a`, `a#1`, `$`, `$a`, `a$`, `{}`, `{ }`, `{a b}`, `a}b`,
		`issue #1`, `50% off`, `a:#{path.shop}:#x`, `a:#{path.shop}:%s`, `a:#{path.shop}:{orderId}`, `a:#{path.shop}:orderId`, "größe", `🔒:#{path.shop}`, `\`, `"`, `'`, `a b`,
		`a + b`, `a+b`, `'a' + 'b'`, `a+b:#{path.shop}`, `a + b:#{path.shop}`, `it's:#{path.shop}`, `'a:'#{path.shop}`, `'#{path.shop}'`, `"#{path.shop}" + x`, `'#{path.shop}'+'#{method}'`,
		`#{path.shop}+#{method}`, `a + #{path.shop}`, `#{path.shop} + a`, `+#{path.shop}+`, `a+#b:#{path.shop}`, `#{path.shop}#tag+1`, `#tag+#{path.shop}`, `. + #{path.shop} + .`, `. #{path.shop} .`, `rock 'n' + #{path.shop}`, `#{path.shop} +`, `#{"'a' + " + path.shop}`, `method.x`, `orders.pay`, `#{"path.orderId"}`, `path.orderId:#{path.shop}`,
	} {
		if _, err := keyexpr.Compile(template, requestSchema(t)); err != nil {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// Messages and suggestions work without any variable.
func TestSuggestion_EmptySchema(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`o:#{}`: "write #{…}", `o:#{id}`: "unknown name id: there are none", `o:#id`: "write o:#{…}", `o:%s`: "write o:#{…}", `o:${id}`: "write o:#{…}",
	} {
		_, err := keyexpr.Compile(template, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", template, err, want)
		}
	}
	text := schemaOf(t, keyexpr.Variable{Name: "tenant", Registered: true})
	for template, want := range map[string]string{`o:#{}`: "write #{tenant}", `o:%s`: "write o:#{tenant}", `o:{tenant}`: "write o:#{tenant}"} {
		_, err := keyexpr.Compile(template, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", template, err, want)
		}
	}
}
