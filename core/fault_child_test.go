package core_test

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

// roles are what this test binary does as a child process.
var roles = map[string]func(c childSide) error{
	"holder":  holderRole,
	"caller":  callerRole,
	"leaker":  leakerRole,
	"crowd":   crowdRole,
	"sleeper": sleeperRole,
}

const (
	roleEnv  = "INTERLOCK_TEST_ROLE"
	redisEnv = "INTERLOCK_TEST_REDIS"
)

// TestFaultChild is not a test but the body of a child process of one. In the parent
// it has nothing to do.
func TestFaultChild(t *testing.T) { //nolint:paralleltest // it is another process
	name := os.Getenv(roleEnv)
	if name == "" {
		return
	}
	role, ok := roles[name]
	if !ok {
		t.Fatalf("no role %q", name)
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(redisEnv)})
	defer rdb.Close()
	c := childSide{t: t, rdb: rdb, ctx: t.Context(), in: bufio.NewScanner(os.Stdin)}
	must(t, role(c))
}

// childSide is what a role has to work with.
type childSide struct {
	t   *testing.T
	rdb *redis.Client
	ctx context.Context //nolint:containedctx // of the test
	in  *bufio.Scanner
}

// tell sends a line to the parent.
func (c childSide) tellf(format string, args ...any) {
	fmt.Printf(told+format+"\n", args...)
}

// told begins the lines that are for the parent: others are of the testing package.
const told = "child: "

// wait blocks until the parent sends a line.
func (c childSide) wait() {
	c.in.Scan()
}

// child is a process that plays a role.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
	all strings.Builder // its output so far
}

// startChild starts this test binary in a role. It ends with the test.
func startChild(t *testing.T, role, redisAddr string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hangs)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFaultChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), roleEnv+"="+role, redisEnv+"="+redisAddr)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return &child{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
}

// says waits for the next line that the child sends.
func (c *child) says() string {
	c.t.Helper()
	for c.out.Scan() {
		line := c.out.Text()
		if text, ok := strings.CutPrefix(line, told); ok {
			return text
		}
		c.all.WriteString(line + "\n")
	}
	c.t.Fatalf("the child has ended:\n%s", c.all.String())
	return ""
}

// hears sends the child a line.
func (c *child) hears(line string) {
	c.t.Helper()
	_, err := fmt.Fprintln(c.in, line)
	must(c.t, err)
}
