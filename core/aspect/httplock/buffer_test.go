package httplock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/aspect/httplock"
)

// Whatever a handler does with its writer, a client of HTTP/2 gets the same answer with and without a buffer.
func TestBuffer_SameAnswerOverHTTP2(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"the first status counts": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Early", "1")
			w.WriteHeader(http.StatusCreated)
			w.Header().Set("X-Late", "1")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "created")
		},
		"a body settles it": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "ok")
			w.Header().Set("X-Late", "1")
			http.Error(w, "too late", http.StatusTeapot)
		},
		"status only": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"hints": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		},
		"hints and nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) },
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprint(w, "sum")
			w.Header().Set("X-Sum", "1")
		},
		"trailers that were not announced": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat("sum", 1000)) // more than net/http buffers
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		},
		"no connection to hijack": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Early", "1")
			if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
				t.Error("hijacked a connection of HTTP/2")
			}
			w.WriteHeader(http.StatusUpgradeRequired)
		},
		"a file": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			if _, err := io.Copy(w, strings.NewReader("file")); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			straight := answerOf(t, newBench(t), handler)
			if kept := answerOf(t, newBench(t, httplock.WithBuffer(1<<20)), handler); kept != straight {
				t.Errorf("got %s\nwant %s", kept, straight)
			}
		})
	}
}

// answerOf returns the answer of a handler to a client of HTTP/2.
func answerOf(t *testing.T, b *bench, handler http.HandlerFunc) string {
	t.Helper()
	if err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", handler, byID()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(b.mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	response, err := server.Client().Post(server.URL+"/orders/42", "text/plain", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	response.Header.Del("Date")
	response.Header.Del("Content-Length") // net/http adds the length of an answer that arrives in one piece
	return fmt.Sprintf("%d %v %q %v %v", response.StatusCode, response.Header, body, response.Trailer, err)
}

// With and without a buffer, a handler sees the same results of its writer, and a client of HTTP/1.1 gets the same answer.
// It does not matter whether the buffer holds the answer back to the end.
func TestBuffer_SameAnswerOverHTTP1(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]func(w http.ResponseWriter, saw func(...any)){
		"invalid status": func(w http.ResponseWriter, saw func(...any)) {
			for _, code := range []int{-1, 0, 99, 1000} {
				func() {
					defer func() { saw(recover()) }()
					w.WriteHeader(code)
				}()
			}
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(0) // superfluous, so net/http does not check it
		},
		"body of 204": func(w http.ResponseWriter, saw func(...any)) {
			w.WriteHeader(http.StatusNoContent)
			saw(io.WriteString(w, "text"))
			saw(w.Write(nil))
		},
		"body of 304": func(w http.ResponseWriter, saw func(...any)) {
			w.WriteHeader(http.StatusNotModified)
			saw(w.Write([]byte("text")))
		},
		"more than announced": func(w http.ResponseWriter, saw func(...any)) {
			w.Header().Set("Content-Length", "4")
			saw(io.WriteString(w, "text"))
			saw(io.WriteString(w, "more"))
		},
		"less than announced": func(w http.ResponseWriter, saw func(...any)) {
			w.Header().Set("Content-Length", "8")
			saw(io.WriteString(w, "text"))
		},
		"invalid length": func(w http.ResponseWriter, saw func(...any)) {
			w.Header().Set("Content-Length", "four")
			saw(io.WriteString(w, "text"))
		},
		"early hints": func(w http.ResponseWriter, _ func(...any)) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Add("Link", "</b>")
			w.WriteHeader(http.StatusProcessing)
			w.Header().Del("Link")
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusEarlyHints)
		},
		"trailers by a header that the handler keeps": func(w http.ResponseWriter, _ func(...any)) {
			header := w.Header()
			header.Set("Trailer", "X-Sum")
			fmt.Fprint(w, strings.Repeat("s", 2049)) // more than net/http buffers
			header.Set("X-Sum", "1")
			header.Set(http.TrailerPrefix+"X-Late", "1")
		},
		"empty file": func(w http.ResponseWriter, saw func(...any)) {
			saw(io.Copy(w, strings.NewReader("")))
			w.WriteHeader(http.StatusNotFound)
		},
		"another protocol": func(w http.ResponseWriter, saw func(...any)) {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "echo")
			w.WriteHeader(http.StatusSwitchingProtocols)
			hijack(w, saw, "hello")
		},
		"hijacked after a status": func(w http.ResponseWriter, saw func(...any)) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(http.StatusAccepted)
			hijack(w, saw, "hello")
		},
		"hijacked": func(w http.ResponseWriter, saw func(...any)) {
			hijack(w, saw, "HTTP/1.1 203 Mine\r\nContent-Length: 0\r\n\r\n")
			saw(w.Write([]byte("late")))
		},
		"deadlines": func(w http.ResponseWriter, saw func(...any)) {
			c := http.NewResponseController(w)
			saw(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}), c.EnableFullDuplex())
		},
		"push": func(w http.ResponseWriter, saw func(...any)) {
			if p, ok := w.(http.Pusher); ok { // HTTP/1.1 has no pusher
				saw(errors.Is(p.Push("/a", nil), http.ErrNotSupported))
				return
			}
			saw(true)
		},
	} {
		for _, method := range []string{http.MethodPost, http.MethodHead} {
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				straight := resultsOf(t, newBench(t), method, handler)
				for _, limit := range []int{1, 1 << 20} {
					if kept := resultsOf(t, newBench(t, httplock.WithBuffer(limit)), method, handler); kept != straight {
						t.Errorf("limit %d: got\n%s\nwant\n%s", limit, kept, straight)
					}
				}
				if bare := resultsOf(t, nil, method, handler); straight != bare {
					t.Errorf("without a buffer: got\n%s\nwant\n%s", straight, bare)
				}
			})
		}
	}
}

