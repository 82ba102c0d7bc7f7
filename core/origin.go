package core

import "time"

// origin is the acquisition that has made a hold, as far as its leases do not tell that: what
// [HoldInfo] needs.
type origin struct {
	client    *Client // whose observers are notified
	label     string
	start     time.Time
	took      time.Duration // from start until it was acquired
	lease     time.Duration // the configured one
	all       *[]string     // the keys of a MultiLock
	keys      int32
	watchdog  bool // the lease is renewed
	reentrant bool
	redlock   bool
}

func (a *acquisition) origin() origin {
	r := &a.report
	return origin{
		client: a.client, all: r.all, keys: int32(r.Keys), redlock: a.redlock != nil, label: a.req.label, start: r.Start, took: r.acquired.Sub(r.Start),
		lease: a.req.lease, watchdog: a.req.watchdog, reentrant: r.Outcome == OutcomeReentered,
	}
}

func (o *origin) acquired() time.Time { return o.start.Add(o.took) }

// info describes the hold to the observers.
func (s *scope) info() HoldInfo {
	from, first := &s.origin, s.owners[0]
	kind := Kind(first.lease.Kind.Name)
	if from.redlock {
		kind = KindRedlock
	}
	return HoldInfo{
		Acquisition: Acquisition{
			Key: first.lease.Key, Keys: int(from.keys), Kind: kind, Label: from.label, Start: from.start,
			ClientID: from.client.id, all: from.all,
		},
		Field:     first.lease.Field,
		Token:     first.token,
		Reentrant: from.reentrant,
		Lease:     from.lease,
		Watchdog:  from.watchdog,
		Acquired:  from.acquired(),
	}
}

// observers are those of the client that has made the hold.
func (s *scope) observers() *observers { return &s.origin.client.cfg.observers }
