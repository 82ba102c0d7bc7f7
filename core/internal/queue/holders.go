package queue

import (
	"slices"
	"time"
)

// Holder holds a lock for this process. It is comparable: equal values are the same holder.
type Holder interface {
	Field() string            // its name in Redis; never changes
	Lasts(now time.Time) bool // its lease has not expired by the clocks, even while it is being released
}

// Replaced is a holder of this process whose lock another holder took.
type Replaced struct {
	Holder Holder
	Gone   bool // its key was gone; if false, the answers may have arrived out of order, and only Redis knows which holder is left
}

// Grant is a lock that an attempt acquired.
type Grant struct {
	Holder Holder
	Kind   string
	Shared bool
	Under  Holder    // holder of this process beside which the new holder got the lock; nil for none
	Sent   time.Time // when the attempt was sent
}

// tenure is the time during which one holder has the lock.
type tenure struct {
	holder Holder
	field  string
	shared bool
	known  time.Time // when this process learned of the holder, or of the holder that passed the lock on to it
}

// holders are the holders of one key: at most one, or several that share it.
type holders struct {
	list []tenure
	room [1]tenure // storage for the usual single holder
}

func (h *holders) any() bool { return len(h.list) > 0 }

// admits reports whether another holder could have the lock beside the holders in the list.
func (h *holders) admits(shared bool) bool {
	return !h.any() || shared && h.shared()
}

// shared reports whether there are holders that share the lock.
func (h *holders) shared() bool { return h.any() && h.list[0].shared }

// alone reports whether there is a single holder that does not share the lock.
func (h *holders) alone() bool { return len(h.list) == 1 && !h.list[0].shared }

// field returns the field of the first holder, "" if there is none.
func (h *holders) field() string {
	if !h.any() {
		return ""
	}
	return h.list[0].field
}

func (h *holders) index(holder Holder) int {
	return slices.IndexFunc(h.list, func(t tenure) bool { return t.holder == holder })
}

// all returns the holders in a new slice; nil if there is none.
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

// add adds a holder whose command was sent at sent and removes the holders with which it does not
// share the lock. A holder that was known before the command was sent is gone.
func (h *holders) add(t tenure, sent time.Time) (replaced []Replaced) {
	if !h.admits(t.shared) {
		h.list = slices.DeleteFunc(h.list, func(before tenure) bool {
			if t.shared && before.shared {
				return false // it held the lock beside the replaced holder
			}
			replaced = append(replaced, Replaced{before.holder, before.known.Before(sent)})
			return true
		})
	}
	h.join(t)
	return replaced
}

// join adds a holder beside the others.
func (h *holders) join(t tenure) {
	if h.list == nil {
		h.list = h.room[:0]
	}
	h.list = append(h.list, t)
}

// follow replaces from with the holder to which it handed the lock, unless another holder took the
// lock since. It reports whether the new holder has the lock.
func (h *holders) follow(from Holder, to tenure) bool {
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

func (h *holders) remove(holder Holder) {
	if i := h.index(holder); i >= 0 {
		h.list = slices.Delete(h.list, i, i+1)
	}
}
