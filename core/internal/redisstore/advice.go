package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What to write instead, where a reply shows that a client cannot work on its server. The texts are constants.
var (
	errNode      = errors.New("the server is a node of a Redis Cluster: make the client by redis.NewClusterClient")
	errNoCluster = errors.New("the server does not belong to a Redis Cluster: make the client by redis.NewClient, " +
		"or by redis.NewFailoverClient with the addresses of Sentinels")
	errNoScripts = errors.New("the server runs no scripts: allow EVAL and EVALSHA, " +
		"or make the client by redis.NewFailoverClient if the address is that of a Sentinel")
	errChecks = errors.New("the endpoint accepts only scripts of plain, spin and fenced locks: " +
		"set script_check_enable to 0 at Alibaba Cloud, or use one of these")
	errBraces = errors.New("the keys of one lock are in several slots: use one hash tag in its name, such as order:{42}, or no braces")
)

// advised adds to an error what to write instead, if it is such a reply.
func (s *Store) advised(err error) error {
	if err == nil || fateOf(err) != Answered {
		return err
	}
	var advice error
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	switch text := err.Error(); {
	case s.cluster != nil:
		if strings.Contains(text, "cluster support disabled") {
			advice = errNoCluster
		}
	case moved, ask:
		advice = errNode
	case strings.Contains(strings.ToLower(text), "err unknown command"):
		advice = errNoScripts
	case strings.Contains(text, badScript):
		advice = errChecks
	case Apart(err):
		advice = errBraces
	}
	if advice == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, advice)
}
