package core

import "github.com/interlock-go/interlock/core/internal/redisstore"

// place is that of an attempt in a queue in Redis, where its kind has one. It goes by a field,
// which the attempt keeps for as long as it is answered:
//
//	none ── sends ──▶ taken ─ has the lock ─▶ none
//	                  │ ▲ └── leaves ───────▶ none: the reaper has it cleared up
//	        no answer ▼ │ sends, with a new field
//	                haunted
//
// A field without an answer is a ghost: what it has, or will have if it lands late, goes to the
// field of the next send, which names it. So it is left to the reaper when the attempt is over.
type place struct {
	lane   string                               // of the waiter in this process; the first field
	taken  string                               // the field that has a place, or may have; "": none
	ghosts []*redisstore.Call[redisstore.Grant] // of the fields without an answer, in the order of sends.ghosts
}

// inLane gives the lane of the waiter, "" where it stands behind others of this process.
func (a *attempt) inLane() string {
	p := &a.sends.place
	switch {
	case a.req.kind.Waits == redisstore.Abreast:
		return a.client.nextField(a.req.kind)
	case a.req.kind.Waits == redisstore.InRedis && p.lane == "":
		p.lane = a.client.nextField(a.req.kind)
	}
	return p.lane
}

// field is that of the next send: a new one, or that by which Redis knows the place. One that does
// not wait takes none.
func (s *sends) field() string {
	p, kind := &s.place, s.of.req.kind
	switch {
	case p.taken != "":
	case p.lane != "" && s.of.report.Attempts == 0:
		p.taken = p.lane
	case kind.Waits == redisstore.InRedis && s.of.req.mayWait():
		p.taken = s.of.client.nextField(kind)
	default:
		return s.of.client.nextField(kind) + s.of.req.operation
	}
	return p.taken
}

// haunted notes that a field has got no answer.
func (s *sends) haunted(field string, call *redisstore.Call[redisstore.Grant]) {
	a := s.of
	s.ghosts, s.since = append(s.ghosts, field), a.now
	if a.req.kind.Waits != redisstore.InRedis {
		a.client.abandon(a.req.kind, a.wanted(), field, call, a.req.lease)
		return
	}
	call.Settle()
	s.place.taken, s.place.ghosts = "", append(s.place.ghosts, call)
}

// leave gives up the place, if there is one, and has ghosts cleared up.
func (s *sends) leave() {
	a, p := s.of, &s.place
	if p.taken != "" {
		a.client.reaper.Relinquish(a.req.kind, a.wanted(), p.taken, a.req.lease)
	}
	for i, call := range p.ghosts {
		a.client.abandon(a.req.kind, a.wanted(), s.ghosts[i], call, a.req.lease)
	}
	*p = place{}
}
