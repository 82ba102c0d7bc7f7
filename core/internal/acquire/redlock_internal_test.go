package acquire

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// reply is an error reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// A Redlock asks again if too few servers are available but may become available by themselves. If too few replicas
// acknowledged a grant, the error that WAIT returned decides.
func TestRedlock_AsksAgain(t *testing.T) {
	t.Parallel()
	const loading, refused = reply("LOADING Redis is loading the dataset in memory"), reply("NOPERM no permissions to run 'wait'")
	for _, tt := range []struct {
		name  string
		err   error
		again bool
	}{
		{"server is loading", loading, true},
		{"server refuses", refused, false},
		{"WAIT on a server that is loading", &wire.ShortfallError{Wanted: 1, Cause: loading}, true},
		{"WAIT is refused", &wire.ShortfallError{Wanted: 1, Cause: refused}, false},
		{"no replica acknowledged", &wire.ShortfallError{Wanted: 1}, false},
		{"no answer", context.DeadlineExceeded, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := func(err error) *member {
				in := New(Config{Service: t.Context()})
				return &member{Acquisition: &Acquisition{Acquirer: in}, err: err}
			}
			down := failure.BecauseOf(fmt.Errorf("a server: %w", tt.err))
			r := Redlock{quorum: 2, members: []*member{server(down), server(down), server(failure.NotAcquired)}}
			_, again, err := r.evaluate()
			if again != tt.again || err == nil {
				t.Errorf("got again %t and %v, want again %t and an error", again, err, tt.again)
			}
		})
	}
}
