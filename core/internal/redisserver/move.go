package redisserver

import (
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Move moves a slot from one master of a [Cluster] to another, with the steps of redis-cli:
//
//	planned ── Open ──▶ open ── Keys, one after the other ──▶ moved ── End ──▶ ended
//
// While the move is open, each of the two owners serves the keys that it has.
type Move struct {
	From, To *Server
	Slot     int64

	t        testing.TB
	cluster  *Cluster
	from, to *redis.Client
}

// PlanMove plans to move the slot of key to the last master. If the last master already has the slot, PlanMove plans to
// move it to the first master. A test that moves many slots at a time should move all of them to one node, because a
// node that receives a slot claims it with a new epoch. If two nodes claim slots at the same time, a third node may
// accept the older claim.
func (c *Cluster) PlanMove(key string) *Move {
	c.t.Helper()
	m := &Move{t: c.t, cluster: c, From: c.Master(key), To: c.Masters[len(c.Masters)-1], Slot: c.slot(key)}
	if m.To == m.From {
		m.To = c.Masters[0]
	}
	m.from, m.to = m.From.admin(), m.To.admin()
	return m
}

// BeginMove plans a move and opens it.
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

// Left returns up to a hundred keys of the slot that the old owner has.
func (m *Move) Left() []string { return m.keysOn(m.from) }

// Arrived returns up to a hundred keys of the slot that the new owner has.
func (m *Move) Arrived() []string { return m.keysOn(m.to) }

func (m *Move) keysOn(rdb *redis.Client) []string {
	m.t.Helper()
	keys, err := rdb.ClusterGetKeysInSlot(m.t.Context(), int(m.Slot), 100).Result()
	m.check(err)
	return keys
}

// Keys moves keys, one after another. It skips keys that do not exist.
func (m *Move) Keys(keys ...string) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.To.Addr())
	for _, key := range keys {
		if err := m.from.Migrate(m.t.Context(), host, port, key, 0, moveTimeout).Err(); err != nil {
			m.t.Fatalf("redisserver: move of %s: %v; arrived are %q", key, err, m.Arrived())
		}
	}
}

// End moves the remaining keys, makes the new owner the master of the slot, and announces that to all
// nodes.
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

// admin returns a client that all moves of the server share.
func (s *Server) admin() *redis.Client {
	s.t.Helper()
	if s.mover == nil {
		s.mover = s.Client()
	}
	return s.mover
}
