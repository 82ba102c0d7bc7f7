package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/examples/leader/campaign"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lockName = "leader:prices"

// leadTerm is the term of one candidate.
type leadTerm struct {
	number     int
	token      int64
	begin, end time.Time
	ctx        context.Context
}

// stage records terms, and fails the test if two overlap.
type stage struct {
	t     *testing.T
	mu    sync.Mutex
	on    int
	terms []*leadTerm
}

// enter begins a term. leave ends it.
func (s *stage) enter(ctx context.Context, number int, token int64) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on++; s.on > 1 {
		s.t.Errorf("%d instances lead", s.on)
	}
	term := &leadTerm{number: number, token: token, begin: time.Now(), ctx: ctx}
	s.terms = append(s.terms, term)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.on--
		term.end = time.Now()
	}
}

// seen waits until n terms have begun, and returns the last.
func (s *stage) seen(n int) *leadTerm {
	for range 3600 {
		synctest.Wait()
		s.mu.Lock()
		terms := s.terms
		s.mu.Unlock()
		if len(terms) >= n {
			return terms[n-1]
		}
		time.Sleep(10 * time.Millisecond) // virtual time
	}
	s.t.Fatalf("fewer than %d terms after 36 s", n)
	return nil
}

// candidate is an instance in a bubble.
type candidate struct {
	locks *core.Client
	stop  context.CancelFunc
	cut   func() // cuts it off from Redis
}

// candidates starts n candidates that lead until their context ends. Each term is on the stage.
func candidates(t *testing.T, srv *redistest.Server, s *stage, n int) []*candidate {
	t.Helper()
	all := make([]*candidate, n)
	for i := range all {
		all[i] = stand(t, srv, func(ctx context.Context, token int64) error {
			defer s.enter(ctx, i, token)()
			<-ctx.Done()
			return nil
		}, func(error) {})
	}
	return all
}

// stand starts a candidate. The test stops it at its end.
func stand(t *testing.T, srv *redistest.Server, lead func(context.Context, int64) error, failed func(error), opts ...core.AcquireOption) *candidate {
	t.Helper()
	way := &network{}
	locks, err := core.New(srv.Client(way.into))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- campaign.Run(ctx, locks.Lock(lockName), lead, failed, opts...) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = locks.Close(t.Context())
	})
	return &candidate{locks, stop, way.cut}
}

// network has the connections of one candidate.
type network struct {
	mu    sync.Mutex
	off   bool
	conns []net.Conn
}

func (n *network) into(o *redis.Options) {
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.off {
			return nil, net.ErrClosed
		}
		conn, err := dial(ctx, network, addr)
		if err == nil {
			n.conns = append(n.conns, conn)
		}
		return conn, err
	}
}

func (n *network) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off = true
	for _, conn := range n.conns {
		_ = conn.Close()
	}
}

// A leader that shuts down hands over at once. Without the release the next one would lead after the lease, 30 s.
func TestRun_Shutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, s := redistest.New(t), &stage{t: t}
		all := candidates(t, srv, s, 3)
		first := s.seen(1)
		time.Sleep(5 * time.Minute) // virtual time: the lead lasts
		if err := first.ctx.Err(); err != nil {
			t.Fatalf("the first term has ended after five minutes: %v", err)
		}
		if id, err := campaign.Leader(t.Context(), all[first.number].locks.Lock(lockName)); err != nil || id != all[first.number].locks.ID() {
			t.Errorf("the leader is %q, %v", id, err)
		}
		at := time.Now()
		all[first.number].stop()
		second := s.seen(2)
		if took := second.begin.Sub(at); took > time.Second {
			t.Errorf("the next instance leads after %s", took)
		}
		if second.number == first.number || second.token <= first.token {
			t.Errorf("instance %d, token %d after instance %d, token %d", second.number, second.token, first.number, first.token)
		}
	})
}

