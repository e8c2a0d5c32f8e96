// Package planted lists bugs for the simulated world to find: each one small
// wrong line of the library, as a person might write it. A world is worth what it
// finds, so every one of them has to be found, and `make planted` shows it.
//
// The bugs are data. The library knows nothing of them: Overlay writes the
// mutated copy of one file beside the list that `go build -overlay` takes.
package planted

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

// Bug is one wrong line.
type Bug struct {
	ID   string
	File string // from the module's root
	Old  string // as it is there, exactly once
	New  string // instead of it
	What string // what that does, in the words of the table
	// Store is what the world keeps everything in: "memory", or "sqlite" for bugs
	// of that store. "" = memory.
	Store string
	// Package and Test name the test that finds the bug where no world can: a package
	// from the module's root, and what -run takes. Both empty = a world finds it.
	Package, Test string
	// Ends says that the bug ends the program of the test by a panic, which is how the
	// test finds it.
	Ends bool
}

// Edit is the bug as a change of the text of its file. The error says so where Old is
// not there exactly once: the library has moved on, and the bug must follow.
func (b *Bug) Edit(root string) (text []byte, e overlay.Edit, err error) {
	text, err = os.ReadFile(filepath.Join(root, filepath.FromSlash(b.File))) //nolint:gosec // a file of this module
	if err != nil {
		return nil, e, fmt.Errorf("planted: %s: %w", b.ID, err)
	}
	if n := strings.Count(string(text), b.Old); n != 1 || b.Old == b.New {
		return nil, e, fmt.Errorf("planted: %s: what it replaces is %d times in %s, should be once: follow the code, or plant another bug", b.ID, n, b.File)
	}
	at := strings.Index(string(text), b.Old)
	return text, overlay.Edit{ID: b.ID, File: b.File, At: at, End: at + len(b.Old), New: b.New}, nil
}

// Mutate is the file with the bug in it. Its error is that of Edit.
func (b *Bug) Mutate(root string) ([]byte, error) {
	text, e, err := b.Edit(root)
	if err != nil {
		return nil, err
	}
	return e.Apply(text), nil
}

// Overlay plants the bug for the go command: it writes the mutated file into dir
// and returns the path of what -overlay wants. root is absolute.
func (b *Bug) Overlay(root, dir string) (string, error) {
	mutated, err := b.Mutate(root)
	if err != nil {
		return "", err
	}
	return overlay.Write(root, dir, map[string][]byte{b.File: mutated})
}

// All lists every bug: those for the worlds by package, the omissions, then the removals.
func All() []Bug {
	return slices.Concat(ledgerBugs, storageBugs, incomingBugs, outgoingBugs, paymentBugs, withdrawalBugs, walletBugs, webhookBugs, houseBugs, Omissions(), Removals())
}

// Omissions are lines that are missing, see docs/evidence/omissions.md. Each names the test that
// finds it, or none where a world does.
func Omissions() []Bug {
	return slices.Concat(clientOmissions, doorOmissions, incomingOmissions, outgoingOmissions, paymentOmissions, rootOmissions, storageOmissions, treasuryOmissions, walletOmissions, webhookOmissions, withdrawalOmissions)
}

// Removals are defences taken out: each one for the test that it names. Their ids
// are those of docs/evidence/faults.md that begin with F.
func Removals() []Bug {
	return slices.Concat(peerRemovals, clientRemovals, etherRemovals, treasuryRemovals, configRemovals, doorRemovals, readRemovals, interfaceRemovals, solanaRemovals, caseRemovals, nodeRemovals, signerRemovals, haltRemovals, mergeRemovals)
}
