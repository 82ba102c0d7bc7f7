package interop

import (
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Config is how a Redisson client connects. Mode and Addrs are needed.
type Config struct {
	Mode   string   // "single", "cluster" or "sentinel"
	Addrs  []string // host:port of the server, of nodes, or of Sentinels
	Master string   // its name, in mode "sentinel"

	Watchdog time.Duration // lockWatchdogTimeout
	FairWait time.Duration // fairLockWaitTimeout; since 3.46
	Timeout  time.Duration // how long a reply may take
	Retries  string        // retryAttempts, a number
	Prefix   string        // of a name mapper
	Sharded  string        // shardedSubscriptionMode: "AUTO", "ON" or "OFF"; since 3.29

	// Usual has a client of a single server have as many threads and connections as Redisson
	// gives it by default. They are few otherwise, and soon there.
	Usual bool
}

func (c Config) args(client string) Args {
	args := Args{"client": client, "mode": c.Mode, "addrs": List(c.Addrs...)}
	for name, value := range map[string]string{
		"master": c.Master, "retries": c.Retries, "prefix": c.Prefix, "sharded": c.Sharded,
	} {
		if value != "" {
			args[name] = Text(value)
		}
	}
	if c.Usual {
		args["usual"] = "true"
	}
	for name, d := range map[string]time.Duration{
		"watchdog": c.Watchdog, "fairWait": c.FairWait, "timeout": c.Timeout,
	} {
		if d > 0 {
			args[name] = Millis(d)
		}
	}
	return args
}

// names numbers clients and threads: requests name them.
var names atomic.Int64

func fresh(prefix string) string { return prefix + strconv.FormatInt(names.Add(1), 10) }

// Client is a Redisson client in a [JVM]. It is closed with the test that has opened it, or
// with the process.
type Client struct {
	jvm  *JVM
	name string
	id   string
}

// Open opens a client. When it returns, the client is connected.
func (j *JVM) Open(tb testing.TB, c Config) *Client {
	tb.Helper()
	client := &Client{jvm: j, name: fresh("c")}
	thread := client.Thread(tb)
	client.id = thread.Start("open", c.args(client.name)).OK().Value
	tb.Cleanup(func() { thread.Start("close", Args{"client": client.name}).Answer() })
	return client
}

// Jar is the name of the file that the process has Redisson from.
func (j *JVM) Jar(tb testing.TB) string {
	tb.Helper()
	return j.send(tb, fresh("t"), "jar", nil).OK().Value
}

// ID is the client's id, with which the fields of its holders begin.
func (c *Client) ID() string { return c.id }

// Name is what requests call the client.
func (c *Client) Name() string { return c.name }

// Thread is one thread of a process: one holder, of whatever client it is told to use.
type Thread struct {
	tb     testing.TB
	client *Client
	name   string
}

// Thread starts a thread that ends with the test.
func (c *Client) Thread(tb testing.TB) *Thread {
	t := &Thread{tb: tb, client: c, name: fresh("t")}
	tb.Cleanup(func() { c.jvm.send(tb, t.name, "end", nil) })
	return t
}

// Start has the thread do something, after what it does already. See Verbs.java for what there
// is: "lock.unlock", say.
func (t *Thread) Start(verb string, args Args) *Call {
	t.tb.Helper()
	if _, given := args["client"]; !given {
		all := Args{"client": t.client.name}
		maps.Copy(all, args)
		args = all
	}
	return t.client.jvm.send(t.tb, t.name, verb, args)
}

// Interrupt interrupts what the thread waits in.
func (t *Thread) Interrupt() {
	t.tb.Helper()
	t.client.jvm.send(t.tb, t.name, "interrupt", nil).Answer() // an error says that the process has ended
}

// Field is the thread's field as a holder.
func (t *Thread) Field() string {
	t.tb.Helper()
	return t.Start("field", nil).OK().Value
}

// Kind is a kind of lock, as the Java program calls it.
type Kind string

// The kinds of lock that are an RLock.
const (
	Lock    Kind = "lock"
	Fair    Kind = "fair"
	Fenced  Kind = "fenced"
	Spin    Kind = "spin"
	Read    Kind = "read"
	Write   Kind = "write"
	Multi   Kind = "multi"
	Redlock Kind = "redlock"
)

// Held is a lock in the hands of one thread: its methods are carried out by that thread.
type Held struct {
	thread *Thread
	args   Args
}

// Lock is a lock for this thread. Only [Multi] has several names.
func (t *Thread) Lock(kind Kind, names ...string) Held {
	return Held{thread: t, args: Args{"kind": string(kind), "names": List(names...)}}
}

// Redlock is a lock of one name over several clients, this thread's own not included.
func (t *Thread) Redlock(name string, clients ...*Client) Held {
	servers := make([]string, len(clients))
	for i, c := range clients {
		servers[i] = c.name
	}
	return Held{thread: t, args: Args{"kind": string(Redlock), "names": List(name), "client": List(servers...)}}
}

// Start has the thread call a method of the lock; the options are names and values of arguments.
func (h Held) Start(method string, options ...string) *Call {
	h.thread.tb.Helper()
	if len(options)%2 != 0 {
		panic(fmt.Sprintf("interop: %s: an option without a value in %q", method, options))
	}
	args := maps.Clone(h.args)
	for i := 0; i < len(options); i += 2 {
		args[options[i]] = options[i+1]
	}
	return h.thread.Start("lock."+method, args)
}

// Lock takes the lock with a watchdog, however long it takes.
func (h Held) Lock() *Call { return h.Start("lock") }

// LockFor takes the lock for a fixed lease.
func (h Held) LockFor(lease time.Duration) *Call { return h.Start("lock", "lease", Millis(lease)) }

// TryOnce is tryLock() without arguments: a single attempt.
func (h Held) TryOnce() *Call { return h.Start("tryLock") }

// Try waits for the lock, and takes it with a watchdog.
func (h Held) Try(wait time.Duration) *Call { return h.Start("tryLock", "wait", Millis(wait)) }

// TryFor waits for the lock, and takes it for a fixed lease.
func (h Held) TryFor(wait, lease time.Duration) *Call {
	return h.Start("tryLock", "wait", Millis(wait), "lease", Millis(lease))
}

// Unlock frees the lock.
func (h Held) Unlock() *Call { return h.Start("unlock") }

// ForceUnlock frees the lock whoever holds it.
func (h Held) ForceUnlock() *Call { return h.Start("forceUnlock") }

// IsHeld asks whether the thread holds the lock.
func (h Held) IsHeld() *Call { return h.Start("isHeld") }

// HoldCount asks how often the thread holds the lock.
func (h Held) HoldCount() *Call { return h.Start("holdCount") }
