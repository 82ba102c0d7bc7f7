package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/aspect"
)

// maxWaitingBodies is how many bytes of bodies the requests that wait under one guard hold at most.
// Without a bound, 10,000 waiters with a body of 1 MiB each would need 10 GiB.
const maxWaitingBodies = 64 << 20

// errNoRoom refuses a request whose body has to be kept while it waits: it is an overload.
var errNoRoom = fmt.Errorf("%w: the bodies of waiting requests have %d MiB", core.ErrTooManyWaiters, maxWaitingBodies>>20)

// room counts the bytes of bodies that waiting requests hold.
type room struct {
	mu   sync.Mutex
	used int64
}

// take takes room for a body, and reports whether there was some. A body that is larger than all
// of the room fits if no other body is there.
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

// BeforeWait is an optional method of an [aspect.Call]. A server of HTTP/1 notices that a client has left
// only when the body was read, so the body is read before the request waits. A server of HTTP/2
// notices it anyway. A body that was read for a key counts, too.
func (x *exchange) BeforeWait() (prepare func(ctx context.Context) error) {
	r := x.router.Request()
	if content, read := x.bodyRead(); read {
		return func(context.Context) error { return x.keep(int64(len(content))) }
	}
	if !hasBody(r) || r.ProtoMajor > 1 || r.ContentLength > x.entry.Extra.maxBody {
		return nil
	}
	return x.readAhead
}

// bodyRead gives the body, if it was read for a key or a condition.
func (x *exchange) bodyRead() (content []byte, read bool) {
	if x.values == nil {
		return nil, false
	}
	return x.values.Body()
}

// keep counts a body that is in memory. Without room, a request waits only if the body need not be
// there: it was kept by a middleware.
func (x *exchange) keep(n int64) error {
	taken, ok := x.entry.Extra.room.take(n)
	x.taken += taken
	if !ok && slices.ContainsFunc(lateVariables(), x.entry.Point.Uses) {
		return errNoRoom
	}
	return nil
}

// readAhead reads the body, until ctx ends. Without room the request waits without it, and a
// client that leaves is not noticed.
func (x *exchange) readAhead(ctx context.Context) error {
	r, limit, room := x.router.Request(), x.entry.Extra.maxBody, x.entry.Extra.room
	n := r.ContentLength
	if n <= 0 {
		n = limit
	}
	var ok bool
	if x.taken, ok = room.take(n); !ok {
		return nil
	}
	x.ahead = newAhead(r.Body, limit)
	r.Body = x.ahead
	select {
	case <-x.ahead.done:
		unused := max(x.taken-x.ahead.size, 0)
		room.giveBack(unused)
		x.taken -= unused
	case <-ctx.Done():
	}
	return nil
}

// stopsWaiting waits until the body is read ahead no more, because a layer that limits the body may
// set a header while it is read. Then it gives back the room of the body.
func (x *exchange) stopsWaiting() {
	if x.ahead != nil {
		<-x.ahead.done
	}
	x.entry.Extra.room.giveBack(x.taken)
	x.taken = 0
}

// ahead is a body that is read while its request waits. A Read waits until that has ended.
type ahead struct {
	io.Closer // the original

	done  chan struct{} // closed when no more is read ahead
	rest  io.Reader     // what there is to read then
	size  int64         // of what was read ahead
	whole bool          // that is all
}

func newAhead(original io.ReadCloser, limit int64) *ahead {
	a := &ahead{Closer: original, done: make(chan struct{}), rest: failing{io.ErrUnexpectedEOF}}
	go func() {
		defer close(a.done)
		defer func() {
			if v := recover(); v != nil {
				a.rest = failing{fmt.Errorf("httpcall: reading the body: panic: %v", v)}
			}
		}()
		content, err := io.ReadAll(io.LimitReader(original, min(limit, math.MaxInt64-1)+1))
		a.size, a.rest = int64(len(content)), io.MultiReader(bytes.NewReader(content), original)
		if a.whole = err == nil && a.size <= limit; err != nil {
			a.rest = io.MultiReader(bytes.NewReader(content), failing{err})
		}
	}()
	return a
}

// Read reads what was read ahead, and then the rest.
func (a *ahead) Read(p []byte) (int, error) {
	<-a.done
	return a.rest.Read(p)
}

// ended reports whether all of the body was read ahead.
func (a *ahead) ended() bool {
	select {
	case <-a.done:
		return a.whole
	default:
		return false
	}
}

// failing yields the error that ended the original body.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// An HTTP/1 server of net/http reads what is left of a body before it sends an answer,
// up to 256 KiB and however slowly they come, to use the connection again.
const (
	drainBytes = 256 << 10
	// drainTime is how long an answer that does not need the body waits for the rest of the body.
	// After that the connection ends with the answer.
	drainTime = 50 * time.Millisecond
)

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// drain reads the rest of the body, so that the answer need not wait for it.
func (x *exchange) drain(o *aspect.Outcome) {
	if o.Verdict == aspect.VerdictFallback {
		return // it has answered, and may have read it
	}
	if _, read := x.bodyRead(); !read {
		drain(x.router)
	}
	x.stopsWaiting()
}

// drain reads the body of a request whose handler does not run, as net/http would, but
// not for long. Where deadlines cannot be set it leaves that to the server.
func drain(router Router) {
	r := router.Request()
	body, begun := r.Body.(*ahead)
	if r.ProtoMajor != 1 || !hasBody(r) || !begun && r.Header.Get("Expect") != "" || begun && body.ended() {
		return // net/http sends the answer at once
	}
	connection := http.NewResponseController(router.Writer())
	if connection.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, r.Body, drainBytes); !errors.Is(err, io.EOF) {
		router.Writer().Header().Set("Connection", "close")
		return
	}
	_ = connection.SetReadDeadline(time.Time{}) //nolint:errcheck // it was possible a moment ago
}
