package httpvars_test

import (
	"bytes"
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

// failingBody is the body of a client that has disconnected.
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

// chunked hides the length of a body.
func chunked(r *http.Request) *http.Request {
	r.ContentLength = -1
	r.TransferEncoding = []string{"chunked"}
	return r
}

// The largest int64 means no limit.
func TestBody_WithoutLimit(t *testing.T) {
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

// A bad body has the same status in a condition as in a key.
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

// FuzzBody checks that no body causes a panic, and that the handler can still read the whole body.
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
					t.Fatalf("%v is not an *EvalError", err)
				}
			}
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != body {
				t.Fatalf("the handler reads %q, %v, want %q", rest, err, body)
			}
		}
	})
}

// A request has a body if the body yields bytes, whatever its ContentLength is.
func TestBody_ReplacedByMiddleware(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for _, length := range []int64{0, -1, 7} {
		for contentType, template := range map[string]string{"application/json": `#{body.id ?? "none"}`, urlencoded: `#{form.id ?? "none"}`} {
			text := map[string]string{"application/json": `{"id":1}`, urlencoded: `id=1`}[contentType]
			r := post(t, contentType, "")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), length
			if key, err := compile(t, v, template).Key(v.Request(r, &host{})); err != nil || key != "1" {
				t.Errorf("%s, length %d: got %q, %v, want 1", contentType, length, key, err)
			}
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != text {
				t.Errorf("%s, length %d: the handler reads %q, %v", contentType, length, rest, err)
			}
			for _, empty := range []io.ReadCloser{nil, http.NoBody, io.NopCloser(strings.NewReader("")), io.NopCloser(silentOnceReader(""))} {
				r.Body = empty
				if key, err := compile(t, v, template).Key(v.Request(r, &host{})); err != nil || key != "none" {
					t.Errorf("%s, length %d, no bytes: got %q, %v, want none", contentType, length, key, err)
				}
			}
		}
	}
}

// silentOnceReader returns no bytes and no error once, as readers may do.
func silentOnceReader(text string) io.Reader { return &silent{Reader: strings.NewReader(text)} }

type silent struct {
	io.Reader
	asked bool
}

func (s *silent) Read(p []byte) (int, error) {
	if !s.asked {
		s.asked = true
		return 0, nil
	}
	return s.Reader.Read(p)
}

// The first byte shows whether a request has a body of another type. The handler gets the whole body, and
// so does an expression that reads it later.
func TestBody_OtherTypeReadsOneByte(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for name, length := range map[string]int64{"announced": 100, "chunked": -1, "put in": 0} {
		rest := &countingBody{Reader: strings.NewReader("hello")}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", rest)
		r.ContentLength = length
		r.Header.Set("Content-Type", "text/plain")
		q := v.Request(r, &host{})
		for _, template := range []string{`#{body.id}`, `#{body.id}`, `#{form.id}`} {
			_, err := compile(t, v, template).Key(q)
			wantReason(t, err, keyexpr.ReasonUnsupportedMedia)
		}
		if rest.ends != 0 {
			t.Errorf("%s: the body was read to its end", name)
		}
		if all, err := io.ReadAll(r.Body); err != nil || string(all) != "hello" {
			t.Errorf("%s: the handler reads %q, %v", name, all, err)
		}
	}
}

