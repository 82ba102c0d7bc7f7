// Package dueheap is a priority queue of elements that are due at some time, first the one
// that is due first.
//
// An element is a pointer to a struct that embeds a [Slot] and says by DueBefore which of
// two is due earlier; whether that compares instants or durations since some start is its
// own affair. It stands in one heap at a time. Whoever changes when an element is due calls
// Fix after that, before anything else is done with the heap. Push, Pop, Fix and Remove cost
// O(log n), the rest nothing; only Push may allocate, when the heap grows.
//
// A heap has no mutex: it is guarded by that of its owner.
package dueheap

// Slot is where an element stands. The zero value stands in no heap.
type Slot struct{ place int } // its index and one; 0: none

// Queued reports whether the element stands in a heap.
func (s *Slot) Queued() bool { return s.place > 0 }

func (s *Slot) slot() *Slot { return s } //nolint:unused // it is what an Element has to have

// Element is a pointer to a struct that embeds a [Slot].
type Element[E any] interface {
	// DueBefore reports whether the element is due before other.
	DueBefore(other E) bool

	slot() *Slot
}

// Heap is a heap of elements. The zero value is empty and ready.
type Heap[E Element[E]] struct{ list []E }

// Len is how many elements stand in the heap.
func (h *Heap[E]) Len() int { return len(h.list) }

// First is the element that is due first. The heap is not empty.
func (h *Heap[E]) First() E { return h.list[0] }

// All are the elements in no order. The slice is the heap's own: it holds until the next
// change.
func (h *Heap[E]) All() []E { return h.list }

// Push adds an element that stands in no heap.
func (h *Heap[E]) Push(e E) {
	h.list = append(h.list, e)
	h.put(e, len(h.list)-1)
	h.up(len(h.list) - 1)
}

// Pop takes out the element that is due first. The heap is not empty.
func (h *Heap[E]) Pop() E {
	e := h.list[0]
	h.Remove(e)
	return e
}

// Fix puts an element in its place after the time at which it is due has changed. One that
// stands in no heap is left alone.
func (h *Heap[E]) Fix(e E) {
	if i := e.slot().place - 1; i >= 0 && !h.down(i) {
		h.up(i)
	}
}

// Remove takes an element out. One that stands in no heap is left alone.
func (h *Heap[E]) Remove(e E) {
	i := e.slot().place - 1
	if i < 0 {
		return
	}
	last := len(h.list) - 1
	moved := h.list[last]
	h.put(moved, i)
	clear(h.list[last:])
	h.list = h.list[:last]
	e.slot().place = 0
	if i < last {
		h.Fix(moved)
	}
}

func (h *Heap[E]) put(e E, i int) {
	h.list[i] = e
	e.slot().place = i + 1
}

func (h *Heap[E]) swap(i, j int) {
	a, b := h.list[i], h.list[j]
	h.put(a, j)
	h.put(b, i)
}

// up moves an element towards the front as far as it belongs.
func (h *Heap[E]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.list[i].DueBefore(h.list[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// down moves an element away from the front as far as it belongs, and reports whether it
// has moved.
func (h *Heap[E]) down(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(h.list) {
			return moved
		}
		if right := child + 1; right < len(h.list) && h.list[right].DueBefore(h.list[child]) {
			child = right
		}
		if !h.list[child].DueBefore(h.list[i]) {
			return moved
		}
		h.swap(i, child)
		i, moved = child, true
	}
}
