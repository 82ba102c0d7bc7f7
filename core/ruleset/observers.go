package ruleset

import (
	"slices"
	"sync"

	"github.com/interlock-go/interlock/core/internal/notify"
)

// observers are the functions that a [Live] set calls after each attempt to load its file. Calls of one
// observer do not overlap.
type observers struct {
	panics notify.Panics

	mu      sync.Mutex
	list    []*observer // guarded by mu
	inForce Reload      // guarded by mu: the attempt that brought the current set into force
}

type observer struct {
	observe *func(Reload)
	calls   sync.Mutex // held while observe is called
}

// add adds an observer and notifies it of the attempt in force. It does nothing for a pointer that was added
// before.
func (o *observers) add(observe *func(Reload)) {
	added, inForce := o.register(observe)
	if added == nil {
		return
	}
	defer added.calls.Unlock()
	o.call(added, inForce)
}

// register adds an observer and locks its calls, so that the caller can notify it of the attempt in force
// before any other one. It returns nil for a pointer that was added before.
func (o *observers) register(observe *func(Reload)) (*observer, Reload) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.list, func(known *observer) bool { return known.observe == observe }) {
		return nil, Reload{}
	}
	added := &observer{observe: observe}
	added.calls.Lock()
	o.list = append(o.list, added)
	return added, o.inForce
}

// exist reports whether there are observers.
func (o *observers) exist() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list) > 0
}

// notify notifies every observer of an attempt. It returns false if there are no observers.
func (o *observers) notify(r Reload) bool {
	list := o.record(r)
	for _, to := range list {
		to.calls.Lock()
		o.call(to, r)
		to.calls.Unlock()
	}
	return len(list) > 0
}

// record stores an attempt that is in force and returns the observers at that moment.
func (o *observers) record(r Reload) []*observer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Err == nil {
		o.inForce = r
	}
	return slices.Clone(o.list)
}

func (o *observers) call(to *observer, r Reload) {
	notify.Each(&o.panics, []func(Reload){*to.observe}, func(observe func(Reload)) { observe(r) })
}
