package httpvars_test

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// countingBody counts how often it was read to its end.
type countingBody struct {
	io.Reader
	ends   int
	closed bool
}

func (c *countingBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil {
		c.ends++
	}
	return n, err
}

func (c *countingBody) Close() error {
	c.closed = true
	return nil
}

var errGone = errors.New("the client is gone")

// failingBody is that of a client that left.
type failingBody struct{}

func (failingBody) Read([]byte) (int, error) { return 0, errGone }

type payment struct {
	ID    int64   `json:"id"`
	User  *user   `json:"user"`
	Items []line  `json:"items"`
	Total float64 `json:"total"`
}

type user struct {
	Name string `json:"name"`
}

type line struct {
	SKU string `json:"sku"`
}

func post(tb testing.TB, contentType, body string) *http.Request {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), http.MethodPost, "/", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

// chunked makes the length of a body unknown.
func chunked(r *http.Request) *http.Request {
	r.ContentLength = -1
	r.TransferEncoding = []string{"chunked"}
	return r
}

// The largest number there is stands for no limit.
func TestBody_WithoutALimit(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{MaxBody: math.MaxInt64})
	const body = `{"id": "abc"}`
	r := chunked(post(t, "application/json", body))
	if key, err := compile(t, v, `#{body.id}`).Key(v.Request(r, &host{})); err != nil || key != "abc" {
		t.Errorf("got %q, %v", key, err)
	}
	if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != body {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
}

func TestBody_TooLarge(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{MaxBody: 16})
	template := compile(t, v, `#{body.id}`)
	fits, over := `{"id":    "abc"}`, `{"id":     "abc"}`
	for name, change := range map[string]func(*http.Request) *http.Request{"length": func(r *http.Request) *http.Request { return r }, "chunked": chunked} {
		if key, err := template.Key(v.Request(change(post(t, "application/json", fits)), &host{})); err != nil || key != "abc" {
			t.Errorf("%s: a body of the limit: got %q, %v", name, key, err)
		}
		r := change(post(t, "application/json", over))
		q := v.Request(r, &host{})
		_, err := template.Key(q)
		wantReason(t, err, keyexpr.ReasonTooLarge)
		wantReason(t, q.Buffer(), keyexpr.ReasonTooLarge)
		if _, ok := q.Body(); ok {
			t.Errorf("%s: a body over the limit is offered", name)
		}
		if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != over {
			t.Errorf("%s: the handler reads %q, %v", name, rest, err)
		}
	}
	r := chunked(post(t, "application/json", over))
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 4)
	_, err := template.Key(v.Request(r, &host{}))
	wantReason(t, err, keyexpr.ReasonTooLarge)
}

func TestBody_DefaultLimit(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	text := func(n int) string { return `{"id": "x", "pad": "` + strings.Repeat("p", n) + `"}` }
	frame := len(text(0))
	template := compile(t, v, `#{body.id}`)
	if _, err := template.Key(v.Request(post(t, "application/json", text(httpvars.DefaultMaxBody-frame)), &host{})); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	_, err := template.Key(v.Request(post(t, "application/json", text(httpvars.DefaultMaxBody-frame+1)), &host{}))
	wantReason(t, err, keyexpr.ReasonTooLarge)
}

func TestBody_ClientGone(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.MultiReader(strings.NewReader(`{"id"`), failingBody{}))
	r.Header.Set("Content-Type", "application/json")
	_, err := compile(t, v, `#{body.id}`).Key(v.Request(r, &host{}))
	wantReason(t, err, keyexpr.ReasonBadBody)
	if !errors.Is(err, errGone) {
		t.Errorf("%v does not wrap the cause", err)
	}
	rest, err := io.ReadAll(r.Body)
	if string(rest) != `{"id"` || !errors.Is(err, errGone) {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
}

func TestRequest_Buffer(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	body := &countingBody{Reader: strings.NewReader("anything")}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	q := v.Request(r, &host{})
	if _, ok := q.Body(); ok {
		t.Error("a body that has not been read is offered")
	}
	for range 2 {
		if err := q.Buffer(); err != nil {
			t.Fatal(err)
		}
	}
	if content, ok := q.Body(); !ok || string(content) != "anything" {
		t.Errorf("got %q, %v", content, ok)
	}
	rest, err := io.ReadAll(r.Body)
	if err != nil || string(rest) != "anything" || body.ends != 1 {
		t.Errorf("the handler reads %q, %v; the original was read %d times", rest, err, body.ends)
	}
	if err := r.Body.Close(); err != nil || !body.closed {
		t.Error("the original body is not closed")
	}
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		r := &http.Request{Body: none}
		if err := v.Request(r, &host{}).Buffer(); err != nil {
			t.Errorf("no body: %v", err)
		}
	}
}

