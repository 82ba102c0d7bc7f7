package consumer

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
)

// Queue holds topics in memory. Each topic has several partitions, which keep the order of their
// messages. A message goes to the partition of its key.
type Queue struct{ topics map[string][]chan *Message }

// depth is the number of messages that a partition buffers before Publish waits.
const depth = 100

// NewQueue returns a queue with the given topics.
func NewQueue(partitions int, topics ...string) *Queue {
	q := &Queue{topics: map[string][]chan *Message{}}
	for _, topic := range topics {
		for range partitions {
			q.topics[topic] = append(q.topics[topic], make(chan *Message, depth))
		}
	}
	return q
}

// Publish sends a message. It must not be called after [Queue.Close].
func (q *Queue) Publish(ctx context.Context, m Message) error {
	partitions := q.topics[m.Topic]
	if len(partitions) == 0 {
		return errors.New("unknown topic " + m.Topic)
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.Key))
	m.Partition = int(h.Sum32() % uint32(len(partitions)))
	select {
	case partitions[m.Partition] <- &m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the queue. Consumers read the remaining messages.
func (q *Queue) Close() {
	for _, partitions := range q.topics {
		for _, p := range partitions {
			close(p)
		}
	}
}

// Consume handles the messages of a partition one after the other until the queue is closed and empty or ctx
// is done. Messages that are not handled before that are not committed, so a broker would deliver them to the
// next consumer. A refused message is retried later. dead gets the messages that cannot be handled.
func (q *Queue) Consume(ctx context.Context, topic string, partition int, handle func(context.Context, *Message) Result, dead func(*Message, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case m, open := <-q.topics[topic][partition]:
			if !open {
				return
			}
			if err := deliver(ctx, m, handle); err != nil && ctx.Err() == nil {
				dead(m, err)
			}
		}
	}
}

// deliver handles a message again and again while it is refused.
func deliver(ctx context.Context, m *Message, handle func(context.Context, *Message) Result) error {
	for {
		err := handle(ctx, m).Err
		if after := retryDelay(err); after == 0 || !pause(ctx, after) {
			return err
		}
	}
}

// retryDelay returns the time after which a message is retried; 0: never.
func retryDelay(err error) time.Duration {
	if refused, ok := errors.AsType[*aspect.RefusedError](err); ok {
		return refused.RetryAfter
	}
	return 0
}

// pause waits for d. It returns false if ctx is done before that.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
