package wire

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// sentinels tracks the server that the Sentinels name as the master. When there is a new master, go-redis
// closes the connections of its pool, but not the connections of this package. An old master that is cut
// off from its Sentinels does not close them either. So sentinels asks the Sentinels regularly while
// commands are sent. The connections are kept while the answer stays the same. Without an answer, a
// connection is replaced after confirmedFor.
type sentinels struct {
	life

	dialer *dialer
	era    *atomic.Int64
	start  time.Time

	confirmed atomic.Int64 // when the master was last named, since start
	used      atomic.Int64 // when a command was last sent, since start
	asking    atomic.Bool  // a goroutine asks
	mu        sync.Mutex
	master    string // the master that was last named; empty: none yet
}

const (
	// confirmEvery is the interval at which Sentinels are asked.
	confirmEvery = 4 * time.Second
	// confirmedFor is how long an answer is valid: one interval, and time for the answer.
	confirmedFor = confirmEvery + time.Second
	// confirmsUntil is how long after the last command Sentinels are still asked.
	confirmsUntil = time.Minute
)

func newSentinels(d *dialer, era *atomic.Int64) *sentinels {
	s := &sentinels{dialer: d, era: era, start: time.Now()}
	s.begin()
	return s
}

// commandSent records that a command is sent, and starts to ask the Sentinels if no goroutine asks.
func (s *sentinels) commandSent(now time.Time) {
	s.used.Store(int64(now.Sub(s.start)))
	if !s.asking.Load() && s.asking.CompareAndSwap(false, true) && !s.spawn(s.askOften) {
		s.asking.Store(false)
	}
}

// unsure reports whether the Sentinels have not confirmed a connection for confirmedFor. born is the time at which the
// connection was opened. named reports whether the connection leads to the address that the Sentinels named. If it does
// not, because it goes through a tunnel or to an old master, no answer of the Sentinels confirms it, and only its age
// counts.
func (s *sentinels) unsure(born, now time.Time, named bool) bool {
	last := born
	if confirmed := s.start.Add(time.Duration(s.confirmed.Load())); named && confirmed.After(born) {
		last = confirmed
	}
	return now.Sub(last) > confirmedFor
}

// askOften asks every confirmEvery until no command was sent for confirmsUntil.
func (s *sentinels) askOften() {
	defer s.asking.Store(false)
	ticker := time.NewTicker(confirmEvery)
	defer ticker.Stop()
	for time.Since(s.start)-time.Duration(s.used.Load()) < confirmsUntil {
		select {
		case <-ticker.C:
			s.ask(s.ctx)
		case <-s.ctx.Done():
			return
		}
	}
}

// ask asks for the master. If the Sentinels name another server, all connections have to be replaced.
func (s *sentinels) ask(ctx context.Context) {
	at := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.dialer.timeout)
	defer cancel()
	named, err := s.askMaster(ctx)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master != named {
		s.master = named
		s.era.Add(1)
	}
	if since := int64(at.Sub(s.start)); since > s.confirmed.Load() {
		s.confirmed.Store(since)
	}
}

// leadsToMaster reports whether a connection leads to the master that the Sentinels last named.
func (s *sentinels) leadsToMaster(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return conn.RemoteAddr() != nil && conn.RemoteAddr().String() == s.master
}

// askMaster returns the address of the master. go-redis has no function for that, but its dialer asks a Sentinel and then
// dials the address. So askMaster calls the dialer with the network "unix". That dial fails, because no socket has the
// address as its name, and its error contains the address. Nothing is sent to the master.
func (s *sentinels) askMaster(ctx context.Context) (string, error) {
	conn, err := s.dialer.run(ctx, func(ctx context.Context) (net.Conn, error) {
		return s.dialer.opts.Dialer(ctx, "unix", "")
	})
	if err == nil { // a dialer of the caller that ignores the network
		_ = conn.Close() //nolint:errcheck // it carries no commands
		return "", errUnnamed
	}
	if op, failed := errors.AsType[*net.OpError](err); failed && op.Op == "dial" {
		if addr, is := op.Addr.(*net.UnixAddr); is {
			return addr.Name, nil
		}
	}
	return "", err
}
