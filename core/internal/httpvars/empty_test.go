package httpvars_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/core/internal/httpvars"
	"github.com/interlock-go/interlock/keyexpr"
)

// untyped is a request whose body has no content type that expressions take, and no length.
func untyped(t testing.TB, body io.Reader) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	r.ContentLength = -1
	r.Header.Set("Content-Type", "text/plain")
	return r
}

func TestBody_OfAnotherTypeIsEmpty(t *testing.T) {
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

// A body that was read before its type was asked for is not read again.
func TestBody_OfAnotherTypeAfterBuffer(t *testing.T) {
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

// The client may be gone before the first byte: the error is the same for all who ask, and
// the handler gets it, too.
func TestBody_OfAnotherTypeThatCannotBeRead(t *testing.T) {
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

// A multipart form adds to what a middleware has parsed, without changing it.
func TestForm_AddsToWhatWasParsed(t *testing.T) {
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
		t.Errorf("PostForm has become %q", got)
	}
	if rest, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(rest, []byte(formParts)) {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
}

// The variables of an application are no part of net/http.
func TestNetHTTP_HasNoRegisteredVariables(t *testing.T) {
	t.Parallel()
	v := variables(t, httpvars.Config{Registered: []keyexpr.Variable{{Name: "who"}}})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	_, err := compile(t, v, `#{who}`).Key(v.Request(r, httpvars.NetHTTP(r)))
	wantReason(t, err, keyexpr.ReasonUnset)
}
