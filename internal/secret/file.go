package secret

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// ReadFile reads a file that holds a secret. It refuses one that others than its owner can
// read or write; os.ErrNotExist where there is none. Windows has no such modes.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has mode %04o, so others can read it: chmod 600 it", filepath.Base(name), mode)
	}
	return os.ReadFile(name) //nolint:gosec // named by the operator
}
