package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// JVM is a process of the Java program. It starts with [StartJVM], may be stopped and continued, and ends with
// [JVM.Kill], or with the test at the latest. Its methods end the test if they fail, so call them from the
// goroutine of the test.
type JVM struct {
	tb     testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	errors *tail
	exited chan struct{} // closed when the process has been waited for

	mu      sync.Mutex
	last    int              // id of the last request
	pending map[string]*Call // by id of the request; nil after the process has ended
}

// StartJVM starts a process with the class path of [Build], a small heap and the fast compiler, because several
// processes share the machine.
func StartJVM(tb testing.TB, classPath string) *JVM {
	tb.Helper()
	return startJVM(tb, classPath, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
}

// StartFastJVM starts a process with the defaults of Java, which is faster after a warm-up.
func StartFastJVM(tb testing.TB, classPath string) *JVM {
	tb.Helper()
	return startJVM(tb, classPath)
}

func startJVM(tb testing.TB, classPath string, flags ...string) *JVM {
	tb.Helper()
	args := slices.Concat(flags, []string{"-cp", classPath, "interop.Main"})
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), "java", args...)
	j := &JVM{tb: tb, cmd: cmd, errors: &tail{}, exited: make(chan struct{}), pending: make(map[string]*Call)}
	cmd.Stderr = j.errors
	endWithParent(cmd)
	in, err := cmd.StdinPipe()
	j.must(err)
	out, err := cmd.StdoutPipe()
	j.must(err)
	j.in = in
	j.must(cmd.Start())
	go j.receive(out) // ends with the process; Kill waits for it
	tb.Cleanup(j.Kill)
	return j
}

// longestAnswer limits the length of an answer. The longest is the answer of a load: see Load.java.
const longestAnswer = 1 << 20

func (j *JVM) must(err error) {
	j.tb.Helper()
	if err != nil {
		j.tb.Fatalf("interop: java: %v", err)
	}
}

// receive passes answers to their calls until the process ends.
func (j *JVM) receive(out io.Reader) {
	defer close(j.exited)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestAnswer)
	for lines.Scan() {
		id, answer, err := parseAnswer(lines.Text())
		if err != nil {
			answer = Answer{Err: err}
		}
		j.settle(id, answer)
	}
	_ = j.cmd.Wait() // it was killed, or its input has ended
	for _, call := range j.forgetAll() {
		call.settle(Answer{Err: fmt.Errorf("the process has ended: %s", j.errors)})
	}
}

func (j *JVM) settle(id string, answer Answer) {
	j.mu.Lock()
	call := j.pending[id]
	delete(j.pending, id)
	j.mu.Unlock()
	if call != nil {
		call.settle(answer)
	}
}

func (j *JVM) forgetAll() map[string]*Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := j.pending
	j.pending = nil
	return all
}

// send writes a request. The call gets its answer.
func (j *JVM) send(tb testing.TB, thread, verb string, args Args) *Call {
	call := &Call{tb: tb, what: thread + " " + verb + args.String(), done: make(chan struct{})}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending == nil {
		call.settle(Answer{Err: fmt.Errorf("the process has ended: %s", j.errors)})
		return call
	}
	j.last++
	id := strconv.Itoa(j.last)
	j.pending[id] = call
	// Under the mutex, so that lines do not mix. If it fails, the process has ended, and receive reports it.
	fmt.Fprintf(j.in, "%s %s\n", id, call.what)
	return call
}

// Kill ends the process at once (SIGKILL), even if it is stopped, and waits for it. Pending requests are answered
// with an error.
func (j *JVM) Kill() {
	_ = j.cmd.Process.Kill()
	<-j.exited
}

// Stop suspends the process (SIGSTOP).
func (j *JVM) Stop() {
	j.tb.Helper()
	j.must(j.cmd.Process.Signal(syscall.SIGSTOP))
}

// Continue resumes a stopped process (SIGCONT).
func (j *JVM) Continue() {
	j.tb.Helper()
	j.must(j.cmd.Process.Signal(syscall.SIGCONT))
}

// tail keeps the end of the written text.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-4096):])
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
