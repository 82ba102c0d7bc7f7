// Package dueheap provides a priority queue of elements that are due at some time. The earliest element
// is first.
//
// An element is a pointer to a struct that embeds a [Slot]. Its method DueBefore compares two
// elements, by instants or by durations. An element is in one heap at a time. After a change of the time
// of an element, the caller calls Fix before it uses the heap again. Push, Pop, Fix and Remove cost
// O(log n), the other methods O(1). Only Push allocates, when the heap grows.
//
// A heap has no mutex: its owner guards it. Packages lease and reaper own heaps. The heap depends on
// neither clocks nor the types of its elements.
package dueheap

// Slot is the place of an element in a heap. The zero value is in no heap.
type Slot struct{ place int } // index plus one; 0 if the element is in no heap

// Queued reports whether the element is in a heap.
func (s *Slot) Queued() bool { return s.place > 0 }

func (s *Slot) slot() *Slot { return s } //nolint:unused // the constraint Element requires it

// Element is a pointer to a struct that embeds a [Slot].
type Element[E any] interface {
	// DueBefore reports whether the element is due before other.
	DueBefore(other E) bool

	slot() *Slot
}

// Heap is a heap of elements. The zero value is empty and ready.
type Heap[E Element[E]] struct{ list []E }

// Len returns the number of elements.
func (h *Heap[E]) Len() int { return len(h.list) }

// First returns the earliest element. The heap must not be empty.
func (h *Heap[E]) First() E { return h.list[0] }

// All returns the elements in no particular order. The slice belongs to the heap and is valid until the
// next change.
func (h *Heap[E]) All() []E { return h.list }

// Push adds an element that is in no heap.
func (h *Heap[E]) Push(e E) {
	h.list = append(h.list, e)
	h.put(e, len(h.list)-1)
	h.up(len(h.list) - 1)
}

// Pop removes and returns the earliest element. The heap must not be empty.
func (h *Heap[E]) Pop() E {
	e := h.list[0]
	h.Remove(e)
	return e
}

// Fix moves an element to its place after its time has changed. It ignores an element that is in no
// heap.
func (h *Heap[E]) Fix(e E) {
	if i := e.slot().place - 1; i >= 0 && !h.down(i) {
		h.up(i)
	}
}

// Remove removes an element. It ignores an element that is in no heap.
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

// up moves an element towards the front to its place.
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

// down moves an element towards the end to its place. It reports whether it has moved the element.
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
