package httpcall

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// strictBody is a body that, like most, permits no Close during a Read. It blocks until something is sent.
type strictBody struct {
	t       *testing.T
	sent    chan []byte // closed at the end
	atEOF   func()
	reading atomic.Bool
	closed  atomic.Bool
}

func (b *strictBody) Read(p []byte) (int, error) {
	b.reading.Store(true)
	defer b.reading.Store(false)
	content, more := <-b.sent
	if !more {
		if b.atEOF != nil {
			b.atEOF()
		}
		return 0, io.EOF
	}
	return copy(p, content), nil
}

func (b *strictBody) Close() error {
	if b.reading.Load() {
		b.t.Error("Close during a Read")
	}
	b.closed.Store(true)
	return nil
}

// readingAlong returns a request over HTTP/2 whose body is read ahead.
func readingAlong(t *testing.T) (*http.Request, *heldBody, *strictBody) {
	t.Helper()
	original := &strictBody{t: t, sent: make(chan []byte)}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", original)
	r.ProtoMajor, r.ContentLength, r.Trailer = 2, -1, http.Header{"Sum": nil}
	server := r.Trailer // net/http keeps the map
	original.atEOF = func() { server["Sum"] = []string{"1"} }
	b := &heldBody{request: r, original: original, limit: 1 << 10, room: &room{}}
	if err := b.readAlong(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, b, original
}

// The server sets the values of the trailer at the end of the body. The handler may use the trailer until it reads that end.
func TestHeldBody_Trailer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, b, original := readingAlong(t)
		b.stop()
		close(original.sent)
		clone := r.Clone(r.Context())
		if got := clone.Trailer["Sum"]; got != nil {
			t.Errorf("got %q before the end", got)
		}
		synctest.Wait()
		if got := r.Trailer["Sum"]; got != nil {
			t.Errorf("got %q before the handler has read the end", got)
		}
		if _, err := io.ReadAll(r.Body); err != nil || r.Trailer.Get("Sum") != "1" {
			t.Errorf("got %q, %v", r.Trailer, err)
		}
	})
}

func TestHeldBody_CloseWhileReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, b, original := readingAlong(t)
		synctest.Wait()
		b.stop()
		read := make(chan error)
		go func() {
			_, err := r.Body.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-read; !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("Read: got %v", err)
		}
		original.sent <- bytes.Repeat([]byte("x"), 8)
		synctest.Wait()
		if !original.closed.Load() {
			t.Error("the body was not closed after the read")
		}
	})
}

// A body that became too large before the wait began ends it, too.
func TestHeldBody_OutgrownBeforeTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, b, original := readingAlong(t)
		original.sent <- make([]byte, 1<<10)
		original.sent <- make([]byte, 1)
		synctest.Wait()
		var reason error
		b.endWith(func(err error) { reason = err })
		if !errors.Is(reason, errTooLargeToWait) {
			t.Errorf("got %v", reason)
		}
	})
}
