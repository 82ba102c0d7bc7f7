// Cart sells several items at once.
//
//	go -C examples run ./shops/cart
//
// The key of the rule is a list with one key for each item of the cart. A call gets all locks or
// none, so carts with the same items in opposite orders do not deadlock. They do deadlock if the
// locks are acquired one by one in the order of the cart.
package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const (
	sets  = 60 // in stock, of one cup and two saucers
	carts = 100
)

// The same cart in both orders. The second one has the saucer twice.
const (
	cupFirst    = `{"items": [{"sku": "cup", "quantity": 1}, {"sku": "saucer", "quantity": 2}]}`
	saucerFirst = `{"items": [{"sku": "saucer", "quantity": 1}, {"sku": "cup", "quantity": 1}, {"sku": "saucer", "quantity": 1}]}`
)

func main() { proof.Main("cart", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	s := &shop{stock: map[string]int{"cup": sets, "saucer": 2 * sets}}
	var instances []*gin.Engine
	var clients []*core.Client
	for range 2 {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := routes(locks, s)
		if err != nil {
			return err
		}
		instances, clients = append(instances, service), append(clients, locks)
	}

	p.Titlef("%d carts, half of them packed in the opposite order, for %d sets of one cup and two saucers", carts, sets)
	answers := proof.Tally(carts, func(i int) int {
		return proof.Post(ctx, instances[i/2%2], "/carts", []string{cupFirst, saucerFirst}[i%2])
	})
	cups, saucers := s.left("cup"), s.left("saucer")
	p.Checkf(answers[http.StatusConflict] == 0, "%d carts stuck until their wait time ended", answers[http.StatusConflict])
	p.Checkf(answers[http.StatusCreated] == sets, "%d carts sold", answers[http.StatusCreated])
	p.Checkf(answers[http.StatusGone] == carts-sets, "%d carts refused, sold out", answers[http.StatusGone])
	p.Checkf(cups == 0 && saucers == 0, "%d cups and %d saucers left", cups, saucers)

	p.Titlef("the mistake: two carts acquire their locks one by one, in opposite orders")
	stuck := oneByOne(ctx, clients)
	p.Checkf(stuck > 0, "%d of 2 stuck until the wait time ended", stuck)
	return nil
}

func routes(locks *core.Client, s *shop) (*gin.Engine, error) {
	guard, err := ginlock.New(locks, ginlock.WithBody[cart]("POST /carts"))
	if err != nil {
		return nil, err
	}
	r := gin.New()
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/carts", ruleset.Rule{
			Key:      "inventory:deduct:#{map(body.items, .sku)}",
			WaitTime: 10 * time.Second,
		}, s.sell),
		guard.Check(r))
}

// oneByOne lets two carts deadlock: each holds the lock that the other one waits for.
func oneByOne(ctx context.Context, clients []*core.Client) (stuck int) {
	var met sync.WaitGroup
	met.Add(2)
	items := []string{"cup", "saucer"}
	return proof.Tally(2, func(i int) bool {
		first, second := clients[i].Lock("one:"+items[i]), clients[i].Lock("one:"+items[1-i])
		err := first.Do(ctx, func(ctx context.Context) error {
			met.Done()
			met.Wait()
			return second.Do(ctx, func(context.Context) error { return nil }, core.WaitTime(200*time.Millisecond))
		})
		return errors.Is(err, core.ErrNotAcquired)
	})[true]
}
