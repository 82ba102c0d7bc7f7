package faultproxy

import (
	"slices"
	"time"
)

// Watch only counts. It applies no fault, and the rules after it may still apply.
func (p *Proxy) Watch(m Match) *Rule { return p.add(watch, 0, m) }

// DropReply loses the reply: Redis executes the command, and the proxy drops the reply
// and closes the connection. Earlier replies in a pipeline are delivered. Later commands that
// reached the proxy are executed, but their replies are also lost.
func (p *Proxy) DropReply(m Match) *Rule { return p.add(dropReply, 0, m) }

// HoldReply lets Redis execute the command and holds back its reply until [Rule.Release]. Later replies and
// messages on the connection wait as well.
func (p *Proxy) HoldReply(m Match) *Rule { return p.add(holdReply, 0, m) }

// DelayReply acts like [Proxy.HoldReply], but for d at most.
func (p *Proxy) DelayReply(m Match, d time.Duration) *Rule { return p.add(holdReply, d, m) }

// DropRequest loses the command: the connection is closed before the command reaches Redis. The
// replies to earlier commands of the connection are delivered first. Later commands in a pipeline are
// lost.
func (p *Proxy) DropRequest(m Match) *Rule { return p.add(dropRequest, 0, m) }

// HoldRequest holds back the command until [Rule.Release]. The command then reaches Redis even if the client
// closed the connection. Later commands on the connection wait as well; commands on other connections do
// not.
func (p *Proxy) HoldRequest(m Match) *Rule { return p.add(holdRequest, 0, m) }

// DelayRequest acts like [Proxy.HoldRequest], but for d at most.
func (p *Proxy) DelayRequest(m Match, d time.Duration) *Rule { return p.add(holdRequest, d, m) }

// AnswerError answers the command with an error, such as "BUSY a script runs". The command does not
// reach Redis. The proxy sends a PING instead, so that replies keep their order.
func (p *Proxy) AnswerError(m Match, says string) *Rule {
	r := p.rule(answerError, 0, m)
	r.says = says
	return p.apply(r)
}

// BlackHole discards everything in both directions while on. Connections stay open, new ones are
// accepted, nothing passes. A connection that lost something stays open and silent afterwards,
// until one side closes it. BlackHole does not affect commands that a rule holds: they reach Redis when
// they are released.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = on
}

// Cut closes all connections of clients. New ones are accepted. Commands that the proxy already read
// still reach Redis.
func (p *Proxy) Cut() {
	for _, l := range p.snapshot() {
		l.cut()
	}
}

// Refuse closes all connections while on, and every new one at once.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	p.refuse = on
	p.mu.Unlock()
	if on {
		p.Cut()
	}
}

func (p *Proxy) add(a action, delay time.Duration, m Match) *Rule {
	return p.apply(p.rule(a, delay, m))
}

func (p *Proxy) rule(a action, delay time.Duration, m Match) *Rule {
	r := &Rule{
		match: m, action: a, delay: delay, mu: &p.mu,
		first: make(chan struct{}), released: make(chan struct{}),
	}
	r.remove = func() { p.remove(r) }
	return r
}

func (p *Proxy) apply(r *Rule) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

func (p *Proxy) remove(r *Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = slices.DeleteFunc(p.rules, func(other *Rule) bool { return other == r })
}

// match counts a command and returns the rule that applies to it, nil for none.
func (p *Proxy) match(cmd []string) *Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if !r.match(cmd) {
			continue
		}
		r.hit()
		if r.action != watch {
			return r
		}
	}
	return nil
}

func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hole
}
