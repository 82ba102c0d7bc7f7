package clusters_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/internal/locktest"
	"github.com/interlock-go/interlock/core/internal/redisserver"
	"github.com/interlock-go/interlock/core/internal/redisstore"
	"github.com/interlock-go/interlock/core/internal/wire"
)

// half is a lock whose keys move to another node one by one. When some of them have moved, the test executes an
// operation on the lock.
type half struct {
	*halves

	kind  locktest.Kind
	op    operation
	key   string
	keys  []string // the keys of the lock in the order in which they move
	moved int      // how many have moved when the operation is executed
	whole *half    // the same lock that does not move; nil: this is it
	move  *redisserver.Move

	ctx     context.Context //nolint:containedctx // of the hold
	hold    *core.Hold
	others  []*core.Hold // further holders, and a re-entry
	counted locktest.Taken
	waiting []<-chan locktest.Outcome
	cancel  context.CancelFunc // of the waiters
	fields  []string           // of the waiters, if they leave
	done    chan error
	result  error // of the operation
	sentTo  int
}

// halves holds what all locks of a test share.
type halves struct {
	t                  *testing.T
	cluster            *redisserver.Cluster
	rdb                *redis.ClusterClient
	holders, elsewhere *core.Client
	renewals           *redisstore.Store
	sent               *sentScripts
	slots              map[int]bool
}

// operation is executed on a lock when half of its keys have moved.
type operation struct {
	name   string
	kinds  []string
	before func(h *half)
	do     func(h *half) error
	leaves bool // the operation continues in the background, for the fields of the waiters

	// refusals are the errors, by kind, that the caller may get only while the keys are on two nodes. They change nothing.
	refusals map[string]string
}

// longLease is the lease of all locks, so that no key disappears by itself.
const longLease = 24 * time.Hour

// markerFor is the life of a debounce marker. It is still there after the operation.
const markerFor = time.Second

func operations() []operation {
	all := []string{"fenced", "write", "read", "fair", "multi", "permit"}
	one := []string{"fenced", "write", "read", "fair", "permit"} // with one key that has an owner
	withPlaces := []string{"fair"}
	return []operation{
		{name: "release", kinds: append(all, "group"), before: waitElsewhere(1), do: (*half).release},
		{name: "partial release", kinds: []string{"read", "fair", "write"}, before: (*half).reenter, do: (*half).releaseOther},
		{name: "renewal", kinds: all, before: waitElsewhere(1), do: (*half).renew, refusals: map[string]string{"read": "TRYAGAIN the slot of the lock moves"}},
		{name: "refresh", kinds: all, before: waitElsewhere(1), do: (*half).refresh},
		{name: "hand-off", kinds: []string{"fenced", "write", "read", "multi", "permit"}, before: (*half).waitHere, do: (*half).release},
		{name: "debounce", kinds: one, before: waitElsewhere(1), do: (*half).leave},
		{name: "force", kinds: one, before: waitElsewhere(1), do: (*half).force},
		{name: "eviction", kinds: one, do: (*half).evict, refusals: map[string]string{"permit": core.ErrInvalid.Error()}},
		{name: "a waiter leaves", kinds: withPlaces, before: waitElsewhere(1), do: (*half).leaveQueue, leaves: true},
		{name: "two waiters leave", kinds: withPlaces, before: waitElsewhere(2), do: (*half).leaveQueue, leaves: true},
		{name: "one of two readers releases", kinds: []string{"read"}, before: (*half).readBeside, do: (*half).releaseOther},
		{name: "a reader beside a dead one releases", kinds: []string{"read"}, before: (*half).readBesideDead, do: (*half).release},
		{name: "a reader inside a writer releases", kinds: []string{"write"}, before: (*half).readInside, do: (*half).releaseOther},
		{name: "a writer that reads releases", kinds: []string{"write"}, before: (*half).readInside, do: (*half).release},
		{name: "giving back", kinds: []string{"semaphore", "latch"}, do: func(h *half) error { return h.counted.GiveBack() }},
	}
}

func waitElsewhere(n int) func(h *half) {
	return func(h *half) {
		var ctx context.Context
		ctx, h.cancel = context.WithCancel(h.t.Context())
		for range n {
			h.waiting = append(h.waiting, locktest.GoAcquire(ctx, h.kind.Rival([]*core.Client{h.elsewhere}, h.key), core.LeaseTime(longLease)))
		}
	}
}

func (h *half) waitHere() {
	h.waiting = append(h.waiting, locktest.GoAcquire(h.t.Context(), h.kind.Rival([]*core.Client{h.holders}, h.key), core.LeaseTime(longLease)))
}

