// Reports creates reports that are expensive for the database: at most five at a time across all
// instances.
//
//	go -C examples run ./shops/reports
//
// A limit of five in each instance allows five times the number of instances and changes with the
// fleet. A semaphore has one limit for all: a caller that finds no free permit gets 429 at once
// and may try again. The permit of a dead instance is free again when its lease expires.
package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const (
	atOnce = 5
	fleet  = 3
)

func main() { proof.Main("reports", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	db := &database{began: make(chan struct{})}
	var instances []*gin.Engine
	for range fleet {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := routes(locks, db)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}

	p.Titlef("%d callers in %d instances, without the semaphore", 2*atOnce, fleet)
	_, done := db.ask(ctx, instances, "/unguarded/reports", 2*atOnce)
	p.Checkf(db.running() > atOnce, "%d reports at once", db.running())
	done()

	p.Titlef("with it")
	answers, done := db.ask(ctx, instances, "/reports", atOnce)
	p.Checkf(db.running() == atOnce, "%d reports at once", db.running())
	sixth := proof.Send(ctx, instances[0], http.MethodPost, "/reports", "")
	p.Checkf(sixth.Code == http.StatusTooManyRequests && sixth.Header().Get("Retry-After") != "",
		"a sixth report: %d, try again in %s s", sixth.Code, sixth.Header().Get("Retry-After"))
	done()
	p.Checkf(answers()[http.StatusOK] == atOnce, "%d reports are ready", answers()[http.StatusOK])

	answers, done = db.ask(ctx, instances, "/reports", atOnce)
	done()
	p.Checkf(answers()[http.StatusOK] == atOnce, "the permits are free again: %d more reports", answers()[http.StatusOK])
	return nil
}

func routes(locks *core.Client, db *database) (*gin.Engine, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.POST("/unguarded/reports", db.report)
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/reports", ruleset.Rule{
			Key:      "reports",
			Kind:     ruleset.Semaphore,
			Permits:  atOnce,
			WaitTime: ruleset.NoWait,
		}, db.report),
		guard.Check(r))
}

// database works on each report until finish is called.
type database struct {
	began chan struct{} // a report has started

	mu     sync.Mutex
	busy   int
	finish chan struct{}
}

// report is the handler.
func (db *database) report(c *gin.Context) {
	db.mu.Lock()
	db.busy++
	finish := db.finish
	db.mu.Unlock()
	db.began <- struct{}{}
	<-finish
	db.mu.Lock()
	db.busy--
	db.mu.Unlock()
	c.Status(http.StatusOK)
}

func (db *database) running() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.busy
}

// ask requests n reports and waits until all have started. done finishes them; then answers
// counts the statuses.
func (db *database) ask(ctx context.Context, instances []*gin.Engine, path string, n int) (answers func() map[int]int, done func()) {
	finish, all := make(chan struct{}), make(chan struct{})
	db.mu.Lock()
	db.finish = finish
	db.mu.Unlock()
	var tally map[int]int
	go func() {
		defer close(all)
		tally = proof.Tally(n, func(i int) int { return proof.Post(ctx, instances[i%fleet], path, "") })
	}()
	for range n {
		select {
		case <-db.began:
		case <-ctx.Done(): // a report did not start, and the checks will fail
		}
	}
	return func() map[int]int { return tally }, func() {
		close(finish)
		<-all
	}
}
