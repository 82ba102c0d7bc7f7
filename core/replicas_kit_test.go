package core_test

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// pipelinesSeen is a hook that notes the names of commands, those of a pipeline together.
type pipelinesSeen struct {
	mu   sync.Mutex
	seen []string
}

func (s *pipelinesSeen) note(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, cmd := range cmds {
		names = append(names, cmd.Name())
	}
	s.seen = append(s.seen, strings.Join(names, " "))
}

func (s *pipelinesSeen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = nil
}

func (s *pipelinesSeen) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, "; ")
}

func (s *pipelinesSeen) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *pipelinesSeen) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.note(cmd)
		return next(ctx, cmd)
	}
}

func (s *pipelinesSeen) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.note(cmds...)
		return next(ctx, cmds)
	}
}
