package readmetest_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/keyexpr"
)

// The signature of the Java method in the tables, and the arguments.
const javaMethod, javaClass = "pay", "com.shop.OrderService"

var javaValue = strings.NewReplacer("#orderId", "42", "#userId", "7", "orderId", "42", "userId", "7")

var (
	javaName   = regexp.MustCompile(`name = "([^"]*)"`)
	javaKeys   = regexp.MustCompile(`keys = \{([^}]*)\}`)
	javaQuoted = regexp.MustCompile(`"([^"]*)"`)
	javaKey    = regexp.MustCompile(`(?:key = "|getLock\()(.*?)"?\)$`)
)

// annotation reads the name and the values of keys.
func annotation(java string) (name string, values []string) {
	if m := javaName.FindStringSubmatch(java); m != nil {
		name = m[1]
	}
	if m := javaKeys.FindStringSubmatch(java); m != nil {
		for _, key := range javaQuoted.FindAllStringSubmatch(m[1], -1) {
			values = append(values, javaValue.Replace(key[1]))
		}
	}
	return name, values
}

// klockKey returns the key that klock 1.5 builds.
func klockKey(java string) string {
	name, values := annotation(java)
	if name == "" {
		name = javaClass + "." + javaMethod
	}
	return "lock." + name + strings.Join(values, "-")
}

// lock4jKey returns the key that lock4j 2.2.1 to 2.2.7 builds. For a row marked "up to 2.2.0" it returns the key of
// 2.1.0 and 2.2.0.
func lock4jKey(java string) string {
	if strings.HasPrefix(java, "lockTemplate") {
		return javaQuoted.FindStringSubmatch(java)[1]
	}
	name, values := annotation(java)
	switch {
	case strings.Contains(java, "up to 2.2.0"):
		name = javaClass + "." + javaMethod
	case name == "":
		name = javaClass + javaMethod
	}
	return "lock4j:" + name + "#" + strings.Join(values, ".")
}

// redissonKey returns the name given to getLock: a concatenation of strings and variables, or a SpEL template.
func redissonKey(java string) string {
	expression := javaKey.FindStringSubmatch(java)[1]
	if strings.Contains(expression, "#{") {
		return javaValue.Replace(strings.NewReplacer("#{", "", "}", "").Replace(expression))
	}
	key := ""
	for term := range strings.SplitSeq(expression, " + ") {
		if text := strings.Trim(term, `'"`); text != term {
			key += text
		} else {
			key += javaValue.Replace(term)
		}
	}
	return key
}

// TestMigration_Keys compares the key of the Java library with the key of the template in the table.
func TestMigration_Keys(t *testing.T) {
	t.Parallel()
	for heading, java := range map[string]func(string) string{
		"Redisson, and an annotation of your own": redissonKey, "klock": klockKey, "lock4j": lock4jKey,
	} {
		for _, row := range rows(t, migrating, heading) {
			want := plain(row[1])
			if got := java(plain(row[0])); got != want {
				t.Errorf("%s: %s yields %q, the table says %q", heading, row[0], got, want)
			}
			if got, err := httpKey(t, plain(row[2])); got != want || err != nil {
				t.Errorf("%s: %s yields %q, %v, want %q", heading, row[2], got, err, want)
			}
		}
	}
}

const order = `{"userId": 7, "id": "12", "none": null, "ratio": 1.50, "user": {"name": "ada"}, "vip": true, "items": [{"sku": "b"}]}`

