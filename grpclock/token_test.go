package grpclock_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/failpolicy"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// kindOf returns a function that sets the kind of a rule, and one permit for a semaphore.
func kindOf(kind ruleset.Kind) func(*ruleset.Rule) {
	return func(r *ruleset.Rule) {
		r.Kind = kind
		if kind == ruleset.Semaphore {
			r.Permits = 1
		}
	}
}

// tokenShop returns a shop whose handlers record their tokens.
func tokenShop(list *[]int64) *shop {
	note := func(ctx context.Context) { *list = append(*list, grpclock.Hold(ctx).Token()) }
	return &shop{
		pay: func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
			note(ctx)
			return reply(""), nil
		},
		track: func(_ *shoppb.PayRequest, stream shoppb.Orders_TrackServer) error { note(stream.Context()); return nil },
		importAll: func(stream shoppb.Orders_ImportServer) error {
			note(stream.Context())
			return stream.SendAndClose(reply(""))
		},
		chat: func(stream shoppb.Orders_ChatServer) error { note(stream.Context()); return nil },
	}
}

func TestWithTokenHeader(t *testing.T) {
	t.Parallel()
	for _, method := range kinds {
		b := setup(t, &shop{}, grpclock.WithRules(rule(method, kindOf(ruleset.Fenced))))
		if got := b.call(t.Context(), method, "1"); got.err != nil || len(got.header.Get(failpolicy.TokenHeader)) > 0 {
			t.Errorf("%s: got %v and the header %q", method, got.err, got.header)
		}
	}
}

// A guard that re-enters the lock of the guard around it does not show its token again.
func TestWithTokenHeader_NestedGuards(t *testing.T) {
	t.Parallel()
	for _, method := range kinds {
		var seen []int64
		named := func(name string) grpclock.Option {
			return grpclock.WithRules(rule(method, kindOf(ruleset.Fenced), func(r *ruleset.Rule) { r.Name = name }))
		}
		b := setupTwice(t, tokenShop(&seen), func(b *bench) *grpclock.Guard {
			outer, err := grpclock.New(b.locks, named("outer"), grpclock.WithTokenHeader())
			if err != nil {
				t.Fatal(err)
			}
			return outer
		}, named("inner"), grpclock.WithTokenHeader())
		got := b.call(t.Context(), method, "1")
		if header := got.header.Get(failpolicy.TokenHeader); got.err != nil || len(seen) != 1 || seen[0] <= 0 || !slices.Equal(header, []string{strconv.FormatInt(seen[0], 10)}) {
			t.Errorf("%s: got %v, the header %q and the tokens %d", method, got.err, header, seen)
		}
		b.stop()
	}
}
