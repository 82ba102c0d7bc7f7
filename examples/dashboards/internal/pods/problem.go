package pods

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
)

// LoseLock deletes the key of a held lock without a message, like a careless operator. The holder finds out at its next
// renewal.
func (s *Shop) LoseLock(ctx context.Context) error {
	for {
		n, err := s.admin.Del(ctx, Prefix+"stock:"+countedItem(0)).Result()
		if err != nil {
			return fmt.Errorf("delete the key of a lock: %w", err)
		}
		if n > 0 {
			return nil
		}
		if err := pause(ctx, counting/10); err != nil {
			return err
		}
	}
}

// Hang acquires the lock of the export for a holder that does nothing.
func (s *Shop) Hang(ctx context.Context, d time.Duration) error {
	pipe := s.admin.TxPipeline()
	pipe.HSetNX(ctx, Prefix+"export", "00000000-0000-4000-8000-000000000000:1", 1)
	pipe.PExpire(ctx, Prefix+"export", d)
	_, err := pipe.Exec(ctx)
	return err
}

// HoldTooLong holds a lock for longer than its limit and then releases it.
func (s *Shop) HoldTooLong(ctx context.Context) error {
	err := s.pods[0].locks.Lock("slow").Do(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	}, core.MaxHold(time.Second), core.Label("count"))
	if errors.Is(err, core.ErrHeldTooLong) {
		return nil
	}
	return err
}

// Leak drops the Hold of a lock, like code that forgets to release it.
func (s *Shop) Leak(ctx context.Context) error {
	_, _, err := s.pods[0].locks.Lock("forgotten").Acquire(ctx, core.Label("count"))
	runtime.GC()
	return err
}

// Deadlock makes two transfers in opposite directions in the same pod and waits for both.
func (s *Shop) Deadlock(ctx context.Context) {
	var both sync.WaitGroup
	for _, path := range []string{"/transfers/carol/dave", "/transfers/dave/carol"} {
		both.Go(func() { s.client.post(ctx, s.pods[0].webAddr, path, "{}") })
	}
	both.Wait()
}

// RollOut changes the rule files. The last pod gets a file with a mistake and refuses it; the others get a correct file.
func (s *Shop) RollOut() error {
	for i, p := range s.pods {
		text := strings.Replace(rules, "wait_time: 2s", "wait_time: 1900ms", 1)
		if i == len(s.pods)-1 {
			text = strings.Replace(rules, "wait_time: 2s", "wait: 1900ms", 1)
		}
		if err := replace(p.ruleFile, text); err != nil {
			return err
		}
	}
	return nil
}

// RollBack restores the rules with which the pods started.
func (s *Shop) RollBack() error {
	for _, p := range s.pods {
		if err := replace(p.ruleFile, rules); err != nil {
			return err
		}
	}
	return nil
}
