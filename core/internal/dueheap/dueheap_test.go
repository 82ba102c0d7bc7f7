package dueheap_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/dueheap"
)

// task is an element that is due at an instant.
type task struct {
	dueheap.Slot

	name string
	due  time.Time
}

func (t *task) DueBefore(other *task) bool { return t.due.Before(other.due) }

// step is an element that is due after a duration.
type step struct {
	dueheap.Slot

	due time.Duration
}

func (s *step) DueBefore(other *step) bool { return s.due < other.due }

func tasks(names string) (list []*task) {
	start := time.Now()
	for _, name := range names {
		list = append(list, &task{name: string(name), due: start.Add(time.Duration(name) * time.Second)})
	}
	return list
}

func drain(h *dueheap.Heap[*task]) (names string) {
	for h.Len() > 0 {
		names += h.Pop().name
	}
	return names
}

func TestHeap_First(t *testing.T) {
	t.Parallel()
	var h dueheap.Heap[*task]
	for _, e := range tasks("dbeac") {
		h.Push(e)
	}
	if h.First().name != "a" || h.Len() != 5 {
		t.Errorf("First: got %s of %d, want a of 5", h.First().name, h.Len())
	}
	if got := drain(&h); got != "abcde" {
		t.Errorf("got %s, want abcde", got)
	}
}

// Fix moves an element in both directions.
func TestHeap_Fix(t *testing.T) {
	t.Parallel()
	list := tasks("abcde")
	var h dueheap.Heap[*task]
	for _, e := range list {
		h.Push(e)
	}
	list[0].due = list[0].due.Add(time.Hour)
	h.Fix(list[0])
	list[4].due = list[4].due.Add(-time.Hour)
	h.Fix(list[4])
	if got := drain(&h); got != "ebcda" {
		t.Errorf("got %s, want ebcda", got)
	}
}

// Fix and Remove ignore an element that is in no heap. It can be pushed again.
func TestHeap_Remove(t *testing.T) {
	t.Parallel()
	list := tasks("abc")
	var h dueheap.Heap[*task]
	for _, e := range list {
		h.Push(e)
	}
	h.Remove(list[1])
	if list[1].Queued() || !list[0].Queued() {
		t.Errorf("queued: got %v and %v, want only the second", list[1].Queued(), list[0].Queued())
	}
	h.Remove(list[1])
	h.Fix(list[1])
	if h.Len() != 2 || len(h.All()) != 2 || slices.Contains(h.All(), list[1]) {
		t.Errorf("%d are left, want 2 without the removed one", h.Len())
	}
	h.Push(list[1])
	if got := drain(&h); got != "abc" || list[0].Queued() {
		t.Errorf("got %s, want abc, and none queued", got)
	}
}

// The zero value of an element is in no heap.
func TestSlot_Zero(t *testing.T) {
	t.Parallel()
	var h dueheap.Heap[*step]
	var s step
	h.Remove(&s)
	h.Fix(&s)
	if s.Queued() || h.Len() != 0 {
		t.Error("a zero element is in a heap")
	}
}

// model is a list that is searched for its least element.
type model []*step

func (m model) least() time.Duration {
	return slices.MinFunc(m, func(a, b *step) int { return int(a.due - b.due) }).due
}

// After random operations, a heap has the same elements as a list.
func TestHeap_Model(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		var h dueheap.Heap[*step]
		var m model
		for range 400 {
			m = operate(random, &h, m)
			if h.Len() != len(m) || len(m) > 0 && h.First().due != m.least() {
				t.Fatalf("seed %d: the heap has %d elements or a wrong first one, want %d", seed, h.Len(), len(m))
			}
		}
		var last time.Duration
		for h.Len() > 0 {
			s := h.Pop()
			if s.due < last || s.Queued() {
				t.Fatalf("seed %d: %s after %s", seed, s.due, last)
			}
			last = s.due
		}
	}
}

func operate(random *rand.Rand, h *dueheap.Heap[*step], m model) model {
	due := time.Duration(random.IntN(40))
	if len(m) == 0 || random.IntN(5) < 2 {
		s := &step{due: due}
		h.Push(s)
		return append(m, s)
	}
	i := random.IntN(len(m))
	switch random.IntN(3) {
	case 0:
		m[i].due = due
		h.Fix(m[i])
		return m
	case 1:
		h.Remove(m[i])
		return slices.Delete(m, i, i+1)
	default:
		s := h.Pop()
		return slices.DeleteFunc(m, func(other *step) bool { return other == s })
	}
}

func BenchmarkHeap(b *testing.B) {
	var h dueheap.Heap[*step]
	for i := range 1000 {
		h.Push(&step{due: time.Duration(i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		s := h.Pop()
		s.due += 1000
		h.Push(s)
	}
}
