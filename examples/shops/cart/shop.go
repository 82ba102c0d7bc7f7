package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

type cart struct {
	Items []item `binding:"required" json:"items"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// shop sells from a stock. The map stands for a table of a database, with its round trip.
type shop struct {
	mu    sync.Mutex
	stock map[string]int
}

// sell deducts all items or none. It is correct only if no other call sells one of them
// at the same time.
func (s *shop) sell(c *gin.Context) {
	var wanted cart
	if err := c.ShouldBindJSON(&wanted); err != nil {
		c.Status(http.StatusBadRequest)
		return
	}
	after := make(map[string]int)
	for _, i := range wanted.Items {
		if _, known := after[i.SKU]; !known {
			after[i.SKU] = s.left(i.SKU)
		}
		after[i.SKU] -= i.Quantity
		if after[i.SKU] < 0 {
			c.Status(http.StatusGone)
			return
		}
	}
	for sku, left := range after {
		s.write(sku, left)
	}
	c.Status(http.StatusCreated)
}

func (s *shop) left(sku string) int {
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
