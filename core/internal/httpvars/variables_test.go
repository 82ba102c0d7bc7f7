package httpvars_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// sending describes a request of a table test.
type sending struct {
	method, target, contentType, body string
	header                            http.Header
	cookies                           string
}

func (s sending) request(tb testing.TB) *http.Request {
	tb.Helper()
	method, target := s.method, s.target
	if method == "" {
		method = http.MethodPost
	}
	if target == "" {
		target = "/"
	}
	r := httptest.NewRequestWithContext(tb.Context(), method, target, strings.NewReader(s.body))
	maps.Copy(r.Header, s.header)
	if s.contentType != "" {
		r.Header.Set("Content-Type", s.contentType)
	}
	if s.cookies != "" {
		r.Header.Set("Cookie", s.cookies)
	}
	return r
}

// outcome returns the keys that an expression yields for a request, or "!" and the reason.
func outcome(tb testing.TB, v *httpvars.Variables, expression string, r *http.Request) string {
	tb.Helper()
	keys, err := compile(tb, v, "#{"+expression+"}").Keys(v.Request(r, httpvars.NetHTTP(r)))
	if err == nil {
		return strings.Join(keys, " ")
	}
	failure, ok := err.(*keyexpr.EvalError) //nolint:errorlint // documented to be one
	if !ok {
		tb.Fatalf("%s: %v is not an *EvalError", expression, err)
	}
	return "!" + failure.Reason.String()
}

// bodyOutcome returns the outcome of an expression for a body, which must not depend on whether the request has a
// ContentLength. It checks that the handler can read the whole body.
func bodyOutcome(tb testing.TB, v *httpvars.Variables, expression string, s sending) string {
	tb.Helper()
	got := outcome(tb, v, expression, s.request(tb))
	for _, r := range []*http.Request{s.request(tb), chunked(s.request(tb))} {
		if again := outcome(tb, v, expression, r); again != got {
			tb.Errorf("%s of %+v: got %q, and %q with length %d", expression, s, got, again, r.ContentLength)
		}
		if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != s.body {
			tb.Errorf("%s of %+v: the handler reads %q, %v", expression, s, rest, err)
		}
	}
	return got
}

func TestRequest_Query(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, tt := range []struct{ target, expression, want string }{
		{"/?id=1", `query.id`, "1"},
		{"/?id=", `query.id`, "!empty"},
		{"/?id", `query.id`, "!empty"},
		{"/", `query.id`, "!missing"},
		{"/?ID=1", `query.id`, "!repeated"}, // some handlers read it
		{"/?id=1&id=2", `query.id`, "!repeated"},
		{"/?id=1&id=1", `query.id`, "!repeated"},
		{"/?id=1&id=2", `query.id[1]`, "2"},
		{"/?id=1&id=2", `query.id[2]`, "!missing"},
		{"/?id=2&id=1&id=2", `query.id[:]`, "1 2"},
		{"/?id=1&id=", `query.id[:]`, "!empty"},
		{"/?a%20b=1", `query["a b"]`, "1"},
		{"/?id=a%2Fb", `query.id`, "a/b"},
		{"/?id=a%3Ab", `query.id`, "a%3Ab"},
		{"/?id=a+b", `query.id`, "a b"},
		{"/?id=%zz", `query.id`, "!missing"},
		{"/?id=%zz&id=1", `query.id`, "1"},
		{"/?id=1;x=2", `query.id`, "!missing"}, // net/http refuses semicolons
		{"/?ids=1,2", `split(query.ids, ",")`, "1 2"},
		{"/?f[id]=1", `query["f[id]"]`, "1"},
		{"/?id=1", `query.none ?? query.id`, "1"},
		{"/?id=1", `query.id == "1" ? "one" : "other"`, "one"},
		{"/?id=%C3%BC", `query.id`, "ü"},
		{"/?id=%FF", `query.id`, "%FF"},
		{"/?id=%00", `query.id`, "%00"},
	} {
		if got := outcome(t, v, tt.expression, (sending{target: tt.target}).request(t)); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.expression, tt.target, got, tt.want)
		}
	}
}

