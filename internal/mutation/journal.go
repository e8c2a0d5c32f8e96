package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// journal keeps what became of each mutant of a package in a file. A run that was
// stopped goes on from there.
type journal struct {
	file    *os.File // nil = what happens is kept nowhere
	entries map[string]entry
}

// header is the first line of the file: what the entries below it are true of.
type header struct {
	Package string
	Source  string // a hash of the package's files; its tests are no part of it
}

// entry is a line of the file. Of two that name one mutant the later one holds.
type entry struct {
	Mutant  string // its identity
	Verdict verdict
	By      string  `json:",omitempty"` // the test that killed it
	Commit  string  // at which the tests ran
	Seconds float64 // that they took
	Brief   bool    `json:",omitempty"` // it survived, and some tests were left out
}

type verdict string

const (
	killed     verdict = "killed"
	survives   verdict = "survives"
	uncompiled verdict = "does not compile"
)

// resume opens the journal of a package, or begins one. It returns an error where the
// package changed since the journal was begun.
func resume(name string, s *source, dir string) (*journal, error) {
	j := &journal{entries: map[string]entry{}}
	if name == "" {
		return j, nil
	}
	old, err := os.ReadFile(name) //nolint:gosec // the person who runs the tool names it
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	now := header{dir, fmt.Sprintf("%x", sha256.Sum256(bytes.Join(s.texts, []byte{0})))}
	lines := json.NewDecoder(bytes.NewReader(old))
	var was header
	if err := lines.Decode(&was); err == nil && was != now {
		return nil, fmt.Errorf("mutation: %s is not of this package, or the package changed: remove the file", name)
	}
	good := lines.InputOffset() // what follows was cut off in the middle of a line
	for {
		var e entry
		if err := lines.Decode(&e); err != nil {
			break
		}
		j.entries[e.Mutant], good = e, lines.InputOffset()
	}
	if j.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil { //nolint:gosec // the same
		return nil, err
	}
	if err := j.file.Truncate(good); err != nil {
		return nil, err
	}
	if _, err := j.file.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	if good == 0 {
		return j, j.line(now)
	}
	_, err = j.file.WriteString("\n")
	return j, err
}

// add keeps what became of a mutant.
func (j *journal) add(e entry) error {
	j.entries[e.Mutant] = e
	if j.file == nil {
		return nil
	}
	return j.line(e)
}

func (j *journal) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(b, '\n'))
	return err
}

func (j *journal) close() {
	if j.file != nil {
		_ = j.file.Close() // each line was written when it was made
	}
}
