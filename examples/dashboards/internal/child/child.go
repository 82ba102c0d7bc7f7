// Package child makes the programs that the example starts end with it, and not before: a terminal
// sends Ctrl-C to all processes of a group, and Redis has to outlive the pods that use it.
package child

import "os/exec"

// Command is [exec.Command] for a program in a group of its own, out of reach of Ctrl-C, that ends
// when this process does: on Linux whatever ends it, elsewhere only if it is told to end, and not if
// it is killed. Outside of Unix it ends with Ctrl-C, too.
func Command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = attributes()
	return cmd
}
