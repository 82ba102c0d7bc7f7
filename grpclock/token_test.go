package grpclock_test

import (
	"context"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/grpclock"
	"github.com/interlock-go/interlock/grpclock/internal/shoppb"
)

// as gives a rule a kind of lock.
func as(kind ruleset.Kind) func(*ruleset.Rule) {
	return func(r *ruleset.Rule) { r.Kind = kind }
}

// tokens gives a shop whose handlers note their tokens.
func tokens(list *[]int64) *shop {
	note := func(ctx context.Context) { *list = append(*list, grpclock.Hold(ctx).Token()) }
	return &shop{
		pay: func(ctx context.Context, _ *shoppb.PayRequest) (*shoppb.PayReply, error) {
			note(ctx)
			return reply(""), nil
		},
		track: func(_ *shoppb.PayRequest, stream shoppb.TrackStream) error { note(stream.Context()); return nil },
		importAll: func(stream shoppb.ImportStream) error {
			note(stream.Context())
			return stream.SendAndClose(reply(""))
		},
		chat: func(stream shoppb.ChatStream) error { note(stream.Context()); return nil },
	}
}

func TestToken_IsTheHandlersAndInTheHeaderOnRequest(t *testing.T) {
	t.Parallel()
	for _, kind := range ruleset.Kinds() {
		for _, method := range kinds {
			for _, shown := range []bool{false, true} {
				var seen []int64
				opts := []grpclock.Option{grpclock.WithRules(rule(method, as(kind)))}
				if shown {
					opts = append(opts, grpclock.WithTokenHeader())
				}
				b := setup(t, tokens(&seen), opts...)
				var headers []string
				for range 2 {
					got := b.call(t.Context(), method, "1")
					if got.err != nil {
						t.Fatal(got.err)
					}
					headers = append(headers, got.header.Get(grpclock.HeaderLockToken)...)
				}
				b.stop()
				wantTokens, wantHeaders := []int64{0, 0}, []string(nil)
				if kind == ruleset.Fenced {
					wantTokens = []int64{1, 2}
					if shown {
						wantHeaders = []string{"1", "2"}
					}
				}
				if !slices.Equal(seen, wantTokens) || !slices.Equal(headers, wantHeaders) {
					t.Errorf("%s, %s, shown %t: got %d and the headers %q, want %d and %q", kind, method, shown, seen, headers, wantTokens, wantHeaders)
				}
			}
		}
	}
}

// A guard that re-enters the lock of the one outside shows no token a second time.
func TestTwice_OneToken(t *testing.T) {
	t.Parallel()
	for _, method := range kinds {
		var seen []int64
		named := func(name string) grpclock.Option {
			return grpclock.WithRules(rule(method, as(ruleset.Fenced), func(r *ruleset.Rule) { r.Name = name }))
		}
		b := twice(t, tokens(&seen), func(b *bench) *grpclock.Guard {
			outer, err := grpclock.New(b.locks, named("outer"), grpclock.WithTokenHeader())
			if err != nil {
				t.Fatal(err)
			}
			return outer
		}, named("inner"), grpclock.WithTokenHeader())
		got := b.call(t.Context(), method, "1")
		if header := got.header.Get(grpclock.HeaderLockToken); got.err != nil || !slices.Equal(header, []string{"1"}) || !slices.Equal(seen, []int64{1}) {
			t.Errorf("%s: got %v, the header %q and the tokens %d", method, got.err, header, seen)
		}
		b.stop()
	}
}
