package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/core/internal/lease"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// pair is a lease with its model.
type pair struct {
	*holding

	model
}

// duel applies the same operations to real leases and to their models.
type duel struct {
	*lease.Watchdog

	t     *testing.T
	rand  *rand.Rand
	start time.Time
	trail []string // the steps so far
	fresh int      // number of leases so far
	idle  <-chan struct{}
	blind time.Duration // the scheduler may not notice a step of the wall clock before this time

	mu    sync.Mutex // the watchdog's goroutines notify the models of renewals
	pairs map[string]*pair
	ever  map[string]*pair // includes pairs that were replaced
}

func (d *duel) now() time.Duration { return time.Since(d.start) }

// pause returns a random duration.
func (d *duel) pause() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rand.Int64N(int64(1500 * time.Millisecond)))
}

func (d *duel) logf(format string, args ...any) {
	d.trail = append(d.trail, fmt.Sprintf("%s: ", d.now())+fmt.Sprintf(format, args...))
}

func (*duel) NodeName(_ context.Context, key string) string { return node(key) }

// Renew answers at random after some time and notifies the models.
func (d *duel) Renew(_ context.Context, claims []redisstore.Claim, ttl time.Duration) []redisstore.Verdict {
	d.mu.Lock()
	sent := d.now()
	for _, c := range claims {
		p := d.ever[c.Key]
		if ttl > 0 {
			if p.phase != "held" || p.wishes < 1 || p.wire {
				d.t.Errorf("%s was renewed: %s, %d holds want that, already being renewed: %v", c.Key, p.phase, p.wishes, p.wire)
			}
			p.wire = true
			p.ask(ttl)
			continue
		}
		if p.phase != "held" || !p.doubt || p.asked {
			d.t.Errorf("Redis was asked about %s: %s, in doubt: %v, already being asked about: %v", c.Key, p.phase, p.doubt, p.asked)
		}
		p.question()
	}
	takes := time.Duration(d.rand.Int64N(int64(2 * time.Second)))
	d.mu.Unlock()
	time.Sleep(takes) // virtual time
	d.mu.Lock()
	defer d.mu.Unlock()
	verdicts := make([]redisstore.Verdict, len(claims))
	for i, c := range claims {
		p := d.ever[c.Key]
		d.checkClock(p)
		verdicts[i] = [...]redisstore.Verdict{there, there, there, there, there, twice, noAnswer, noAnswer, refused, refused, gone}[d.rand.IntN(11)]
		p.answered(verdicts[i], ttl == 0, sent, d.now())
		d.logf("%s answered (ttl %s, after %s): %v", c.Key, ttl, takes, verdicts[i])
	}
	return verdicts
}

// checkClock lets both check the deadline.
func (d *duel) checkClock(p *pair) {
	if p.left(d.now()) <= 0 {
		p.lose(errOver)
	}
	if err := p.CheckClock(time.Now()); err != nil && !errors.Is(err, p.cause) {
		d.t.Errorf("%s at %s: lost by %v, want %v", p.Key, d.now(), err, p.cause)
	}
}

// step performs one random operation on a random lease and its model.
func (d *duel) step() {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make([]string, 0, len(d.pairs))
	for name := range d.pairs {
		names = append(names, name)
	}
	slices.Sort(names)
	p := d.pairs[names[d.rand.IntN(len(names))]]
	now, at := time.Now(), d.now()
	span := time.Duration(d.rand.Int64N(int64(40 * time.Second)))
	d.checkClock(p)
	switch what := d.rand.IntN(17); what {
	case 0, 1:
		sent := time.Duration(d.rand.Int64N(int64(3 * time.Second)))
		d.logf("%s acknowledge %s, sent %s ago", p.Key, span, sent)
		p.Acknowledge(now.Add(-sent), span)
		p.confirm(at-sent, at, span)
	case 2, 3:
		d.logf("%s lower to %s", p.Key, span)
		if got, want := p.Lower(now, span), p.lower(at, span); got != want {
			d.t.Errorf("%s lowered: %v, the model %v", p.Key, got, want)
		}
	case 4:
		d.logf("%s unanswered", p.Key)
		p.RecordNoAnswer()
		p.landing = at + landing
	case 5:
		d.logf("%s believe %s", p.Key, span)
		p.LimitTrust(span)
		if p.most == 0 || span < p.most {
			p.most = span
		}
	case 6, 7, 8:
		d.logf("%s renew", p.Key)
		p.Renew(now)
		p.wish(1, at)
	case 9:
		if p.wishes > 0 {
			d.logf("%s stop renewal", p.Key)
			p.StopRenewal()
			p.wish(-1, at)
		}
	case 10, 11:
		d.logf("%s doubt", p.Key)
		p.recordDoubt(at)
		p.Doubt()
	case 12:
		cause := errors.New("cause " + strconv.Itoa(len(d.trail)))
		if d.rand.IntN(3) == 0 {
			d.logf("%s lose: %v", p.Key, cause)
			p.Lose(cause)
			p.lose(cause)
		}
	case 13:
		if d.rand.IntN(3) > 0 {
			break
		}
		d.logf("%s release", p.Key)
		if got, want := p.BeginRelease(), p.release(); !errors.Is(got, want) {
			d.t.Errorf("%s released: %v, the model %v", p.Key, got, want)
		}
	case 14:
		if p.phase != "held" || d.rand.IntN(5) == 0 {
			d.logf("%s end", p.Key)
			p.End()
			p.end()
		}
	case 15:
		d.logf("%s ask %s", p.Key, span)
		p.Ask(span)
		p.ask(span)
	case 16:
		d.logf("suspended for %s", span/10)
		for _, l := range d.Leases() {
			d.ever[l.Key].wall -= span / 10
		}
		d.AdvanceWallClock(span / 10)
		d.blind = at + time.Second + time.Millisecond
	}
}

