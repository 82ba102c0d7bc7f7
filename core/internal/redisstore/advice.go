package redisstore

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// The advice for replies which show that a client cannot work on its server.
var (
	errNode      = errors.New("the server is a node of a Redis Cluster: make the client by redis.NewClusterClient")
	errNoCluster = errors.New("the server does not belong to a Redis Cluster: make the client by redis.NewClient, " +
		"or by redis.NewFailoverClient with the addresses of Sentinels")
	errNoScripts = errors.New("the server runs no scripts: allow EVAL and EVALSHA, " +
		"or make the client by redis.NewFailoverClient if the address belongs to a Sentinel")
	errChecks = errors.New("the endpoint accepts only scripts of plain, spin and fenced locks: " +
		"set script_check_enable to 0 at Alibaba Cloud, or use one of these")
	errBraces = errors.New("the keys of one lock are in several slots: use one hash tag in its name, such as order:{42}, or no braces")
)

// advised adds advice to an error that has such a reply.
func (s *Store) advised(err error) error {
	if err == nil || !wire.Answer(err) {
		return err
	}
	advice := map[wire.Meaning]error{
		wire.MeansElsewhere: errNode, wire.MeansNoCommand: errNoScripts, wire.MeansUnchecked: errChecks, wire.MeansApart: errBraces,
	}
	if s.cluster != nil {
		advice = map[wire.Meaning]error{wire.MeansNoCluster: errNoCluster}
	}
	if known := advice[wire.MeaningOf(err)]; known != nil {
		return fmt.Errorf("%w: %w", err, known)
	}
	return err
}
