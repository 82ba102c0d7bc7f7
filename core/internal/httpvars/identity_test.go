package httpvars_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// identified returns the keys of a request that contains the same id in every place.
func identified(tb testing.TB, template, body string, claims any, format ...keyexpr.Format) ([]string, error) {
	tb.Helper()
	claimed := keyexpr.Variable{Name: "claims", Type: keyexpr.TypeFor[map[string]any]()}
	v := variables(tb, httpvars.Config{PathParams: []string{"id"}, Registered: []keyexpr.Variable{claimed}})
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/?id=42", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Id", "42")
	r.AddCookie(&http.Cookie{Name: "id", Value: "42"})
	compiled, err := cmp.Or(format...).Compile(template, v.Schema())
	if err != nil {
		tb.Fatal(err)
	}
	return compiled.Keys(v.Request(r, &host{path: map[string]string{"id": "42"}, registered: []any{claims}}))
}

// One id yields one key, whatever its place in a request and its type.
func TestRequest_OneIDOneKey(t *testing.T) {
	t.Parallel()
	for _, format := range []keyexpr.Format{{}, {Strict: true}} {
		for part, body := range map[string]string{
			`path.id`: ``, `query.id`: ``, `query.id[:]`: ``, `header["X-Id"]`: ``, `cookie.id`: ``, `[path.id, 42]`: ``,
			`body.id`: `{"id": 42}`, `body["id"]`: `{"id": "42"}`, `body.id ?? "none"`: `{"id": "42"}`, `string(body.id)`: `{"id": 42}`, `int(body.id)`: `{"id": "42"}`,
			`body.ids[:]`: `{"ids": [42, "42"]}`, `map(body.items, .id)`: `{"items": [{"id": "42"}, {"id": 42}]}`,
			`keys(body)`: `{"42": 0}`, `[body.id]`: `{"id": "42"}`, `body.a ? body.id : 0`: `{"id": "42", "a": true}`,
		} {
			if got, err := identified(t, `order:#{`+part+`}:x`, body, nil, format); err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("%s of %s: got %q, %v, want order:42:x alone", part, body, got, err)
			}
		}
		for _, claim := range []any{"42", 42, uint64(42), 42.0, json.Number("42")} {
			got, err := identified(t, `order:#{claims.id}:x`, ``, map[string]any{"id": claim}, format)
			if err != nil || !slices.Equal(got, []string{"order:42:x"}) {
				t.Errorf("a claim, %T: got %q, %v, want order:42:x alone", claim, got, err)
			}
		}
	}
}

// A value that JSON writes as true, or as the name of an enum, has that text.
func TestRequest_OneTextOneKey(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{`true`: "true", `"true"`: "true", `"TYPE_BOOL"`: "TYPE_BOOL", `-7`: "-7"} {
		if got, err := identified(t, `#{body.x}`, `{"x": `+value+`}`, nil); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %q, %v, want %s", value, got, err, want)
		}
	}
	if got, err := identified(t, `#{true}`, ``, nil); err != nil || !slices.Equal(got, []string{"true"}) {
		t.Errorf("a constant: got %q, %v", got, err)
	}
}

// addressed is a router that reports an address as the client wrote it.
type addressed struct {
	host
	ip string
}

func (a *addressed) ClientIP() string { return a.ip }

