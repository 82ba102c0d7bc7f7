package httpcall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"reflect"
	"strings"
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

// errTooLargeToWait ends the wait of a request over HTTP/2.
var errTooLargeToWait = errors.New("the body is larger than WithMaxBody and would occupy the connection during the wait")

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
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
}

// heldBody is the body of one request while the request waits for a lock.
//
// An unread body has a price, which the protocol determines. Over HTTP/1, the server does not notice that the
// client has left. Over HTTP/2 and HTTP/3, the unread bytes occupy the window of the connection. Other requests of
// the connection then cannot send their bodies, and one of them may have the lock. So a goroutine reads the body during
// the wait, within the limit and the room. Over HTTP/1, a body that is beyond these limits waits unread. Over HTTP/2 it does
// not wait: the request is refused, because the end of its stream gives the window back. Reading on and dropping the bytes
// would give it back, too, but the handler could then never run, and the client would wait for a refusal.
type heldBody struct {
	request  *http.Request
	original io.ReadCloser // the body of the request before the guard
	limit    int64         // the most bytes to read ahead
	room     *room
	ahead    *prefetch // nil unless the body is read ahead

	mu      sync.Mutex
	taken   int64              // bytes reserved in the room
	stopped bool               // the body needs no more room
	beyond  error              // why the rest of the body was not read ahead, nil if it was
	end     func(reason error) // ends the current wait; nil if there is none
}

// keep reserves room for a body of n bytes that is already in memory. If there is not enough room and a rule needs the
// body, keep refuses the request. Other requests may wait, because another middleware has read their body and a refusal
// would not free that memory.
func (b *heldBody) keep(n int64, needed bool) error {
	if !b.reserve(n) && needed {
		return errNoRoom
	}
	return nil
}

// reserve reserves room for n bytes. It returns false if there is not enough room.
func (b *heldBody) reserve(n int64) bool {
	taken, ok := b.room.take(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken += taken
	return ok
}

// shareable reports whether the request shares its connection, and the window of the connection, with other requests.
func (b *heldBody) shareable() bool { return b.request.ProtoMajor > 1 }

// tooLarge reports whether the body is known to be larger than the limit or the room.
func (b *heldBody) tooLarge() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beyond != nil || b.request.ContentLength > b.limit
}

// startReading begins to read the body in a goroutine. Without enough room it returns false and reads nothing. A body of
// unknown size takes its room as it arrives.
func (b *heldBody) startReading() bool {
	if !b.reserve(max(b.request.ContentLength, 0)) {
		return false
	}
	b.ahead = newPrefetch(b.request.Body, b.limit)
	b.request.Body = b.ahead
	if b.shareable() {
		b.ahead.sent = b.request.Trailer
		b.request.Trailer = b.request.Trailer.Clone()
		b.ahead.shown = b.request.Trailer
	}
	go func() {
		b.ahead.read(b.holds)
		b.settle()
	}()
	return true
}

// holds reserves room for a body of which size bytes were read. It returns false if the rest has to stay unread.
func (b *heldBody) holds(size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return false
	}
	if size > b.limit {
		b.beyond = errTooLargeToWait
		return false
	}
	taken, ok := b.room.take(max(size-b.taken, 0))
	b.taken += taken
	if !ok {
		b.beyond = errNoRoom
	}
	return ok
}

// settle gives back the room that the body does not need, and ends the wait of a body that needs too much.
func (b *heldBody) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	unused := max(b.taken-b.ahead.size, 0)
	b.room.giveBack(unused)
	b.taken -= unused
	if b.beyond != nil && b.end != nil {
		b.end(b.beyond)
	}
	b.ahead.finish()
}

