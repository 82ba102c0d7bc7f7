package resend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/core/internal/failure"
	"github.com/interlock-go/interlock/core/internal/resend"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// reply is an error reply of Redis.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// The error contains each cause once, however many sends failed with it. It also contains the answer to an
// earlier send.
func TestLoop_Cause(t *testing.T) {
	t.Parallel()
	dial := func() error { return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} }
	silent := func(cause error) error { return fmt.Errorf("%w for 1s: %w", wire.ErrSilent, cause) }
	const readonly = reply("READONLY You can't write against a read only replica.")
	for name, tt := range map[string]struct {
		earlier, err error
		says         []string
	}{
		"another dial":               {dial(), dial(), []string{"connection refused"}},
		"silence, as was found out":  {dial(), silent(dial()), []string{"no answer from redis for 1s", "connection refused"}},
		"an earlier one with two":    {errors.Join(context.DeadlineExceeded, dial()), silent(errors.Join(context.DeadlineExceeded, dial())), []string{"connection refused", "deadline exceeded"}},
		"a wrapped one":              {fmt.Errorf("%w: %w", context.DeadlineExceeded, dial()), fmt.Errorf("%w: %w", dial(), context.DeadlineExceeded), []string{"connection refused", "deadline exceeded"}},
		"an answer before silence":   {readonly, silent(dial()), []string{"connection refused", "; before that: READONLY"}},
		"an answer before a timeout": {readonly, context.DeadlineExceeded, []string{"deadline exceeded; before that: READONLY"}},
		"another cause before":       {dial(), context.DeadlineExceeded, []string{"deadline exceeded; before that: dial tcp: connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop := resend.Loop{Earlier: tt.earlier}
			err := failure.BecauseOf(loop.Cause(tt.err))
			if !errors.Is(err, failure.Unavailable) || !errors.Is(err, tt.err) {
				t.Errorf("got %v", err)
			}
			for _, part := range tt.says {
				if n := strings.Count(err.Error(), part); n != 1 {
					t.Errorf("%q occurs %d times in %q, want once", part, n, err)
				}
			}
		})
	}
}
