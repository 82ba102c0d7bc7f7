package redisstore

import (
	"github.com/redis/go-redis/v9"
)

// route is the way of a call to a node.
type route struct {
	pipelines  *pipelines
	acker      *acker               // instead, of calls that replicas have to acknowledge; nil: there are none
	redirected *redis.AutoPipeliner // instead, after a redirection
	health     *health
	dialing    *dialing
	hooks      hooks // of a node of a Cluster
}

// leastDialing is how many attempts to connect to a node may run at the same time, also
// where its client allows fewer for its pool: one may hang while others are made.
const leastDialing = 8

// newRoute is the way to the node of a client whose commands have the timeout of cfg. The
// name of the node is for reports.
func newRoute(node string, client *redis.Client, said *redis.AutoPipelineOptions, cfg Config, r *replicas) route {
	d := newDialing(max(leastDialing, client.Options().MaxConcurrentDials))
	h := newHealth(node, cfg, addressOf(client, d))
	p := newPipelines(client, d, said, cfg.Timeout, h.slept)
	p.owner = cfg.Owner
	return route{
		pipelines: p,
		acker:     newAcker(client, cfg, r),
		health:    h,
		dialing:   d,
	}
}

// close ends what goes on to the node.
func (r *route) close() {
	r.health.close()
	r.pipelines.close()
	r.acker.close()
	r.dialing.close(r.health.timeout)
}

// routes are those to the one node, or to the masters of a Cluster.
type routes struct {
	single *route
	nodes  *nodes // of a Cluster
}

func clientRoutes(client *redis.Client, cfg Config) *routes {
	single := newRoute("", client.WithTimeout(cfg.Timeout), client.Options().AutoPipelineOptions, cfg, newReplicas(1))
	return &routes{single: &single}
}

func clusterRoutes(client *redis.ClusterClient, cfg Config) (*routes, error) {
	nodes, err := newNodes(client, cfg)
	return &routes{nodes: nodes}, err
}

// of is the route of a key. An error is that of a Cluster; see [nodes.of].
func (r *routes) of(key string) (*route, error) {
	if r.nodes == nil {
		return r.single, nil
	}
	n, err := r.nodes.of(key)
	return &n.route, err
}

func (r *routes) close() {
	if r.nodes != nil {
		r.nodes.close()
		return
	}
	r.single.close()
}
