package redisserver

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill the server when the test process dies without running its
// cleanups, for example after a test timeout.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
