package httpvars

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"

	"github.com/interlock-go/interlock/keyexpr"
)

// result is a value that is computed at most once.
type result[T any] struct {
	done  bool
	value T
	err   error
}

// once returns the result. The first call computes it.
func (r *result[T]) once(compute func() (T, error)) (T, error) {
	if !r.done {
		r.value, r.err = compute()
		r.done = true
	}
	return r.value, r.err
}

// payload reads the bytes of a body up to a limit and ensures that the handler can read the whole
// body afterwards. It does not interpret the bytes.
type payload struct {
	request *http.Request
	limit   int64
	kept    []byte // the bytes that a middleware keeps; see Request.KeptBody
	read    result[[]byte]
}

// bytes returns the bytes of the body, or nil if the request has no body. It reads them once.
func (p *payload) bytes() ([]byte, error) {
	return p.read.once(func() ([]byte, error) {
		switch {
		case p.isAbsent():
			return nil, nil
		case p.kept == nil && p.request.ContentLength > p.limit:
			return nil, p.tooLarge(nil)
		}
		return p.readAll()
	})
}

// ofMediaType returns the bytes of a body of an accepted media type, or nil if the request has no
// body.
func (p *payload) ofMediaType(accepts func(mediaType string) bool, wanted string) ([]byte, error) {
	if p.isAbsent() {
		return nil, nil
	}
	if name, _ := mediaType(p.request); !accepts(name) {
		if empty, err := p.isEmpty(); err != nil || empty {
			return nil, err
		}
		return nil, &keyexpr.EvalError{Reason: keyexpr.ReasonUnsupportedMedia, Detail: "needs a body of " + wanted}
	}
	return p.bytes()
}

// mediaType returns the media type of the body, or "" if the header names none.
func mediaType(r *http.Request) (name string, params map[string]string) {
	name, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return "", nil
	}
	return name, params
}

// isAbsent reports, without reading, whether the request has no body. It ignores ContentLength,
// because a middleware may have replaced the body.
func (p *payload) isAbsent() bool {
	return p.kept == nil && (p.request.Body == nil || p.request.Body == http.NoBody)
}

// isEmpty reports whether a body has no bytes. It does not wait for the bytes if ContentLength is
// positive.
func (p *payload) isEmpty() (bool, error) {
	switch {
	case p.read.done || p.kept != nil:
		content, err := p.bytes()
		return err == nil && len(content) == 0, err
	case p.request.ContentLength > 0:
		return false, nil
	default:
		return p.peek()
	}
}

// peek reads the first byte to find out whether the body has any.
func (p *payload) peek() (empty bool, err error) {
	original := p.request.Body
	first := make([]byte, 1)
	if _, err := io.ReadFull(original, first); err != nil {
		p.read.done = true
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		p.restore(original, failingReader{err})
		p.read.err = p.unreadable(err)
		return false, p.read.err
	}
	p.restore(original, io.MultiReader(bytes.NewReader(first), original))
	return false, nil
}

// readAll reads the body up to the limit and makes it readable again.
func (p *payload) readAll() ([]byte, error) {
	var original io.ReadCloser = http.NoBody
	if p.request.Body != nil {
		original = p.request.Body
	}
	content, err := io.ReadAll(io.LimitReader(original, min(p.limit, math.MaxInt64-1)+1))
	rest := io.Reader(original)
	if p.isConsumed(content, err) {
		content, rest, err = p.kept, http.NoBody, nil
	}
	switch {
	case err != nil:
		p.restore(original, io.MultiReader(bytes.NewReader(content), failingReader{err}))
		return nil, p.unreadable(err)
	case int64(len(content)) > p.limit:
		p.restore(original, io.MultiReader(bytes.NewReader(content), rest))
		return nil, p.tooLarge(nil)
	default:
		p.restore(original, bytes.NewReader(content))
		return content, p.checkKept(content)
	}
}

// isConsumed reports whether a middleware has read a body to its end and keeps the bytes.
func (p *payload) isConsumed(content []byte, err error) bool {
	return p.kept != nil && len(content) == 0 && (err == nil || errors.Is(err, http.ErrBodyReadAfterClose))
}

// checkKept reports a body that differs from the bytes that a middleware keeps.
func (p *payload) checkKept(content []byte) error {
	if p.kept == nil || bytes.Equal(content, p.kept) {
		return nil
	}
	return &keyexpr.EvalError{
		Reason: keyexpr.ReasonInternal,
		Detail: "has two bodies: a middleware replaced the Body after another one had kept the bytes of the first, and handlers may read either; " +
			"replace what is kept too (with Gin c.Set(gin.BodyBytesKey, …)), or do it before",
	}
}

// restoredBody is a body that can be read again.
type restoredBody struct {
	io.Reader
	io.Closer
}

func (p *payload) restore(original io.Closer, content io.Reader) {
	p.request.Body = restoredBody{content, original}
}

// failingReader returns the error that stopped the read of the original body.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func (p *payload) tooLarge(err error) error {
	return &keyexpr.EvalError{
		Reason: keyexpr.ReasonTooLarge, Err: err,
		Detail: fmt.Sprintf("needs a body of at most %d bytes", p.limit),
	}
}

func (p *payload) unreadable(err error) error {
	if _, limited := errors.AsType[*http.MaxBytesError](err); limited {
		return p.tooLarge(err)
	}
	return badBody("needs a body that can be read", err)
}

func badBody(detail string, err error) error {
	return &keyexpr.EvalError{Reason: keyexpr.ReasonBadBody, Detail: detail, Err: err}
}
