package redisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// A client that says nothing about its queue, or 0, which is no limit to go-redis, gets
// a bounded one all the same.
func TestPipelineBound_BoundsTheQueue(t *testing.T) {
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
