package httpvars_test

import (
	"bytes"
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

// sent returns a request with another=query in the query and id=body in the form.
func sent(t testing.TB, method, contentType string) *http.Request {
	t.Helper()
	text := "id=body"
	if contentType == multipart1 {
		text = formParts
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/?another=query", strings.NewReader(text))
	r.Header.Set("Content-Type", contentType)
	return r
}

// form has the values that a handler finds in PostForm, for every method and media type, even if a middleware
// has already parsed the form.
func TestForm_EqualsPostForm(t *testing.T) {
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

// A urlencoded body under a method without forms is not read, and the handler gets it.
func TestForm_OtherMethodsNotRead(t *testing.T) {
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

// The handler can read the whole multipart form, including its files.
func TestForm_HandlerGetsFiles(t *testing.T) {
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

// A multipart form adds to the form that a middleware has parsed, without changing it.
func TestForm_AddsToParsedForm(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{})
	r := sent(t, http.MethodPost, multipart1)
	before := []string{"before"}
	r.PostForm = map[string][]string{"id": before, "other": {"x"}}
	q := v.Request(r, &host{})
	keys, err := compile(t, v, `#{form.id[:]}`).Keys(q)
	if err != nil || strings.Join(keys, " ") != "before body" {
		t.Errorf("got %q, %v", keys, err)
	}
	if key, err := compile(t, v, `#{form.other}`).Key(q); err != nil || key != "x" {
		t.Errorf("got %q, %v", key, err)
	}
	if got := r.PostForm["id"]; len(got) != 1 || len(before) != 1 {
		t.Errorf("PostForm has changed to %q", got)
	}
	if rest, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(rest, []byte(formParts)) {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
}

// Only the media type determines how a form is decoded, as in net/http. Otherwise a client could choose the
// key of another request by adding a boundary to another media type.
func TestForm_MediaTypeDecides(t *testing.T) {
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
