package interop

import (
	"os/exec"
	"syscall"
)

// endWithParent lets the kernel kill the process when the test process dies without running its cleanups, for example
// by a test timeout.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
