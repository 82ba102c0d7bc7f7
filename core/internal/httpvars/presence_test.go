package httpvars_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// A body is there if it has bytes, whatever the length says that was announced.
func TestBody_PutInByAMiddleware(t *testing.T) {
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
			for _, empty := range []io.ReadCloser{nil, http.NoBody, io.NopCloser(strings.NewReader("")), io.NopCloser(silentOnce(""))} {
				r.Body = empty
				if key, err := compile(t, v, template).Key(v.Request(r, &host{})); err != nil || key != "none" {
					t.Errorf("%s, length %d, no bytes: got %q, %v, want none", contentType, length, key, err)
				}
			}
		}
	}
}

// silentOnce is a reader that once gives nothing and no error, as readers may.
func silentOnce(text string) io.Reader { return &silent{Reader: strings.NewReader(text)} }

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

// Whether a body of another type is there shows in its first byte. The handler gets all of it, and
// so does an expression that asks again.
func TestBody_OfAnotherTypeIsNotReadToTheEnd(t *testing.T) {
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

// Typed or not: a name that comes twice, in whatever case, leaves open which counts.
func TestBody_NameTwice(t *testing.T) {
	t.Parallel()
	type sub struct {
		Kind string `json:"kind"`
	}
	type order struct {
		ID    int64          `json:"id"`
		Sub   *sub           `json:"sub"`
		Items []sub          `json:"items"`
		Extra map[string]any `json:"extra"`
	}
	bodies := map[string]string{
		"the same name":     `{"id":1,"id":2}`,
		"another case":      `{"id":1,"ID":2}`,
		"nested":            `{"id":1,"sub":{"kind":"a","Kind":"b"}}`,
		"in a list":         `{"id":1,"items":[{"kind":"a"},{"kind":"a","KIND":"b"}]}`,
		"the Kelvin sign":   "{\"id\":1,\"sub\":{\"kind\":\"a\",\"\u212Aind\":\"b\"}}",
		"the long s":        "{\"id\":1,\"sub\":{\"kind\":\"a\"},\"\u017Fub\":{\"kind\":\"b\"}}",
		"escaped":           `{"id":1,"\u0049d":2}`,
		"unknown names":     `{"id":1,"x":1,"X":2}`,
		"in an unknown one": `{"id":1,"x":{"y":1,"Y":2}}`,
		"in a map":          `{"id":1,"extra":{"y":1,"Y":2}}`,
	}
	for name, body := range bodies {
		for kind, typ := range map[string]reflect.Type{"typed": reflect.TypeFor[order](), "typed by a pointer": reflect.TypeFor[*order](), "untyped": nil} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				v := variables(t, httpvars.Config{Body: typ})
				_, err := compile(t, v, `#{body.id}`).Key(v.Request(post(t, "application/json", body), &host{}))
				wantReason(t, err, keyexpr.ReasonBadBody)
			})
		}
	}
}

// A middleware has read the body and kept its bytes, from which handlers may read it.
func TestKeptBody(t *testing.T) {
	t.Parallel()
	const kept, other = `{"id":1}`, `{"id":2}`
	tests := map[string]struct {
		left io.Reader
		want string // the key; none: the bytes differ, and either may be read
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

func TestKeptBody_OfAnyLengthIsWholeForTheHandler(t *testing.T) {
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

func TestKeptBody_BrokenOff(t *testing.T) {
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
