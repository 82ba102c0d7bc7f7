package core

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/core/internal/redisstore"
)

// kick wakes the head of the line of key, if there is one.
func (l *lines) kick(key string) {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil {
		ln.wakeHead()
	}
}

// look has the head of the line of key see whether it still gets messages.
func (l *lines) look(key string) {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil && ln.first != nil {
		ln.first.wake()
	}
}

// holder is the holder of this client, nil if there is none.
func (l *lines) holder(key string) *owner {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil {
		return ln.owner
	}
	return nil
}

// message is a wake-up from Redis about key. It gives the holder of this client,
// whose belief it puts in doubt.
func (l *lines) message(key string) *owner {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	if ln == nil {
		return nil
	}
	now := time.Now()
	if echo := ln.echoTo; !echo.IsZero() {
		ln.echoTo = time.Time{}
		if now.Before(echo) {
			return nil
		}
	}
	if !now.Before(ln.pacedTo) { // else the head has been told already
		ln.pacedTo = ln.pace.next(now)
		ln.backTo = time.Time{}
		ln.wakeHead()
	}
	ln.possession.contested()
	return ln.owner
}

// subscribe gives the line of a head that was refused its wake-ups.
func (l *lines) subscribe(ctx context.Context, w *waiter) {
	s := l.shard(w.line.key)
	s.mu.Lock()
	old := w.line.subscription
	if old != nil && old.Dead() {
		w.line.subscription = nil
	}
	has := w.line.subscription != nil
	s.mu.Unlock()
	if has {
		return
	}
	old.Unsubscribe()
	t := l.client.wakeups.Subscribe(ctx, w.line.key, redisstore.Channel(w.line.key))
	s.mu.Lock()
	if w.line.subscription == nil && !w.left && !w.chosen && w.grant == nil {
		w.line.subscription, t = t, nil
	}
	s.mu.Unlock()
	t.Unsubscribe()
}

// subscribed says how many of the subscribers of key are this client.
func (l *lines) subscribed(key string) int {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := s.lines[key]; ln != nil && ln.subscription != nil && ln.subscription.Confirmed() {
		return 1
	}
	return 0
}

// others says whether somebody of this client waits for key.
func (l *lines) others(key string) bool {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.lines[key]
	return ln != nil && (ln.first != nil || ln.owner != nil || ln.handing)
}

// oldest is when the longest waiting caller came; zero if nobody waits.
func (l *lines) oldest() time.Time {
	var oldest time.Time
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for _, ln := range s.lines {
			if ln.first != nil && (oldest.IsZero() || ln.first.since.Before(oldest)) {
				oldest = ln.first.since
			}
		}
		s.mu.Unlock()
	}
	return oldest
}
