package child

import "syscall"

// attributes make the kernel kill the program when the thread that starts it ends. Go threads end with the process, unless a
// goroutine that is locked to its thread returns; no goroutine of this program is.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
