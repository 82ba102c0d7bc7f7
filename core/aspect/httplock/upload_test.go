package httplock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/adaptertest"
	"github.com/interlock-go/interlock/core/aspect/httplock"
	"github.com/interlock-go/interlock/core/ruleset"
)

// The bodies of waiters do not use up the window of an HTTP/2 connection, which the holder needs for its own body. A body
// that is too large to be read ahead does not wait.
func TestUpload_WaitersLeaveTheWindow(t *testing.T) {
	t.Parallel()
	accepted, refused := []int{http.StatusAccepted}, []int{http.StatusConflict}
	for name, tt := range map[string]struct {
		opts    []any
		waiters adaptertest.Waiters
	}{
		"one of 2 MiB":                         {nil, adaptertest.Waiters{N: 1, Size: 2 << 20, Status: refused}},
		"one of 2 MiB, of unknown size":        {nil, adaptertest.Waiters{N: 1, Size: 2 << 20, Unknown: true, Status: refused}},
		"one of 2 MiB, which is permitted":     {[]any{httplock.WithMaxBody(2 << 20)}, adaptertest.Waiters{N: 1, Size: 2 << 20, Status: accepted}},
		"twenty of 64 KiB":                     {nil, adaptertest.Waiters{N: 20, Size: 64 << 10, Status: accepted}},
		"twenty of 64 KiB, of unknown size":    {nil, adaptertest.Waiters{N: 20, Size: 64 << 10, Unknown: true, Status: accepted}},
		"70 of 16 KiB, of unknown size":        {nil, adaptertest.Waiters{N: 70, Size: 16 << 10, Unknown: true, Status: accepted}},
		"70 of 1 MiB, of unknown size":         {nil, adaptertest.Waiters{N: 70, Size: 1 << 20, Unknown: true, Status: []int{http.StatusAccepted, http.StatusTooManyRequests}}},
		"70 of 1 MiB, more than the guard has": {nil, adaptertest.Waiters{N: 70, Size: 1 << 20, Status: []int{http.StatusAccepted, http.StatusTooManyRequests}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.opts...)
			entered := make(chan struct{}, 1)
			err := b.guard.HandleFunc(b.mux, pattern, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(adaptertest.Holder) != "" {
					entered <- struct{}{}
				}
				if _, err := io.Copy(io.Discard, r.Body); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusAccepted)
			}, ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.WaitForever})
			if err != nil {
				t.Fatal(err)
			}
			adaptertest.ServeUploads(t, b.mux, "/orders/42/pay", entered, tt.waiters)
		})
	}
}

// net/http limits forms to 10 MB, unless the body is a MaxBytesReader. A limit of a layer around the guard holds after a wait, too.
func TestUpload_FormUnderAnOuterLimit(t *testing.T) {
	t.Parallel()
	form := "id=42&pad=" + strings.Repeat("x", 11<<20)
	for name, rule := range map[string]ruleset.Rule{
		"a free lock":       {Key: "free"},
		"a wait":            {Key: "taken", WaitTime: ruleset.WaitForever},
		"a key over a form": {Key: "order:#{form.id}"},
	} {
		for _, proto := range []int{1, 2} {
			t.Run(fmt.Sprint(name, ", HTTP/", proto), func(t *testing.T) {
				t.Parallel()
				b := newBench(t, httplock.WithMaxBody(12<<20))
				err := b.guard.HandleFunc(b.mux, pattern, func(w http.ResponseWriter, r *http.Request) {
					if err := r.ParseForm(); err != nil || len(r.PostForm.Get("pad")) != 11<<20 {
						t.Errorf("ParseForm: %v", err)
					}
					w.WriteHeader(http.StatusAccepted)
				}, rule)
				if err != nil {
					t.Fatal(err)
				}
				b.redis.Take("taken", time.Hour)
				body := io.TeeReader(strings.NewReader(form), writerFunc(func() { b.redis.Free("taken") })) // read during the wait
				got := b.do("POST", "/orders/42/pay", body, func(r *http.Request) {
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					r.ProtoMajor, r.ContentLength = proto, -1
					r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 32<<20)
				})
				if got.Code != http.StatusAccepted {
					t.Errorf("got %d %s", got.Code, got.Body)
				}
			})
		}
	}
}

