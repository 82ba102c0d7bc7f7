package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// acker is the way to one node of calls that replicas have to acknowledge. Each takes a
// connection of the caller's pool for itself: WAIT is about what its connection has written,
// and holds up all that comes behind it there. So that renewals and the caller have
// connections, too, it takes half of them at most; others wait.
//
//	open   -> closed  its node has left, or the client ends
type acker struct {
	client   *redis.Client
	wants    Replication
	replicas *replicas
	sight    sight
	room     chan struct{}

	life context.Context //nolint:containedctx // of what waits for a connection
	end  context.CancelFunc

	mu     sync.Mutex
	closed bool
	ask    *asking // under way; nil: none
	worker sync.WaitGroup
}

// newAcker is nil where nobody has to acknowledge anything. The client is the caller's.
func newAcker(client *redis.Client, cfg Config, r *replicas) *acker {
	if cfg.Replication.Acks == NoAcks {
		return nil
	}
	opts := client.Options()
	pool := opts.PoolSize
	if opts.PipelinePoolSize > 0 {
		pool = opts.PipelinePoolSize
	}
	w := &acker{
		client: client.WithTimeout(cfg.Timeout + cfg.Replication.Timeout), wants: cfg.Replication, replicas: r,
		room: make(chan struct{}, max(1, pool/2)),
	}
	w.sight.begun = time.Now()
	w.life, w.end = context.WithCancel(context.Background()) //nolint:forbidigo // its own lifetime
	return w
}

// spawn runs work that close waits for.
func (w *acker) spawn(work func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return redis.ErrClosed
	}
	w.worker.Go(work)
	return nil
}

func (w *acker) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.end()
	w.worker.Wait()
}

// need is how many replicas have to acknowledge what is written to slots.
func (w *acker) need(slots []int) int {
	most := int(w.sight.most.Load())
	for _, slot := range slots {
		most = max(most, w.replicas.raise(slot, most))
	}
	return w.wants.Acks.of(most)
}

// prepare makes the wish of a call that ends at limit. The number of replicas has to be
// known for it, which takes a round trip the first time.
func (w *acker) prepare(ctx context.Context, limit time.Time, slots ...int) (*acknowledgement, error) {
	if err := w.look(ctx, limit); err != nil {
		return nil, err
	}
	left := time.Until(within(ctx, limit))
	return &acknowledgement{slots: slots, wanted: w.need(slots), wait: min(w.wants.Timeout, left-left/10)}, nil
}

// submit sends a command, and what waits for its replicas, on a connection of the pool.
func (w *acker) submit(c *command) error {
	c.wake = make(chan struct{}, 1)
	return w.spawn(func() { w.exchange(c) })
}

func (w *acker) exchange(c *command) {
	ctx, cancel := context.WithDeadline(w.life, c.limit)
	defer cancel()
	select {
	case w.room <- struct{}{}:
		defer func() { <-w.room }()
	case <-ctx.Done():
		c.complete(nil, &unsentError{errNoRoom})
		return
	}
	script := &answered{Cmd: newCmd(ctx, c.given)}
	c.ack.short = w.send(ctx, w.client, []*answered{script}, c.ack)
	c.complete(script.Val(), script.Err())
}

// errNoRoom says that calls which wait for replicas have had all their connections.
var errNoRoom = errors.New("no connection was free for a command that replicas have to acknowledge")

// send sends scripts in one pipeline with what waits for the replicas, and gives what is
// missing then, as far as a script was executed.
func (w *acker) send(ctx context.Context, by *redis.Client, scripts []*answered, ack *acknowledgement) *ShortfallError {
	list := make([]redis.Cmder, 0, 2*len(scripts)+2)
	for _, script := range scripts {
		if ack.asking {
			list = append(list, newAnswered(ctx, "asking"))
		}
		list = append(list, script)
	}
	wait := ack.waitCommand(ctx)
	list = append(list, wait)
	var info *answered
	if w.sight.old() {
		info = newAnswered(ctx, infoReplication()...)
		list = append(list, info)
	}
	if err := inPipeline(ctx, by, list); err != nil {
		for _, cmd := range list {
			cmd.SetErr(err) // of those that have none
		}
	}
	return w.judge(ack, wait, info)
}

func infoReplication() []any { return []any{"info", "replication"} }

// judge counts. What the node says of its replicas behind the wait counts, too: one that has
// come meanwhile may be the next master.
func (w *acker) judge(ack *acknowledgement, wait, info *answered) *ShortfallError {
	if info != nil {
		w.noteInfo(info)
	}
	wanted := max(ack.wanted, w.need(ack.slots))
	got, isNumber := wait.Val().(int64)
	if wait.Err() == nil && isNumber && int(got) >= wanted {
		return nil
	}
	w.sight.forget()
	return &ShortfallError{Wanted: wanted, Acknowledged: int(got), Replicas: w.sight.now(), Cause: wait.Err()}
}

func (w *acker) noteInfo(info *answered) {
	if text, ok := info.Val().(string); ok && info.Err() == nil {
		w.sight.note(text)
	}
}

// asking is the first question for the number of replicas. Who wants it waits for it for as
// long as he likes.
type asking struct {
	done chan struct{}
	err  error
}

// look makes sure that the number of replicas is known, if it has to be.
func (w *acker) look(ctx context.Context, limit time.Time) error {
	if w.sight.known() || !w.wants.Acks.depends() {
		return nil
	}
	asked, err := w.asks()
	if err != nil {
		return err
	}
	timer := time.NewTimer(time.Until(limit))
	defer timer.Stop()
	select {
	case <-asked.done:
		return asked.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return errNoAnswer
	}
}

// asks is the question that is under way, or a new one.
func (w *acker) asks() (*asking, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil, redis.ErrClosed
	case w.ask != nil:
		return w.ask, nil
	}
	a := &asking{done: make(chan struct{})}
	w.ask = a
	w.worker.Go(func() {
		a.err = w.askReplicas()
		w.mu.Lock()
		w.ask = nil
		w.mu.Unlock()
		close(a.done)
	})
	return a, nil
}

func (w *acker) askReplicas() error {
	info := newAnswered(w.life, infoReplication()...)
	if err := w.client.Process(w.life, info); err != nil {
		return &replicasError{err}
	}
	w.noteInfo(info)
	if !w.sight.known() {
		return &replicasError{unexpected("INFO replication", info.Val())}
	}
	return nil
}

// replicasError says that the master could not be asked for its replicas.
type replicasError struct{ cause error }

func (e *replicasError) Error() string {
	return "the master could not be asked for its replicas: " + e.cause.Error()
}
func (e *replicasError) Unwrap() error { return e.cause }
