package queue

import (
	"slices"
	"time"
)

// Holder is a field in Redis by which this process has a lock. Holders are compared with ==.
type Holder interface {
	Field() string            // returns the name of the field; always the same
	Lasts(now time.Time) bool // reports whether the lease has not expired by the clocks, even during a release
}

// Replaced is a holder of this process that was in the list when Redis granted the lock to another holder.
type Replaced struct {
	Holder Holder
	// Gone means that the holder has lost the lock. If it is false, the answers of Redis may have arrived
	// out of order, and only Redis knows which holder is left.
	Gone bool
}

// Grant describes a lock that an attempt acquired.
type Grant struct {
	Holder Holder
	Kind   string
	Shared bool
	Under  Holder    // holder of the same caller with which the new holder shares the lock; nil: none
	Sent   time.Time // when the attempt was sent
}

// tenure is a holder in the list, with the time at which this process learned of it.
type tenure struct {
	holder Holder
	field  string
	shared bool
	known  time.Time // when this process learned of the holder; a pass does not change it
}

// holders contains the holders of one key: at most one, or several that share the lock.
type holders struct {
	list   []tenure
	inline [1]tenure // memory of the list while it has a single holder
}

// any reports whether the list contains a holder.
func (h *holders) any() bool { return len(h.list) > 0 }

// admits reports whether another holder, shared or not, can have the lock beside the holders in the list.
func (h *holders) admits(shared bool) bool {
	return !h.any() || shared && h.shared()
}

// shared reports whether there are holders and they share the lock.
func (h *holders) shared() bool { return h.any() && h.list[0].shared }

// exclusive reports whether there is a single holder that does not share the lock.
func (h *holders) exclusive() bool { return len(h.list) == 1 && !h.list[0].shared }

// field returns the field of the first holder, or "" without a holder.
func (h *holders) field() string {
	if !h.any() {
		return ""
	}
	return h.list[0].field
}

// index returns the index of holder in the list, or -1.
func (h *holders) index(holder Holder) int {
	return slices.IndexFunc(h.list, func(t tenure) bool { return t.holder == holder })
}

// all returns the holders in a new slice, or nil without a holder.
func (h *holders) all() []Holder {
	if !h.any() {
		return nil
	}
	all := make([]Holder, len(h.list))
	for i := range h.list {
		all[i] = h.list[i].holder
	}
	return all
}

// add adds a holder whose command was sent at sent. It removes and returns the holders with which the new
// holder does not share the lock. A returned holder is Gone if this process knew of it before sent.
func (h *holders) add(t tenure, sent time.Time) (replaced []Replaced) {
	if !h.admits(t.shared) {
		h.list = slices.DeleteFunc(h.list, func(before tenure) bool {
			if t.shared && before.shared {
				return false // both share the lock
			}
			replaced = append(replaced, Replaced{before.holder, before.known.Before(sent)})
			return true
		})
	}
	h.join(t)
	return replaced
}

// join adds a holder and keeps the others.
func (h *holders) join(t tenure) {
	if h.list == nil {
		h.list = h.inline[:0]
	}
	h.list = append(h.list, t)
}

// replace puts the holder to, which got the lock by a hand-off, in the place of from. If from is not in the
// list any more, replace adds to only to an empty list. It reports whether to is in the list now.
func (h *holders) replace(from Holder, to tenure) bool {
	switch i := h.index(from); {
	case i >= 0:
		h.list[i] = to
	case !h.any():
		h.join(to)
	default:
		return false
	}
	return true
}

// remove removes holder, if it is in the list.
func (h *holders) remove(holder Holder) {
	if i := h.index(holder); i >= 0 {
		h.list = slices.Delete(h.list, i, i+1)
	}
}
