package history_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/history"
)

// fault is one way to break something. It returns when the fault has ended.
type fault struct {
	name   string
	weight int
	inject func(h *hand)
}

// hand breaks one thing, one fault after the other. Several hands work at once.
type hand struct {
	*rand.Rand

	name   string
	faults []fault
	pause  time.Duration // the longest one between two faults
	now    func() time.Duration
	note   func(history.Event)
	after  time.Duration // how long after its end the last fault is felt at least
	slow   bool          // the last fault makes answers late
	behind func() int    // the process whose network it breaks; nil: it breaks something else
}

func (h *hand) upTo(d time.Duration) time.Duration { return time.Duration(h.Int64N(int64(d) + 1)) }

// work injects faults until end.
func (h *hand) work(end time.Duration) {
	for {
		time.Sleep(h.pause/10 + h.upTo(h.pause)) // the fault, held open, or the calm between two
		if h.now() >= end {
			return
		}
		f := h.choose()
		h.apply(f)
	}
}

// apply injects a fault and notes it. A fault that makes answers late is noted for the process that
// has to wait for them, and for its successor.
func (h *hand) apply(f fault) {
	e := history.Event{Kind: history.Fault, Begin: h.now(), Note: h.name + ": " + f.name}
	h.after, h.slow = 0, false
	if h.behind != nil {
		e.Process = h.behind()
	}
	f.inject(h)
	e.End, e.Slow = h.now()+h.after, h.slow
	h.note(e)
	if h.slow && e.Process != h.behind() {
		e.Process = h.behind()
		h.note(e)
	}
}

func (h *hand) choose() fault {
	sum := 0
	for _, f := range h.faults {
		sum += f.weight
	}
	n := h.IntN(sum)
	for _, f := range h.faults {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	panic("no faults")
}

// scripts matches the commands that locks consist of.
var scripts = faultproxy.Command("evalsha", "eval")

// networkFaults are the faults between one client and Redis. longest is the longest that one goes on.
func networkFaults(p *faultproxy.Proxy, blackHole func(on bool), longest time.Duration) []fault {
	during := func(h *hand, r *faultproxy.Rule, d time.Duration) {
		time.Sleep(d) // the fault, held open, or the calm between two
		r.Remove()
	}
	some := func(h *hand) faultproxy.Match {
		dice, percent := rand.New(rand.NewPCG(h.Uint64(), 0)), 5+h.IntN(60)
		return faultproxy.All(scripts, func([]string) bool { return dice.IntN(100) < percent })
	}
	return []fault{
		{"cut", 3, func(*hand) { p.Cut() }},
		{"lost replies", 5, func(h *hand) { during(h, p.DropReply(some(h)), h.upTo(longest/4)) }},
		{"lost requests", 3, func(h *hand) { during(h, p.DropRequest(some(h)), h.upTo(longest/4)) }},
		{"slow requests", 3, func(h *hand) {
			h.slow = true
			during(h, p.DelayRequest(some(h), h.upTo(longest/10)), h.upTo(longest/2))
		}},
		{"slow replies", 3, func(h *hand) {
			h.slow = true
			during(h, p.DelayReply(some(h), h.upTo(longest/10)), h.upTo(longest/2))
		}},
		{"held requests", 4, func(h *hand) { during(h, p.HoldRequest(some(h)), h.upTo(longest)) }},
		{"held replies", 3, func(h *hand) { during(h, p.HoldReply(some(h)), h.upTo(longest)) }},
		{"lost messages", 2, func(h *hand) {
			during(h, p.HoldRequest(faultproxy.Command("subscribe")), h.upTo(longest))
		}},
		{"black hole", 4, func(h *hand) {
			blackHole(true)
			time.Sleep(h.upTo(longest)) // the fault, held open, or the calm between two
			blackHole(false)
		}},
		{"refused", 2, func(h *hand) {
			p.Refuse(true)
			time.Sleep(h.upTo(longest / 2)) // the fault, held open, or the calm between two
			p.Refuse(false)
		}},
	}
}

// weather alternates storms, in which all hands work, and calms, in which everything recovers and is
// judged strictly.
type weather struct{ storm, calm time.Duration }

// pass lasts for about total and ends with a calm.
func (w weather) pass(hands []*hand, now func() time.Duration, total time.Duration) {
	for begin := now(); now()-begin < total-w.calm-w.storm/2; {
		end := now() + w.storm
		var all sync.WaitGroup
		for _, h := range hands[1:] {
			all.Go(func() { h.work(end) })
		}
		hands[0].work(end) // here: it may end the test
		all.Wait()
		time.Sleep(w.calm) // the fault, held open, or the calm between two
	}
}
