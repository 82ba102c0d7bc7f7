package failpolicy

// Policy holds the answers of one rule to failures. Zero fields are the defaults. It is a small
// value without pointers: compare and copy it freely.
type Policy struct {
	OnBusy     Strategy // also answers [Debounced]
	OnBackend  Strategy
	OnKey      Strategy
	OnOverload Strategy
	OnLost     OnLost
	Statuses   Statuses
}

// Strategy returns the strategy that answers a cause. It returns [Error] if none was set, and for a cause
// that no strategy answers.
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

// Uses reports whether s answers any cause.
func (p *Policy) Uses(s Strategy) bool {
	for _, c := range Causes() {
		if c.AsksStrategy() && p.Strategy(c) == s {
			return true
		}
	}
	return false
}

// Replies reports whether a [Reply] answers any cause, and whether one of these replies contains
// the rule's response.
func (p *Policy) Replies() (replies, body bool) {
	for _, c := range Causes() {
		if r, ok := p.Strategy(c).Reply(); ok {
			replies, body = true, body || r.Body
		}
	}
	return replies, body
}
