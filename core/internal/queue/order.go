package queue

// order is the waiters of one queue, the one that came first at the front.
type order struct {
	first, last *Waiter
	length      int
}

// enter puts a waiter at the place that its age gives it: one that has stood elsewhere
// before has not come last. It reports whether it is the first.
func (o *order) enter(w *Waiter) bool {
	after := o.last
	for after != nil && after.Since.After(w.Since) {
		after = after.prev
	}
	o.insert(w, after)
	return after == nil
}

// insert puts a waiter behind another one, or to the front.
func (o *order) insert(w, after *Waiter) {
	w.prev, w.next = after, o.first
	if after != nil {
		w.next = after.next
		after.next = w
	} else {
		o.first = w
	}
	if w.next != nil {
		w.next.prev = w
	} else {
		o.last = w
	}
	o.length++
}

func (o *order) remove(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		o.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		o.last = w.prev
	}
	w.prev, w.next = nil, nil
	o.length--
}