func (h *half) another(ctx context.Context, lock core.Lock, lease time.Duration) *core.Hold {
	h.t.Helper()
	_, hold := locktest.MustAcquire(h.t, ctx, lock, core.LeaseTime(lease))
	return hold
}

func (h *half) reenter() {
	h.others = append(h.others, h.another(h.ctx, h.kind.On(h.holders, h.key), longLease))
}

func (h *half) readBeside() {
	h.others = append(h.others, h.another(h.t.Context(), h.kind.On(h.elsewhere, h.key), longLease))
}

func (h *half) readBesideDead() {
	dead := h.another(h.t.Context(), h.kind.On(h.elsewhere, h.key), 100*time.Millisecond)
	locktest.Eventually(h.t, "a reader that has died", func() bool {
		return h.rdb.Exists(h.t.Context(), locktest.ReaderTimeoutOf(h.key, dead.Field(), "1")).Val() == 0
	})
}

func (h *half) readInside() {
	h.others = append(h.others, h.another(h.ctx, h.holders.ReadLock(h.key), longLease))
}

func (h *half) release() error      { return h.hold.Release(context.Background()) }
func (h *half) releaseOther() error { return h.others[0].Release(context.Background()) }
func (h *half) refresh() error      { return h.hold.Refresh(context.Background(), 2*longLease) }
func (h *half) leave() error        { return h.hold.Leave(context.Background(), markerFor) }

func (h *half) force() error {
	_, err := h.kind.On(h.elsewhere, h.key).ForceRelease(context.Background())
	return err
}

// evict takes the lock from its holder. A lock some of whose keys have not arrived may look like one of another kind.
func (h *half) evict() error {
	_, err := h.elsewhere.Evict(context.Background(), h.key, h.hold.Field())
	return err
}

// renew renews the lock as the watchdog does.
func (h *half) renew() error {
	kinds := h.renewals.Kinds()
	kind := map[string]*redisstore.Kind{"fenced": kinds.Fenced, "write": kinds.Write, "read": kinds.Read, "fair": kinds.Fair, "permit": kinds.PermitSemaphore, "multi": kinds.Reentrant}[h.kind.Name]
	for _, key := range h.hold.Keys() {
		claim := redisstore.Claim{Kind: kind, Key: key, Field: h.hold.Field()}
		if v := h.renewals.Renew(context.Background(), []redisstore.Claim{claim}, 2*longLease)[0]; v.Err != nil || !v.Held {
			return errors.Join(v.Err, map[bool]error{false: errLost}[v.Held || v.Err != nil])
		}
	}
	return nil
}

var errLost = errors.New("the lock is lost")

// leaveQueue makes all waiters leave.
func (h *half) leaveQueue() error {
	h.cancel()
	for _, waiting := range h.waiting {
		if got := <-waiting; !errors.Is(got.Err, context.Canceled) {
			return fmt.Errorf("a waiter left with: %w", got.Err)
		}
	}
	h.waiting = nil
	return nil
}

// sentScripts counts the scripts that were answered, by the slot of their keys. Of the scripts that clear up after a
// waiter it also counts which fields they named.
type sentScripts struct {
	clears map[string]bool // sources and digests

	mu     sync.Mutex
	bySlot map[int]int
	named  map[string]int
}

func newSentScripts() *sentScripts {
	source := redisstore.NewKinds().Fair.Sources()["clear"]
	return &sentScripts{
		clears: map[string]bool{source: true, fmt.Sprint(wire.NewScript(source).Digest): true},
		bySlot: make(map[int]int), named: make(map[string]int),
	}
}

// DialHook changes nothing.
func (*sentScripts) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts a script.
func (s *sentScripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		s.count(cmd)
		return err
	}
}

// ProcessPipelineHook counts scripts.
func (s *sentScripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, list []redis.Cmder) error {
		err := next(ctx, list)
		for _, cmd := range list {
			s.count(cmd)
		}
		return err
	}
}

func (s *sentScripts) count(cmd redis.Cmder) {
	args := cmd.Args()
	if len(args) < 4 || cmd.Name() != "evalsha" && cmd.Name() != "eval" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bySlot[wire.Slot(fmt.Sprint(args[3]))]++
	if !s.clears[fmt.Sprint(args[1])] {
		return
	}
	for _, arg := range args[4:] {
		s.named[fmt.Sprint(arg)]++
	}
}

// to returns how many scripts were sent to the slot of a key.
func (s *sentScripts) to(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bySlot[wire.Slot(key)]
}

// hasCleared reports whether a script that clears up after a waiter was answered.
func (s *sentScripts) hasCleared(field string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named[field] > 0
}

