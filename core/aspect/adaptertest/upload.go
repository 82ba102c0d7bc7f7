package adaptertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// connectionWindow is the size of the window of an HTTP/2 connection of net/http, by default.
const connectionWindow = 1 << 20

// Waiters describes the requests of [ServeUploads] that wait for the lock.
type Waiters struct {
	N       int   // the number of requests
	Size    int64 // the size of the body of each, in bytes
	Unknown bool  // the requests do not announce the size
	Status  []int // the statuses that their answers may have
}

// Holder is the header of the request of [ServeUploads] that gets the lock.
const Holder = "X-Holder"

// ServeUploads tests that the holder of a lock can send its body while other requests of the same HTTP/2 connection wait
// for the lock with separate bodies. All send a POST to path, whose rule waits for ever. Its handler reads the body. For
// the request with the header [Holder], it first sends to entered, once.
func ServeUploads(t *testing.T, handler http.Handler, path string, entered <-chan struct{}, w Waiters) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	post := func(body io.Reader, size int64, holder string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, body)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.ContentLength = size
		r.Header.Set(Holder, holder)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	half, rest := io.Pipe()
	holder := make(chan int, 1)
	go func() { holder <- post(half, -1, "yes") }()
	if _, err := rest.Write(make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	<-entered
	var sent, answered atomic.Int64
	var waiters sync.WaitGroup
	for range w.N {
		waiters.Go(func() {
			size := w.Size
			if w.Unknown {
				size = -1
			}
			status := post(&counted{io.LimitReader(zeros{}, w.Size), &sent}, size, "")
			answered.Add(1)
			if !slices.Contains(w.Status, status) {
				t.Errorf("a waiter: got %d, want %d", status, w.Status)
			}
		})
	}
	for sent.Load() < connectionWindow-64<<10 && answered.Load() < int64(w.N) {
		time.Sleep(time.Millisecond)
	}
	sendRest(t, rest, holder)
	waiters.Wait()
}

// sendRest sends the rest of the holder's body, and requires that the holder succeeds.
func sendRest(t *testing.T, rest *io.PipeWriter, holder <-chan int) {
	t.Helper()
	start := time.Now()
	for range 64 {
		if _, err := rest.Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	_ = rest.Close()
	if status := <-holder; status >= http.StatusBadRequest {
		t.Errorf("the holder: got %d", status)
	}
	t.Logf("the holder needed %d ms for the rest of its body", time.Since(start).Milliseconds())
}

// counted is a body that counts the bytes that the client has sent.
type counted struct {
	io.Reader
	sent *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.sent.Add(int64(n))
	return n, err
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// The headers of the bodies that [AnswerUploads] sends.
const (
	Chunked  = "Transfer-Encoding: chunked\r\n"
	Sized    = "Content-Length: 100000000\r\n"
	Expected = Chunked + "Expect: 100-continue\r\n"
)

// uploads is the number of requests of AnswerUploads.
const uploads = 12

// AnswerUploads tests that clients that send bodies without an end over HTTP/1.1 get an answer with the status, and that the
// server then ends their connections without a TCP reset, which could destroy the answer on its way. If slow is true, the
// clients send a little at a time. sending is called while they send.
func AnswerUploads(t *testing.T, handler http.Handler, path, header string, slow bool, status int, sending func(clients int)) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	closing := &closings{Listener: server.Listener}
	server.Listener = closing
	server.Start()
	t.Cleanup(server.Close)
	var all sync.WaitGroup
	var resets atomic.Int32
	for range uploads {
		all.Go(func() {
			got, err := sendUntilAnswered(server.Listener.Addr().String(), path, header, slow)
			switch {
			case errors.Is(err, syscall.ECONNRESET):
				resets.Add(1)
			case err != nil || got != status:
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	if sending != nil {
		sending(uploads)
	}
	all.Wait()
	if abrupt := closing.abrupt.Load(); abrupt > 0 { // on a slow machine, a reset after a half-close may be too early for the client
		t.Errorf("the server closed %d of %d connections while the client sent, and %d ended with a reset", abrupt, uploads, resets.Load())
	}
}

// sendUntilAnswered sends a body without an end until the connection ends. It returns the status of the answer.
func sendUntilAnswered(address, path, header string, slow bool) (status int, err error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n%s\r\n", path, header); err != nil {
		return 0, err
	}
	chunk := "4000\r\n" + strings.Repeat("x", 0x4000) + "\r\n"
	if slow {
		chunk = "1\r\nx\r\n"
	}
	go func() {
		for {
			if _, err := io.WriteString(conn, chunk); err != nil {
				return
			}
			if slow {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil) //nolint:bodyclose // the end of the connection closes it
	if err == nil && answer.StatusCode == http.StatusContinue {
		answer, err = http.ReadResponse(in, nil) //nolint:bodyclose // likewise
	}
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return answer.StatusCode, err
	}
	_, err = io.Copy(io.Discard, in)
	return answer.StatusCode, err
}

// closings is a listener that counts the connections that the server closes at once, without a half-close before. While
// the client sends, such a close is a reset.
type closings struct {
	net.Listener
	abrupt atomic.Int32
}

// Accept returns the next connection.
func (l *closings) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &closing{TCPConn: conn.(*net.TCPConn), in: l}, nil //nolint:forcetypeassert // the listener of httptest
}

type closing struct {
	*net.TCPConn
	in   *closings
	half atomic.Bool
}

// CloseWrite closes the half of the connection that the client reads.
func (c *closing) CloseWrite() error {
	c.half.Store(true)
	return c.TCPConn.CloseWrite()
}

// Close closes the connection.
func (c *closing) Close() error {
	if !c.half.Swap(true) {
		c.in.abrupt.Add(1)
	}
	return c.TCPConn.Close()
}
