package connectlock_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock/connectlock"
)

func TestStream_MetadataKeyAndServerFirst(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		b := setup(t, &shop{chat: func(_ context.Context, stream *chatStream) error {
			if err := stream.Send(reply("hello")); err != nil {
				return err
			}
			req, err := stream.Receive()
			if err != nil {
				return err
			}
			return stream.Send(reply("re " + req.GetOrderId()))
		}}, connectlock.WithServerFirst(path("Chat")),
			connectlock.WithRules(rule("Chat", func(r *ruleset.Rule) { r.Key = `order:#{metadata["x-order"]}` })))
		s := b.chat(t.Context(), protocol, "x-order", "1")
		if got, err := s.Receive(); err != nil || got.GetReceipt() != "hello" {
			t.Fatalf("%s: got %v, %v before anything was sent, want hello", protocol, got, err)
		}
		if !b.held("order:1") {
			t.Error("the lock is not held while the handler runs")
		}
		if err := errors.Join(s.Send(order("5")), s.CloseRequest()); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Receive(); err != nil || got.GetReceipt() != "re 5" {
			t.Errorf("got %v, %v; want re 5", got, err)
		}
		if _, err := s.Receive(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end", err)
		}
	}
}

func TestStream_RefusedWhileClientSends(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		b := setup(t, &shop{}, connectlock.WithRules(rule("Import", func(r *ruleset.Rule) { r.OnBusy = failpolicy.Skip })))
		b.redis.Take("order:1", time.Minute)
		s := b.client(protocol, "Import").CallClientStream(t.Context())
		var err error
		for err == nil {
			err = s.Send(order("1"))
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: Send: got %v, want io.EOF", protocol, err)
		}
		singleAnswer(s.CloseAndReceive()).check(t, "")
	}
}

// The messages of streams that wait do not use up the window of an HTTP/2 connection, which the stream that has the lock
// needs for its own messages. A stream that sends too much does not wait.
func TestStream_WaitersLeaveTheWindow(t *testing.T) {
	t.Parallel()
	const window = 1 << 20 // of a connection of net/http, by default
	for name, tt := range map[string]struct {
		method   string
		streams  int
		messages int // of 64 KiB each
		code     connect.Code
	}{
		"one of 2 MiB":             {"Import", 1, 32, connect.CodeAborted},
		"twenty of 64 KiB":         {"Import", 20, 1, 0},
		"20 that receive a stream": {"Track", 20, 1, 0},
		"20 of chat":               {"Chat", 20, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered := make(chan struct{}, 1)
			s := &shop{importAll: func(_ context.Context, stream *importStream) (*receipt, error) {
				for messages := 0; stream.Receive(); messages++ {
					if messages == 0 && stream.Msg().GetOrderId() == "holder" {
						entered <- struct{}{}
					}
				}
				return reply("imported"), stream.Err()
			}}
			key := func(r *ruleset.Rule) { r.Key, r.WaitTime = "one", ruleset.WaitForever }
			b := setup(t, s, connectlock.WithRules(rule("Import", key), rule("Track", key), rule("Chat", key)))
			holder := b.client("connect", "Import").CallClientStream(t.Context())
			if err := holder.Send(order("holder")); err != nil {
				t.Fatal(err)
			}
			<-entered
			large := strings.Repeat("x", 64<<10)
			var sent, answered atomic.Int64
			var all sync.WaitGroup
			for range tt.streams {
				all.Go(func() {
					defer answered.Add(1)
					if got := b.callLarge(tt.method, large, tt.messages, &sent); codeOf(got) != tt.code {
						t.Errorf("a waiter: got %v, want %v", got.err, tt.code)
					}
				})
			}
			until(t, func() bool {
				return sent.Load() >= window-128<<10 || answered.Load() == int64(tt.streams) || b.locks.Stats().Waiters == tt.streams
			})
			start := time.Now()
			for range 64 {
				if err := holder.Send(order(large)); err != nil {
					t.Fatal(err)
				}
			}
			singleAnswer(holder.CloseAndReceive()).check(t, "imported")
			t.Logf("the holder needed %d ms for the rest of its messages", time.Since(start).Milliseconds())
			all.Wait()
		})
	}
}

// callLarge calls a method with several messages and counts the bytes that it sends.
func (b *bench) callLarge(method, text string, messages int, sent *atomic.Int64) answer {
	client := b.client("connect", method)
	switch method {
	case "Track":
		s, err := client.CallServerStream(b.t.Context(), connect.NewRequest(order(text)))
		if err != nil {
			return failedAnswer(err)
		}
		defer s.Close()
		for s.Receive() {
		}
		return answer{}.withEnd(s.ResponseHeader(), s.Err())
	case "Chat":
		s := client.CallBidiStream(b.t.Context())
		defer s.CloseResponse()
		for range messages {
			if s.Send(order(text)) == nil {
				sent.Add(int64(len(text)))
			}
		}
		_ = s.CloseRequest()
		return drain(s)
	default:
		s := client.CallClientStream(b.t.Context())
		for range messages {
			if s.Send(order(text)) != nil {
				break
			}
			sent.Add(int64(len(text)))
		}
		return singleAnswer(s.CloseAndReceive())
	}
}
