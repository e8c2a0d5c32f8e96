package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cryptopay-go/cryptopay/simulation"
)

// record is what all runs of one commit came to. docs/evidence/reliability.md tells its
// fields.
type record struct {
	Commit    string         `json:"commit"`
	Next      uint64         `json:"next_seed"`
	Worlds    int64          `json:"worlds"`
	Steps     int64          `json:"steps"`
	Simulated int64          `json:"simulated_seconds"`
	Seconds   int64          `json:"real_seconds"`
	Struck    map[string]int `json:"struck"` // worlds in which a nemesis was on
	Strikes   map[string]int `json:"strikes"`
	Counts    map[string]int `json:"counts"`
	// Promises counts how often each promise was asked, could have failed, and was broken.
	Promises simulation.Promises `json:"promises"`
	Broken   []broken            `json:"broken"`

	running int64 // seconds of this run that are counted already
}

// broken is a promise that a world broke.
type broken struct {
	Seed      uint64 `json:"seed"`
	Invariant string `json:"invariant"`
	What      string `json:"what"`
	Replay    string `json:"replay"`
}

// load reads a record, or begins one. A record of another commit is not added to.
func load(file, commit string) (*record, error) {
	r := &record{Commit: commit, Next: 1, Struck: map[string]int{}, Strikes: map[string]int{}, Counts: map[string]int{}, Promises: simulation.Promises{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("soak: %s is no record: %w", file, err)
	}
	if commit != "" && r.Commit != commit {
		return nil, fmt.Errorf("soak: %s is of commit %q: give another -record for %q", file, r.Commit, commit)
	}
	return r, nil
}

func (r *record) add(w *simulation.Result) {
	r.Worlds++
	r.Steps += int64(w.Steps)
	r.Simulated += int64(w.Simulated.Round(time.Second) / time.Second)
	for n, times := range w.Struck {
		r.Struck[string(n)]++
		r.Strikes[string(n)] += times
	}
	for what, times := range w.Counts {
		r.Counts[what] += times
	}
	r.Promises.Add(w.Promises)
	if f := w.Failure; f != nil {
		r.Broken = append(r.Broken, broken{w.World.Seed, f.Invariant, f.What, w.World.Flags()})
	}
}

func (r *record) days() float64 { return float64(r.Simulated) / (24 * 3600) }

// save replaces the file at once, so that it is whole whenever it is read.
func (r *record) save(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
