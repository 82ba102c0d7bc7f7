package history_test

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core/internal/faultproxy"
	"github.com/interlock-go/interlock/core/internal/history"
)

// fault is one way to break something. inject returns when the fault has ended.
type fault struct {
	name   string
	weight int
	inject func(h *injector)
}

// injector injects faults into one thing, one after the other. Several injectors work at the same time.
type injector struct {
	*rand.Rand

	name   string
	faults []fault
	pause  time.Duration // the longest pause between two faults
	now    func() time.Duration
	note   func(history.Event)
	after  time.Duration // the time for which the last fault has effects after its end
	slow   bool          // the last fault delays answers
	behind func() int    // the process whose network the faults break; nil for other faults
}

func (h *injector) upTo(d time.Duration) time.Duration { return time.Duration(h.Int64N(int64(d) + 1)) }

// work injects faults until end.
func (h *injector) work(end time.Duration) {
	for {
		time.Sleep(h.pause/10 + h.upTo(h.pause)) // the length of the fault or of the pause
		if h.now() >= end {
			return
		}
		f := h.choose()
		h.apply(f)
	}
}

// apply injects a fault and records it. If the fault delays answers, apply records it for the process that
// waits for them and, if that process was replaced, also for its successor.
func (h *injector) apply(f fault) {
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

func (h *injector) choose() fault {
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

// scripts matches the commands that locks send.
var scripts = faultproxy.Command("evalsha", "eval")

// networkFaults returns the faults of the network between one client and Redis. No fault lasts for more than
// longest.
func networkFaults(p *faultproxy.Proxy, blackHole func(on bool), longest time.Duration) []fault {
	during := func(h *injector, r *faultproxy.Rule, d time.Duration) {
		time.Sleep(d) // the length of the fault or of the pause
		r.Remove()
	}
	some := func(h *injector) faultproxy.Match {
		dice, percent := rand.New(rand.NewPCG(h.Uint64(), 0)), 5+h.IntN(60)
		return faultproxy.All(scripts, func([]string) bool { return dice.IntN(100) < percent })
	}
	return []fault{
		{"cut", 3, func(*injector) { p.Cut() }},
		{"lost replies", 5, func(h *injector) { during(h, p.DropReply(some(h)), h.upTo(longest/4)) }},
		{"lost requests", 3, func(h *injector) { during(h, p.DropRequest(some(h)), h.upTo(longest/4)) }},
		{"slow requests", 3, func(h *injector) {
			h.slow = true
			during(h, p.DelayRequest(some(h), h.upTo(longest/10)), h.upTo(longest/2))
		}},
		{"slow replies", 3, func(h *injector) {
			h.slow = true
			during(h, p.DelayReply(some(h), h.upTo(longest/10)), h.upTo(longest/2))
		}},
		{"held requests", 4, func(h *injector) { during(h, p.HoldRequest(some(h)), h.upTo(longest)) }},
		{"held replies", 3, func(h *injector) { during(h, p.HoldReply(some(h)), h.upTo(longest)) }},
		{"lost messages", 2, func(h *injector) {
			during(h, p.HoldRequest(faultproxy.Command("subscribe")), h.upTo(longest))
		}},
		{"black hole", 4, func(h *injector) {
			blackHole(true)
			time.Sleep(h.upTo(longest)) // the length of the fault or of the pause
			blackHole(false)
		}},
		{"refused", 2, func(h *injector) {
			p.Refuse(true)
			time.Sleep(h.upTo(longest / 2)) // the length of the fault or of the pause
			p.Refuse(false)
		}},
	}
}

// weather alternates between storms, in which all injectors work, and calms, in which everything recovers and
// the judgment is strict.
type weather struct{ storm, calm time.Duration }

// pass runs storms and calms for about total and ends with a calm.
func (w weather) pass(injectors []*injector, now func() time.Duration, total time.Duration) {
	for begin := now(); now()-begin < total-w.calm-w.storm/2; {
		end := now() + w.storm
		var all sync.WaitGroup
		for _, h := range injectors[1:] {
			all.Go(func() { h.work(end) })
		}
		injectors[0].work(end) // in this goroutine, because a fault may end the test
		all.Wait()
		time.Sleep(w.calm) // the length of the fault or of the pause
	}
}
