package redisserver

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// until repeats step, with a client of s, until it succeeds. The test ends when
// that takes longer than a start may take.
func (s *Server) until(what string, step func(context.Context, *redis.Client) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), startTimeout)
	defer cancel()
	rdb := redis.NewClient(probeOptions(s.Addr()))
	defer func() { _ = rdb.Close() }()
	err := poll(ctx, s.proc.exited, func() error { return step(ctx, rdb) })
	if err != nil {
		s.t.Fatalf("redisserver: %s: %s: %v\n%s", what, s.Addr(), err, s.proc.logTail())
	}
}