func newHalves(t *testing.T) *halves {
	t.Helper()
	hs := &halves{t: t, cluster: redisserver.StartCluster(t), slots: make(map[int]bool), sent: newSentScripts()}
	hs.rdb = hs.cluster.Client()
	hs.rdb.AddHook(hs.sent)
	hs.holders, hs.elsewhere = locktest.NewClient(t, hs.rdb, steady), locktest.NewClient(t, hs.rdb, steady)
	store, err := redisstore.New(hs.rdb, redisstore.Config{Config: wire.Config{Timeout: time.Minute}, RenewTimeout: time.Minute})
	locktest.Must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	locktest.Must(t, store.Detect(t.Context(), time.Now().Add(time.Minute)))
	hs.renewals = store
	return hs
}

// newHalf takes a lock in a slot that no other lock uses and that is not on the last node.
func (hs *halves) newHalf(kind locktest.Kind, op operation) *half {
	hs.t.Helper()
	h := &half{halves: hs, kind: kind, op: op, cancel: func() {}, done: make(chan error, 1)}
	const last = 16384 * 2 / 3 // the last node has the slots from here on
	for n := len(hs.slots); ; n++ {
		h.key = fmt.Sprintf("%s-%d", kind.Name, n)
		if slot := wire.Slot(h.key); slot < last-1 && !hs.slots[slot] {
			hs.slots[slot] = true
			break
		}
	}
	if kind.Lock == nil {
		taken, err := kind.Take(hs.t.Context(), hs.holders, h.key)
		locktest.Must(hs.t, err)
		h.counted = taken
	} else {
		opts := []core.AcquireOption{core.LeaseTime(longLease)}
		if kind.Name == "write" {
			opts = append(opts, core.WithToken())
		}
		h.ctx, h.hold = locktest.MustAcquire(hs.t, hs.t.Context(), kind.On(hs.holders, h.key), opts...)
	}
	if op.before != nil {
		op.before(h)
	}
	h.move = hs.cluster.PlanMove(h.key)
	return h
}

// settle waits until all waiters of a fair lock have a place, and until the lock has all its keys.
func (h *half) settle() {
	h.t.Helper()
	if h.kind.Name == "fair" && len(h.waiting) > 0 {
		locktest.Eventually(h.t, h.String()+": all waiters in the queue", func() bool {
			h.fields = h.rdb.LRange(h.t.Context(), locktest.FairQueue(h.key), 0, -1).Val()
			return len(h.fields) == len(h.waiting)
		})
	}
	if h.kind.Name == "read" && len(h.waiting) > 0 {
		mark := locktest.Tagged(h.key) + ":interlock_writer"
		locktest.Eventually(h.t, h.String()+": the mark of the writer", func() bool { return slices.Contains(h.move.Left(), mark) })
	}
	locktest.Eventually(h.t, h.String()+": its keys", func() bool {
		h.keys = h.move.Left()
		return h.whole == nil || slices.Equal(h.roles(h.keys), h.whole.roles(h.whole.keys))
	})
	slices.SortFunc(h.keys, func(a, b string) int { return strings.Compare(h.role(a)+a, h.role(b)+b) })
}

