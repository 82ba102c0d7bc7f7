// Prices serves prices that are read often and changed rarely: GET uses a read lock, and PUT uses
// the write lock of the same key.
//
//	go -C examples run ./shops/prices
//
// A price is two rows, the amount and its currency. A reader between the two writes sees a price
// that never existed. A plain lock prevents that, but makes all readers of a price wait for each
// other. With a read lock and a write lock, readers do not wait for each other in any instance. A
// waiting writer gets its turn, even if readers keep coming.
package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/ruleset"
	"github.com/interlock-go/interlock/examples/shops/internal/proof"
	"github.com/interlock-go/interlock/ginlock"
)

const (
	readers = 40
	writers = 4
	reads   = 10 // the number of reads of each reader, one after the other; also the number of writes
)

func main() { proof.Main("prices", prove) }

func prove(ctx context.Context, p *proof.Proof) error {
	gin.SetMode(gin.ReleaseMode)
	t := &table{rows: map[string]string{}}
	var instances []*gin.Engine
	for range 2 {
		locks, err := p.Locks(ctx)
		if err != nil {
			return err
		}
		service, err := routes(locks, t)
		if err != nil {
			return err
		}
		instances = append(instances, service)
	}

	p.Titlef("%d readers and %d writers in two instances, without locks", readers, writers)
	answers := crowd(ctx, instances, "/unguarded/prices/teapot")
	p.Checkf(answers[http.StatusConflict] > 0, "%d of %d readers saw a price that never existed", answers[http.StatusConflict], readers*reads)

	p.Titlef("with a read lock and a write lock")
	t.mostAtOnce = 0
	clear(t.rows) // the last change without locks may have left a wrong price
	answers = crowd(ctx, instances, "/prices/teapot")
	p.Checkf(answers[http.StatusOK] == readers*reads, "%d readers saw a correct price", answers[http.StatusOK])
	p.Checkf(answers[http.StatusNoContent] == writers*reads, "%d changes", answers[http.StatusNoContent])
	p.Checkf(t.mostAtOnce > 1, "readers did not wait for each other: up to %d at once", t.mostAtOnce)
	return nil
}

// crowd sends all requests at once and counts the answers.
func crowd(ctx context.Context, instances []*gin.Engine, path string) map[int]int {
	var mu sync.Mutex
	answers := map[int]int{}
	proof.Tally(readers+writers, func(i int) bool {
		for n := range reads {
			method, body := http.MethodGet, ""
			if i < writers {
				method, body = http.MethodPut, strconv.Itoa(i*reads+n)
			}
			status := proof.Send(ctx, instances[i%2], method, path, body).Code
			mu.Lock()
			answers[status]++
			mu.Unlock()
		}
		return true
	})
	return answers
}

func routes(locks *core.Client, t *table) (*gin.Engine, error) {
	guard, err := ginlock.New(locks)
	if err != nil {
		return nil, err
	}
	rule := ruleset.Rule{Key: "price:#{path.sku}", WaitTime: 20 * time.Second}
	reading, writing := rule, rule
	reading.Kind, writing.Kind = ruleset.Read, ruleset.Write
	r := gin.New()
	r.GET("/unguarded/prices/:sku", t.get)
	r.PUT("/unguarded/prices/:sku", t.put)
	return r, errors.Join(
		guard.Handle(r, http.MethodGet, "/prices/:sku", reading, t.get),
		guard.Handle(r, http.MethodPut, "/prices/:sku", writing, t.put),
		guard.Check(r))
}

// table stands for a table of a database, with its round trips. Both rows of a correct price
// are equal.
type table struct {
	mu         sync.Mutex
	rows       map[string]string
	reading    int
	mostAtOnce int
}

func (t *table) get(c *gin.Context) {
	t.mu.Lock()
	t.reading++
	t.mostAtOnce = max(t.mostAtOnce, t.reading)
	t.mu.Unlock()
	amount, currency := t.read("amount"), t.read("currency")
	t.mu.Lock()
	t.reading--
	t.mu.Unlock()
	if amount != currency {
		c.Status(http.StatusConflict)
		return
	}
	c.String(http.StatusOK, amount)
}

func (t *table) put(c *gin.Context) {
	price, err := c.GetRawData()
	if err != nil {
		c.Status(http.StatusBadRequest)
		return
	}
	t.write("amount", string(price))
	t.write("currency", string(price))
	c.Status(http.StatusNoContent)
}

func (t *table) read(row string) string {
	defer time.Sleep(time.Millisecond) // the time that the database takes to answer
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[row]
}

func (t *table) write(row, value string) {
	defer time.Sleep(time.Millisecond) // as above
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[row] = value
}
