//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// group runs a command in a group of its own, and returns what ends all that is left
// of the group: a test that dies leaves the servers that it started.
func group(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end = func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	cmd.Cancel = func() error {
		end()
		return nil
	}
	return end
}
