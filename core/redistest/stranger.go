package redistest

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Take gives the lock at key to a stranger for lease (1 ms or more), as if a process elsewhere held
// it: a hash with one field, the stranger's "<uuid>:<number>", and the hold count 1. It returns that
// field. Every stranger has another field. If the lock is held, its holder loses it without a
// message, but clients with [core.WithLossNotice] get the notification of a deleted key.
func (s *Server) Take(key string, lease time.Duration) (stranger string) {
	if lease < time.Millisecond {
		s.failure("redistest: Take(%q, %s): the lease must be at least 1ms, for example time.Minute", key, lease)
	}
	stranger = newStranger()
	s.act("Take", func() error {
		_, err := s.own.TxPipelined(unbound(), func(pipe redis.Pipeliner) error {
			pipe.Del(unbound(), key)
			pipe.HSet(unbound(), key, stranger, 1)
			pipe.PExpire(unbound(), key, lease)
			pipe.Publish(unbound(), noticeChannel(key), "del")
			return nil
		})
		return err
	})
	return stranger
}

// release deletes a lock. It sends the message only if there was one.
const release = `
if redis.call('del', KEYS[1]) == 1 then
  redis.call('publish', ARGV[2], 'del')
  redis.call('publish', ARGV[1], '0')
end`

// Free releases the lock at key as its holder would: it deletes the key and sends the message to the
// waiters. On a free key it does nothing.
func (s *Server) Free(key string) {
	s.act("Free", func() error {
		return orNil(s.own.Eval(unbound(), release, []string{key}, channel(key), noticeChannel(key)).Err())
	})
}

// Expire makes the lease of the lock at key expire now: it deletes the key and sends no message. Clients with
// [core.WithLossNotice] get the notification of an expired key.
func (s *Server) Expire(key string) {
	s.act("Expire", func() error {
		_, err := s.own.TxPipelined(unbound(), func(pipe redis.Pipeliner) error {
			pipe.Del(unbound(), key)
			pipe.Publish(unbound(), noticeChannel(key), "expired")
			return nil
		})
		return err
	})
}

// act runs an action of a stranger. Close waits for the action.
func (s *Server) act(what string, do func() error) {
	s.mu.Lock()
	if !s.closed {
		s.acting.Add(1)
		defer s.acting.Done()
	}
	s.mu.Unlock()
	if err := do(); err != nil {
		s.failure("redistest: %s: %v", what, err)
	}
}

func orNil(err error) error {
	if err == redis.Nil { //nolint:errorlint // never wrapped; the script returns nothing
		return nil
	}
	return err
}

// channel returns the channel on which the release of the lock at key is announced.
func channel(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}

// noticeChannel returns the channel of the keyspace notifications of key.
func noticeChannel(key string) string { return "__keyspace@0__:" + key }

// newStranger returns a holder field: a random UUID and the number of a thread.
func newStranger() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x:1", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
