// Stock sells one item to more buyers than there are pieces.
//
//	go -C examples run ./shops/stock
//
// A sale reads the stock, subtracts one and writes it back. Two sales at the same time sell the
// same piece. The key of the lock is the item in the body of the order, so buyers of other items
// do not wait.
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
	pieces = 100
	buyers = 250
)

func main() { proof.Main("stock", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	s := &shop{stock: make(map[string]int)}
	var instances []*gin.Engine
	for range 2 {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := s.routes(locks)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}
	sell := func(path string) map[int]int {
		s.write("teapot", pieces)
		return proof.Tally(buyers, func(i int) int {
			return proof.Post(ctx, instances[i%2], path, `{"sku": "teapot"}`)
		})
	}

	p.Titlef("%d buyers of %d teapots in two instances, without the lock", buyers, pieces)
	sold := sell("/unguarded/orders")[http.StatusCreated]
	p.Checkf(sold > pieces, "%d sold, %d too many", sold, sold-pieces)

	p.Titlef("with the lock")
	answers := sell("/orders")
	p.Checkf(answers[http.StatusCreated] == pieces, "%d sold", answers[http.StatusCreated])
	p.Checkf(answers[http.StatusGone] == buyers-pieces, "%d answered that it is sold out", answers[http.StatusGone])
	p.Checkf(s.read("teapot") == 0, "%d left", s.read("teapot"))
	return nil
}

// shop sells from a stock. The map stands for a table of a database, with its round trip. In a
// real table, add a condition (stock > 0) as a second protection.
type shop struct {
	mu    sync.Mutex
	stock map[string]int
}

type order struct {
	SKU string `binding:"required" json:"sku"`
}

func (s *shop) routes(locks *core.Client) (*gin.Engine, error) {
	guard, err := ginlock.New(locks, ginlock.WithBody[order]("POST /orders")) // checks body.sku at start-up
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.POST("/unguarded/orders", s.sell)
	return r, errors.Join(
		guard.Handle(r, http.MethodPost, "/orders", ruleset.Rule{
			Key:      "inventory:deduct:#{body.sku}",
			WaitTime: 10 * time.Second,
		}, s.sell),
		guard.Check(r))
}

// sell is correct only if no other call sells the same item at the same time.
func (s *shop) sell(c *gin.Context) {
	var o order
	if err := c.ShouldBindJSON(&o); err != nil {
		c.Status(http.StatusBadRequest)
		return
	}
	left := s.read(o.SKU)
	if left == 0 {
		c.Status(http.StatusGone)
		return
	}
	s.write(o.SKU, left-1)
	c.Status(http.StatusCreated)
}

func (s *shop) read(sku string) int {
	defer time.Sleep(time.Millisecond) // the time that the database takes to answer
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stock[sku]
}

func (s *shop) write(sku string, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock[sku] = left
}
