package consumer

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"github.com/interlock-go/interlock/core/aspect"
)

// Queue is topics in memory, each of several partitions that keep the order of their
// messages. A message goes to the partition of its key.
type Queue struct{ topics map[string][]chan *Message }

// depth is how many messages a partition keeps before Publish waits.
const depth = 100

// NewQueue makes a queue of topics.
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
		return errors.New("there is no topic " + m.Topic)
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

// Close ends the queue: consumers read what is left.
func (q *Queue) Close() {
	for _, partitions := range q.topics {
		for _, p := range partitions {
			close(p)
		}
	}
}

// Consume handles the messages of one partition, one after the other, until the queue is
// closed and empty, or ctx ends: what is not handled then is not committed, and a broker
// would give it to the next consumer. A message that is refused for now comes again; dead
// gets one that cannot be handled.
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

// deliver handles a message until it is not refused any more.
func deliver(ctx context.Context, m *Message, handle func(context.Context, *Message) Result) error {
	for {
		err := handle(ctx, m).Err
		if after := again(err); after == 0 || !pause(ctx, after) {
			return err
		}
	}
}

// again is when a message is to come again, 0 if never.
func again(err error) time.Duration {
	if refused, ok := errors.AsType[*aspect.RefusedError](err); ok {
		return refused.RetryAfter
	}
	return 0
}

// pause waits, and reports whether it came to the end.
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
