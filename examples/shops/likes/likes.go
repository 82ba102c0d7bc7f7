package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/interlock-go/interlock/ginlock"
)

type like struct{ user, post string }

// likes stands for two tables: the likes of users, and a counter for each post.
type likes struct {
	mu       sync.Mutex
	given    map[like]bool
	counters map[string]int
	keys     map[like]string // the lock under which each like was last toggled
}

func newLikes() *likes {
	return &likes{given: make(map[like]bool), counters: make(map[string]int), keys: make(map[like]string)}
}

// toggle is correct only if the same user does not toggle the same post at the same time.
func (l *likes) toggle(c *gin.Context) {
	k := like{c.Param("user"), c.Param("post")}
	if l.has(k) {
		l.set(k, false, -1)
	} else {
		l.set(k, true, +1)
	}
	c.Status(http.StatusNoContent)
}

func (l *likes) has(k like) bool {
	defer time.Sleep(time.Millisecond) // the time that the database takes to answer
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.given[k]
}

// set writes both tables in one transaction.
func (l *likes) set(k like, given bool, add int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given[k] = given
	l.counters[k.post] += add
}

func (l *likes) counter(post string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counters[post]
}

// fans counts the users who like a post.
func (l *likes) fans(post string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, given := range l.given {
		if given && k.post == post {
			n++
		}
	}
	return n
}

// noteKey records the lock that the request holds, for this demonstration.
func (l *likes) noteKey(c *gin.Context) {
	hold := ginlock.Hold(c)
	if hold == nil { // the rule is disabled
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[like{c.Param("user"), c.Param("post")}] = hold.Key()
}

func (l *likes) keyOf(user, post string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[like{user, post}]
}
