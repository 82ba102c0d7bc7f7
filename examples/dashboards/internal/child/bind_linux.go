package child

import "syscall"

// attributes have the kernel kill the program when the thread that starts it ends. Threads of Go end
// with the process, unless a goroutine that is locked to one returns, and none here is.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
