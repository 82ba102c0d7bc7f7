package failpolicy

// Policy is what one rule says about failures. Zero fields are the defaults. It
// is a small value without pointers: compare and copy it freely.
type Policy struct {
	OnBusy     Strategy // also answers [Debounced]
	OnBackend  Strategy
	OnKey      Strategy
	OnOverload Strategy
	OnLost     OnLost
	Statuses   Statuses
}

// Decision is the answer to one cause.
type Decision struct {
	Cause    Cause
	Strategy Strategy // [Error] for a cause that asks no strategy
	Status   Status   // what the client sees when Strategy is [Error]
}

// RunsHandler reports whether the rule's own handler runs all the same, without
// the lock.
func (d Decision) RunsHandler() bool { return d.Strategy == Proceed }

// Decide gives the answer to a cause. It does not allocate.
func (p *Policy) Decide(c Cause) Decision {
	return Decision{Cause: c, Strategy: p.Strategy(c), Status: p.Statuses.Status(c)}
}

// Strategy is the strategy that answers a cause, [Error] where none was set and
// where none is asked.
func (p *Policy) Strategy(c Cause) Strategy {
	var s Strategy
	switch c {
	case Busy, Debounced:
		s = p.OnBusy
	case Backend:
		s = p.OnBackend
	case Key:
		s = p.OnKey
	case Overload:
		s = p.OnOverload
	}
	if s == "" {
		return Error
	}
	return s
}

// Uses reports whether any cause is answered by s.
func (p *Policy) Uses(s Strategy) bool {
	for _, c := range Causes() {
		if c.AsksStrategy() && p.Strategy(c) == s {
			return true
		}
	}
	return false
}
