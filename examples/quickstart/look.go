package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// lockState is the state of a lock in Redis.
type lockState struct {
	key    string
	fields map[string]string // holder → count, as strings, like the reply of HGETALL
	ttl    time.Duration
}

// readLock reads the lock of an item from Redis.
func (d *demo) readLock(ctx context.Context, item string) (lockState, error) {
	s := lockState{key: d.lockKey(item)}
	var err error
	if s.fields, err = d.redis.HGetAll(ctx, s.key).Result(); err != nil {
		return s, err
	}
	s.ttl, err = d.redis.PTTL(ctx, s.key).Result()
	return s, err
}

// lockKey returns the Redis key that the rules build for an item.
func (d *demo) lockKey(item string) string { return d.backend.prefix + lockName(item) }

// lockName returns the name of that key for a lock client with the prefix.
func lockName(item string) string { return "stock:" + item }

// holder returns the field and the count of the only holder.
func (s lockState) holder() (field, count string, err error) {
	if len(s.fields) != 1 {
		return "", "", fmt.Errorf("%d holders, want 1", len(s.fields))
	}
	for field, count = range s.fields {
	}
	return field, count, nil
}

// holders describes the holders of the lock and their counts.
func (s lockState) holders() string {
	if len(s.fields) == 0 {
		return "no holder"
	}
	var words []string
	for _, field := range slices.Sorted(maps.Keys(s.fields)) {
		words = append(words, fmt.Sprintf("%s (count %s)", field, s.fields[field]))
	}
	return strings.Join(words, ", ")
}

func (s lockState) sameHolder(other lockState) bool { return maps.Equal(s.fields, other.fields) }

// print prints the state like redis-cli.
func (d *demo) print(s lockState) {
	d.out.commandf("redis-cli HGETALL %s", s.key)
	for field, count := range s.fields {
		d.out.linef("1) %q\n2) %q", field, count)
	}
	if len(s.fields) == 0 {
		d.out.linef("(empty array)")
	}
	d.out.commandf("redis-cli PTTL %s", s.key)
	d.out.linef("(integer) %d", s.ttl.Milliseconds())
}

var errNotSeen = errors.New("the lock did not reach the expected state")

// await polls until the lock of an item has the wanted state. It gives up when the work that should cause the
// state has ended.
func (d *demo) await(ctx context.Context, item string, ended <-chan struct{}, wanted func(lockState) bool) (lockState, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := d.readLock(ctx, item)
		if err != nil || wanted(s) {
			return s, err
		}
		select {
		case <-tick.C:
		case <-ended:
			return s, errNotSeen
		case <-ctx.Done():
			return s, errors.Join(errNotSeen, ctx.Err())
		}
	}
}

func isHeld(s lockState) bool { return len(s.fields) > 0 && s.ttl > 0 }

// background runs work during a step.
type background[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func inBackground[T any](work func() (T, error)) *background[T] {
	b := &background[T]{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.value, b.err = work()
	}()
	return b
}

// wait waits for the end of the work, which ends with the context of its step.
func (b *background[T]) wait() (T, error) {
	<-b.done
	return b.value, b.err
}
