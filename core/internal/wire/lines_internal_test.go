package wire

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A client that sets no bound for its queue gets a bounded queue. The same is true for 0, which means
// unlimited in go-redis.
func TestPipelineBound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		said *redis.AutoPipelineOptions
		want int
	}{
		"nothing": {nil, maxQueued},
		"0":       {redis.DefaultAutoPipelineOptions(), maxQueued},
		"7":       {&redis.AutoPipelineOptions{MaxQueuedCommands: 7}, 7},
	} {
		if got := pipelineBound(tt.said); got != tt.want || got <= 0 {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// during is an error that runs a function when errors.As inspects it.
type during struct {
	error

	once sync.Once
	do   func()
}

func (e *during) As(any) bool {
	e.once.Do(e.do)
	return false
}

// A call whose pipeline ends while the call is being submitted uses the next pipeline.
func TestLines_Submit_PipelineEnds(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	defer client.Close()
	r, err := New(client, Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := r.single.lines
	submitted := func() error {
		c := newCommand("evalsha", "digest", nil)
		c.at = time.Now()
		c.prepare(c.at.Add(time.Minute))
		return s.submit(c)
	}
	if err := submitted(); err != nil {
		t.Fatal(err)
	}
	var call sync.WaitGroup
	s.first.Load().fail(&during{error: errors.New("ended"), do: func() { // the pipeline is ending
		call.Go(func() {
			if err := submitted(); err != nil {
				t.Errorf("got %v", err)
			}
		})
		for range 1000 { // so that the call reaches this point and waits for the mutex
			runtime.Gosched()
		}
	}})
	call.Wait()
}

// A command whose first pipeline has ended waits for the connection that is being made. It is not lost.
func TestLines_Submit_TakesTheAttempt(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	defer client.Close()
	r, err := New(client, Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := r.single.lines
	first, attempt := l.newPipeline(), l.newPipeline()
	l.mu.Lock()
	l.first.Store(first)
	l.attempts = []*pipeline{attempt}
	l.mu.Unlock()
	first.fail(errors.New("ended"))
	got, err := l.replacement(time.Now())
	if err != nil || got != attempt {
		t.Errorf("got %p, %v, want the attempt %p", got, err, attempt)
	}
	first.drop(errPipelineClosed)
}
