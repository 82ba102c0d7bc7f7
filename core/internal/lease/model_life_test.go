package lease_test

import (
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// model is a reference implementation of a lease in plain variables, without a scheduler, mutexes or atomics. Times are
// since the start.
type model struct {
	phase      string // held, releasing, ended, lost
	cause      error
	mono, wall time.Duration // the deadline
	wishes     int
	longest    time.Duration
	lowerTo    time.Duration // 0: the last command did not lower it
	landing    time.Duration // 0: no command without an answer may be executed
	most       time.Duration
	announced  []error
	reported   []error
	quietFrom  time.Duration // since when it is renewed without an answer to a renewal
	wire       bool          // a renewal is on its way
	asked      bool          // a question is on its way
	doubt      bool          // no question since the last doubt was answered
	doubtFrom  time.Duration // since when there has been a doubt without an answer to a question
}

func (m *model) left(now time.Duration) time.Duration { return min(m.mono, m.wall) - now }

func (m *model) lose(cause error) {
	if m.phase == "held" {
		m.phase, m.cause = "lost", cause
		m.announced = append(m.announced, cause)
	}
}

func (m *model) acknowledge(sent, now, ttl time.Duration) {
	if m.phase != "held" || m.left(now) <= 0 {
		return
	}
	if m.most > 0 {
		ttl = min(ttl, m.most)
	}
	if end := sent + ttl - margin(ttl); end > m.mono {
		m.mono, m.wall = end, end
	}
}

// confirm acknowledges a command that a holder sent.
func (m *model) confirm(sent, now, ttl time.Duration) {
	if m.phase == "held" && m.left(now) > 0 && m.lowerTo > 0 {
		m.longest, m.lowerTo = m.lowerTo, 0
	}
	m.acknowledge(sent, now, ttl)
}

func (m *model) ask(ttl time.Duration) { m.longest, m.lowerTo = max(m.longest, ttl), 0 }

func (m *model) lower(now, ttl time.Duration) bool {
	if m.phase != "held" || m.landing > now {
		return false
	}
	m.longest, m.lowerTo = max(m.longest, ttl), ttl
	if end := now + ttl - margin(ttl); end-now < m.left(now) {
		m.mono, m.wall = end, end
	}
	return true
}

func (m *model) release() error {
	if m.phase == "held" {
		m.phase = "releasing"
	}
	return m.cause
}

func (m *model) end() {
	if m.phase != "lost" {
		m.phase = "ended"
	}
}

func (m *model) wish(n int, now time.Duration) {
	if m.wishes == 0 && !m.wire {
		m.quietFrom = now
	}
	m.wishes += n
}

func (m *model) recordDoubt(now time.Duration) {
	if !m.doubt {
		m.doubt, m.doubtFrom = true, now
	}
}

// question sends a question, which covers all doubts so far.
func (m *model) question() { m.asked, m.doubt = true, false }

// answered applies the answer of Redis to a renewal or a question.
func (m *model) answered(v redisstore.Verdict, question bool, sent, now time.Duration) {
	switch {
	case v == gone:
		m.lose(errGone)
	case question:
	case v == noAnswer:
		m.landing = now + landing
	case v == there, v == twice:
		if v.Twice {
			m.landing = now + landing
		}
		m.acknowledge(sent, now, ttl)
	}
	if question {
		m.asked, m.doubt, m.doubtFrom = false, m.doubt || v.Err != nil, now
		return
	}
	m.wire, m.quietFrom = false, now
	if v != gone {
		m.reported = append(m.reported, v.Err)
	}
}
