package lockz

import (
	"cmp"
	"container/heap"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

const (
	hotKept  = 1_000 // keys that are counted at a time
	hotShown = 20
)

// hotKeys counts acquisitions by key in bounded memory: the Space-Saving sketch. A key that
// is not counted yet takes the place of the one with the smallest count, and that count as
// its possible error. Nobody waits for it: an acquisition that finds it busy is not counted.
type hotKeys struct {
	seed  maphash.Seed
	mu    sync.Mutex
	slots map[string]*hotKey
	heap  hotHeap // the smallest count first
}

type hotKey struct {
	key       string
	count     int64
	err       int64 // what was taken over from another key
	contended int64
	waited    time.Duration
	at        int // in the heap
}

func newHotKeys() *hotKeys {
	return &hotKeys{seed: maphash.MakeSeed(), slots: make(map[string]*hotKey, hotKept)}
}

// add counts an acquisition.
func (k *hotKeys) add(key string, contended bool, waited time.Duration) {
	if !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	slot := k.slot(key)
	slot.count++
	if contended {
		slot.contended++
		slot.waited += waited
	}
	heap.Fix(&k.heap, slot.at)
}

func (k *hotKeys) slot(key string) *hotKey {
	if slot := k.slots[key]; slot != nil {
		return slot
	}
	if len(k.heap) < hotKept {
		slot := &hotKey{key: key}
		heap.Push(&k.heap, slot)
		k.slots[key] = slot
		return slot
	}
	slot := k.heap[0]
	delete(k.slots, slot.key)
	*slot = hotKey{key: key, count: slot.count, err: slot.count, at: slot.at}
	k.slots[key] = slot
	return slot
}

// top gives the keys with the largest counts. The order of equal ones does not depend on how the
// keys sort, which may be hidden.
func (k *hotKeys) top(n int) []hotKey {
	k.mu.Lock()
	all := make([]hotKey, 0, len(k.heap))
	for _, slot := range k.heap {
		all = append(all, *slot)
	}
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b hotKey) int {
		return cmp.Or(cmp.Compare(b.count-b.err, a.count-a.err), cmp.Compare(maphash.String(k.seed, a.key), maphash.String(k.seed, b.key)))
	})
	return all[:min(n, len(all))]
}

// hotHeap is a heap of counts for package heap.
type hotHeap []*hotKey

func (h hotHeap) Len() int           { return len(h) }
func (h hotHeap) Less(i, j int) bool { return h[i].count < h[j].count }
func (h hotHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push is for package heap.
func (h *hotHeap) Push(x any) {
	slot := x.(*hotKey) //nolint:errcheck,forcetypeassert // nothing else is pushed
	slot.at = len(*h)
	*h = append(*h, slot)
}

// Pop is for package heap. Nothing is popped.
func (h *hotHeap) Pop() any { return nil }
