//go:build !unix

package storagetest

import "time"

// cpuTime is not measured here.
func cpuTime() time.Duration { return 0 }
