package redisstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/core/internal/wire"
)

// Advice for replies that show that a client does not fit its server.
var (
	errNode      = errors.New("the server is a node of a Redis Cluster: make the client with redis.NewClusterClient")
	errNoCluster = errors.New("the server does not belong to a Redis Cluster: make the client with redis.NewClient, " +
		"or with redis.NewFailoverClient and the addresses of Sentinels")
	errNoScripts = errors.New("the server runs no scripts: allow EVAL and EVALSHA, " +
		"or make the client with redis.NewFailoverClient if the address belongs to a Sentinel")
	errChecks = errors.New("the endpoint accepts only scripts of plain, spin and fenced locks: " +
		"set script_check_enable to 0 at Alibaba Cloud, or use one of these")
	errReplica = errors.New("the server is a replica: give the Redis client the address of the master, or use redis.NewFailoverClient")
	errBraces  = errors.New("the keys of one lock are in several slots: use one hash tag in its name, such as order:{42}, or no braces")
)

// addAdvice adds advice to the error of a reply that shows that a client does not fit its server.
// clustered reports whether the client is a Cluster client.
func addAdvice(err error, clustered bool) error {
	if err == nil || !wire.Answer(err) {
		return err
	}
	advice := map[wire.Meaning]error{
		wire.MeansElsewhere: errNode, wire.MeansNoCommand: errNoScripts, wire.MeansUnchecked: errChecks, wire.MeansApart: errBraces,
	}
	if clustered {
		advice = map[wire.Meaning]error{wire.MeansNoCluster: errNoCluster}
	}
	if known := advice[wire.MeaningOf(err)]; known != nil {
		return fmt.Errorf("%w: %w", err, known)
	}
	return err
}

// explain adds advice to the error of a command. A replica refuses writes. That passes if it becomes the master, or if
// its address leads to the new master soon. But a server behind a fixed address that has never accepted a write was
// probably never the master.
func (s *Store) explain(err error) error {
	if s.fixed() && !s.wrote.Load() && wire.MeaningOf(err) == wire.MeansReplica {
		return wire.Lasting(fmt.Errorf("%w: %w", err, errReplica))
	}
	return addAdvice(err, s.Clustered())
}

// fixed reports whether neither Sentinels nor a Cluster name the master.
func (s *Store) fixed() bool { return s.cluster == nil && !s.Failover() }

// KnownText returns the message of err if it is known to contain no key; see [wire.KnownText].
func KnownText(err error) (text string, ok bool) {
	fixed := []error{ErrUndetected, ErrNotALock, ErrCursor, errNode, errNoCluster, errNoScripts, errChecks, errBraces, errReplica}
	if slices.ContainsFunc(fixed, func(known error) bool { return err == known }) { //nolint:errorlint // only err itself
		return err.Error(), true
	}
	return wire.KnownText(err)
}

// ErrUndetected means that [Store.Detect] failed.
var ErrUndetected = errors.New("the cluster could not be asked for its slots and its pub/sub mode")

// ErrNotALock means that the value of the key is not a lock of the kind.
var ErrNotALock = errors.New("the key is not a lock of this kind")

// ErrCursor means that a string is not a cursor that this package returned.
var ErrCursor = errors.New("not a cursor of a listing")

// unexpected returns the error for a reply that no version of the scripts returns.
func unexpected(what string, reply any) error {
	return &wire.UnreadableError{Cause: fmt.Errorf("%s: unexpected reply %T %v", what, reply, reply)}
}