func TestRequest_OneAddressOneKey(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for spelled, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "::FFFF:c000:201": "192.0.2.1",
		"2001:DB8::1": "2001%3Adb8%3A%3A1", "2001:db8:0:0:0:0:0:1": "2001%3Adb8%3A%3A1", "2001:0db8::0001": "2001%3Adb8%3A%3A1", "unknown": "unknown",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		if got, err := compile(t, v, "#{client_ip}").Key(v.Request(r, &addressed{ip: spelled})); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", spelled, got, err, want)
		}
	}
	for _, socket := range []string{"", "@", "@client", "/run/client.sock"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = socket
		for _, h := range []httpvars.Host{&addressed{ip: socket}, httpvars.NetHTTP(r)} {
			_, err := compile(t, v, "#{client_ip}").Key(v.Request(r, h))
			wantReason(t, err, keyexpr.ReasonMissing)
			if got, err := compile(t, v, `#{client_ip ?? "local"}`).Key(v.Request(r, h)); err != nil || got != "local" {
				t.Errorf("%q: got %q, %v", socket, got, err)
			}
		}
	}
	for expression, suggestion := range map[string]string{`client_ip == "2001:DB8::1"`: `"2001:db8::1"`, `client_ip in ["::ffff:10.0.0.1"]`: `"10.0.0.1"`, `method == "post"`: `"POST"`, `method in ["GET", "Put"]`: `"PUT"`} {
		_, err := keyexpr.CompileCondition(expression, v.Schema())
		if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Suggestion != suggestion {
			t.Errorf("%s: got %v, want the suggestion %s", expression, err, suggestion)
		}
	}
	for _, expression := range []string{`client_ip == ""`, `client_ip == "10.0.0.1"`, `method == "PURGE"`, `method != "GET"`} {
		if _, err := keyexpr.CompileCondition(expression, v.Schema()); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// Several spellings of a value that a parser reads as the same value have one text.
func TestRequest_OneValueManySpellings(t *testing.T) {
	t.Parallel()
	type slot struct {
		At time.Time `json:"at"`
		ID int64     `json:"id"`
	}
	v := variables(t, httpvars.Config{PathParams: []string{"id"}, Body: reflect.TypeFor[slot]()})
	for _, tt := range []struct{ template, target, body, cookie, want string }{
		{"#{body.at}", "/", `{"at": "2026-03-01T08:00:00Z"}`, "", "2026-03-01T08%3A00%3A00Z"},
		{"#{body.at}", "/", `{"at": "2026-03-01T09:00:00+01:00"}`, "", "2026-03-01T08%3A00%3A00Z"},
		{"#{body.at}", "/", `{"at": "2026-03-01T08:00:00.000Z"}`, "", "2026-03-01T08%3A00%3A00Z"},
		{"#{body.id}", "/", `{"id": 42}`, "", "42"},
		{"#{query.id}", "/?id=%34%32", "", "", "42"},
		{"#{query.id}", "/?%69d=42", "", "", "42"},
		{"#{int(query.id)}", "/?id=042", "", "", "42"},
		{"#{int(query.id)}", "/?id=%2B42", "", "", "42"},
		{"#{cookie.id}", "/", "", "id=42", "42"},
		{"#{cookie.id}", "/", "", `id="42"`, "42"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.target, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		if tt.cookie != "" {
			r.Header.Set("Cookie", tt.cookie)
		}
		if got, err := compile(t, v, tt.template).Key(v.Request(r, &host{})); err != nil || got != tt.want {
			t.Errorf("%s of %s %s %s: got %q, %v, want %q", tt.template, tt.target, tt.body, tt.cookie, got, err, tt.want)
		}
	}
	for _, target := range []string{"/?id=42+", "/?id=%2042", "/?id=42%C2%A0"} {
		_, err := compile(t, v, "#{query.id}").Key(v.Request(httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody), &host{}))
		wantReason(t, err, keyexpr.ReasonCharacter)
	}
}

// The case of a host does not change the key, so that a client cannot choose among several keys.
func TestRequest_OneHostOneKey(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, name := range []string{"shop.example:8080", "Shop.Example:8080"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Host = name
		for _, template := range []string{`#{header.Host}`, `#{header["host"]}`} {
			if got, err := compile(t, v, template).Key(v.Request(r, &host{})); err != nil || got != "shop.example%3A8080" {
				t.Errorf("%s of %s: got %q, %v", template, name, got, err)
			}
		}
	}
	_, err := keyexpr.CompileCondition(`header.Host in ["Shop.example"]`, v.Schema())
	if problem, ok := errors.AsType[*keyexpr.Error](err); !ok || problem.Suggestion != `"shop.example"` {
		t.Errorf("got %v", err)
	}
}
