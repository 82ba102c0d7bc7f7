package lockz

import "sync"

// ring keeps the last entries of a kind.
type ring[T any] struct {
	mu    sync.Mutex
	kept  []T
	next  int
	limit int
	total int64
}

func newRing[T any](limit int) *ring[T] { return &ring[T]{limit: limit} }

func (r *ring[T]) add(v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	if len(r.kept) < r.limit {
		r.kept = append(r.kept, v)
		return
	}
	r.kept[r.next] = v
	r.next = (r.next + 1) % r.limit
}

// latest gives the entries, the last one first, and how many there have been in all.
func (r *ring[T]) latest() (list []T, total int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list = make([]T, 0, len(r.kept))
	for i := range r.kept {
		at := (r.next - 1 - i + 2*len(r.kept)) % len(r.kept)
		list = append(list, r.kept[at])
	}
	return list, r.total
}
