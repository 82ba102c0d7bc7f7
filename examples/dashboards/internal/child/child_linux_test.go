package child_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/dashboards/internal/child"
)

// parent is set in the process that the test kills.
const parent = "INTERLOCK_TEST_PARENT"

// On Linux a program ends when the process that started it ends, even if that process is killed.
func TestCommand_EndsWithParent(t *testing.T) {
	if os.Getenv(parent) != "" {
		startAndHang(t)
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCommand_EndsWithParent$")
	cmd.Env = append(os.Environ(), parent+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Fatal("the program does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the error reports the kill
	for alive(pid) {
		time.Sleep(10 * time.Millisecond) // between two polls
	}
}

// startAndHang runs in the process that is killed: it starts a program and prints its process id.
func startAndHang(t *testing.T) {
	cmd := child.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Println(cmd.Process.Pid)
	_ = cmd.Wait()
}

// alive reports whether the process runs. A process that has ended but was not waited for has the state Z.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(state, []byte("Z"))
}
