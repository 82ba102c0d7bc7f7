package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
)

// maxWaitingBodies is the maximum total size, in bytes, of the bodies of all requests that wait under one guard. Without
// this limit, 10,000 waiters with bodies of 1 MiB would need 10 GiB.
const maxWaitingBodies = 64 << 20

// errNoRoom refuses a request because its body would have to stay in memory while the request waits. It counts as an
// overload.
var errNoRoom = fmt.Errorf("%w: the bodies of waiting requests have %d MiB", core.ErrTooManyWaiters, maxWaitingBodies>>20)

// room counts the bytes of the bodies that waiting requests hold.
type room struct {
	mu   sync.Mutex
	used int64
}

// take reserves room for n bytes. It returns false if there is not enough room. A body that is larger than the whole room
// reserves the whole room. taken is the number of bytes to give back.
func (r *room) take(n int64) (taken int64, ok bool) {
	n = min(n, maxWaitingBodies)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > maxWaitingBodies {
		return 0, false
	}
	r.used += n
	return n, true
}

func (r *room) giveBack(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
}

// heldBody is the body of one request while the request waits for a lock.
type heldBody struct {
	request *http.Request
	limit   int64 // the most bytes to read ahead
	room    *room
	taken   int64     // bytes reserved in the room
	ahead   *prefetch // nil unless the body is read ahead
}

// keep reserves room for a body of n bytes that is already in memory. If there is not enough room and a rule needs the
// body, keep refuses the request. Other requests may wait, because another middleware has read their body and a refusal
// would not free that memory.
func (b *heldBody) keep(n int64, needed bool) error {
	taken, ok := b.room.take(n)
	b.taken += taken
	if !ok && needed {
		return errNoRoom
	}
	return nil
}

// readAhead reads the body in a goroutine. It returns when the body is read or ctx is done. If there is not enough room,
// the request waits with its body unread, and the server does not notice if the client leaves.
func (b *heldBody) readAhead(ctx context.Context) error {
	n := b.request.ContentLength
	if n <= 0 {
		n = b.limit
	}
	var ok bool
	if b.taken, ok = b.room.take(n); !ok {
		return nil
	}
	b.ahead = newPrefetch(b.request.Body, b.limit)
	b.request.Body = b.ahead
	select {
	case <-b.ahead.done:
		unused := max(b.taken-b.ahead.size, 0)
		b.room.giveBack(unused)
		b.taken -= unused
	case <-ctx.Done():
	}
	return nil
}

// stop waits for the goroutine that reads ahead, because [http.MaxBytesReader] sets a header while it reads, and the
// handler may set headers, too. Then stop gives back the room. Further calls do nothing.
func (b *heldBody) stop() {
	if b.ahead != nil {
		<-b.ahead.done
	}
	b.room.giveBack(b.taken)
	b.taken = 0
}

// prefetch is a body that a goroutine reads while the request waits. Read blocks until that goroutine returns.
type prefetch struct {
	io.Closer // the original body

	done  chan struct{} // closed when the goroutine returns
	rest  io.Reader     // set before done is closed
	size  int64         // the number of bytes that the goroutine read
	whole bool          // the goroutine read the whole body
}

func newPrefetch(original io.ReadCloser, limit int64) *prefetch {
	a := &prefetch{Closer: original, done: make(chan struct{}), rest: errReader{io.ErrUnexpectedEOF}}
	go func() {
		defer close(a.done)
		defer func() {
			if v := recover(); v != nil {
				a.rest = errReader{fmt.Errorf("httpcall: reading the body: panic: %v", v)}
			}
		}()
		content, err := io.ReadAll(io.LimitReader(original, min(limit, math.MaxInt64-1)+1))
		a.size, a.rest = int64(len(content)), io.MultiReader(bytes.NewReader(content), original)
		if a.whole = err == nil && a.size <= limit; err != nil {
			a.rest = io.MultiReader(bytes.NewReader(content), errReader{err})
		}
	}()
	return a
}

// Read returns first the bytes that were read ahead and then the rest of the body.
func (a *prefetch) Read(p []byte) (int, error) {
	<-a.done
	return a.rest.Read(p)
}

// complete reports whether the whole body was read ahead.
func (a *prefetch) complete() bool {
	select {
	case <-a.done:
		return a.whole
	default:
		return false
	}
}

// errReader returns the error with which reading the original body failed.
type errReader struct{ err error }

func (f errReader) Read([]byte) (int, error) { return 0, f.err }

// Before an HTTP/1 server of net/http sends an answer, it reads the rest of the body, to reuse the connection. It reads up
// to drainBytes, however slowly they arrive.
const (
	drainBytes = 256 << 10

	// drainTime is the time for which an answer waits for the rest of a body that no handler reads. After that, the
	// answer closes the connection.
	drainTime = 50 * time.Millisecond
)

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// drain reads the rest of a body that no handler reads. It is like the draining of net/http, but takes at most drainTime.
// If the connection does not support deadlines, drain does nothing.
func drain(r *http.Request, w Writer) {
	body, reading := r.Body.(*prefetch)
	if r.ProtoMajor != 1 || !hasBody(r) || !reading && r.Header.Get("Expect") != "" || reading && body.complete() {
		return // net/http sends the answer at once
	}
	connection := http.NewResponseController(w)
	if connection.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, r.Body, drainBytes); !errors.Is(err, io.EOF) {
		w.Header().Set("Connection", "close")
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) //nolint:errcheck // setting a deadline succeeded before
}
