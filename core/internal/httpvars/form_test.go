package httpvars_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

const (
	urlencoded = "application/x-www-form-urlencoded"
	multipart1 = "multipart/form-data; boundary=x"
	formParts  = "--x\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\nbody\r\n--x--\r\n"
)

// sent is a request with id=query, and a form with id=body.
func sent(t testing.TB, method, contentType string) *http.Request {
	t.Helper()
	text := "id=body"
	if contentType == multipart1 {
		text = formParts
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/?id=query", strings.NewReader(text))
	r.Header.Set("Content-Type", contentType)
	return r
}

// What form has is what a handler finds in PostForm: for every method and type, and
// whoever parsed the form before.
func TestForm_IsThePostFormOfNetHTTP(t *testing.T) {
	t.Parallel()
	parsed := map[string]func(r *http.Request) error{
		"by the handler": func(*http.Request) error { return nil },
		"by a middleware": func(r *http.Request) error {
			if err := r.ParseMultipartForm(1 << 20); !errors.Is(err, http.ErrNotMultipart) {
				return err
			}
			return nil
		},
		"by a middleware that then changed the method": func(r *http.Request) error {
			err := r.ParseForm()
			r.Method = map[bool]string{true: http.MethodDelete, false: http.MethodPost}[r.Method == http.MethodPost]
			return err
		},
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE", "post"} {
		for _, contentType := range []string{urlencoded, multipart1} {
			for name, parse := range parsed {
				t.Run(fmt.Sprintf("%s %s/parsed %s", method, contentType[:9], name), func(t *testing.T) {
					t.Parallel()
					v := variables(t, httpvars.Config{})
					template := compile(t, v, `#{form.id ?? "none"}`)
					for length, change := range map[string]func(*http.Request) *http.Request{"length": func(r *http.Request) *http.Request { return r }, "chunked": chunked} {
						r := change(sent(t, method, contentType))
						if err := parse(r); err != nil {
							t.Fatal(err)
						}
						key, err := template.Key(v.Request(r, &host{}))
						if err != nil {
							t.Fatal(err)
						}
						if err := r.ParseMultipartForm(1 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
							t.Fatal(err)
						}
						if want := keyOf(r); key != want {
							t.Errorf("%s: the key has %q, the handler %q", length, key, want)
						}
					}
				})
			}
		}
	}
}

func keyOf(r *http.Request) string {
	if values := r.PostForm["id"]; len(values) > 0 {
		return values[0]
	}
	return "none"
}

// A body that is no form of its method is not read, and the handler gets it.
func TestForm_BodyOfAnotherMethodIsNotRead(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	r := sent(t, http.MethodDelete, urlencoded)
	body := &countingBody{Reader: r.Body}
	r.Body = body
	_, err := compile(t, v, `#{form.id}`).Key(v.Request(r, &host{}))
	wantReason(t, err, keyexpr.ReasonMissing)
	if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != "id=body" {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
	r = sent(t, http.MethodDelete, "application/json")
	_, err = compile(t, v, `#{form.id}`).Key(v.Request(r, &host{}))
	wantReason(t, err, keyexpr.ReasonUnsupportedMedia)
}

// The handler still gets a multipart form whole, with its files.
func TestForm_FilesAreTheHandlers(t *testing.T) {
	t.Parallel()
	const form = "--x\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n7\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\ncontent\r\n--x--\r\n"
	v := variables(t, httpvars.Config{})
	r := post(t, multipart1, form)
	if key, err := compile(t, v, `#{form.id}`).Key(v.Request(r, &host{})); err != nil || key != "7" {
		t.Errorf("got %q, %v", key, err)
	}
	if r.FormValue("id") != "7" || r.MultipartForm.File["file"][0].Size != 7 {
		t.Error("the handler does not get the whole form")
	}
}
