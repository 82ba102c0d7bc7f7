package redisserver

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Move is a slot on its way from one master of a [Cluster] to another, as redis-cli moves it:
//
//	planned ── Open ──▶ open ── Keys, one after the other ──▶ moved ── End ──▶ over
//
// While it is open, the old owner serves the keys that it has still, and the new one those that it
// has already.
type Move struct {
	From, To *Server
	Slot     int64

	t        testing.TB
	cluster  *Cluster
	from, to *redis.Client
}

// PlanMove is that of the slot of key, to the last master, or of a slot of that one to the first.
// Who moves many slots at a time should move all in one direction: a node that is given one claims it
// by a new epoch, and of two that do so at a time the other one may believe the older.
func (c *Cluster) PlanMove(key string) *Move {
	c.t.Helper()
	m := &Move{t: c.t, cluster: c, From: c.Master(key), To: c.Masters[len(c.Masters)-1], Slot: c.slot(key)}
	if m.To == m.From {
		m.To = c.Masters[0]
	}
	m.from, m.to = m.From.admin(), m.To.admin()
	return m
}

// BeginMove plans one, and opens it.
func (c *Cluster) BeginMove(key string) *Move {
	c.t.Helper()
	m := c.PlanMove(key)
	m.Open()
	return m
}

// Open opens the slot on both nodes.
func (m *Move) Open() {
	m.t.Helper()
	m.set(m.to, "importing", m.id(m.from))
	m.set(m.from, "migrating", m.id(m.to))
}

// Left are the keys that the old owner has still, at most a hundred.
func (m *Move) Left() []string { return m.keysOn(m.from) }

// Arrived are the keys that the new owner has, at most a hundred.
func (m *Move) Arrived() []string { return m.keysOn(m.to) }

func (m *Move) keysOn(rdb *redis.Client) []string {
	m.t.Helper()
	keys, err := rdb.ClusterGetKeysInSlot(m.t.Context(), int(m.Slot), 100).Result()
	m.check(err)
	return keys
}

// Keys moves keys, one after the other. One that is not there any more is none.
func (m *Move) Keys(keys ...string) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.To.Addr())
	for _, key := range keys {
		if err := m.from.Migrate(m.t.Context(), host, port, key, 0, moveTimeout).Err(); err != nil {
			m.t.Fatalf("redisserver: move of %s: %v; arrived are %q", key, err, m.Arrived())
		}
	}
}

// End moves what is left, and makes the new owner the master of the slot, and tells all.
func (m *Move) End() {
	m.t.Helper()
	for keys := m.Left(); len(keys) > 0; keys = m.Left() {
		m.Keys(keys...)
	}
	m.set(m.to, "node", m.id(m.to))
	m.set(m.from, "node", m.id(m.to))
	for _, other := range m.cluster.Masters {
		if other != m.To && other != m.From {
			m.set(other.admin(), "node", m.id(m.to))
		}
	}
	m.cluster.moved[m.Slot] = m.To
}

const moveTimeout = 10 * time.Second

func (m *Move) set(on *redis.Client, args ...any) {
	m.t.Helper()
	m.check(on.Do(m.t.Context(), append([]any{"cluster", "setslot", m.Slot}, args...)...).Err())
}

func (m *Move) id(of *redis.Client) string {
	m.t.Helper()
	id, err := of.ClusterMyID(m.t.Context()).Result()
	m.check(err)
	return id
}

func (m *Move) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatalf("redisserver: move of slot %d: %v", m.Slot, err)
	}
}

func (c *Cluster) slot(key string) (slot int64) {
	c.t.Helper()
	c.onNode(c.Masters[0], func(ctx context.Context, rdb *redis.Client) (err error) {
		slot, err = rdb.ClusterKeySlot(ctx, key).Result()
		return err
	})
	return slot
}

// admin is a client of the server that its moves share.
func (s *Server) admin() *redis.Client {
	s.t.Helper()
	if s.mover == nil {
		s.mover = s.Client()
	}
	return s.mover
}
