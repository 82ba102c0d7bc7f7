//go:build unix

package redisserver

import (
	"os"
	"syscall"
)

// PauseProcess stops a process until [ResumeProcess].
func PauseProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// ResumeProcess continues a process that [PauseProcess] stopped.
func ResumeProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
