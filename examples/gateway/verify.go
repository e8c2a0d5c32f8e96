package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
)

const (
	verifyFirst  = 3 * time.Minute  // after the start: a start is not slowed
	verifyAgain  = 10 * time.Minute // after a look that failed or found something, and then twice as long each time, up to verifySlow
	verifySlow   = time.Hour
	verifyEvery  = "24h"
	verifyLeast  = time.Minute // between two looks: each reads the whole store
	verifyLogged = 5           // findings that a line of the log names
)

func (s *settings) readVerify(v string) (err error) {
	if v == "off" {
		return nil
	}
	if s.verify, err = time.ParseDuration(v); err != nil || s.verify < verifyLeast {
		return fmt.Errorf("CRYPTOPAY_VERIFY must be off, or at least 1m, such as %s", verifyEvery)
	}
	return nil
}

// verify proves the books again and again until ctx ends, so that the figures of this process say
// what it found. A look that finds something is followed by another soon: what moved during the
// first is gone then, and what is wrong is not.
func (g *gateway) verify(ctx context.Context) {
	if g.s.verify == 0 {
		return
	}
	var before map[string]bool
	again := verifyAgain
	for wait := min(verifyFirst, g.s.verify); g.world.clock.Wait(ctx, wait) == nil; {
		found, err := g.look(ctx, before)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			g.log.ErrorContext(ctx, "books_not_verified", "error", err)
		} else {
			before = found
		}
		if err == nil && len(found) == 0 {
			wait, again = g.s.verify, verifyAgain
			continue
		}
		wait, again = min(again, g.s.verify), min(2*again, verifySlow)
	}
}

// look proves the books once, and logs what is wrong. It returns all that it found; before is
// what the last look has found.
func (g *gateway) look(ctx context.Context, before map[string]bool) (found map[string]bool, err error) {
	defer func() {
		if p := recover(); p != nil { // all other work goes on
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	reports, err := g.app.Verify(ctx)
	if err != nil {
		return nil, err
	}
	found = map[string]bool{}
	for i := range reports {
		r := &reports[i]
		if r.Sound() {
			continue
		}
		of, twice := faults(r), false
		for _, f := range of {
			key := r.Tenant + " " + f
			found[key] = true
			twice = twice || before[key]
		}
		args := []any{"tenant", r.Tenant, "findings", len(of), "first", of[:min(len(of), verifyLogged)]}
		if twice {
			g.log.ErrorContext(ctx, "books_wrong", args...)
		} else {
			g.log.WarnContext(ctx, "books_doubted", args...)
		}
	}
	return found, nil
}

// faults names all that a report has found, with differences and without sums: those of what
// is wrong stay the same while money moves. Ids are no secrets; what a row that cannot be read
// holds may be one, and is left out.
func faults(r *cryptopay.Report) []string {
	found := map[string]bool{}
	add := func(format string, args ...any) {
		found[strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")] = true
	}
	for _, f := range r.Ledger.Findings {
		add("ledger %s %s %s %s", f.Fault, f.Account, f.Asset, f.Tx)
	}
	for _, h := range r.Holds {
		add("hold %s %s %d", h.Account, h.Asset, h.Held-h.Owed)
	}
	for _, u := range r.Unexplained {
		add("%s %s %d", u.Kind, u.ID, u.Posted-u.Stated)
	}
	for _, c := range r.Contradictions {
		add("%s %s", c.Kind, c.ID)
	}
	for _, m := range r.Gas {
		add("gas %s %d", m.Asset, m.Reserved-m.Owed)
	}
	for _, d := range r.Counters {
		add("counter %s %d", d.Counter, d.Have-d.Want)
	}
	for _, f := range r.Seals.Findings {
		add("seal %s %d %s %s", f.Fault, f.Seal, f.Account, f.Asset)
	}
	for _, u := range r.Unreadable {
		add("row %s %s", u.Table, u.ID)
	}
	return slices.Sorted(maps.Keys(found))
}
