package interop

import (
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Config configures the connection of a Redisson client. Mode and Addrs are required.
type Config struct {
	Mode   string   // "single", "cluster" or "sentinel"
	Addrs  []string // host:port of the server, of nodes, or of Sentinels
	Master string   // name of the master, in mode "sentinel"

	Watchdog time.Duration // lockWatchdogTimeout
	FairWait time.Duration // fairLockWaitTimeout; since 3.46
	Timeout  time.Duration // limits the time of a reply
	Retries  string        // retryAttempts, a number
	Prefix   string        // prefix of a name mapper
	Sharded  string        // shardedSubscriptionMode: "AUTO", "ON" or "OFF"; since 3.29
	Database string        // database of a Cluster of Valkey 9, a number; since 4.0

	Strings bool // the client has StringCodec instead of the default codec

	// Usual gives a client of a single server Redisson's default numbers of threads and connections. Otherwise
	// they are small, so that the client starts quickly.
	Usual bool
}

func (c Config) args(client string) Args {
	args := Args{"client": client, "mode": c.Mode, "addrs": List(c.Addrs...)}
	for name, value := range map[string]string{
		"master": c.Master, "retries": c.Retries, "prefix": c.Prefix, "sharded": c.Sharded,
		"database": c.Database,
	} {
		if value != "" {
			args[name] = Text(value)
		}
	}
	if c.Usual {
		args["usual"] = "true"
	}
	if c.Strings {
		args["strings"] = "true"
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

// names numbers clients and threads, for requests.
var names atomic.Int64

func fresh(prefix string) string { return prefix + strconv.FormatInt(names.Add(1), 10) }

// Client is a Redisson client in a [JVM]. It is closed at the end of the test that opened it, or with the
// process.
type Client struct {
	jvm  *JVM
	name string
	id   string
}

// Open opens a client. It returns when the client is connected.
func (j *JVM) Open(tb testing.TB, c Config) *Client {
	tb.Helper()
	client := &Client{jvm: j, name: fresh("c")}
	thread := client.Thread(tb)
	client.id = thread.Start("open", c.args(client.name)).OK().Value
	tb.Cleanup(func() { thread.Start("close", Args{"client": client.name}).Answer() })
	return client
}

// Jar returns the name of the file from which the process loaded Redisson.
func (j *JVM) Jar(tb testing.TB) string {
	tb.Helper()
	return j.send(tb, fresh("t"), "jar", nil).OK().Value
}

// ID returns the id of the client, which is the prefix of its holder fields.
func (c *Client) ID() string { return c.id }

// Name returns the name of the client in requests.
func (c *Client) Name() string { return c.name }

// Thread is a thread of a process. It is one holder for each client that it uses.
type Thread struct {
	tb     testing.TB
	client *Client
	name   string
}

// Thread starts a thread that stops at the end of the test.
func (c *Client) Thread(tb testing.TB) *Thread {
	t := &Thread{tb: tb, client: c, name: fresh("t")}
	tb.Cleanup(func() { c.jvm.send(tb, t.name, "end", nil) })
	return t
}

// Sleeps reports whether a thread of the process that waits for the lock with this key sleeps until a message or the end of
// a lease.
func (c *Client) Sleeps(tb testing.TB, key string) bool {
	tb.Helper()
	return c.jvm.send(tb, c.name, "sleeps", Args{"key": Text(key)}).True()
}

// Start sends the thread a request, which it executes after its earlier ones. See Verbs.java for the verbs, such
// as "lock.unlock".
func (t *Thread) Start(verb string, args Args) *Call {
	t.tb.Helper()
	if _, given := args["client"]; !given {
		all := Args{"client": t.client.name}
		maps.Copy(all, args)
		args = all
	}
	return t.client.jvm.send(t.tb, t.name, verb, args)
}

// Interrupt interrupts a waiting thread.
func (t *Thread) Interrupt() {
	t.tb.Helper()
	t.client.jvm.send(t.tb, t.name, "interrupt", nil).Answer() // an error means that the process exited
}

// Field returns the field of the thread as a holder.
func (t *Thread) Field() string {
	t.tb.Helper()
	return t.Start("field", nil).OK().Value
}

// Kind is the name of a kind of lock in the Java program.
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

	NonReentrant     Kind = "nonreentrant"     // since 4.4
	NonReentrantFair Kind = "nonreentrantfair" // since 4.4

	Group Kind = "group" // since 3.38
)

// Held is a lock for one thread, which executes its methods.
type Held struct {
	thread *Thread
	args   Args
}

// Lock returns a lock for this thread. Only [Multi] has several names. The names of a [Group] are the group and its
// values.
func (t *Thread) Lock(kind Kind, names ...string) Held {
	return Held{thread: t, args: Args{"kind": string(kind), "names": List(names...)}}
}

// Redlock returns a lock of one name over several clients. The client of the thread is not included.
func (t *Thread) Redlock(name string, clients ...*Client) Held {
	servers := make([]string, len(clients))
	for i, c := range clients {
		servers[i] = c.name
	}
	return Held{thread: t, args: Args{"kind": string(Redlock), "names": List(name), "client": List(servers...)}}
}

// Start lets the thread call a method of the lock. options are names and values of arguments.
func (h Held) Start(method string, options ...string) *Call {
	h.thread.tb.Helper()
	if len(options)%2 != 0 {
		panic(fmt.Sprintf("interop: %s: %q has an option without a value", method, options))
	}
	args := maps.Clone(h.args)
	for i := 0; i < len(options); i += 2 {
		args[options[i]] = options[i+1]
	}
	return h.thread.Start("lock."+method, args)
}

// Lock acquires the lock with a watchdog. It waits without a limit.
func (h Held) Lock() *Call { return h.Start("lock") }

// LockFor acquires the lock with a fixed lease.
func (h Held) LockFor(lease time.Duration) *Call { return h.Start("lock", "lease", Millis(lease)) }

// TryOnce calls tryLock() without arguments, which makes a single attempt.
func (h Held) TryOnce() *Call { return h.Start("tryLock") }

// Try waits for the lock and acquires it with a watchdog.
func (h Held) Try(wait time.Duration) *Call { return h.Start("tryLock", "wait", Millis(wait)) }

// TryFor waits for the lock and acquires it with a fixed lease.
func (h Held) TryFor(wait, lease time.Duration) *Call {
	return h.Start("tryLock", "wait", Millis(wait), "lease", Millis(lease))
}

// Unlock releases the lock.
func (h Held) Unlock() *Call { return h.Start("unlock") }

// ForceUnlock releases the lock of any holder.
func (h Held) ForceUnlock() *Call { return h.Start("forceUnlock") }

// IsHeld returns whether the thread holds the lock.
func (h Held) IsHeld() *Call { return h.Start("isHeld") }

// HoldCount returns the hold count of the thread.
func (h Held) HoldCount() *Call { return h.Start("holdCount") }
