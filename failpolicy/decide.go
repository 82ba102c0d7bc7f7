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
	Fault    KeyFault // with cause [Key]: whose mistake it is
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

// Replies reports whether any cause is answered by a [Reply], and whether one of them has the
// rule's response.
func (p *Policy) Replies() (replies, body bool) {
	for _, c := range Causes() {
		if r, ok := p.Strategy(c).Reply(); ok {
			replies, body = true, body || r.Body
		}
	}
	return replies, body
}

// KeyFault says whose mistake it is that a request yields no key, or one under which the
// lock cannot be acquired.
type KeyFault uint8

// The key faults.
const (
	// FaultRequest: the request lacks a value or has an unusable one. Answered with
	// 400.
	FaultRequest KeyFault = iota
	// FaultTooLarge: its body is too large. Answered with 413.
	FaultTooLarge
	// FaultMediaType: its body has another content type. Answered with 415.
	FaultMediaType
	// FaultServer: the program did not supply a value, such as the principal of a
	// request that was not authenticated yet, or takes one key as two kinds of lock.
	// Answered with 500 whatever the rule says, so that it is found before it is live.
	FaultServer
)

// DecideKey is Decide for cause [Key], whose answer depends on whose mistake it
// is. A status that the rule sets replaces 400, 413 and 415.
func (p *Policy) DecideKey(f KeyFault) Decision {
	d := p.Decide(Key)
	base := Key.Status()
	switch f {
	case FaultTooLarge:
		base.HTTP = 413
	case FaultMediaType:
		base.HTTP = 415
	case FaultServer:
		return Decision{Cause: Key, Fault: f, Strategy: Error, Status: Status{500, codeInternal}}
	}
	d.Fault, d.Status = f, p.Statuses.Key.over(base)
	return d
}
