package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// orders stands for a table of orders that stores the request of each order. In a real table, the
// request id is also unique: the lock saves the work for the second copy, and the constraint of
// the database decides.
type orders struct {
	mu        sync.Mutex
	byRequest map[string][]int // the numbers of the orders created for a request
	last      int
}

// answerIfSeen answers a request that was already processed with the order of the first copy.
func (o *orders) answerIfSeen(c *gin.Context) {
	if made := o.of(c.Param("requestId")); len(made) > 0 {
		c.AbortWithStatusJSON(http.StatusOK, gin.H{"order": made[0]})
	}
}

// create creates an order, which takes some time.
func (o *orders) create(c *gin.Context) {
	time.Sleep(30 * time.Millisecond) // the payment, the mail, …
	c.JSON(http.StatusCreated, gin.H{"order": o.insert(c.Param("requestId"))})
}

func (o *orders) insert(request string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.byRequest[request] = append(o.byRequest[request], o.last)
	return o.last
}

func (o *orders) of(request string) []int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byRequest[request]
}

func (o *orders) count(request string) int { return len(o.of(request)) }