// A middleware has read the body and kept its bytes. Handlers may read the body or the kept bytes.
func TestRequest_KeptBody(t *testing.T) {
	t.Parallel()
	const kept, other = `{"id":1}`, `{"id":2}`
	tests := map[string]struct {
		left io.Reader
		want string // the key, or "": the bytes differ, and a handler may read either
		rest string
	}{
		"nothing is left":         {strings.NewReader(""), "1", kept},
		"it is closed":            {closedBody{}, "1", kept},
		"it was put back":         {strings.NewReader(kept), "1", kept},
		"it was replaced":         {strings.NewReader(other), "", other},
		"it was replaced by more": {strings.NewReader(kept + " "), "", kept + " "},
	}
	for name, tt := range tests {
		for _, length := range []int64{0, -1, 8} {
			v := variables(t, httpvars.Config{})
			r := post(t, "application/json", "")
			r.Body, r.ContentLength = io.NopCloser(tt.left), length
			q := v.Request(r, &host{})
			q.KeptBody([]byte(kept))
			key, err := compile(t, v, `#{body.id}`).Key(q)
			switch {
			case tt.want == "":
				wantReason(t, err, keyexpr.ReasonInternal)
			case err != nil || key != tt.want:
				t.Errorf("%s: got %q, %v, want %q", name, key, err, tt.want)
			}
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != tt.rest {
				t.Errorf("%s: the handler reads %q, %v, want %q", name, rest, err, tt.rest)
			}
			if seeker, ok := tt.left.(io.Seeker); ok {
				if _, err := seeker.Seek(0, io.SeekStart); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestRequest_KeptBodyOfAnyLength(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{MaxBody: 4})
	kept := []byte(`{"id":1}`)
	for _, left := range [][]byte{nil, kept} {
		r := post(t, "application/json", "")
		r.Body = io.NopCloser(bytes.NewReader(left))
		q := v.Request(r, &host{})
		q.KeptBody(kept)
		_, err := compile(t, v, `#{body.id}`).Key(q)
		wantReason(t, err, keyexpr.ReasonTooLarge)
		if rest, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(rest, kept) {
			t.Errorf("the handler reads %q, %v", rest, err)
		}
	}
}

// closedBody is a body of net/http that a middleware has closed.
type closedBody struct{}

func (closedBody) Read([]byte) (int, error) { return 0, http.ErrBodyReadAfterClose }

func TestRequest_KeptBodyTruncated(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	r := post(t, "application/json", "")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"id"`), failingBody{}))
	q := v.Request(r, &host{})
	q.KeptBody([]byte(`{"id":1}`))
	_, err := compile(t, v, `#{body.id}`).Key(q)
	wantReason(t, err, keyexpr.ReasonBadBody)
	if !errors.Is(err, errGone) {
		t.Errorf("%v does not wrap the cause", err)
	}
}

// untyped returns a request whose body has no ContentLength and a content type that no expression
// accepts.
func untyped(t testing.TB, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	r.ContentLength = -1
	r.Header.Set("Content-Type", "text/plain")
	return r
}

func TestBody_OtherTypeAndEmpty(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	for name, prepare := range map[string]func(q *httpvars.Request) error{
		"not read":        func(*httpvars.Request) error { return nil },
		"read before":     (*httpvars.Request).Buffer,
		"asked for twice": func(q *httpvars.Request) error { _, _ = compile(t, v, `#{body.id}`).Key(q); return nil },
	} {
		r := untyped(t, io.MultiReader())
		q := v.Request(r, &host{})
		if err := prepare(q); err != nil {
			t.Fatal(err)
		}
		for _, template := range []string{`#{body.id}`, `#{form.id}`} {
			_, err := compile(t, v, template).Key(q)
			wantReason(t, err, keyexpr.ReasonMissing)
		}
		if key, err := compile(t, v, `#{body.id ?? "none"}`).Key(q); err != nil || key != "none" {
			t.Errorf("%s: got %q, %v", name, key, err)
		}
	}
}

// A body that Buffer has read is not read again to check its type.
func TestBody_OtherTypeAfterBuffer(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{MaxBody: 20})
	for body, want := range map[string]keyexpr.Reason{"text": keyexpr.ReasonUnsupportedMedia, strings.Repeat("x", 21): keyexpr.ReasonTooLarge} {
		q := v.Request(untyped(t, strings.NewReader(body)), &host{})
		buffered := q.Buffer()
		if (buffered != nil) != (want == keyexpr.ReasonTooLarge) {
			t.Errorf("%s: Buffer: %v", body, buffered)
		}
		_, err := compile(t, v, `#{body.id}`).Key(q)
		wantReason(t, err, want)
	}
	q := v.Request(untyped(t, http.NoBody), &host{})
	q.KeptBody([]byte("kept"))
	_, err := compile(t, v, `#{body.id}`).Key(q)
	wantReason(t, err, keyexpr.ReasonUnsupportedMedia)
}

// If the client disconnects before the first byte, all expressions and the handler get the same error.
func TestBody_OtherTypeUnreadable(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	r := untyped(t, failingBody{})
	q := v.Request(r, &host{})
	for range 2 {
		_, err := compile(t, v, `#{body.id}`).Key(q)
		wantReason(t, err, keyexpr.ReasonBadBody)
		if !errors.Is(err, errGone) {
			t.Errorf("%v does not wrap the cause", err)
		}
	}
	if err := q.Buffer(); !errors.Is(err, errGone) {
		t.Errorf("Buffer: %v", err)
	}
	if content, ok := q.Body(); ok {
		t.Errorf("a body of %d bytes is offered", len(content))
	}
	if _, err := io.ReadAll(r.Body); !errors.Is(err, errGone) {
		t.Errorf("the handler reads %v", err)
	}
}