// compare reports differences between a lease and its model.
func (d *duel) compare() {
	d.mu.Lock()
	defer d.mu.Unlock()
	watched := d.Leases()
	if idle := d.isIdle(); idle != (len(watched) == 0) {
		d.t.Errorf("at %s: drained %v with %d under watch", d.now(), idle, len(watched))
	}
	for key, p := range d.pairs {
		left := p.left(d.now())
		if left <= 0 && (left > -5*time.Millisecond || d.now() < d.blind) {
			continue // the scheduler may react later
		}
		if left <= 0 {
			p.lose(errOver)
		}
		differs := func(what string, got, want any) {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				d.t.Errorf("%s at %s: %s is %v, want %v", key, d.now(), what, got, want)
			}
		}
		differs("held", p.Held(), p.phase == "held")
		differs("loss", p.Loss(), p.cause)
		differs("left", p.Left(time.Now()), p.left(d.now()))
		differs("longest", p.Longest(), p.longest)
		until := time.Duration(0)
		if l := p.Landing(); !l.IsZero() {
			until = l.Sub(d.start)
		}
		differs("landing", until, p.landing)
		differs("on the wire", p.Renewing() != nil, p.wire)
		differs("reports", len(p.renewals()), len(p.reported))
		differs("losses", len(p.lost()), len(p.announced))
		if reports := p.lost(); len(reports) == 1 && len(p.announced) == 1 {
			differs("reported cause", reports[0].cause, p.announced[0])
		}
		differs("watched", slices.Contains(watched, &p.Lease), p.phase == "held" || p.phase == "releasing")
		if silent := d.now() - p.quietFrom; p.phase == "held" && p.wishes > 0 && !p.wire && silent > third+time.Millisecond {
			d.t.Errorf("%s at %s: not renewed for %s", key, d.now(), silent)
		}
		if silent := d.now() - p.doubtFrom; p.phase == "held" && p.doubt && !p.asked && silent > 5*time.Second+time.Millisecond {
			d.t.Errorf("%s at %s: in doubt, but no question for %s", key, d.now(), silent)
		}
	}
}

// isIdle reports whether nothing was under watch since the last lease was opened.
func (d *duel) isIdle() bool {
	select {
	case <-d.idle:
		return true
	default:
		return false
	}
}

// replace replaces leases that have ended by new ones.
func (d *duel) replace() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, p := range d.pairs {
		if p.phase != "held" && !p.wire && d.rand.IntN(8) == 0 {
			p.End() // a new lease follows an old one
			delete(d.pairs, key)
		}
	}
	for len(d.pairs) < 4 {
		d.fresh++
		key := fmt.Sprintf("n%d/%d", d.fresh%2, d.fresh)
		given := time.Duration(d.rand.Int64N(int64(time.Minute)) + int64(10*time.Millisecond))
		p := &pair{&holding{}, model{phase: "held", longest: given, mono: d.now() + given - margin(given)}}
		p.wall = p.mono
		d.Open(&p.Lease, redisstore.Claim{Key: key, Field: "f"}, p.holding, time.Now(), given)
		p.Watch(time.Now())
		d.pairs[key], d.ever[key] = p, p
		d.logf("%s opened for %s", key, given)
	}
	d.idle = d.Drained()
}

// Real leases under a real watchdog and their models go through the same events.
func TestModel(t *testing.T) {
	t.Parallel()
	for range 10 {
		seed := rand.Uint64() // the seed does not determine the jitter
		t.Run("", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &duel{t: t, rand: rand.New(rand.NewPCG(seed, 0)), start: time.Now(), pairs: make(map[string]*pair), ever: make(map[string]*pair)}
				var work sync.WaitGroup
				life, end := context.WithCancel(t.Context())
				spawn := func(do func(ctx context.Context)) { work.Go(func() { do(life) }) }
				d.Watchdog = lease.NewWatchdog(lease.Config{
					Start: d.start, TTL: ttl, Timeout: timeout, Landing: landing, Renewer: d, Spawn: spawn, Over: errOver, Gone: errGone,
				})
				spawn(d.Run)
				for range 600 {
					d.replace()
					d.step()
					synctest.Wait()
					d.compare()
					time.Sleep(d.pause()) // virtual time
					synctest.Wait()
					d.compare()
					if t.Failed() {
						d.mu.Lock()
						t.Logf("seed %d: %q", seed, d.trail[max(0, len(d.trail)-20):])
						d.mu.Unlock()
						break
					}
				}
				end()
				work.Wait()
			})
		})
	}
}
