package redisstore

import (
	"errors"
	"hash/maphash"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane is one way to Redis: an auto-pipeline, and the horizon of those who wait for
// a key that travels on it. There are more horizons than pipes, because a channel on
// which a hundred callers wait is a bottleneck.
type lane struct {
	pipe    *redis.AutoPipeliner
	horizon *horizon
	health  *health
	node    hooks // of a node of a Cluster
}

// lanes are auto-pipelines side by side. A single one works in waves: Redis is idle
// while its callers take in their replies, and they wait while Redis works. With
// two, one wave is at Redis while the other is here. A key always travels on the
// same lane.
type lanes struct {
	seed     maphash.Seed
	pipes    []*redis.AutoPipeliner
	health   *health
	nodes    *nodes // of a Cluster, instead of pipes and health
	horizons [32]horizon
}

// laneCount is how many lanes there are outside a Cluster. In a Cluster each master
// has one.
const laneCount = 2

// maxQueued bounds the commands that wait for the wire. Beyond it calls fail
// instead of growing the queue of a Redis that does not answer.
const maxQueued = 100_000

// pipelineOptions are go-redis's defaults, or what the caller's client says.
func pipelineOptions(said *redis.AutoPipelineOptions) *redis.AutoPipelineOptions {
	opts := redis.DefaultAutoPipelineOptions()
	if said != nil {
		*opts = *said
	}
	if opts.MaxQueuedCommands <= 0 {
		opts.MaxQueuedCommands = maxQueued / laneCount
	}
	return opts
}

// patience is how long a caller waits before it pays for a timer of its own.
const patience = 5 * time.Millisecond

func newLanes() *lanes {
	l := &lanes{seed: maphash.MakeSeed()}
	for i := range l.horizons {
		l.horizons[i].step = patience
	}
	return l
}

// clientLanes are lanes of this Store's own: every clone of the client shares its
// pool, but has a time limit and a queue of its own.
func clientLanes(client *redis.Client, cfg Config) (*lanes, error) {
	l := newLanes()
	l.health = newHealth("", cfg, addressOf(client.WithTimeout(cfg.Timeout)))
	for range laneCount {
		pipe, err := client.WithTimeout(cfg.Timeout).AsyncAutoPipelineWithOptions(pipelineOptions(client.Options().AutoPipelineOptions))
		if err != nil {
			return l, errors.Join(err, l.close())
		}
		l.pipes = append(l.pipes, pipe)
	}
	return l, nil
}

// clusterLanes are lanes of this Store's own, one per master.
func clusterLanes(client *redis.ClusterClient, cfg Config) (*lanes, error) {
	l := newLanes()
	var err error
	l.nodes, err = newNodes(client, cfg)
	return l, err
}

// of is the lane of a key. The error is that of a Cluster in which nobody owns it.
func (l *lanes) of(key string) (lane, error) {
	hash := maphash.String(l.seed, key)
	way := lane{horizon: &l.horizons[hash>>32%uint64(len(l.horizons))]}
	if l.nodes != nil {
		n, err := l.nodes.of(key)
		way.pipe, way.health, way.node = n.pipe, n.health, n.hooks
		return way, err
	}
	way.pipe, way.health = l.pipes[hash%uint64(len(l.pipes))], l.health
	return way, nil
}

func (l *lanes) close() error {
	if l.nodes != nil {
		return l.nodes.close()
	}
	l.health.close()
	var errs []error
	for _, pipe := range l.pipes {
		errs = append(errs, pipe.Close())
	}
	return errors.Join(errs...)
}
