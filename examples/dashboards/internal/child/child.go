// Package child starts programs that exit together with the example, but not earlier: a terminal sends Ctrl-C to all
// processes of a group, and Redis must outlive the pods that use it.
package child

import "os/exec"

// Command is like [exec.Command] for a program in a separate process group, which Ctrl-C does not reach. On
// Linux, the program always exits with this process. On other systems, it exits only if this process stops
// it, and not if this process is killed. On systems other than Unix, Ctrl-C stops the program, too.
func Command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = attributes()
	return cmd
}
