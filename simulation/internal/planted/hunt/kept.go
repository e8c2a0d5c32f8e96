//go:build planted

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// kept is what hunts of one program found so far, a line of JSON for each bug: a hunt takes
// hours, and one that was stopped goes on.
type kept struct {
	file    string
	program string // its SHA-256
	worlds  map[string][]caught
}

type keptLine struct {
	Program string   `json:"program"`
	Bug     string   `json:"bug"`
	Worlds  []caught `json:"worlds"`
}

// load reads what a file has of this program. No file keeps nothing.
func load(file, program string) (*kept, error) {
	k := &kept{file: file, worlds: map[string][]caught{}}
	if file == "" {
		return k, nil
	}
	code, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(code)
	k.program = hex.EncodeToString(sum[:])
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var l keptLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("hunt: %s: %w", file, err)
		}
		if l.Program == k.program {
			k.worlds[l.Bug] = l.Worlds
		}
	}
	return k, nil
}

// add notes what was found of a bug, where hunting it did not fail.
func (k *kept) add(f found, failed error) error {
	if k.file == "" || failed != nil {
		return nil
	}
	line, err := json.Marshal(keptLine{k.program, f.bug.ID, f.worlds})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(k.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return errors.Join(err, out.Close())
}
