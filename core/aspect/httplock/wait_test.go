package httplock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// serveBoth serves the bench over HTTP/1.1 and HTTP/2.
func serveBoth(t *testing.T, test func(t *testing.T, b *bench, client *http.Client, url string)) {
	t.Helper()
	for name, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			server := httptest.NewUnstartedServer(b.mux)
			server.EnableHTTP2 = two
			server.StartTLS()
			t.Cleanup(server.Close)
			test(t, b, server.Client(), server.URL+"/orders/42/pay")
		})
	}
}

// echo answers each line with a line and returns when the client stops sending.
func echo(w http.ResponseWriter, r *http.Request) {
	connection := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		if err := connection.EnableFullDuplex(); err != nil {
			panic(err)
		}
	}
	line := make([]byte, 1)
	for {
		if _, err := io.ReadFull(r.Body, line); err != nil {
			return
		}
		_, _ = w.Write(line)
		_ = connection.Flush()
	}
}

// talk sends bytes one by one and reads each back before it sends the next one.
func talk(t *testing.T, client *http.Client, url string) {
	t.Helper()
	body, send := io.Pipe()
	defer send.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = send.Write([]byte("a")) }()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got := make([]byte, 1)
	for _, want := range "abc" {
		if want != 'a' {
			if _, err := send.Write([]byte(string(want))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(answer.Body, got); err != nil || rune(got[0]) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
}

// A handler may answer while its client still sends, if the lock is free.
func TestWait_FullDuplexUnderAFreeLock(t *testing.T) {
	t.Parallel()
	serveBoth(t, func(t *testing.T, b *bench, client *http.Client, url string) {
		if err := b.guard.HandleFunc(b.mux, pattern, echo, ruleset.Rule{Key: "order:#{path.id}", WaitTime: time.Minute}); err != nil {
			t.Fatal(err)
		}
		talk(t, client, url)
	})
}

// Over HTTP/2 a handler may also do so after a wait, because the server notices that a client has left
// without reading the body.
func TestWait_FullDuplexOverHTTP2(t *testing.T) {
	t.Parallel()
	serveBoth(t, func(t *testing.T, b *bench, client *http.Client, url string) {
		if !strings.Contains(t.Name(), "HTTP/2") {
			return // the guard has to read the body over HTTP/1.1 while the request waits
		}
		if err := b.guard.HandleFunc(b.mux, pattern, echo, ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.WaitForever}); err != nil {
			t.Fatal(err)
		}
		b.redis.Take("order:42", time.Hour)
		freed := make(chan struct{})
		go func() {
			defer close(freed)
			until(t, func() bool { return b.locks.Stats().Waiters == 1 })
			b.redis.Free("order:42")
		}()
		talk(t, client, url)
		<-freed
	})
}

func TestWait_ClientLeaves(t *testing.T) {
	t.Parallel()
	serveBoth(t, func(t *testing.T, b *bench, client *http.Client, url string) {
		if err := b.guard.HandleFunc(b.mux, pattern, ok, ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.WaitForever}); err != nil {
			t.Fatal(err)
		}
		b.redis.Take("order:42", time.Hour)
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(make([]byte, 1<<16)))
			if err != nil {
				t.Error(err)
				return
			}
			if answer, err := client.Do(r); err == nil {
				answer.Body.Close()
			}
		}()
		until(t, func() bool { return b.locks.Stats().Waiters == 1 })
		leave()
		<-done
		until(t, func() bool { return b.locks.Stats().Waiters == 0 })
	})
}

// slowBody is a body that arrives only when the test releases it.
type slowBody struct {
	begun *atomic.Int32 // the number of bodies of which something was read
	once  sync.Once
	comes <-chan struct{}
}

func (s *slowBody) Read([]byte) (int, error) {
	s.once.Do(func() { s.begun.Add(1) })
	<-s.comes
	return 0, io.EOF
}

func (s *slowBody) Close() error { return nil }

// However many requests wait, the bodies that the guard reads for them have at most 64 MiB in total. Further
// requests wait with unread bodies.
func TestWait_BoundOfBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.guard.HandleFunc(b.mux, pattern, ok, ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.WaitForever}); err != nil {
		t.Fatal(err)
	}
	b.redis.Take("order:42", time.Hour)
	const requests, fit = 100, 64
	var begun atomic.Int32
	var all sync.WaitGroup
	comes := make(chan struct{})
	for range requests {
		all.Go(func() {
			got := b.do("POST", "/orders/42/pay", http.NoBody, func(r *http.Request) {
				r.Body, r.ContentLength = &slowBody{begun: &begun, comes: comes}, 1<<20
			})
			if got.Code != http.StatusAccepted {
				t.Errorf("got %d", got.Code)
			}
		})
	}
	until(t, func() bool { return begun.Load() == fit && b.locks.Stats().Waiters == requests-fit }) // without a bound, begun exceeds fit
	close(comes)
	until(t, func() bool { return b.locks.Stats().Waiters == requests })
	b.redis.Free("order:42")
	all.Wait()
}

// If a key needs the body and the guard has no room for it, the request is an overload.
func TestWait_NoRoomForTheBodyOfAKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, httplock.WithMaxBody(64<<20))
	if err := b.guard.HandleFunc(b.mux, pattern, ok, ruleset.Rule{Key: "order:#{body.id}", WaitTime: ruleset.WaitForever}); err != nil {
		t.Fatal(err)
	}
	post := func(id string, size int) int {
		body := fmt.Sprintf(`{"id": %q, "pad": "%s"}`, id, strings.Repeat("x", size))
		return b.do("POST", "/orders/42/pay", strings.NewReader(body), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }).Code
	}
	b.redis.Take("order:42", time.Hour)
	var all sync.WaitGroup
	wait := func(size, waiters int) {
		all.Go(func() {
			if got := post("42", size); got != http.StatusAccepted {
				t.Errorf("got %d", got)
			}
		})
		until(t, func() bool { return b.locks.Stats().Waiters == waiters })
	}
	wait(40<<20, 1)
	if got := post("42", 30<<20); got != http.StatusTooManyRequests {
		t.Errorf("got %d", got)
	}
	if got := post("43", 30<<20); got != http.StatusAccepted {
		t.Errorf("with a free lock: got %d", got)
	}
	wait(1<<10, 2)
	b.redis.Free("order:42")
	all.Wait()
	b.redis.Take("order:42", time.Hour)
	wait(60<<20, 1) // the room is free again
	b.redis.Free("order:42")
	all.Wait()
}