// httpKey evaluates a strict template for POST /orders/42/pay.
func httpKey(t *testing.T, template string) (string, error) {
	t.Helper()
	vars, err := httpvars.New(httpvars.Config{
		PathParams: []string{"orderId", "id"},
		Registered: []keyexpr.Variable{{Name: "peer_service"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := keyexpr.Format{Strict: true}.Compile(template, vars.Schema())
	if err != nil {
		return "", err
	}
	r := httptest.NewRequest(http.MethodPost, "/orders/42/pay?email=Ada@Shop.example&dash=a-b&colon=a:b&shard=", strings.NewReader(order))
	r.Header.Set("Content-Type", "application/json")
	r.SetPathValue("orderId", "42")
	r.SetPathValue("id", "042")
	return compiled.Key(vars.Request(r, httpvars.NetHTTP(r)))
}

type argument struct {
	OrderID, Email string
	Req            struct {
		UserID int64
		Items  []struct{ SKU string }
		Shard  *string
		User   *struct{ Name string }
		Vip    bool
	}
}

// functionKey evaluates a strict template for a call with the same values.
func functionKey(t *testing.T, template string) (string, error) {
	t.Helper()
	schema, err := keyexpr.Argument(reflect.TypeFor[argument]())
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := keyexpr.Format{Strict: true}.Compile(template, schema)
	if err != nil {
		return "", err
	}
	in := argument{OrderID: "42", Email: "Ada@Shop.example"}
	in.Req.UserID, in.Req.Vip = 7, true
	in.Req.Items = []struct{ SKU string }{{"b"}}
	in.Req.User = &struct{ Name string }{"ada"}
	return compiled.Key(keyexpr.Values{&in})
}

func TestMigration_SpEL(t *testing.T) {
	t.Parallel()
	for _, row := range rows(t, migrating, "From SpEL to key expressions") {
		want := plain(row[3])
		if got, err := httpKey(t, "#{"+plain(row[1])+"}"); got != want || err != nil {
			t.Errorf("Gin, %s: got %q, %v, want %q", row[1], got, err, want)
		}
		if got, err := functionKey(t, "#{"+plain(row[2])+"}"); got != want || err != nil {
			t.Errorf("function, %s: got %q, %v, want %q", row[2], got, err, want)
		}
		if got, err := httpKey(t, "#{"+plain(row[0])+"}"); err == nil && plain(row[0]) != plain(row[1]) {
			t.Errorf("SpEL %s yields %q, want an error", row[0], got)
		}
	}
}

// TestMigration_StrictKeys tests the values that the text mentions.
func TestMigration_StrictKeys(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`#{int(path.id)}`: "42",
		`#{path.id}`:      "042",
		`#{query.shard == "" ? "0" : query.shard}`:            "0",
		`lock.pay#{query.dash + "-" + string(body.userId)}`:   "lock.paya-b-7",
		`lock.pay#{path.orderId + "-" + string(body.userId)}`: "lock.pay42-7",
		`#{lower(query.dash)}`:                                "a-b",
		`#{"order:" + path.orderId}`:                          "order:42",
		`lock.pay#{query.colon}`:                              "",
		`lock.pay#{query.colon + "-" + string(body.userId)}`:  "",
		`#{string(body.id)}`:                                  "12",
		`lock.pay#{query.dash}-#{body.userId}`:                "",   // the separator in a value
		`#{body.id}`:                                          "12", // a string that reads like a number
		`#{body.none}`:                                        "",
		`#{query.shard}`:                                      "",
		`#{query.shard ?? "0"}`:                               "",
		`#{body.ratio}`:                                       "",
		`#{path.orderId}` + strings.Repeat("x", 512):          "",
		`#{path.orderId}#{body.userId}`:                       "",
		`#{T(java.lang.Math).abs(1)}`:                         "",
		`#{@bean.id}`:                                         "",
		`#{#root.args[0]}`:                                    "",
	} {
		if got, err := httpKey(t, template); got != want || (err == nil) != (want != "") {
			t.Errorf("%.60s: got %q, %v, want %q", template, got, err, want)
		}
	}
}

// TestMigration_Flag evaluates the condition in the text: the server trusts only the order service when a
// caller claims to hold the lock.
func TestMigration_Flag(t *testing.T) {
	t.Parallel()
	condition := ""
	for _, b := range blocks(t, "yaml", migrating) {
		if set, err := ruleset.Load("flag", []byte(b.code)); err == nil && set.Rules()[0].When != "" {
			condition = set.Rules()[0].When
		}
	}
	vars, err := httpvars.New(httpvars.Config{Registered: []keyexpr.Variable{{Name: "peer_service"}}})
	if err != nil {
		t.Fatal(err)
	}
	when, err := keyexpr.CompileCondition(condition, vars.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		held, peer string
		want       bool
	}{{"order", "orders", false}, {"order", "stranger", true}, {"order", "none", true}, {"stock", "orders", true}, {"", "orders", true}} {
		r := httptest.NewRequest(http.MethodPost, "/stock/reserve", http.NoBody)
		if c.held != "" {
			r.Header.Set("X-Lock-Held", c.held)
		}
		got, err := when.Eval(vars.Request(r, host{httpvars.NetHTTP(r), c.peer}))
		if got != c.want || err != nil {
			t.Errorf("held %q, peer %q: got %t, %v, want %t", c.held, c.peer, got, err, c.want)
		}
	}
}

// host supplies the variables of a request by an authenticated service.
type host struct {
	httpvars.Host
	peer string
}

func (h host) Registered(int) (any, error) { return h.peer, nil }