// A leader that is cut off learns of the loss before another instance leads, within a lease. stage finds an overlap.
func TestRun_CutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, s := redistest.New(t), &stage{t: t}
		all := candidates(t, srv, s, 2)
		first := s.seen(1)
		time.Sleep(time.Minute) // virtual time
		at := time.Now()
		all[first.number].cut()
		second := s.seen(2)
		if took := second.begin.Sub(at); took > 32*time.Second || took < 15*time.Second {
			t.Errorf("the next instance leads after %s, want about a lease", took)
		}
		if !errors.Is(context.Cause(first.ctx), core.ErrLost) || first.end.IsZero() || first.end.After(second.begin) {
			t.Errorf("the first term ended at %s by %v, the second began at %s", first.end, context.Cause(first.ctx), second.begin)
		}
	})
}

// A former leader that has not noticed cannot overwrite what the next one has written.
func TestRun_LateWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, s := redistest.New(t), &stage{t: t}
		data := srv.Client() // the store is reachable all the time
		all := candidates(t, srv, s, 2)
		write := func(l *leadTerm) error {
			return fence.Command(t.Context(), data, l.token, "HSET", "prices", "by", l.number).Err()
		}
		first := s.seen(1)
		if err := write(first); err != nil {
			t.Fatal(err)
		}
		all[first.number].cut()
		second := s.seen(2)
		if err := write(second); err != nil {
			t.Fatal(err)
		}
		if err := write(first); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the late write: %v", err)
		}
		if by, err := data.HGet(t.Context(), "prices", "by").Int(); by != second.number || err != nil {
			t.Errorf("the prices are of instance %d, %v", by, err)
		}
	})
}

// MaxHold ends the term of a leader that hangs until its context ends.
func TestRun_MaxHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, s, failures := redistest.New(t), &stage{t: t}, make(chan error, 100)
		for i := range 2 {
			stand(t, srv, func(ctx context.Context, token int64) error {
				defer s.enter(ctx, i, token)()
				<-ctx.Done()
				return nil
			}, func(err error) { failures <- err }, core.MaxHold(5*time.Second))
		}
		first, second := s.seen(1), s.seen(2)
		if err := <-failures; !errors.Is(err, core.ErrHeldTooLong) {
			t.Errorf("the first term ended by %v", err)
		}
		if took := second.begin.Sub(first.begin); second.number == first.number || took < 4*time.Second || took > 6*time.Second {
			t.Errorf("instance %d leads %s after instance %d", second.number, took, first.number)
		}
	})
}

// If lead fails, another instance leads next. No instance keeps the lead, and none gives up.
func TestRun_LeadFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, broken := redistest.New(t), fmt.Errorf("broken: %w", core.ErrInvalid) // such as an error of another lock
		var terms, failures [2]atomic.Int32
		for i := range terms {
			stand(t, srv, func(context.Context, int64) error {
				terms[i].Add(1)
				time.Sleep(time.Second) // virtual time
				return broken
			}, func(err error) {
				if errors.Is(err, broken) {
					failures[i].Add(1)
				}
			})
		}
		time.Sleep(time.Minute) // virtual time
		for i := range terms {
			if led, failed := terms[i].Load(), failures[i].Load(); led < 10 || failed < led-1 {
				t.Errorf("instance %d has led %d times, with %d errors", i, led, failed)
			}
		}
	})
}

// Run returns the error of a client that was closed, and of a lock that has no token.
func TestRun_GivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, err := core.New(redistest.New(t).Client())
		if err != nil {
			t.Fatal(err)
		}
		attempt := func(lock core.Lock) error {
			return campaign.Run(t.Context(), lock,
				func(context.Context, int64) error { t.Error("it leads"); return nil },
				func(err error) { t.Errorf("it goes on after %v", err) })
		}
		if err := attempt(locks.MultiLock("a", "b")); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("a lock without a token: %v", err)
		}
		if err := locks.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := attempt(locks.Lock(lockName)); !errors.Is(err, core.ErrClosed) {
			t.Errorf("a closed client: %v", err)
		}
	})
}