var fieldInKey = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+`)

// role returns the name of a key without the name of the lock and without the fields of holders.
func (h *half) role(key string) string {
	return fieldInKey.ReplaceAllString(strings.ReplaceAll(key, h.key, "N"), "F")
}

func (h *half) roles(keys []string) (roles []string) {
	for _, key := range keys {
		roles = append(roles, h.role(key))
	}
	slices.Sort(roles)
	return roles
}

// start starts the operation.
func (h *half) start() {
	h.sentTo = h.sent.to(h.key)
	go func() { h.done <- h.op.do(h) }()
}

// awaitStart returns when the operation has ended, or a script of it was answered. If it continues in the background, it
// returns when a script of that was answered.
func (h *half) awaitStart() {
	h.t.Helper()
	locktest.Eventually(h.t, h.String()+": a script", func() bool {
		return len(h.done) > 0 || !h.op.leaves && h.sent.to(h.key) > h.sentTo
	})
	for _, field := range h.fields {
		if h.op.leaves {
			locktest.Eventually(h.t, h.String()+": a script that clears up", func() bool { return h.sent.hasCleared(field) })
		}
	}
}

// finish waits for the operation and ends everything else.
func (h *half) finish() {
	h.t.Helper()
	select {
	case h.result = <-h.done:
	case <-time.After(locktest.HangTimeout):
		h.t.Fatalf("%s: never ends", h)
	}
	for _, hold := range append(h.others, h.hold) {
		if hold != nil {
			_ = hold.Release(context.Background()) // the operation may have ended it
		}
	}
	for _, waiting := range h.waiting {
		locktest.MustRelease(h.t, locktest.Got(h.t, waiting).Hold)
	}
	h.cancel()
}

// left returns the keys of the lock that have to be gone.
func (h *half) left() []string {
	h.t.Helper()
	count := h.rdb.Get(h.t.Context(), h.key).Val()
	return slices.DeleteFunc(append(h.move.Arrived(), h.move.Left()...), func(key string) bool {
		return key == h.key && count == "1" || strings.HasPrefix(key, "redisson_lock_token:") || strings.HasSuffix(key, ":interlock_ops")
	})
}

// wantNothingLeft checks that no key is left at the time end. It returns the roles of the keys that are left.
func (h *half) wantNothingLeft(end time.Time) (roles []string) {
	h.t.Helper()
	left := h.left()
	for ; len(left) > 0 && time.Now().Before(end); left = h.left() {
		time.Sleep(5 * time.Millisecond) // a poll with a bound
	}
	if len(left) > 0 {
		h.t.Errorf("%s: left behind: %q", h, h.roles(left))
	}
	return h.roles(left)
}

func (h *half) String() string {
	var order []string
	for i, key := range h.keys {
		if i == h.moved {
			order = append(order, "|")
		}
		order = append(order, h.role(key))
	}
	return fmt.Sprintf("%s, %s, %s", h.kind.Name, h.op.name, strings.Join(order, " "))
}

// split is an order in which n keys move, and how many of them have moved when the operation is executed.
type split struct {
	order []int
	moved int
}

// splits returns all splits of n keys. The order before the operation does not matter.
func splits(n int) (list []split) {
	if n == 1 {
		return []split{{[]int{0}, 1}}
	}
	var extend func(order []int)
	extend = func(order []int) {
		if len(order) == n {
			for moved := 1; moved < n; moved++ {
				if slices.IsSorted(order[:moved]) {
					list = append(list, split{slices.Clone(order), moved})
				}
			}
		}
		for i := range n {
			if !slices.Contains(order, i) {
				extend(append(order, i))
			}
		}
	}
	extend(nil)
	return list
}

// The keys of a lock move to another node one by one, in every order, and in every place of that order an operation is
// executed. It returns the same as if no key moved, and ten seconds later no key is left.
func TestCluster_HalfOfALockHasMoved(t *testing.T) {
	t.Parallel()
	hs := newHalves(t)
	var list []*half
	for _, op := range operations() {
		for _, name := range op.kinds {
			list = append(list, hs.allOf(name, op)...)
		}
	}
	for _, h := range list {
		if h.whole != nil {
			h.move.Open()
			h.move.Keys(h.keys[:h.moved]...)
		}
	}
	for _, h := range list {
		h.start()
	}
	for _, h := range list {
		h.awaitStart()
	}
	for _, h := range list {
		if h.whole != nil {
			h.move.Keys(h.keys[h.moved:]...)
			h.move.End()
		}
	}
	for _, h := range list {
		h.finish()
		h.wantResult()
	}
	end := time.Now().Add(locktest.Measured(10 * time.Second))
	for _, h := range list {
		left := h.wantNothingLeft(end)
		t.Logf("%s: left %q, returned %v", h, left, h.result)
	}
	for _, h := range list {
		taken, err := h.kind.Want(t.Context(), hs.elsewhere, h.key)
		locktest.Must(t, err)
		locktest.WantOK(t, taken.GiveBack())
	}
}

// allOf returns a lock that does not move, and one for each order in which its keys can move.
func (hs *halves) allOf(kind string, op operation) []*half {
	hs.t.Helper()
	of, _ := locktest.KindNamed(kind)
	whole := hs.newHalf(of, op)
	whole.settle()
	list := []*half{whole}
	for _, split := range splits(len(whole.keys)) {
		h := hs.newHalf(of, op)
		h.whole, h.moved = whole, split.moved
		h.settle()
		sorted := slices.Clone(h.keys)
		for i, at := range split.order {
			h.keys[i] = sorted[at]
		}
		list = append(list, h)
	}
	return list
}

// wantResult checks what the operation returned.
func (h *half) wantResult() {
	h.t.Helper()
	if h.whole == nil {
		return
	}
	refusal, may := h.op.refusals[h.kind.Name]
	if fmt.Sprint(h.result) != fmt.Sprint(h.whole.result) && (!may || !strings.HasPrefix(fmt.Sprint(h.result), refusal)) {
		h.t.Errorf("%s: returned %v, want %v", h, h.result, h.whole.result)
	}
}
