package locktest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	roleEnv  = "INTERLOCK_TEST_ROLE"
	redisEnv = "INTERLOCK_TEST_REDIS"

	// fromChild begins the lines that a child sends to its parent. Package testing writes the other lines.
	fromChild = "child: "
)

// ChildSide is what a role uses in the child process: the server, and the pipes to the parent.
type ChildSide struct {
	T     *testing.T
	Redis *redis.Client
	Ctx   context.Context //nolint:containedctx // of the test
	in    *bufio.Scanner
}

// PlayRole is the body of a child process. A package that calls StartChild has a test TestChild that calls PlayRole with
// the roles of the package. In the parent, PlayRole does nothing.
func PlayRole(t *testing.T, roles map[string]func(c ChildSide) error) {
	t.Helper()
	name := os.Getenv(roleEnv)
	if name == "" {
		return
	}
	role, ok := roles[name]
	if !ok {
		t.Fatalf("role %q does not exist", name)
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(redisEnv)})
	defer rdb.Close()
	Must(t, role(ChildSide{T: t, Redis: rdb, Ctx: t.Context(), in: bufio.NewScanner(os.Stdin)}))
}

// Tellf sends a line to the parent.
func (c ChildSide) Tellf(format string, args ...any) {
	fmt.Printf(fromChild+format+"\n", args...)
}

// Hear waits for the next line of the parent and returns it.
func (c ChildSide) Hear() string {
	c.in.Scan()
	return c.in.Text()
}

// Child is another process that plays a role.
type Child struct {
	Process *os.Process

	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
	all strings.Builder // the other lines of its output so far
}

// StartChild starts the binary of the test in a role. The process ends with the test.
func StartChild(t *testing.T, role, redisAddr string) *Child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), HangTimeout)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), roleEnv+"="+role, redisEnv+"="+redisAddr)
	in, err := cmd.StdinPipe()
	Must(t, err)
	out, err := cmd.StdoutPipe()
	Must(t, err)
	cmd.Stderr = cmd.Stdout
	Must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return &Child{Process: cmd.Process, t: t, in: in, out: bufio.NewScanner(out)}
}

// Hear waits for the next line of the child and returns it.
func (c *Child) Hear() string {
	c.t.Helper()
	for c.out.Scan() {
		line := c.out.Text()
		if text, ok := strings.CutPrefix(line, fromChild); ok {
			return text
		}
		c.all.WriteString(line + "\n")
	}
	c.t.Fatalf("the child has ended:\n%s", c.all.String())
	return ""
}

// Tell sends a line to the child.
func (c *Child) Tell(line string) {
	c.t.Helper()
	_, err := fmt.Fprintln(c.in, line)
	Must(c.t, err)
}