// endWith sets the function that ends the wait if the body needs too much, or already does.
func (b *heldBody) endWith(end func(reason error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end = end; b.beyond != nil {
		end(b.beyond)
	}
}

// readAhead reads the body. It returns when the body is read or ctx is done. If there is not enough room, the request
// waits with its body unread, and the server does not notice if the client leaves.
func (b *heldBody) readAhead(ctx context.Context) error {
	if !b.startReading() {
		return nil
	}
	select {
	case <-b.ahead.done:
	case <-ctx.Done():
	}
	return nil
}

// readAlong reads the body while the request waits.
func (b *heldBody) readAlong(context.Context) error {
	if !b.startReading() {
		return errNoRoom
	}
	return nil
}

// stop ends reading ahead and gives back the room. Over HTTP/1 it waits for the goroutine, because [http.MaxBytesReader]
// sets a header while it reads, and the handler may set headers, too. Over HTTP/2 it does not, because the client
// may send the rest of the body only after the handler has answered. Further calls do nothing.
func (b *heldBody) stop() {
	if b.ahead != nil {
		b.ahead.stop()
		if !b.shareable() {
			<-b.ahead.done
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room.giveBack(b.taken)
	b.taken, b.stopped = 0, true
}

// leave ends reading ahead when the guard has returned. A middleware around the guard may use the original body again, for
// example put a decompressor back into a pool. So leave waits for the goroutine over HTTP/2, too, if the connection supports
// the deadline that ends its read.
func (b *heldBody) leave(w Writer) {
	b.stop()
	if b.ahead == nil || b.ahead.finished() {
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) == nil {
		<-b.ahead.done
	}
}

// prefetch is a body that a goroutine reads while the request waits. The goroutine is the only user of the original until done.
type prefetch struct {
	original io.ReadCloser
	limit    int64
	done     chan struct{} // closed when the goroutine returns
	closing  chan struct{} // closed by the first Close

	// An HTTP/2 server sets the values of the trailer when a read returns io.EOF. The handler may use the trailer before it
	// reads, so it gets a copy, with the values after its own io.EOF.
	sent, shown http.Header

	mu      sync.Mutex
	closed  bool
	content []byte // was read ahead and not yet by the handler
	size    int64  // the number of bytes that were read ahead
	err     error  // the error that ended reading ahead, such as io.EOF
	stopped bool   // the handler reads the rest
}

func newPrefetch(original io.ReadCloser, limit int64) *prefetch {
	return &prefetch{original: original, limit: limit, done: make(chan struct{}), closing: make(chan struct{})}
}

// read reads the body until its end, until holds returns false for the bytes read so far, or until stop.
func (a *prefetch) read(holds func(size int64) bool) {
	defer func() {
		if v := recover(); v != nil {
			a.add(nil, fmt.Errorf("httpcall: reading the body: panic: %v", v))
		}
	}()
	buffer := make([]byte, 32<<10)
	for more := true; more; {
		n, err := a.original.Read(buffer[:1+min(int64(len(buffer))-1, a.limit-a.size)])
		more = a.add(buffer[:n], err)
		more = holds(a.size) && more
	}
}

// add records what a read returned. It reports whether to read on.
func (a *prefetch) add(p []byte, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.content = append(a.content, p...)
	a.size += int64(len(p))
	a.err = err
	return err == nil && !a.stopped
}

// stop makes the goroutine return after its current read.
func (a *prefetch) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
}

// Read returns first the bytes that were read ahead and then the rest of the body.
func (a *prefetch) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	a.stop()
	if n := a.take(p); n > 0 {
		return n, nil
	}
	select {
	case <-a.done: // the last read of the goroutine
	case <-a.closing:
		return 0, http.ErrBodyReadAfterClose
	}
	if n := a.take(p); n > 0 {
		return n, nil
	}
	n, err := 0, a.err
	if err == nil {
		n, err = a.original.Read(p)
	}
	if errors.Is(err, io.EOF) {
		maps.Copy(a.shown, a.sent)
	}
	return n, err
}

// Close closes the original, or lets the goroutine do so after its current read. Many bodies do not permit both at once.
func (a *prefetch) Close() error {
	a.mu.Lock()
	a.stopped = true
	if !a.closed {
		a.closed = true
		close(a.closing)
	}
	finished := a.finished()
	a.mu.Unlock()
	if finished {
		return a.original.Close()
	}
	return nil
}

// finish records that the goroutine returns.
func (a *prefetch) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		_ = a.original.Close() //nolint:errcheck // the handler has left
	}
	close(a.done)
}

// take moves bytes that were read ahead to p.
func (a *prefetch) take(p []byte) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := copy(p, a.content)
	if a.content = a.content[n:]; len(a.content) == 0 {
		a.content = nil
	}
	return n
}

// finished reports whether the goroutine has returned.
func (a *prefetch) finished() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// complete reports whether the whole body was read ahead.
func (a *prefetch) complete() bool { return a.finished() && errors.Is(a.err, io.EOF) }

// Before an HTTP/1 server of net/http sends an answer, it reads the rest of the body, to reuse the connection. It reads up
// to drainBytes, however slowly they arrive.
const (
	drainBytes = 256 << 10

	// drainTime is the time for which an answer waits for the rest of a body that no handler reads. After that, the
	// answer closes the connection.
	drainTime = 50 * time.Millisecond
)

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// untouched reports whether the request still has the body that it had before the guard.
func (b *heldBody) untouched() bool { return sameValue(b.request.Body, b.original) }

// restore gives the request its original body back. net/http recognizes its own bodies by their types: only with the
// original does it know how much of it is unread, whether the client still waits for permission to send it, and that it
// must not close the connection at once, because the client would get a TCP reset instead of the answer. The bytes that
// were read are gone. It does nothing over HTTP/2, where the type does not matter.
func (b *heldBody) restore() {
	if b.request.ProtoMajor == 1 && b.original != nil {
		b.request.Body = b.original
	}
}

// keepType makes a body of the guard an [http.MaxBytesReader] if the original was one, because [http.Request.ParseForm]
// limits forms to 10 MB in any other body.
func (b *heldBody) keepType() {
	if limited := http.MaxBytesReader(nil, nil, 0); !b.untouched() && reflect.TypeOf(b.original) == reflect.TypeOf(limited) {
		b.request.Body = http.MaxBytesReader(nil, b.request.Body, math.MaxInt64) // the original has the limit
	}
}

// drain reads the rest of the original body, which no handler reads. It is like the draining of net/http, but takes at
// most drainTime. If the connection does not support deadlines, drain does nothing.
func (b *heldBody) drain(w Writer) {
	reading := !b.untouched()
	if b.request.ProtoMajor != 1 || !hasBody(b.request) || !reading && b.request.Header.Get("Expect") != "" {
		return // net/http sends the answer at once
	}
	connection := http.NewResponseController(w)
	bounded := connection.SetReadDeadline(time.Now().Add(drainTime)) == nil
	b.stop()
	b.restore()
	if !bounded {
		return
	}
	if _, err := io.CopyN(io.Discard, b.original, drainBytes); !errors.Is(err, io.EOF) {
		lastAnswer(w)
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) //nolint:errcheck // setting a deadline succeeded before
}

// lastAnswer makes net/http close the connection after the answer, but not before the client had time to read it. A
// header alone would close it at once.
func lastAnswer(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	for inner, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok; inner, ok = w.(interface{ Unwrap() http.ResponseWriter }) {
		w = inner.Unwrap()
	}
	tooLarge := http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0)
	_, _ = tooLarge.Read(make([]byte, 1)) //nolint:errcheck // the error is the purpose: net/http notices it
}
