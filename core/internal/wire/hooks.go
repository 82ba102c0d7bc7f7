package wire

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// hooksOf returns the hooks of a client. A Conn contains a copy of the hooks. A Conn would take a
// connection from the pool for a command that passes the innermost hook, but no command does.
func hooksOf(client *redis.Client) hooks {
	host := client.Conn()
	host.AddHook(innermost{})
	return host
}

// hooksOfCluster returns the hooks of a ClusterClient. These hooks cannot be copied, so
// hooksOfCluster adds a hook to the client.
func hooksOfCluster(cluster *redis.ClusterClient) hooks {
	cluster.AddHook(toNode{})
	return cluster
}

// through runs the hooks around one command and returns its outcome.
func (c *command) through(h hooks) error {
	if c.ack != nil {
		return throughAll(h, []*command{c})[0]
	}
	return c.outcome(recoverPanic(func() error { return h.Process(&c.ctx, c) }))
}

// throughAll runs the hooks around commands in one pipeline and returns their outcomes.
func throughAll(h hooks, cmds []*command) []error {
	list := make([]redis.Cmder, len(cmds), len(cmds)+1)
	for i, c := range cmds {
		list[i] = c
	}
	if ack := cmds[0].ack; ack != nil {
		list = append(list, redis.NewCmd(&cmds[0].ctx, ack.command()...))
	}
	said := recoverPanic(func() error { return inPipeline(&cmds[0].ctx, h, list) })
	for _, c := range cmds {
		if c.phase.Load() == commandOver && c.err != nil {
			said = nil // said is the error of that command
		}
	}
	outcomes := make([]error, len(cmds))
	for i, c := range cmds {
		outcomes[i] = c.outcome(said)
	}
	return outcomes
}

// recoverPanic turns the panic of a hook into an error, because the panic must not crash the goroutine of
// another caller.
func recoverPanic(hooks func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a hook of the redis client has panicked: %v", r)
		}
	}()
	return hooks()
}

// innermost is the last hook in the chain. It sends the commands.
type innermost struct{}

// DialHook changes nothing.
func (innermost) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command.
func (innermost) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if c, ours := cmd.(*command); ours {
			return transmit(c)
		}
		return errForeign
	}
}

// ProcessPipelineHook sends renewals, and commands that replicas have to acknowledge.
func (innermost) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, list []redis.Cmder) error {
		if cmds := commandsOf(list); len(cmds) > 0 {
			return transmit(cmds...)
		}
		return errForeign
	}
}

// toNode is the innermost hook of a ClusterClient. It passes commands of this package to the hooks of
// their node; all others continue unchanged.
type toNode struct{}

// DialHook changes nothing.
func (toNode) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook runs the hooks of the node around a command.
func (toNode) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c, ours := cmd.(*command)
		if !ours {
			return next(ctx, cmd)
		}
		if h := c.to.clientHooks(); h != nil {
			return h.Process(ctx, c)
		}
		return transmit(c)
	}
}

// ProcessPipelineHook runs the hooks of the node around a pipeline. A pipeline contains only commands of this
// package, or none.
func (toNode) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, list []redis.Cmder) error {
		cmds := commandsOf(list)
		if len(cmds) == 0 {
			return next(ctx, list)
		}
		if h := cmds[0].to.clientHooks(); h != nil {
			return inPipeline(ctx, h, list)
		}
		return transmit(cmds...)
	}
}

// commandsOf returns the commands of this package in a pipeline. It omits the WAIT after them, because the
// acker sends its own.
func commandsOf(list []redis.Cmder) (cmds []*command) {
	for _, cmd := range list {
		if c, ours := cmd.(*command); ours {
			cmds = append(cmds, c)
		}
	}
	return cmds
}

// inPipeline sends commands in one pipeline.
func inPipeline(ctx context.Context, h hooks, list []redis.Cmder) error {
	pipe := h.Pipeline()
	_ = pipe.BatchProcess(ctx, list...) //nolint:errcheck // only queues
	_, err := pipe.Exec(ctx)
	return err
}
