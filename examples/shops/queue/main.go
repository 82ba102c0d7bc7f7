// Queue sells the few tickets of a show in the order in which buyers arrived, across all
// instances.
//
//	go -C examples run ./shops/queue
//
// A plain lock serves the waiters of one instance in the order of arrival. Between
// instances the order is not kept: a late buyer may overtake many others. A fair lock has
// one queue for all waiters, in Redis. It costs round trips, so use the plain lock unless
// the order matters.
package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const buyers = 30

func main() { proof.Main("queue", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	s := &show{waits: make(chan struct{}, 2*buyers)}
	var instances []*gin.Engine
	for range 3 {
		locks, err := p.Locks(ctx, core.WithObserver(s.observer()))
		if err != nil {
			return err
		}
		service, err := routes(locks, s)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}
	came := make([]int, buyers)
	for i := range came {
		came[i] = i
	}

	p.Titlef("%d buyers come one after the other to three instances, with a plain lock", buyers)
	plain, err := s.sell(ctx, instances, "/plain/tickets")
	if err != nil {
		return err
	}
	p.Sayf("%d were served out of turn: %v", outOfTurn(plain), plain)

	p.Titlef("with a fair lock")
	fair, err := s.sell(ctx, instances, "/tickets")
	if err != nil {
		return err
	}
	p.Checkf(slices.Equal(fair, came), "served in the order of arrival: %d of %d out of turn", outOfTurn(fair), len(fair))
	return nil
}

// outOfTurn counts the buyers that were served after a buyer that arrived later.
func outOfTurn(served []int) (n int) {
	latest := -1
	for _, buyer := range served {
		if buyer < latest {
			n++
		}
		latest = max(latest, buyer)
	}
	return n
}

func routes(locks *core.Client, s *show) (*gin.Engine, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	r := gin.New()
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/plain/tickets/:buyer", ruleset.Rule{Key: "plain", WaitTime: 20 * time.Second}, s.serve),
		guard.Handle(r, http.MethodPost, "/tickets/:buyer", ruleset.Rule{Key: "tickets", Kind: ruleset.Fair, WaitTime: 20 * time.Second}, s.serve),
		guard.Check(r))
}

// show serves buyers. It serves the first buyer when all other buyers wait.
type show struct {
	waits chan struct{} // a buyer waits

	mu     sync.Mutex
	open   chan struct{}
	served []int
}

func (s *show) observer() *core.Observer {
	return &core.Observer{Contention: func(context.Context, core.Contention) { s.waits <- struct{}{} }}
}

// serve is the handler.
func (s *show) serve(c *gin.Context) {
	buyer, err := strconv.Atoi(c.Param("buyer"))
	if err != nil {
		c.Status(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.served = append(s.served, buyer)
	open := s.open
	s.mu.Unlock()
	if buyer == 0 {
		s.waits <- struct{}{} // the buyer has its turn; the next buyer may come
		<-open
	}
	time.Sleep(time.Millisecond) // the ticket is printed
	c.Status(http.StatusCreated)
}

// sell sends the buyers one after the other, opens the show when all have arrived, and returns
// the order in which they were served.
func (s *show) sell(ctx context.Context, instances []*gin.Engine, path string) ([]int, error) {
	s.mu.Lock()
	s.open, s.served = make(chan struct{}), nil
	s.mu.Unlock()
	var all sync.WaitGroup
	for i := range buyers {
		all.Go(func() { proof.Post(ctx, instances[i%len(instances)], path+"/"+strconv.Itoa(i), "") })
		select {
		case <-s.waits:
		case <-ctx.Done():
		}
	}
	close(s.open)
	all.Wait()
	return s.served, ctx.Err()
}
