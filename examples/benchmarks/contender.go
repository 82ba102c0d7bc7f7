package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Locker is what the scenarios see of every library.
type Locker interface {
	// Lock waits until it holds key, and returns what frees it.
	Lock(ctx context.Context, key string) (Unlock, error)
	// Close ends connections and goroutines.
	Close() error
}

// Unlock frees a lock.
type Unlock func(ctx context.Context) error

// contender is a library under test, or the floor. callers is how many there will be
// for one key, in all processes.
type contender struct {
	name string
	open func(addr string, callers int) (Locker, error)

	// binary is the program whose worker processes are measured, with Interlock as it
	// was built into that program. Empty: this program, and the contender called name.
	binary string

	// sends are the commands that it sends, of those that are also called inside
	// its scripts. See commandsSent.
	sends []string
}

// lease is the lease of libraries that want one; no scenario holds a lock that long.
const lease = 10 * time.Second

const interlockName = "Interlock"

func interlock() contender { return contender{name: interlockName, open: openInterlock} }

// beforeName is the contender of -before: Interlock in another build of this program.
const beforeName = "before"

// inWorker is the name by which a worker process finds the contender.
func (c contender) inWorker() string {
	if c.binary != "" {
		return interlockName
	}
	return c.name
}

// peers are the libraries that Interlock is compared with.
func peers() []contender {
	return []contender{
		{name: "redsync", open: openRedsync, sends: []string{"set"}},
		{name: "bsm/redislock", open: openRedislock},
		{name: "rueidislock", open: openRueidislock},
	}
}

// libraries are Interlock and its peers.
func libraries() []contender { return append([]contender{interlock()}, peers()...) }

// everybody is all contenders in the order of the table's columns.
func everybody() []contender {
	return slices.Concat([]contender{interlock()}, floors(), []contender{mutex()}, peers())
}

// find is how a worker process gets the contender its parent named.
func find(name string) (contender, error) {
	all := append(everybody(), javaLike())
	if i := slices.IndexFunc(all, func(c contender) bool { return c.name == name }); i >= 0 {
		return all[i], nil
	}
	return contender{}, fmt.Errorf("no contender is called %q", name)
}

// named are those of everybody with these names.
func named(names ...string) []contender {
	return slices.DeleteFunc(everybody(), func(c contender) bool { return !slices.Contains(names, c.name) })
}
