// Package child makes the programs that the example starts end with it, and not earlier: a terminal sends Ctrl-C to all
// processes of a group, but Redis must outlive the pods that use it.
package child

import "os/exec"

// Command is [exec.Command] for a program in a separate process group, which Ctrl-C does not reach. The program ends with
// this process: on Linux in every case, on other systems only if this process ends it, and not if this process is
// killed. On systems other than Unix it also ends with Ctrl-C.
func Command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = attributes()
	return cmd
}
