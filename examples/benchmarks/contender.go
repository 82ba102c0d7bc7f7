package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Locker is the interface of a library in the scenarios.
type Locker interface {
	// Lock waits until it holds key and returns the function that releases it.
	Lock(ctx context.Context, key string) (Unlock, error)
	// Close closes connections and stops goroutines.
	Close() error
}

// Unlock releases a lock.
type Unlock func(ctx context.Context) error

// contender is a library under test, or a floor. callers is the number of callers for one key, in all
// processes.
type contender struct {
	name string
	open func(addr string, callers int) (Locker, error)

	// binary is the program whose worker processes are measured. It contains the Interlock that it was built
	// with. If it is empty, this program is measured, with the contender of this name.
	binary string

	// sends lists the commands that the contender sends and that its scripts also call. See commandsSent.
	sends []string
}

// lease is the lease for libraries that need one. No scenario holds a lock that long.
const lease = 10 * time.Second

const interlockName = "Interlock"

func interlock() contender { return contender{name: interlockName, open: openInterlock} }

// beforeName is the contender of -before: the Interlock of another build of this program.
const beforeName = "before"

// inWorker returns the name of the contender in a worker process.
func (c contender) inWorker() string {
	if c.binary != "" {
		return interlockName
	}
	return c.name
}

// peers returns the libraries that Interlock is compared with.
func peers() []contender {
	return []contender{
		{name: "redsync", open: openRedsync, sends: []string{"set"}},
		{name: "bsm/redislock", open: openRedislock},
		{name: "rueidislock", open: openRueidislock},
	}
}

// libraries returns Interlock and its peers.
func libraries() []contender { return append([]contender{interlock()}, peers()...) }

// allContenders returns all contenders in the order of the columns of the table.
func allContenders() []contender {
	return slices.Concat([]contender{interlock()}, floors(), []contender{mutex()}, peers())
}

// find returns the contender with a name, in a worker process.
func find(name string) (contender, error) {
	all := append(allContenders(), javaLike())
	if i := slices.IndexFunc(all, func(c contender) bool { return c.name == name }); i >= 0 {
		return all[i], nil
	}
	return contender{}, fmt.Errorf("unknown contender %q", name)
}

// findAll returns the contenders with the given names.
func findAll(names ...string) []contender {
	return slices.DeleteFunc(allContenders(), func(c contender) bool { return !slices.Contains(names, c.name) })
}
