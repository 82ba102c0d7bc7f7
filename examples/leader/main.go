// Leader elects one instance of a service. Only that instance does a task, such as refreshing prices, until it shuts down or
// dies.
//
//	go -C examples run ./leader
//
// The pattern is in package campaign, a file to copy. It needs only a lock: every instance waits for the same lock, and leads
// while it holds it. Each instance calls Run, with a context that SIGTERM cancels:
//
//	err := campaign.Run(ctx, locks.Lock("leader:prices"), lead, failed)
//
// This program starts three instances in one process, each with separate clients. In production each instance is a process. Then
// the program shuts down the leader until no instance is left. It prints who leads, and how long each change took.
//
// The tests of package campaign show the changes of the leader and a late write.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock/core"
	"github.com/interlock-go/interlock/core/fence"
	"github.com/interlock-go/interlock/core/redistest"
	"github.com/interlock-go/interlock/examples/leader/campaign"
)

const (
	lockName = "leader:prices"
	patience = time.Minute // time limit of the program, which needs less than a second
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	err := run(ctx, os.Stdout)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL leader:", err)
		os.Exit(1)
	}
}

// run starts three instances and shuts down the leader, until no instance is left.
func run(ctx context.Context, out io.Writer) (err error) {
	server, err := redistest.Start()
	if err != nil {
		return err
	}
	defer server.Close()
	begun := make(chan *instance)
	fleet := map[string]*instance{}
	defer func() {
		for _, in := range fleet {
			err = errors.Join(err, in.shutDown())
		}
	}()
	for i := range 3 {
		in, err := start(ctx, server, i+1, begun)
		if err != nil {
			return err
		}
		fleet[in.locks.ID()] = in
	}
	since := time.Now()
	for range 3 {
		var leader *instance
		select {
		case leader = <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
		id, err := campaign.Leader(ctx, leader.locks.Lock(lockName))
		if err != nil {
			return err
		}
		if fleet[id] != leader {
			return fmt.Errorf("instance %d says that it leads, Redis says %q", leader.number, id)
		}
		fmt.Fprintf(out, "instance %d leads after %s, with token %d\n", leader.number, time.Since(since).Round(time.Millisecond), leader.token)
		since = time.Now()
		if err := leader.shutDown(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "PASS leader: each instance led once, one after the other")
	return nil
}

// instance is an instance of the service.
type instance struct {
	number   int
	token    int64
	locks    *core.Client
	shutDown func() error // as the handler of SIGTERM does
}

// start starts an instance. It sends itself to begun when it leads.
func start(ctx context.Context, server *redistest.Server, number int, begun chan<- *instance) (*instance, error) {
	rdb := server.Client()
	locks, err := core.New(rdb)
	if err != nil {
		return nil, err
	}
	in := &instance{number: number, locks: locks}
	refresh := func(ctx context.Context, token int64) error {
		in.token = token
		if err := fence.Command(ctx, rdb, token, "HSET", "prices", "by", number).Err(); err != nil {
			return err
		}
		select {
		case begun <- in:
		case <-ctx.Done():
		}
		<-ctx.Done() // a real task works here and looks at ctx
		return nil
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- campaign.Run(running, locks.Lock(lockName), refresh, func(err error) { fmt.Fprintf(os.Stderr, "instance %d: %v\n", number, err) })
	}()
	in.shutDown = sync.OnceValue(func() error {
		stop()
		return errors.Join(<-ended, locks.Close(context.WithoutCancel(ctx)), rdb.Close())
	})
	return in, nil
}
