package reaper_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/core/internal/reaper"
	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// model contains the fields about which the reaper may ask, and the times until which it has to clean up late
// commands.
type model struct {
	*bed

	random  *rand.Rand
	orphans []*modelled
	held    map[string]string // the field of a holder by key; it must stay
	n       int
}

// modelled is an orphan of the model.
type modelled struct {
	field  string
	keys   []string
	call   *late
	until  time.Time // Redis may execute the command until then
	landed bool
}

var modelKeys = []string{"k0", "k1", "k2", "k3", "k4", "k5"}

// After random events in any order, the reaper has cleared up every abandoned field, however late Redis
// executed its command, and no field of a holder. The reaper has not asked silent nodes and keeps no
// state.
func TestReaper_Model(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				m := &model{bed: b, random: rand.New(rand.NewPCG(seed, 1)), held: map[string]string{}}
				m.most, m.takes = 1+m.random.IntN(8), time.Duration(m.random.IntN(20))*time.Millisecond
				m.fails = m.fail(0)
				for _, key := range modelKeys {
					m.held[key] = "holder of " + key
					m.land(m.held[key], key)
				}
				for range 400 {
					m.event()
					pass(time.Duration(m.random.IntN(40)) * time.Millisecond)
					m.judge()
				}
				m.settle()
			})
		})
	}
}

// fail makes one of n questions fail in some way.
func (m *model) fail(n int) func(string) failure {
	random := rand.New(rand.NewPCG(m.random.Uint64(), 1))
	return func(string) failure {
		if n == 0 || random.IntN(n) > 0 {
			return fine
		}
		return []failure{noAnswer, rejected, broken}[random.IntN(3)]
	}
}

func (m *model) event() {
	switch m.random.IntN(8) {
	case 0, 1, 2:
		m.abandonSome()
	case 3:
		m.n++
		keys := m.some()
		field := fmt.Sprint("r", m.n)
		if m.random.IntN(2) == 0 {
			m.land(field, keys...)
		}
		m.Relinquish(nil, keys, field, time.Second)
		m.orphans = append(m.orphans, &modelled{field: field, keys: keys, landed: true})
	case 4, 5:
		m.landOne()
	case 6:
		m.toggle()
	case 7:
		m.mu.Lock()
		m.fails = m.fail(m.random.IntN(5))
		m.mu.Unlock()
	}
}

func (m *model) some() (keys []string) {
	for _, i := range m.random.Perm(len(modelKeys))[:1+m.random.IntN(3)] {
		keys = append(keys, modelKeys[i])
	}
	return keys
}

func (m *model) abandonSome() {
	m.n++
	lease := time.Duration(1+m.random.IntN(5)) * time.Second
	o := &modelled{field: fmt.Sprint("a", m.n), keys: m.some(), until: time.Now().Add(lease + reaper.SettleTime)}
	if m.random.IntN(2) == 0 {
		o.call = &late{}
		m.Abandon(nil, o.keys, o.field, o.call, lease)
	} else {
		m.Abandon(nil, o.keys, o.field, nil, lease)
	}
	m.orphans = append(m.orphans, o)
}

// landOne executes an abandoned or refused command. Its answer may arrive.
func (m *model) landOne() {
	i := slices.IndexFunc(m.orphans, func(o *modelled) bool { return !o.landed && time.Now().Before(o.until) })
	if i < 0 {
		return
	}
	o, outcome := m.orphans[i], reaper.Unchanged
	o.landed = true
	if m.random.IntN(3) > 0 {
		m.land(o.field, o.keys...)
		outcome = []reaper.Outcome{reaper.Granted, reaper.Unknown}[m.random.IntN(2)]
	}
	if o.call != nil && m.random.IntN(2) == 0 {
		o.call.comes(outcome)
	}
}

func (m *model) toggle() {
	key := modelKeys[m.random.IntN(len(modelKeys))]
	m.mu.Lock()
	silent := !m.silent[key]
	m.silent[key] = silent
	m.mu.Unlock()
	if !silent {
		m.Resume()
	}
}

// judge checks the questions since the last event. No node has fallen silent since then.
func (m *model) judge() {
	m.t.Helper()
	for _, q := range m.questions() {
		if len(q.list) > m.most {
			m.t.Fatalf("%d keys in one question", len(q.list))
		}
		for _, s := range q.list {
			if m.silent[s.Key] {
				m.t.Fatalf("%s was asked about although its node is silent", s.Key)
			}
			m.judgeFields(s)
		}
	}
	if n := m.atOnce(); n > reaper.MaxAsking {
		m.t.Fatalf("%d questions at a time", n)
	}
}

func (m *model) judgeFields(s redisstore.Suspicion) {
	m.t.Helper()
	for _, field := range s.Fields {
		if !slices.ContainsFunc(m.orphans, func(o *modelled) bool { return o.field == field && slices.Contains(o.keys, s.Key) }) {
			m.t.Fatalf("%s in %s was never left to the reaper", field, s.Key)
		}
	}
}

// settle ends all failures, waits until Redis can no longer execute a late command, and checks what remains.
func (m *model) settle() {
	m.t.Helper()
	m.mu.Lock()
	m.fails = nil
	clear(m.silent)
	m.mu.Unlock()
	m.Resume()
	pass(2 * reaper.LongestAsk)
	for _, key := range modelKeys {
		m.wantLocks(m.t, key, m.held[key])
	}
	pass(2*reaper.SettleTime + 10*time.Second)
	m.wantKept(reaper.KeptNothing)
}