func hijack(w http.ResponseWriter, saw func(...any), text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if saw(err); err != nil {
		return
	}
	defer conn.Close()
	saw(io.WriteString(conn, text))
}

// resultsOf returns the results that a handler and its client see. Without a bench the handler has no guard.
func resultsOf(t *testing.T, b *bench, method string, handler func(http.ResponseWriter, func(...any))) string {
	t.Helper()
	var inside, outside strings.Builder
	done := make(chan struct{})
	mux, serve := http.NewServeMux(), func(w http.ResponseWriter, _ *http.Request) {
		defer close(done)
		handler(w, func(what ...any) { fmt.Fprintln(&inside, what...) })
	}
	if b == nil {
		mux.HandleFunc("/orders/{id}", serve)
	} else if err := b.guard.HandleFunc(mux, "/orders/{id}", serve, byID()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s /orders/42 HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n", method); err != nil {
		t.Fatal(err)
	}
	in, saw := bufio.NewReader(conn), func(what ...any) { fmt.Fprintln(&outside, what...) }
	for {
		response, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			saw(err)
			break
		}
		response.Header.Del("Date")
		if response.StatusCode == http.StatusSwitchingProtocols {
			response.Body = io.NopCloser(in) // the body ends with the connection
		}
		body, err := io.ReadAll(response.Body)
		saw(response.Status, response.Header, response.ContentLength, string(body), response.Trailer, err)
		if response.StatusCode >= http.StatusOK || response.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	<-done
	return inside.String() + outside.String()
}

// failingFlush is a writer whose client has left.
type failingFlush struct{ http.ResponseWriter }

var errGone = errors.New("the client is gone")

func (failingFlush) FlushError() error { return errGone }

// bareWriter is a writer that cannot flush.
type bareWriter struct{ http.ResponseWriter }

func TestBuffer_ErrorsOfFlush(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		under func(http.ResponseWriter) http.ResponseWriter
		opts  []any
		want  error
	}{
		"without a buffer":             {func(w http.ResponseWriter) http.ResponseWriter { return failingFlush{w} }, nil, errGone},
		"of an answer that was let go": {func(w http.ResponseWriter) http.ResponseWriter { return failingFlush{w} }, []any{httplock.WithBuffer(1)}, errGone},
		"without Flush":                {func(w http.ResponseWriter) http.ResponseWriter { return bareWriter{w} }, nil, http.ErrNotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.opts...)
			err := b.guard.HandleFunc(b.mux, "POST /orders/{id}", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "text")
				if err := http.NewResponseController(w).Flush(); !errors.Is(err, tt.want) {
					t.Errorf("Flush: got %v, want %v", err, tt.want)
				}
			}, byID())
			if err != nil {
				t.Fatal(err)
			}
			b.mux.ServeHTTP(tt.under(httptest.NewRecorder()), httptest.NewRequest(http.MethodPost, "/orders/42", nil))
		})
	}
}