// The status of a bad body does not depend on its being compared in a condition.
func TestBody_Condition(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	condition := compileCondition(t, v, `body.dry == ""`)
	if ok, err := condition.Eval(v.Request(post(t, "", ""), &host{})); err != nil || !ok {
		t.Errorf("no body: got %v, %v", ok, err)
	}
	_, err := condition.Eval(v.Request(post(t, "application/json", "{"), &host{}))
	wantReason(t, err, keyexpr.ReasonBadBody)
}

func TestBody_TypedErrors(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{Body: reflect.TypeFor[payment]()})
	for template, suggestion := range map[string]string{
		`#{body.ID}`: "body.id", `#{body.user}`: "body.user.name", `#{body.user.nam}`: "body.user.name", `#{body.total}`: "",
		`#{map(body.items, .SKU)}`: ".sku", `#{id}`: "body.id",
	} {
		_, err := keyexpr.Compile(template, v.Schema())
		problem, ok := errors.AsType[*keyexpr.Error](err)
		if !ok || problem.Suggestion != suggestion {
			t.Errorf("%s: got %v, want the suggestion %q", template, err, suggestion)
		}
	}
}

// FuzzBody reads any body without a panic and leaves it to the handler.
func FuzzBody(f *testing.F) {
	f.Add("application/json", `{"id": 1, "a": [1, "x", null, {"b": 1e9}]}`)
	f.Add("application/x-www-form-urlencoded", `id=1&x=%20`)
	f.Add("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n1\r\n--x--\r\n")
	v, err := httpvars.New(httpvars.Config{MaxBody: 256})
	if err != nil {
		f.Fatal(err)
	}
	templates := []*keyexpr.Template{compile(f, v, `#{body.id}:#{body.a[0].b ?? "x"}`), compile(f, v, `#{form.id}`)}
	f.Fuzz(func(t *testing.T, contentType, body string) {
		for _, template := range templates {
			r := chunked(post(t, contentType, body))
			if _, err := template.Key(v.Request(r, &host{})); err != nil {
				if _, ok := errors.AsType[*keyexpr.EvalError](err); !ok {
					t.Fatalf("%v is no *EvalError", err)
				}
			}
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != body {
				t.Fatalf("the handler reads %q, %v, want %q", rest, err, body)
			}
		}
	})
}

// The media type says how a form is read, as for the handler: a boundary that a
// client adds to another one would let it choose a key that its request is not for.
func TestBody_FormIsReadAsTheHandlerReadsIt(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	form := "--X\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n1\r\n--X--\r\n&id=2"
	for contentType, body := range map[string]string{
		"application/x-www-form-urlencoded; boundary=X": form,
		"multipart/form-data":                           "id=1",
	} {
		_, err := compile(t, v, `#{form.id}`).Key(v.Request(post(t, contentType, body), &host{}))
		wantReason(t, err, keyexpr.ReasonBadBody)
	}
	r := post(t, "application/x-www-form-urlencoded; boundary=X", "id=2")
	if key, err := compile(t, v, `#{form.id}`).Key(v.Request(r, &host{})); err != nil || key != "2" {
		t.Errorf("got %q, %v", key, err)
	}
}

// A value under a name of another case gets to the handler, and so it must get to
// the key and the condition.
func TestBody_NameInAnotherCase(t *testing.T) {
	t.Parallel()
	const sent = `{"Amount": 500, "ſhard": "a", "Items": [{"SKU": "x", "Lot": [{"NO": 1}]}], "exact": "e", "none": null}`
	v := variables(t, httpvars.Config{})
	env := v.Request(post(t, "application/json", sent), &host{})
	condition := compileCondition(t, v, `body.amount > 100 && body.shard == "a" && any(body.items, .sku == "x" && .lot[0].no == 1)`)
	if got, err := condition.Eval(env); err != nil || !got {
		t.Errorf("the condition is %v, %v", got, err)
	}
}
