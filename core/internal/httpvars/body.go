package httpvars

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"slices"
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

// KeptBody tells that a middleware has read the body before, and keeps its bytes where
// handlers may read them again, as gin's ShouldBindBodyWith does. Call it before any
// value is asked for. A request whose Body has nothing left gets these bytes again. One
// whose Body has others, which somebody has put in, keeps them; but a handler may read
// either, so that expressions over the body fail with [keyexpr.ReasonInternal]. Nil is
// no kept body.
func (q *Request) KeptBody(content []byte) { q.kept = content }

// consumed reports whether nothing was left of a body that is kept elsewhere.
func (q *Request) consumed(content []byte, err error) bool {
	return q.kept != nil && len(content) == 0 && (err == nil || errors.Is(err, http.ErrBodyReadAfterClose))
}

// checkKept compares what is left of a body with what is kept elsewhere.
func (q *Request) checkKept(content []byte) error {
	if q.kept == nil || bytes.Equal(content, q.kept) {
		return nil
	}
	return &keyexpr.EvalError{
		Reason: keyexpr.ReasonInternal,
		Detail: "has two bodies: a middleware replaced the Body after another one had kept the bytes of the first, and handlers may read either; " +
			"replace what is kept too (with Gin c.Set(gin.BodyBytesKey, …)), or do it before",
	}
}

func (q *Request) decodeBody() (any, error) {
	content, err := q.content(isJSON, "application/json")
	if err != nil || len(content) == 0 {
		return nil, err
	}
	value, err := keyexpr.DecodeJSON(content)
	if err == nil && q.variables.body != nil {
		value, err = q.typed(content)
	}
	if err != nil {
		return nil, badBody("needs a body of JSON", err)
	}
	return value, nil
}

// typed decodes a body into its type. That no object has a name twice is checked
// before, as in an untyped one: the type of the key and that of the handler need not be
// the same, nor need they agree about which value counts.
func (q *Request) typed(content []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	target := reflect.New(q.variables.body)
	if err := d.Decode(target.Interface()); err != nil {
		return nil, withoutValue(err)
	}
	return target.Interface(), nil
}

// withoutValue strips what an error quotes of the request.
func withoutValue(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errors.New("the field " + wrong.Field + " is no " + wrong.Type.String())
	}
	return err
}

const (
	urlencodedForm = "application/x-www-form-urlencoded"
	multipartForm  = "multipart/form-data"
)

// parsed are the methods under which net/http parses a urlencoded body.
var parsed = map[string]bool{http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true} //nolint:gochecknoglobals // a table that is only read

func isForm(mediaType string) bool { return mediaType == urlencodedForm || mediaType == multipartForm }

// parseForm is what a handler finds in PostForm when it has parsed the form: of a
// urlencoded body under POST, PUT and PATCH only, of a multipart one under any method,
// and what a middleware has parsed before.
func (q *Request) parseForm() (url.Values, error) {
	r := q.request
	name, params := q.media()
	if r.MultipartForm != nil || name == urlencodedForm && (r.PostForm != nil || !parsed[r.Method]) {
		return r.PostForm, nil
	}
	content, err := q.content(isForm, urlencodedForm+" or "+multipartForm)
	switch {
	case err != nil || len(content) == 0:
		return r.PostForm, err
	case name == multipartForm: // the boundary does not tell: any type may have one
		return q.parseMultipart(content, params["boundary"])
	}
	form, err := url.ParseQuery(string(content))
	if err != nil {
		return nil, badBody("needs a well-formed form", err)
	}
	return form, nil
}

// parseMultipart adds the values of a multipart body to what was parsed before.
func (q *Request) parseMultipart(content []byte, boundary string) (url.Values, error) {
	if boundary == "" {
		return nil, badBody("needs a multipart form with a boundary", nil)
	}
	form, err := multipart.NewReader(bytes.NewReader(content), boundary).ReadForm(q.variables.maxBody)
	if err != nil {
		return nil, badBody("needs a well-formed multipart form", err)
	}
	values := url.Values(form.Value)
	if before := q.request.PostForm; len(before) > 0 {
		values = maps.Clone(before)
		for name, more := range form.Value {
			values[name] = append(slices.Clip(values[name]), more...)
		}
	}
	return values, form.RemoveAll()
}
