//go:build unix

package signerd

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes from the log until this one ends.
func lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil { //nolint:gosec // a descriptor fits
		return errors.New("signerd: another process has the log open")
	}
	return nil
}
