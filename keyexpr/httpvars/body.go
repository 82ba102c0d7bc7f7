package httpvars

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// Buffer reads the body into memory, up to the limit, and replaces the
// request's Body by one that yields the same bytes.
// The error is a *[keyexpr.EvalError]; the handler can read all of the body even
// then. A body whose announced length is over the limit is not touched.
func (q *Request) Buffer() error {
	_, err := q.payload.once(q.readBody)
	return err
}

func (q *Request) readBody() ([]byte, error) {
	switch {
	case q.absent():
		return nil, nil
	case q.kept == nil && q.request.ContentLength > q.variables.maxBody:
		return nil, q.tooLarge(nil)
	}
	return q.readAll()
}

// absent reports whether there is no body, as far as that shows without reading: a
// middleware may have put one in whatever the announced length.
func (q *Request) absent() bool {
	return q.kept == nil && (q.request.Body == nil || q.request.Body == http.NoBody)
}

// readAll reads the body up to the limit, and lets it be read again.
func (q *Request) readAll() ([]byte, error) {
	var original io.ReadCloser = http.NoBody
	if q.request.Body != nil {
		original = q.request.Body
	}
	content, err := io.ReadAll(io.LimitReader(original, min(q.variables.maxBody, math.MaxInt64-1)+1))
	rest := io.Reader(original)
	if q.consumed(content, err) {
		content, rest, err = q.kept, http.NoBody, nil
	}
	switch {
	case err != nil:
		q.restore(original, io.MultiReader(bytes.NewReader(content), failing{err}))
		return nil, q.unreadable(err)
	case int64(len(content)) > q.variables.maxBody:
		q.restore(original, io.MultiReader(bytes.NewReader(content), rest))
		return nil, q.tooLarge(nil)
	default:
		q.restore(original, bytes.NewReader(content))
		return content, q.checkKept(content)
	}
}

// peek finds out whether a body has any bytes, by its first one.
func (q *Request) peek() (empty bool, err error) {
	original := q.request.Body
	first := make([]byte, 1)
	if _, err := io.ReadFull(original, first); err != nil {
		q.payload.done = true
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		q.restore(original, failing{err})
		q.payload.err = q.unreadable(err)
		return false, q.payload.err
	}
	q.restore(original, io.MultiReader(bytes.NewReader(first), original))
	return false, nil
}

// restored is a body that has been read and can be read again.
type restored struct {
	io.Reader
	io.Closer
}

func (q *Request) restore(original io.Closer, content io.Reader) {
	q.request.Body = restored{content, original}
}

// failing yields the error that ended the original body.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func (q *Request) tooLarge(err error) error {
	return &keyexpr.EvalError{
		Reason: keyexpr.ReasonTooLarge, Err: err,
		Detail: fmt.Sprintf("needs a body of at most %d bytes", q.variables.maxBody),
	}
}

func (q *Request) unreadable(err error) error {
	if _, limited := errors.AsType[*http.MaxBytesError](err); limited {
		return q.tooLarge(err)
	}
	return badBody("needs a body that can be read", err)
}

func badBody(detail string, err error) error {
	return &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: detail, Err: err}
}

// Body returns the bytes of the body, and false if they have not been read or
// did not fit. The slice must not be changed.
func (q *Request) Body() ([]byte, bool) {
	return q.payload.value, q.payload.done && q.payload.err == nil
}

// content returns the bytes of a body of an accepted media type, nil if there
// is none.
func (q *Request) content(accepts func(mediaType string) bool, wanted string) ([]byte, error) {
	if q.absent() {
		return nil, nil
	}
	if name, _ := q.media(); !accepts(name) {
		if empty, err := q.isEmpty(); err != nil || empty {
			return nil, err
		}
		return nil, &keyexpr.EvalError{Reason: keyexpr.ReasonUnsupportedMedia, Detail: "needs a body of " + wanted}
	}
	return q.payload.once(q.readBody)
}

// media is the content type of the body, empty if it is none.
func (q *Request) media() (name string, params map[string]string) {
	name, params, err := mime.ParseMediaType(q.request.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return name, params
}

// isEmpty finds out whether a body has no bytes. One that is announced is not waited
// for.
func (q *Request) isEmpty() (bool, error) {
	switch {
	case q.payload.done || q.kept != nil:
		content, err := q.payload.once(q.readBody)
		return err == nil && len(content) == 0, err
	case q.request.ContentLength > 0:
		return false, nil
	default:
		return q.peek()
	}
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