// writerFunc is a writer that calls a function.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// An answer to a client that still sends does not end with a TCP reset.
func TestUpload_EarlyAnswers(t *testing.T) {
	t.Parallel()
	byPath := ruleset.Rule{Key: "order:#{path.id}", WaitTime: ruleset.NoWait}
	waiting, byBody := byPath, ruleset.Rule{Key: "order:#{body.id}"}
	waiting.WaitTime = time.Second
	tests := map[string]struct {
		rule   ruleset.Rule
		header string
		slow   bool
		status int
	}{
		"busy":                                {byPath, adaptertest.Chunked, false, http.StatusConflict},
		"busy, with a length":                 {byPath, adaptertest.Sized, false, http.StatusConflict},
		"busy, a slow client":                 {byPath, adaptertest.Chunked, true, http.StatusConflict},
		"busy after a wait":                   {waiting, adaptertest.Chunked, false, http.StatusConflict},
		"busy after a wait, a slow client":    {waiting, adaptertest.Chunked, true, http.StatusConflict},
		"too large for a key":                 {byBody, adaptertest.Chunked, false, http.StatusRequestEntityTooLarge},
		"too large for a key, with a length":  {byBody, adaptertest.Sized, false, http.StatusRequestEntityTooLarge},
		"too large for a key, with an Expect": {byBody, adaptertest.Expected, false, http.StatusRequestEntityTooLarge},
		"refused by the handler after a wait": {ruleset.Rule{Key: "free:#{path.id}", WaitTime: ruleset.WaitForever}, adaptertest.Chunked, false, http.StatusTeapot},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, httplock.WithMaxBody(64<<10))
			err := b.guard.HandleFunc(b.mux, pattern, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "close")
				w.WriteHeader(http.StatusTeapot)
			}, tt.rule)
			if err != nil {
				t.Fatal(err)
			}
			b.redis.Take("order:42", time.Hour)
			b.redis.Take("free:42", time.Hour)
			adaptertest.AnswerUploads(t, b.mux, "/orders/42/pay", tt.header, tt.slow, tt.status, func(clients int) {
				if tt.status == http.StatusTeapot {
					until(t, func() bool { return b.locks.Stats().Waiters == clients })
					b.redis.Free("free:42")
				}
			})
		})
	}
}

// pooledBody is a body that a middleware uses again when the guard has returned, such as a decompressor from a pool.
type pooledBody struct {
	io.ReadCloser
	reading atomic.Int32
}

func (b *pooledBody) Read(p []byte) (int, error) {
	b.reading.Add(1)
	defer b.reading.Add(-1)
	return b.ReadCloser.Read(p)
}

// When the guard has returned, nothing reads the body any more, although the client still sends it.
func TestUpload_NotReadAfterwards(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key    string
		status int
	}{"refused": {"taken", http.StatusConflict}, "ran": {"free", http.StatusAccepted}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if err := b.guard.Handle(b.mux, pattern, http.HandlerFunc(ok), ruleset.Rule{Key: tt.key, WaitTime: time.Second}); err != nil {
				t.Fatal(err)
			}
			b.redis.Take("taken", time.Hour)
			b.redis.Take("free", 300*time.Millisecond)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := &pooledBody{ReadCloser: r.Body}
				r.Body = body
				b.mux.ServeHTTP(w, r)
				if body.reading.Load() > 0 {
					t.Error("the body is still being read")
				}
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			t.Cleanup(server.Close)
			half, rest := io.Pipe()
			defer rest.Close()
			go func() { _, _ = rest.Write([]byte("half")) }()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders/42/pay", half)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != tt.status {
				t.Errorf("got %d", answer.StatusCode)
			}
		})
	}
}
