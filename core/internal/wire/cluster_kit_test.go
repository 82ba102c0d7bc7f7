package wire_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/interlock-go/interlock/core/internal/mempipe"
	"github.com/interlock-go/interlock/core/internal/wire"
	"github.com/interlock-go/interlock/core/redistest"
)

// dialNode makes a connection to a node.
type dialNode func(ctx context.Context) (net.Conn, error)

// board is a Cluster in memory for a synctest bubble. Its nodes do not know each other; only the client gets
// the slots.
type board struct {
	client *redis.ClusterClient

	mu    sync.Mutex
	nodes map[string]dialNode
	slots []redis.ClusterSlot
}

// newBoard returns a board whose first node has all slots.
func newBoard(t *testing.T, nodes map[string]dialNode, opts ...func(o *redis.ClusterOptions)) *board {
	t.Helper()
	b := &board{nodes: nodes}
	o := &redis.ClusterOptions{
		Addrs:      []string{"10.0.0.9:6379"},
		MaxRetries: -1,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.slots, nil
		},
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			dial, known := b.nodes[addr]
			if !known {
				return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("no node has the address %s", addr)}
			}
			return dial(ctx)
		},
	}
	for _, opt := range opts {
		opt(o)
	}
	b.client = redis.NewClusterClient(o)
	t.Cleanup(func() {
		_ = b.client.Close()
		time.Sleep(time.Second) // virtual time: the goroutine that loads the slots ends by itself
	})
	return b
}

// give gives all slots to one node. The client notices when it reads the slots.
func (b *board) give(addr string) {
	b.slotsAre(redis.ClusterSlot{End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}})
}

// moveTo gives all slots to one node and makes the client read them.
func (b *board) moveTo(addr string) {
	b.give(addr)
	b.learn()
}

// learn makes the client read the slots. It asks twice, because go-redis ignores a request while it already
// reads the slots.
func (b *board) learn() {
	for range 2 {
		b.client.ReloadState(context.Background())
		time.Sleep(time.Second) // virtual time
	}
}

func (b *board) slotsAre(slots ...redis.ClusterSlot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slots = slots
}

// storeOfCluster returns a Redis with a timeout of a second. The caller closes it.
func storeOfCluster(t *testing.T, cluster *board) *bench {
	t.Helper()
	s, err := wire.New(cluster.client, wire.Config{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Redis: s, t: t}
}

// embedded returns a node that is an embedded Redis.
func embedded(t *testing.T) dialNode {
	t.Helper()
	o := redistest.New(t).Client().Options()
	return func(ctx context.Context) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) }
}

// answering returns a node that answers every script with one line.
func answering(line string) dialNode {
	return func(context.Context) (net.Conn, error) {
		near, far := mempipe.New()
		go answerScripts(far, line)
		return near, nil
	}
}

// answerScripts answers scripts with one line.
func answerScripts(conn net.Conn, line string) {
	answerAll(conn, func(verb string) string {
		switch verb {
		case "evalsha", "eval":
			return line + "\r\n"
		case "hello":
			return "-ERR unknown command\r\n"
		default:
			return "+OK\r\n"
		}
	})
}

// answerAll answers the commands of a client until the client closes the connection. If answer returns "",
// the command gets no answer.
func answerAll(conn net.Conn, answer func(verb string) string) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		verb, err := readVerb(in)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer(verb)); err != nil {
			return
		}
	}
}

// readVerb reads a command and returns its name.
func readVerb(in *bufio.Reader) (verb string, err error) {
	var n int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return "", err
	}
	for i := range n {
		var size int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return "", err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(in, arg); err != nil {
			return "", err
		}
		if i == 0 {
			verb = strings.ToLower(string(arg[:size]))
		}
	}
	return verb, nil
}
