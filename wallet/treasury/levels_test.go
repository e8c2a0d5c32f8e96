package treasury

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// What is given back of two days at once goes to the day that it was counted on.
func TestFT02_DaysAreCountedApart(t *testing.T) {
	t.Parallel()
	day := func(name string, delta, most int64) storage.Level {
		return storage.Level{Name: name, Delta: delta, Max: most}
	}
	var c storage.Change
	require.NoError(t, addLevels(&c, []storage.Level{day("monday", -3, 9)}))
	require.NoError(t, addLevels(&c, []storage.Level{day("tuesday", -4, 9)}))
	require.NoError(t, addLevels(&c, []storage.Level{day("monday", -2, 7), day("tuesday", -1, 11)}))
	require.Equal(t, []storage.Level{day("monday", -5, 7), day("tuesday", -5, 9)}, c.Level)
	require.ErrorIs(t, addLevels(&c, []storage.Level{day("monday", math.MinInt64, 9)}), ledger.ErrOverflow)
}

// What is due again is no error, however the store words it.
func TestFP01_WhatIsDueAgainIsNoError(t *testing.T) {
	t.Parallel()
	for _, err := range []error{storage.ErrConflict, storage.ErrBusy, errLate, errUnsettled} {
		require.NoError(t, unlessDue(fmt.Errorf("sweep x: %w", err)))
	}
	for _, err := range []error{storage.ErrUnknown, ErrGasShort} {
		require.ErrorIs(t, unlessDue(fmt.Errorf("sweep x: %w", err)), err)
	}
	require.NoError(t, unlessDue(nil))
}
