package core

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// origin is the acquisition that has made a hold, as far as its leases do not tell that: what
// [HoldInfo] needs.
type origin struct {
	kind      *redisstore.Kind
	label     string
	start     time.Time
	took      time.Duration // from start until it was acquired
	lease     time.Duration // the configured one
	watchdog  bool          // the lease is renewed
	reentrant bool
}

func originOf(req *request, r *AcquireResult) origin {
	return origin{
		kind: req.kind, label: req.label, start: r.Start, took: r.acquired.Sub(r.Start),
		lease: req.lease, watchdog: req.watchdog, reentrant: r.Outcome == OutcomeReentered,
	}
}

// info describes the hold to the observers.
func (s *scope) info() HoldInfo {
	from, first := &s.origin, s.owners[0]
	return HoldInfo{
		Acquisition: Acquisition{
			Key: first.lease.Key, Keys: len(s.owners), Kind: Kind(from.kind.Name), Label: from.label, Start: from.start,
		},
		Field:     first.lease.Field,
		Token:     first.token,
		Reentrant: from.reentrant,
		Lease:     from.lease,
		Watchdog:  from.watchdog,
		Acquired:  from.start.Add(from.took),
	}
}

// observers are those of the client.
func (s *scope) observers() *observers { return &s.owners[0].client.cfg.observers }
