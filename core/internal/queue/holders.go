package queue

import (
	"slices"
	"time"
)

// Holder holds a lock for this process. It is comparable: equal values are the same holder.
type Holder interface {
	Field() string            // its name in Redis; never changes
	Lasts(now time.Time) bool // its lease has not ended by the clocks, also while it is being released
}

// Replaced is a holder of this process whose lock another holder has taken.
type Replaced struct {
	Holder Holder
	Gone   bool // its key was gone; if false, the two have overtaken each other, and only Redis knows which one is left
}

// Grant is the lock that an attempt has brought.
type Grant struct {
	Holder Holder
	Kind   string
	Shared bool
	Under  Holder    // holder of this process beside which the new one has the lock; nil for none
	Sent   time.Time // when the attempt was sent
}

// tenure is the time of one holder.
type tenure struct {
	holder Holder
	field  string
	shared bool
	known  time.Time // since when this process has known the holder, or the holder that passed the lock on to it
}

// holders are the holders of one key: at most one, or several that share it.
type holders struct {
	list []tenure
	room [1]tenure // for the usual single holder
}

func (h *holders) any() bool { return len(h.list) > 0 }

// admits reports whether another holder could have the lock beside those in the list.
func (h *holders) admits(shared bool) bool {
	return !h.any() || shared && h.shared()
}

// shared reports whether there are holders, which share the lock.
func (h *holders) shared() bool { return h.any() && h.list[0].shared }

// alone reports whether there is one holder, which does not share the lock.
func (h *holders) alone() bool { return len(h.list) == 1 && !h.list[0].shared }

// field returns the field of the holder that came first, "" if there is none.
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

// add adds a holder whose command was sent at sent, and removes the holders with which it does not
// share the lock. A holder that was known before the command was sent is gone.
func (h *holders) add(t tenure, sent time.Time) (replaced []Replaced) {
	if !h.admits(t.shared) {
		h.list = slices.DeleteFunc(h.list, func(before tenure) bool {
			if t.shared && before.shared {
				return false // it held the lock under the holder that is replaced
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

// follow puts the holder to which from has handed the lock in its place, unless others have taken the
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
