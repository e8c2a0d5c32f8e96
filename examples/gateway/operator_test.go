package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
)

// The operator's command works on the store of a gateway that serves beside it, with its
// settings, and leaves the simulated chains to it.
func TestOperatorBesideTheGateway(t *testing.T) {
	t.Parallel()
	i := newInside(t, "ETH,BTC")
	env := map[string]string{"CRYPTOPAY_STORE": i.s.store}
	operator := func(args ...string) (out, progress string, err error) {
		s, err := readSettings(append([]string{"-networks", "ETH,BTC", "operator"}, args...), func(k string) string { return env[k] })
		if err != nil {
			return "", "", err
		}
		var stdout, stderr bytes.Buffer
		err = operate(t.Context(), s, slog.New(slog.DiscardHandler), &stdout, &stderr)
		return stdout.String(), stderr.String(), err
	}
	out, progress, err := operator("verify")
	require.NoError(t, err)
	require.Contains(t, out, "merchant")
	require.Equal(t, "verified 1 of 1 tenants\n", progress)

	chains := func() string {
		rows, err := i.g.store.Rows(t.Context(), worlds.Table)
		require.NoError(t, err)
		text, err := json.Marshal(rows)
		require.NoError(t, err)
		return string(text)
	}
	before := chains()
	_, progress, err = operator("halt", "-network", "ETH", "-reason", "a drill", "-by", "ann")
	require.NoError(t, err)
	require.Contains(t, progress, "operator_intervened")
	halts, err := i.g.app.Operate.Halts(t.Context())
	require.NoError(t, err)
	require.Len(t, halts, 1)
	require.Equal(t, []any{chain.Network("ETH"), "ann", "a drill"}, []any{halts[0].Network, halts[0].By, halts[0].Reason})
	_, err = i.g.app.Operate.Lift(t.Context(), cryptopay.HaltScope{Network: "ETH"}, cryptopay.Call{By: "ann", Reason: "over"})
	require.NoError(t, err)

	out, _, err = operator("applications", "create", "-tenant", tenantID, "-name", "till", "-reason", "a new till", "-json")
	require.NoError(t, err)
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &made))
	_, err = i.g.auth.Token(t.Context(), made.ID, made.Secret, "")
	require.NoError(t, err, "the gateway takes what was made beside it")
	_, _, err = operator("reseal", "-reason", "a drill")
	require.NoError(t, err)
	require.Equal(t, before, chains())
}

// The operator's command makes no store and no key: a wrong path is an error.
func TestOperatorMakesNoStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "none.db")
	for want, args := range map[string][]string{
		"start the gateway first": {"-store", "sqlite:" + file, "operator", "halts"},
		"no other program":        {"-store", "memory:", "-key-file", key(t, dir), "operator", "halts"},
		"-store: stat":            {"-store", "sqlite:" + file, "-key-file", key(t, dir), "operator", "halts"},
		"no command \"oprator\"":  {"-store", "sqlite:" + file, "oprator", "halts"},
	} {
		s, err := readSettings(args, func(string) string { return "" })
		if err == nil {
			err = operate(t.Context(), s, slog.New(slog.DiscardHandler), &bytes.Buffer{}, &bytes.Buffer{})
		}
		require.ErrorContains(t, err, want)
		_, err = os.Stat(file)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

func key(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "a.key")
	if _, err := os.Stat(file); err != nil {
		_, err := makeKey(file)
		require.NoError(t, err)
	}
	return file
}
