package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestKey_Body(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, []byte(`{"sku": "of a file"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, stdin, data, want string }{
		{"argument", "", `{"sku": "given"}`, "order:given"},
		{"file", "", "@" + file, "order:of a file"},
		{"standard input", `{"sku": "typed"}`, "@-", "order:typed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := interlock(t, c.stdin, "key", "-d", c.data, "testdata/sampled.yaml", "POST /orders/42/pay")
			if got.code != exitFine || !strings.Contains(got.stdout, "  key   "+c.want+"\n") {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The advised command can be pasted into a shell, whatever the name of the function is.
func TestKey_AdviceForShell(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"close-day", "close the year", "it's (*Orders).Close", `$HOME "a" \\ b`, "POST /orders", "/shop.Orders/Pay"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := fmt.Sprintf("rules:\n- {func: %q, key: a}\n", name)
			advised := interlock(t, rules, "key", "-", "func: "+name+"x")
			_, after, _ := strings.Cut(advised.stderr, "did you mean ")
			word, _, found := strings.Cut(after, "?\n")
			if !found {
				t.Fatalf("got %s", advised)
			}
			pasted, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+word).Output()
			if err != nil || string(pasted) != "func: "+name {
				t.Fatalf("a shell reads %q from %s: %v", pasted, word, err)
			}
			if got := interlock(t, rules, "key", "-", string(pasted)); got.code != exitFine || !strings.Contains(got.stdout, "key  a\n") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestKey_OrderOfFlags(t *testing.T) {
	t.Parallel()
	want := interlock(t, "", "key", "testdata/locks.yaml", "POST /orders/42/pay", "--prefix", "shop:", "--hash")
	if want.code != exitFine {
		t.Fatalf("got %s", want)
	}
	for _, args := range [][]string{
		{"key", "--prefix", "shop:", "--hash", "testdata/locks.yaml", "POST /orders/42/pay"},
		{"key", "--hash", "testdata/locks.yaml", "--prefix=shop:", "POST /orders/42/pay"},
	} {
		if got := interlock(t, "", args...); got != want {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}
}

// The command passes the request to the real router and guard, so both affect the key.
func TestKey_RequestOfAdapter(t *testing.T) {
	t.Parallel()
	const rules = `rules:
  - {http: "GET /reports/{id}", key: "report:#{path.id}"}
  - {http: "POST /login", key: "login:#{client_ip}"}
  - {grpc: "/shop.v1.Orders/Cancel", key: "cancel:#{peer}"}
`
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"HEAD is served by the handler of GET": {[]string{"HEAD /reports/7"}, "key      report:7"},
		"an address has one form":              {[]string{"POST /login", "--var", "client_ip=::ffff:192.0.2.7"}, "key        login:192.0.2.7"},
		"a peer has no port":                   {[]string{"/shop.v1.Orders/Cancel", "--var", "peer=192.0.2.7:5050"}, "key   cancel:192.0.2.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := interlock(t, rules, append([]string{"key", "-"}, c.args...)...); got.code != exitFine || !strings.Contains(got.stdout, "  "+c.want+"\n") {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A path may contain the characters that begin a parameter.
func TestKey_PathWithColons(t *testing.T) {
	t.Parallel()
	const rules = `rules: [{http: "POST /files/*", key: "#{query.x}"}]`
	for target, want := range map[string]string{
		"/files/a:b/{c}*?x=1": "key      1\n",
		"/other/a:b?x=1":      "no rule matches http POST /other/a:b\n",
	} {
		if got := interlock(t, rules, "key", "-", "POST "+target); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}

// key refuses a body that the program cannot decode into its type.
func TestKey_TypedBody(t *testing.T) {
	t.Parallel()
	const rules = `rules: [{http: "POST /cart", key: "cart:#{body.sku}"}]`
	for body, want := range map[string]string{
		`{"SKU": "a"}`: "key   cart:a\n",
		`{"sku": 5}`:   "no key  body.sku needs a body of JSON: sku is not of type string\n",
	} {
		if got := interlock(t, rules, "key", "-", "POST /cart", "--routes", "testdata/routes.json", "-d", body); !strings.Contains(got.stdout, want) {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
}
