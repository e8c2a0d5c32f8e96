//go:build unix

// Package cputime says what a process has used of its processors. Benchmarks report it
// beside the time that passed, which other work on the machine moves more.
package cputime

import (
	"syscall"
	"time"
)

// Used is what this process has used so far.
func Used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
