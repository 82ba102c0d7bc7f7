package queue

import (
	"slices"
	"time"
)

// Holder is one that holds a lock for this process. It is comparable: the same value
// stands for the same holder.
type Holder interface {
	Field() string            // names it in Redis; never changes
	Lasts(now time.Time) bool // its lease does by the clocks, also while it is being released
}

// Replaced is a holder of this process whose lock another one has taken.
type Replaced struct {
	Holder Holder
	Gone   bool // its key was not there any more; else the two have overtaken each other, and Redis knows
}

type tenure struct {
	holder Holder
	field  string
	shared bool
	known  time.Time // since when this process has known it, or one from whom it was passed on
}

// holders are those of one key: at most one, or several that share it.
type holders struct {
	list []tenure
	room [1]tenure // for the usual single one
}

func (h *holders) any() bool { return len(h.list) > 0 }

// admits reports whether one more could have the lock beside those that are there.
func (h *holders) admits(shared bool) bool {
	return !h.any() || shared && h.shared()
}

// shared reports whether there are holders, which share the lock.
func (h *holders) shared() bool { return h.any() && h.list[0].shared }

// alone reports whether there is one holder, which does not share the lock.
func (h *holders) alone() bool { return len(h.list) == 1 && !h.list[0].shared }

// field is that of the holder that came first, "" if there is none.
func (h *holders) field() string {
	if !h.any() {
		return ""
	}
	return h.list[0].field
}

func (h *holders) index(holder Holder) int {
	return slices.IndexFunc(h.list, func(t tenure) bool { return t.holder == holder })
}

// all are the holders, in a slice of their own; nil if there is none.
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

// add adds a holder whose command was sent at sent. Those with which it does not share the
// lock do not have it any more: one that was known before the command was sent is gone.
func (h *holders) add(t tenure, sent time.Time) (replaced []Replaced) {
	if !h.admits(t.shared) {
		h.list = slices.DeleteFunc(h.list, func(before tenure) bool {
			if t.shared && before.shared {
				return false // it was one of the holder that is replaced
			}
			replaced = append(replaced, Replaced{before.holder, before.known.Before(sent)})
			return true
		})
	}
	if h.list == nil {
		h.list = h.room[:0]
	}
	h.list = append(h.list, t)
	return replaced
}

// follow puts the holder to whom from has handed the lock in its place, unless others have
// taken it meanwhile. It reports whether that holder has the lock.
func (h *holders) follow(from Holder, to tenure) bool {
	switch i := h.index(from); {
	case i >= 0:
		h.list[i] = to
	case !h.any():
		h.add(to, to.known)
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
