package lockz

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

const (
	hotKept  = 1_000 // keys that are counted at a time
	hotShown = 20    // keys that are shown
)

// hotKeys counts acquisitions by key in limited memory with the Misra–Gries sketch: if another key does
// not fit, every key loses one acquisition, and keys that reach zero are dropped. An acquisition never
// waits for the sketch: if the sketch is busy, the acquisition is not counted.
type hotKeys struct {
	seed maphash.Seed
	mu   sync.Mutex
	kept map[string]*hotKey
	lost int64 // the largest number of acquisitions that a key may have lost
}

type hotKey struct {
	key       string
	count     int64
	contended int64
	waited    time.Duration
}

func newHotKeys() *hotKeys {
	return &hotKeys{seed: maphash.MakeSeed(), kept: make(map[string]*hotKey, hotKept)}
}

// add counts an acquisition.
func (k *hotKeys) add(key string, contended bool, waited time.Duration) {
	if !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	h := k.kept[key]
	switch {
	case h != nil:
	case len(k.kept) == hotKept:
		k.shrink()
		return
	default:
		h = &hotKey{key: key}
		k.kept[key] = h
	}
	h.count++
	if contended {
		h.contended++
		h.waited += waited
	}
}

// shrink subtracts one from every key and drops the keys at zero.
func (k *hotKeys) shrink() {
	k.lost++
	for key, h := range k.kept {
		if h.count--; h.count == 0 {
			delete(k.kept, key)
		}
		h.contended = min(h.contended, h.count)
	}
}

// top returns the n keys with the largest counts, and the largest number of acquisitions that each may have
// lost. Equal counts are ordered by a random hash, which reveals nothing about hidden keys.
func (k *hotKeys) top(n int) (all []hotKey, lost int64) {
	k.mu.Lock()
	for _, h := range k.kept {
		all = append(all, *h)
	}
	lost = k.lost
	k.mu.Unlock()
	slices.SortFunc(all, func(a, b hotKey) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(maphash.String(k.seed, a.key), maphash.String(k.seed, b.key)))
	})
	return all[:min(n, len(all))], lost
}