func TestRequest_HeadersAndCookies(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, tt := range []struct {
		sent             sending
		expression, want string
	}{
		{sending{header: http.Header{"X-Id": {"1"}}}, `header["X-Id"]`, "1"},
		{sending{header: http.Header{"X-Id": {"1"}}}, `header["x-id"]`, "1"},
		{sending{header: http.Header{"X-Id": {"1"}}}, `header["X-ID"]`, "1"},
		{sending{header: http.Header{"X-Id": {"1", "2"}}}, `header["X-Id"]`, "!repeated"},
		{sending{header: http.Header{"X-Id": {"1", "2"}}}, `header["X-Id"][:]`, "1 2"},
		{sending{header: http.Header{"X-Id": {""}}}, `header["X-Id"]`, "!empty"},
		{sending{header: http.Header{"X-Id": {}}}, `header["X-Id"]`, "!missing"},
		{sending{header: http.Header{"Etag": {`"a"`}}}, `header.ETag`, `"a"`},
		{sending{target: "http://shop.example/"}, `header.Host`, "shop.example"},
		{sending{target: "http://shop.example:8080/"}, `header.host`, "shop.example%3A8080"},
		{sending{contentType: "text/plain"}, `header["Content-Type"]`, "text/plain"},
		{sending{cookies: "a=1; b=2"}, `cookie.a`, "1"},
		{sending{cookies: "a=1; b=2"}, `cookie.b + cookie.a`, "21"},
		{sending{cookies: "a=1; b=2"}, `cookie.a + cookie.b + cookie.a`, "121"},
		{sending{cookies: "a=1; a=2"}, `cookie.a`, "!repeated"},
		{sending{cookies: "a=1; a=2"}, `cookie.a[1]`, "2"},
		{sending{cookies: "a=1; a=2"}, `cookie.a[:]`, "1 2"},
		{sending{cookies: "a=1; a=2"}, `cookie.a[2]`, "!missing"},
		{sending{cookies: "A=1"}, `cookie.a`, "!repeated"},
		{sending{cookies: "a="}, `cookie.a`, "!empty"},
		{sending{cookies: `a="quoted"`}, `cookie.a`, "quoted"},
		{sending{}, `cookie.a ?? "none"`, "none"},
		{sending{method: http.MethodDelete}, `method`, "DELETE"},
		{sending{}, `client_ip`, "192.0.2.1"},
		{sending{}, `route`, "!empty"},
	} {
		if got := outcome(t, v, tt.expression, tt.sent.request(t)); got != tt.want {
			t.Errorf("%s of %+v: got %q, want %q", tt.expression, tt.sent, got, tt.want)
		}
	}
}

