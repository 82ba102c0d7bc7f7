package child

import "syscall"

// attributes returns attributes with which the kernel kills the program when the thread that starts it exits. Go threads
// exit with the process, unless a goroutine that is locked to its thread returns; no goroutine of this program is locked.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
