package lockz

import "sync"

// realms knows which clients lock in the same Redis, without asking it: a client that was refused
// because of a holder of another client uses the same Redis. Equal keys of other clients may be
// different locks.
type realms struct {
	mu sync.RWMutex
	of map[string]string // from a client to another one of its realm
}

// same reports whether two clients are known to use one Redis.
func (r *realms) same(a, b string) bool {
	if a == b {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.root(a) == r.root(b)
}

// unite notes that two clients use one Redis.
func (r *realms) unite(a, b string) {
	if r.same(a, b) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if from, to := r.root(a), r.root(b); from != to {
		if r.of == nil {
			r.of = make(map[string]string)
		}
		r.of[from] = to
	}
}

// root is the client that stands for the realm of another one. The mutex is held.
func (r *realms) root(client string) string {
	for {
		next, ok := r.of[client]
		if !ok {
			return client
		}
		client = next
	}
}
