package simulation_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/simulation"
)

// TestNemesesStrike: what can be switched on happens, alone and without harm.
func TestNemesesStrike(t *testing.T) {
	t.Parallel()
	for _, n := range simulation.Nemeses() {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			struck := 0
			for seed := uint64(1); seed <= 6 && struck == 0; seed++ {
				r := simulation.World{Seed: seed, Options: simulation.Options{Steps: 120, Nemeses: []simulation.Nemesis{n}}}.Run(t.Context())
				if n != simulation.Forgery && n != simulation.Nonces {
					require.Nil(t, r.Failure, r.Story(40))
				}
				require.Len(t, r.Struck, 1)
				struck += r.Struck[n]
			}
			if n != simulation.Forgery && n != simulation.Nonces { // they change how others strike
				require.Positive(t, struck)
			}
		})
	}
}

// TestShrink cuts a run down in which a host's own check fails to the steps that
// the check is about.
func TestShrink(t *testing.T) {
	t.Parallel()
	w := simulation.World{Seed: 1, Options: simulation.Options{
		Check: func(turn *simulation.Turn) error {
			_, _, total, err := turn.App.Payments.List(t.Context(), turn.Tenant, payment.Filter{})
			if err == nil && total > 1 {
				return errors.New("two payments are too many")
			}
			return nil
		},
	}}
	failed := w.Run(t.Context())
	for failed.Failure == nil && w.Seed < 20 {
		w.Seed++
		failed = w.Run(t.Context())
	}
	require.NotNil(t, failed.Failure)
	least := w.Shrink(t.Context(), failed)
	require.Equal(t, "check", least.Failure.Invariant)
	require.Empty(t, least.Struck)
	kept := least.World.Steps - len(least.World.Skip)
	require.LessOrEqual(t, kept, 4, least.Story(0))
	require.Contains(t, least.Story(0), "-world.nemeses=none")

	again := simulation.World{Seed: w.Seed, Options: least.World.Options}.Run(t.Context())
	require.Equal(t, least.Hash, again.Hash)
}

// TestFlags: what a story says replays the same world.
func TestFlags(t *testing.T) {
	t.Parallel()
	w := simulation.World{Seed: 9, Options: simulation.Options{Steps: 40, Skip: map[int]bool{0: true, 1: true, 2: true, 7: true}}}
	require.Equal(t, "-world.seed=9 -world.steps=40 -world.skip=0-2,7", w.Flags())
	held := simulation.World{Seed: 9, Options: simulation.Options{Open: []string{"six", "I25"}}}
	require.Equal(t, "-world.seed=9 -world.open=six,I25", held.Flags())
	skip, err := simulation.ParseSkip("0-2,7")
	require.NoError(t, err)
	require.Equal(t, w.Skip, skip)
	_, err = simulation.ParseSkip("x")
	require.Error(t, err)
}

// TestActor: a host's own part is played, and its faults are found.
func TestActor(t *testing.T) {
	t.Parallel()
	played := 0
	w := simulation.World{Seed: 3, Options: simulation.Options{Nemeses: []simulation.Nemesis{}, Actors: []simulation.Actor{{
		Name: "host", Weight: 30, Act: func(*simulation.Turn) (string, error) {
			played++
			return fmt.Sprint("turn ", played), nil
		},
	}}}}
	require.Nil(t, w.Run(t.Context()).Failure)
	require.Positive(t, played)
	w.Actors[0].Act = func(*simulation.Turn) (string, error) { return "", errors.New("the host's own fault") }
	r := w.Run(t.Context())
	require.NotNil(t, r.Failure)
	require.Contains(t, r.Failure.What, "the host's own fault")
}
