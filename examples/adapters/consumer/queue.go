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

// Consume handles the messages of a partition one after the other until the queue is closed and empty or ctx is done. A message
// whose lock was not acquired is handled again later, before the next message. dead gets the messages that failed. Messages
// that are not handled when ctx is done are not committed, so a broker would deliver them to the next consumer.
func (q *Queue) Consume(ctx context.Context, topic string, partition int, handle func(context.Context, *Message) aspect.Outcome, dead func(*Message, error)) {
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

// deliver handles a message until it is not postponed any more, or until ctx is done.
func deliver(ctx context.Context, m *Message, handle func(context.Context, *Message) aspect.Outcome) error {
	for {
		o := handle(ctx, m)
		if !o.Postponed() {
			return o.Result()
		}
		select {
		case <-time.After(o.RetryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
