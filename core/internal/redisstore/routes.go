package redisstore

import (
	"github.com/redis/go-redis/v9"
)

// route is the way of a call to a node.
type route struct {
	pipelines  *pipelines
	redirected *redis.AutoPipeliner // instead, after a redirection
	health     *health
	hooks      hooks // of a node of a Cluster
}

// routes are those to the one node, or to the masters of a Cluster.
type routes struct {
	single *route
	nodes  *nodes // of a Cluster
}

func clientRoutes(client *redis.Client, cfg Config) *routes {
	return &routes{single: &route{
		pipelines: newPipelines(client, client.Options().AutoPipelineOptions, cfg.Timeout),
		health:    newHealth("", cfg, addressOf(client.WithTimeout(cfg.Timeout))),
	}}
}

func clusterRoutes(client *redis.ClusterClient, cfg Config) (*routes, error) {
	nodes, err := newNodes(client, cfg)
	return &routes{nodes: nodes}, err
}

// of is the route of a key. The error is that of a Cluster in which nobody owns it.
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
	r.single.health.close()
	r.single.pipelines.close()
}
