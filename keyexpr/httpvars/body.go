package httpvars

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/keyexpr"
)

// payload is the body of a request after it has been read.
type payload struct {
	read  bool
	bytes []byte
	err   error
}

// Buffer reads the body into memory, up to the limit, and replaces the
// request's Body by one that yields the same bytes. A server notices that a
// client left only once the body is read, so adapters call it before they wait.
// The error is a *[keyexpr.EvalError]; the handler can read all of the body even
// then. A body whose announced length is over the limit is not touched.
func (q *Request) Buffer() error {
	if q.payload.read {
		return q.payload.err
	}
	q.payload.read = true
	switch {
	case q.absent():
	case q.kept == nil && q.request.ContentLength > q.variables.maxBody:
		q.payload.err = q.tooLarge(nil)
	default:
		q.payload.bytes, q.payload.err = q.readAll()
	}
	return q.payload.err
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
	content, err := io.ReadAll(io.LimitReader(original, q.variables.maxBody+1))
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
		q.payload.read = true
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
	return q.payload.bytes, q.payload.read && q.payload.err == nil
}

// media is the content type of a body.
type media struct {
	name   string
	params map[string]string
}

// content returns the bytes of a body of an accepted media type, nil if there
// is none.
func (q *Request) content(accepts func(mediaType string) bool, wanted string) ([]byte, media, error) {
	if q.absent() {
		return nil, media{}, nil
	}
	typ, err := q.media()
	if err != nil || !accepts(typ.name) {
		if empty, readErr := q.isEmpty(); readErr != nil || empty {
			return nil, media{}, readErr
		}
		return nil, media{}, &keyexpr.EvalError{Reason: keyexpr.ReasonUnsupportedMedia, Detail: "needs a body of " + wanted}
	}
	if err := q.Buffer(); err != nil {
		return nil, media{}, err
	}
	return q.payload.bytes, typ, nil
}

func (q *Request) media() (media, error) {
	name, params, err := mime.ParseMediaType(q.request.Header.Get("Content-Type"))
	return media{name, params}, err
}

// isEmpty finds out whether a body has no bytes. One that is announced is not waited
// for.
func (q *Request) isEmpty() (bool, error) {
	switch {
	case q.payload.read || q.kept != nil:
		err := q.Buffer()
		return err == nil && len(q.payload.bytes) == 0, err
	case q.request.ContentLength > 0:
		return false, nil
	default:
		return q.peek()
	}
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
