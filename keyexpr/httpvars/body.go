package httpvars

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
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
	if q.absent() {
		return nil
	}
	if q.request.ContentLength > q.variables.maxBody {
		q.payload.err = q.tooLarge(nil)
		return q.payload.err
	}
	original := q.request.Body
	content, err := io.ReadAll(io.LimitReader(original, q.variables.maxBody+1))
	switch {
	case err != nil:
		q.payload.err = q.unreadable(err)
		q.restore(original, io.MultiReader(bytes.NewReader(content), failing{err}))
	case int64(len(content)) > q.variables.maxBody:
		q.payload.err = q.tooLarge(nil)
		q.restore(original, io.MultiReader(bytes.NewReader(content), original))
	default:
		q.payload.bytes = content
		q.restore(original, bytes.NewReader(content))
	}
	return q.payload.err
}

func (q *Request) absent() bool {
	return q.request.Body == nil || q.request.Body == http.NoBody
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
	if q.absent() || q.request.ContentLength == 0 {
		return nil, media{}, nil
	}
	name, params, err := mime.ParseMediaType(q.request.Header.Get("Content-Type"))
	if err != nil || !accepts(name) {
		if empty, readErr := q.isEmpty(); readErr != nil || empty {
			return nil, media{}, readErr
		}
		return nil, media{}, &keyexpr.EvalError{Reason: keyexpr.ReasonUnsupportedMedia, Detail: "needs a body of " + wanted}
	}
	if err := q.Buffer(); err != nil {
		return nil, media{}, err
	}
	return q.payload.bytes, media{name, params}, nil
}

// isEmpty finds out whether a body of unknown length has any bytes.
func (q *Request) isEmpty() (bool, error) {
	if q.request.ContentLength > 0 {
		return false, nil
	}
	err := q.Buffer()
	return err == nil && len(q.payload.bytes) == 0, err
}

const multipartForm = "multipart/form-data"

func isForm(mediaType string) bool {
	return mediaType == "application/x-www-form-urlencoded" || mediaType == multipartForm
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

func (q *Request) parseForm() (url.Values, error) {
	content, typ, err := q.content(isForm, "application/x-www-form-urlencoded or multipart/form-data")
	if err != nil || len(content) == 0 {
		return nil, err
	}
	if typ.name == multipartForm { // the boundary does not tell: any type may have one
		return q.parseMultipart(content, typ.params["boundary"])
	}
	form, err := url.ParseQuery(string(content))
	if err != nil {
		return nil, badBody("needs a well-formed form", err)
	}
	return form, nil
}

func (q *Request) parseMultipart(content []byte, boundary string) (url.Values, error) {
	if boundary == "" {
		return nil, badBody("needs a multipart form with a boundary", nil)
	}
	form, err := multipart.NewReader(bytes.NewReader(content), boundary).ReadForm(q.variables.maxBody)
	if err != nil {
		return nil, badBody("needs a well-formed multipart form", err)
	}
	return form.Value, form.RemoveAll()
}
