package interop

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill the process when the test process dies without running
// its cleanups, such as by a test timeout.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
