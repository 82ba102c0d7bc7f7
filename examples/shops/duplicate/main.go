// Duplicate handles a request that arrives several times, because of a double click or a
// client that retries.
//
//	go -C examples run ./shops/duplicate
//
// The client generates a request id and sends it with every copy. The key of the lock is that id,
// and the check whether the request was already processed is inside the lock. Before the lock,
// the check would find no copy processed.
package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const (
	copies = 5           // copies of each request, sent at once
	window = time.Second // the debounce window
)

func main() { proof.Main("duplicate", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	o := &orders{byRequest: make(map[string][]int)}
	var instances []*gin.Engine
	for range 2 {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := routes(locks, o)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}
	submit := func(path string) map[int]int {
		return proof.Tally(copies, func(i int) int { return proof.Post(ctx, instances[i%2], path, "") })
	}

	p.Titlef("%d copies of one request, two instances; the check is before the lock", copies)
	answers := submit("/wrong/orders/r-1")
	p.Checkf(o.count("r-1") > 1, "answers %v, %d orders: every copy was checked before the first was processed", answers, o.count("r-1"))

	p.Titlef("the check is inside the lock")
	answers = submit("/orders/r-2")
	p.Checkf(o.count("r-2") == 1, "%d order", o.count("r-2"))
	p.Checkf(answers[http.StatusCreated] == 1 && answers[http.StatusOK] == copies-1, "answers %v: one copy created the order, the others got the same order", answers)

	p.Titlef("the same with debounce, and without a check")
	answers = submit("/debounced/orders/r-3")
	p.Checkf(answers[http.StatusCreated] == 1 && answers[http.StatusTooManyRequests] == copies-1, "answers %v: 429 inside the window", answers)
	p.Checkf(o.count("r-3") == 1, "%d order", o.count("r-3"))
	time.Sleep(window + 50*time.Millisecond)
	late := proof.Post(ctx, instances[0], "/debounced/orders/r-3", "")
	p.Checkf(late == http.StatusCreated && o.count("r-3") == 2, "a copy after the window: %d, %d orders", late, o.count("r-3"))
	p.Sayf("Debounce is not idempotency: after the window a copy is processed again.")
	return nil
}

// routes returns the service in three variants.
func routes(locks *core.Client, o *orders) (*gin.Engine, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	r := gin.New()
	rule := ruleset.Rule{Key: "order:create:#{path.requestId}", WaitTime: 3 * time.Second}
	debounce := ruleset.Rule{Key: "order:submit:#{path.requestId}", Debounce: window}

	r.POST("/wrong/orders/:requestId", o.answerIfSeen, guard.Handler(rule), o.create)
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/orders/:requestId", rule, o.answerIfSeen, o.create),
		guard.Handle(r, http.MethodPost, "/debounced/orders/:requestId", debounce, o.create),
		guard.Check(r))
}