// The content type and the bytes of a body decide whether it is used. ContentLength does not.
func TestRequest_BodyByContentType(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	const document, form = `{"id": 7}`, "id=7&id=8&x="
	for _, tt := range []struct {
		method, contentType, body, expression, want string
	}{
		{"POST", "application/json", document, `body.id`, "7"},
		{"POST", "application/json; charset=utf-8", document, `body.id`, "7"},
		{"POST", "APPLICATION/JSON", document, `body.id`, "7"},
		{"POST", "application/problem+json", document, `body.id`, "7"},
		{"POST", "application/vnd.shop.v1+json", document, `body.id`, "7"},
		{"GET", "application/json", document, `body.id`, "7"},
		{"DELETE", "application/json", document, `body.id`, "7"},
		{"POST", "text/json", document, `body.id`, "!unsupported_media"},
		{"POST", "text/plain", document, `body.id`, "!unsupported_media"},
		{"POST", "", document, `body.id`, "!unsupported_media"},
		{"POST", "application/json;;", document, `body.id`, "!unsupported_media"},
		{"POST", "application/x-www-form-urlencoded", form, `body.id`, "!unsupported_media"},
		{"POST", "", "", `body.id`, "!missing"},
		{"POST", "text/plain", "", `body.id`, "!missing"},
		{"POST", "application/json", "", `body.id`, "!missing"},
		{"POST", "application/json", " ", `body.id`, "!bad_body"},
		{"POST", "application/json", "{", `body.id`, "!bad_body"},
		{"POST", "application/json", `{"id": 7} {}`, `body.id`, "!bad_body"},
		{"POST", "application/json", `{"id": 7, "ID": 8}`, `body.id`, "!bad_body"},
		{"POST", "application/json", "null", `body.id`, "!missing"},
		{"POST", "application/json", "null", `body`, "!missing"},
		{"POST", "application/json", `"text"`, `body`, "text"},
		{"POST", "application/json", `[1, 2]`, `body[:]`, "1 2"},
		{"POST", "application/json", `7`, `body`, "7"},
		{"POST", "application/json", " \n{\"id\": 1}\n ", `body.id`, "1"},
		{"POST", "application/json", "{\"id\": \"\xff\"}", `body.id`, "!bad_body"},
		{"POST", "application/json", strings.Repeat("[", 5000), `body.id`, "!bad_body"},
		{"POST", "application/json", "]", `body.id`, "!bad_body"},
		{"POST", "application/json; =", document, `body.id`, "!unsupported_media"},
		{"POST", "application/json", document, `form.id`, "!unsupported_media"},
		{"POST", "application/x-www-form-urlencoded", form, `form.id`, "!repeated"},
		{"POST", "application/x-www-form-urlencoded", form, `form.id[0]`, "7"},
		{"POST", "application/x-www-form-urlencoded", form, `form.id[:]`, "7 8"},
		{"POST", "application/x-www-form-urlencoded", form, `form.x`, "!empty"},
		{"POST", "application/x-www-form-urlencoded", form, `form.nope`, "!missing"},
		{"POST", "application/x-www-form-urlencoded; charset=utf-8", form, `form.id[1]`, "8"},
		{"PUT", "application/x-www-form-urlencoded", form, `form.id[0]`, "7"},
		{"PATCH", "application/x-www-form-urlencoded", form, `form.id[0]`, "7"},
		{"DELETE", "application/x-www-form-urlencoded", form, `form.id[0]`, "!missing"},
		{"GET", "application/x-www-form-urlencoded", form, `form.id[0]`, "!missing"},
		{"POST", "application/x-www-form-urlencoded", "id=%zz", `form.id`, "!bad_body"},
		{"POST", "application/x-www-form-urlencoded", "a;b=1", `form.id`, "!bad_body"},
		{"POST", "application/x-www-form-urlencoded", "", `form.id`, "!missing"},
		{"POST", "application/x-www-form-urlencoded", "id=a%20b", `form.id`, "a b"},
		{"POST", "multipart/form-data", "x", `form.id`, "!bad_body"},
		{"POST", "multipart/form-data", formParts, `form.id`, "!bad_body"}, // without a boundary
		{"POST", multipart1, formParts, `form.id`, "body"},
		{"POST", multipart1, formParts[:20], `form.id`, "!bad_body"},
		{"POST", multipart1, "nothing of the kind", `form.id`, "!bad_body"},
		{"POST", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n7\r\n--b--\r\n", `form.id`, "7"},
		{"GET", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n7\r\n--b--\r\n", `form.id`, "7"},
		{"POST", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n7\r\n--b--\r\n", `form.f`, "!missing"},
		{"POST", "multipart/form-data; boundary=b", "--b\r\n", `form.id`, "!missing"},
		{"POST", "multipart/form-data; boundary=c", "--b--\r\n", `form.id`, "!bad_body"},
		{"POST", "", "", `form.id ?? "none"`, "none"},
	} {
		if got := bodyOutcome(t, v, tt.expression, sending{method: tt.method, contentType: tt.contentType, body: tt.body}); got != tt.want {
			t.Errorf("%s of %s %q %.40q: got %q, want %q", tt.expression, tt.method, tt.contentType, tt.body, got, tt.want)
		}
	}
}

// ServeMux supplies the path and the route, and the connection supplies the address.
func TestNetHTTP_ServeMux(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{PathParams: []string{"id", "rest"}})
	for _, tt := range []struct{ pattern, target, remote, expression, want string }{
		{"/orders/{id}", "/orders/7", "", `path.id`, "7"},
		{"/orders/{id}", "/orders/a%2Fb", "", `path.id`, "a/b"},
		{"/orders/{id}", "/orders/7", "", `route`, "/orders/%7Bid%7D"},
		{"POST /orders/{id}", "/orders/7", "", `path.id`, "7"},
		{"POST /orders/{id}", "/orders/7", "", `route`, "POST /orders/%7Bid%7D"},
		{"/files/{rest...}", "/files/a/b", "", `path.rest`, "a/b"},
		{"/orders/{id}", "/orders/7", "", `path.rest`, "!empty"},
		{"/", "/", "203.0.113.9:1234", `client_ip`, "203.0.113.9"},
		{"/", "/", "[2001:db8::1]:1234", `client_ip`, "2001%3Adb8%3A%3A1"},
		{"/", "/", "[::ffff:203.0.113.9]:1234", `client_ip`, "203.0.113.9"},
		{"/", "/", "unix.sock:1", `client_ip`, "unix.sock"},
		{"/", "/", "@", `client_ip`, "!missing"},
	} {
		mux := http.NewServeMux()
		got := "not served"
		mux.HandleFunc(tt.pattern, func(_ http.ResponseWriter, r *http.Request) { got = outcome(t, v, tt.expression, r) })
		r := (sending{target: tt.target}).request(t)
		if tt.remote != "" {
			r.RemoteAddr = tt.remote
		}
		mux.ServeHTTP(httptest.NewRecorder(), r)
		if got != tt.want {
			t.Errorf("%s of %s at %s from %s: got %q, want %q", tt.expression, tt.target, tt.pattern, tt.remote, got, tt.want)
		}
	}
}

// A typed body is decoded with the names and types of the struct.
func TestRequest_TypedBody(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{Body: typedBody})
	for _, tt := range []struct{ body, expression, want string }{
		{`{"id": 7}`, `body.id`, "7"},
		{`{"ID": 7}`, `body.id`, "7"},
		{`{"id": 9007199254740993}`, `body.id`, "9007199254740993"},
		{`{"id": 0}`, `body.id`, "!missing"},
		{`{}`, `body.id`, "!missing"},
		{`{}`, `body.id ?? 0`, "0"},
		{`{"id": "7"}`, `body.id`, "!bad_body"},
		{`{"id": 7.5}`, `body.id`, "!bad_body"},
		{`{"id": null}`, `body.id`, "!missing"},
		{`{"quoted": "42"}`, `body.quoted`, "42"},
		{`{"quoted": "042"}`, `body.quoted`, "42"},
		{`{"id": 7} x`, `body.id`, "!bad_body"},
		{`{"note": "12"}`, `body.note`, "12"}, // a string
		{`{"note": "n"}`, `body.note`, "n"},
		{`{"note": null}`, `body.note ?? "none"`, "none"},
		{`{"note": ""}`, `body.note`, "!empty"},
		{`{"items": [{"sku": "b"}, {"sku": "a"}]}`, `map(body.items, .sku)`, "a b"},
		{`{"items": []}`, `map(body.items, .sku)`, "!empty"},
		{`{"items": [{}]}`, `map(body.items, .sku)`, "!empty"},
		{`{"items": [null]}`, `map(body.items, .sku)`, "!empty"},
		{`{"labels": {"k": "v"}}`, `body.labels.k`, "v"},
		{`{"labels": {"K": "v"}}`, `body.labels.k`, "!missing"}, // the case of names in a map matters
		{`{"labels": {"k": "v", "K": "w"}}`, `body.labels.k`, "!bad_body"},
		{`{"any": {"x": [1, "y"]}}`, `body.any.x[:]`, "1 y"},
		{`{"any": 5.0}`, `body.any`, "!wrong_type"},
		{`{"unknown": 1, "id": 7}`, `body.id`, "7"},
		{`[]`, `body.id`, "!bad_body"},
		{`null`, `body.id`, "!missing"},
		{``, `body.id`, "!missing"},
	} {
		if got := bodyOutcome(t, v, tt.expression, sending{contentType: "application/json", body: tt.body}); got != tt.want {
			t.Errorf("%s of %s: got %q, want %q", tt.expression, tt.body, got, tt.want)
		}
	}
}

// The error of a bad body does not show the text of the request that encoding/json quotes.
func TestRequest_BadBodyShowsNoValue(t *testing.T) {
	t.Parallel()
	for _, config := range []httpvars.Config{{}, {Body: typedBody}} {
		v := variables(t, config)
		for _, body := range []string{`{"id": "5ecret"}`, `{"id": 7.5123}`, `{"id": 5ecret}`, `"5ecret"`, `{"note": ["5ecret"]}`, `{"items": "5ecret"}`, `{"5ecret": 1, "5ECRET": 2}`} {
			r := (sending{contentType: "application/json", body: body}).request(t)
			_, err := compile(t, v, `#{body.id}`).Key(v.Request(r, httpvars.NetHTTP(r)))
			if err != nil && (strings.Contains(err.Error(), "5ecret") || strings.Contains(err.Error(), "7.5123")) {
				t.Errorf("%s: got %v", body, err)
			}
		}
	}
}

var typedBody = reflect.TypeFor[struct {
	ID     int64   `json:"id"`
	Quoted int64   `json:"quoted,string"`
	Note   *string `json:"note"`
	Items  []struct {
		SKU string `json:"sku"`
	} `json:"items"`
	Labels map[string]string `json:"labels"`
	Any    any               `json:"any"`
}]()
