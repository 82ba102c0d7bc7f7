package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// The ways of this package have time limits of their own, by clones of the caller's client
// that share its connections. go-redis gives a clone none of the hooks that the caller has
// added. So commands run through the hooks first, where they are, and the innermost hook
// leads to the clone.

// hooks runs commands through the hooks that a client has at this moment.
type hooks interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// hooksOf are a client's. Neither the client nor its connections have to do with it: a Conn
// has a copy of the hooks, and takes a connection only for what reaches it, which nothing
// does.
func hooksOf(client *redis.Client) hooks {
	host := client.Conn()
	host.AddHook(innermost{})
	return host
}

// hooksOfCluster are those of a ClusterClient, which has nothing that would copy them: so
// it gets one more.
func hooksOfCluster(cluster *redis.ClusterClient) hooks {
	cluster.AddHook(toNode{})
	return cluster
}

// innermost is where hooks end and commands are sent.
type innermost struct{}

// DialHook changes nothing.
func (innermost) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook sends a command.
func (innermost) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if c, ours := cmd.(*command); ours {
			return c.transmit()
		}
		return errForeign
	}
}

// ProcessPipelineHook sends renewals, and commands that replicas have to acknowledge.
func (innermost) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if c, ours := commandOf(cmds); ours {
			return c.transmit()
		}
		if r, ours := renewalOf(cmds); ours {
			return r.transmit(ctx, cmds)
		}
		return errForeign
	}
}

// errForeign refuses a command that a hook has put in the place of a lock command. errChanged refuses
// one of which a hook has changed an argument, such as a key: when the command is sent again, the hook
// might change it again.
var (
	errForeign error = &unsentError{errors.New("a hook of the redis client has replaced a lock command by another one")}
	errChanged error = &unsentError{errors.New("a hook of the redis client has changed the keys or arguments of a lock command: " +
		"leave the hook out, and set a prefix of keys by core.WithPrefix or core.WithNameMapper")}
)

// byHook reports whether a command was not sent because of a hook, which will do the same to the next one.
func byHook(err error) bool { return errors.Is(err, errForeign) || errors.Is(err, errChanged) }

// toNode is the innermost hook of a ClusterClient. What is ours, and for one node, goes
// on to that node's hooks; all else passes.
type toNode struct{}

// DialHook changes nothing.
func (toNode) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook is around a command.
func (toNode) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if c, ours := cmd.(*command); ours {
			return c.route.hooks.Process(ctx, c)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook is around a pipeline.
func (toNode) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if c, ours := commandOf(cmds); ours {
			return inPipeline(ctx, c.route.hooks, cmds)
		}
		if r, ours := renewalOf(cmds); ours {
			return inPipeline(ctx, r.node, cmds)
		}
		return next(ctx, cmds)
	}
}

// renewalOf is the first of commands that are ours: such never share a pipeline with
// others.
func renewalOf(cmds []redis.Cmder) (*renewal, bool) {
	if len(cmds) == 0 {
		return nil, false
	}
	r, ours := cmds[0].(*renewal)
	return r, ours
}

// commandOf is the first of commands if replicas have to acknowledge it: what waits for them
// is the second one.
func commandOf(cmds []redis.Cmder) (*command, bool) {
	if len(cmds) == 0 {
		return nil, false
	}
	c, ours := cmds[0].(*command)
	return c, ours
}

// inPipeline sends commands in one pipeline.
func inPipeline(ctx context.Context, by interface{ Pipeline() redis.Pipeliner }, cmds []redis.Cmder) error {
	pipe := by.Pipeline()
	_ = pipe.BatchProcess(ctx, cmds...) //nolint:errcheck // only queues
	_, err := pipe.Exec(ctx)
	return err
}
