//go:build planted

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"github.com/cryptopay-go/cryptopay/simulation"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// seeds are the ones to begin at: as many tries for each bug.
var seeds = []uint64{1, 10_001, 20_001}

// caught is the first world from one of the first seeds that broke a promise.
type caught struct {
	Worlds    int // played, with this one; 0 = none of them broke one
	Seed      uint64
	Invariant string
	What      string
}

// played plays worlds from each first seed until one fails.
func played(ctx context.Context) error {
	seeds := seeds[:min(len(seeds), *tries)]
	out := make([]caught, len(seeds))
	var all sync.WaitGroup
	for i, from := range seeds {
		all.Go(func() { out[i] = until(ctx, from) })
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(out)
}

func until(ctx context.Context, from uint64) caught {
	for n := range *limit {
		seed := from + uint64(n)
		failure, err := one(ctx, seed)
		switch {
		case err != nil:
			return caught{n + 1, seed, setup, err.Error()}
		case failure != nil:
			return caught{n + 1, seed, failure.Invariant, failure.What}
		}
	}
	return caught{}
}

// setup stands for the promise where it is this program that failed.
const setup = "setup"

func one(ctx context.Context, seed uint64) (*simulation.Failure, error) {
	w := simulation.World{Seed: seed}
	if *play == "sqlite" {
		dir, err := os.MkdirTemp(fast(), "planted")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
		w.Store = func() (storage.Store, error) { return open(ctx, filepath.Join(dir, "world.db")) }
	}
	return w.Run(ctx).Failure, nil
}

func open(ctx context.Context, file string) (storage.Store, error) {
	if err := sqlite.Migrate(ctx, file, simulation.Tables()...); err != nil {
		return nil, err
	}
	return sqlite.Open(file, sqlite.Options{})
}

// fast is a directory in memory, where there is one: these files need not last.
func fast() string {
	if s, err := os.Stat("/dev/shm"); err == nil && s.IsDir() {
		return "/dev/shm"
	}
	return ""
}
