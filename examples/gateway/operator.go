package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/operator"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/move"
)

// operatorCommand begins a command line of the operator's: it works on the store of the
// settings, beside the gateways that serve.
const operatorCommand = "operator"

// operate runs the operator's command of the settings. Its log goes with progress to
// standard error; what is not worth a look is left out.
func operate(ctx context.Context, s settings, log *slog.Logger, out, progress io.Writer) error {
	if s.logLevel < slog.LevelWarn {
		log = slog.New(slog.NewJSONHandler(progress, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	cmd := operator.Command(func(ctx context.Context) (*operator.House, error) { return openHouse(ctx, s, log) })
	cmd.Writer, cmd.ErrWriter = out, progress
	return cmd.Run(ctx, s.command)
}

// openHouse opens the store of a gateway that was started before. Simulated chains are
// those that it wrote down last, and are not written back: what is sent on them here is
// sent again by the gateway.
func openHouse(ctx context.Context, s settings, log *slog.Logger) (*operator.House, error) {
	ring, err := findKeys(s.keyFile)
	if err != nil {
		return nil, err
	}
	g, err := open(ctx, s, log)
	if errors.Is(err, storage.ErrSchema) {
		err = fmt.Errorf("%w: start the gateway of this version first", err)
	}
	if err != nil {
		return nil, err
	}
	return &operator.House{
		App: g.app, Auth: g.auth, Close: g.closeStores, Keep: s.keep(), Tables: tables(), OpenStore: openCopy,
		Reseal: func(ctx context.Context) error { return ring.resealSeed(ctx, g.store) },
	}, nil
}

// keep are the things beside the store without which a backup is worth nothing.
func (s *settings) keep() []string {
	out := []string{"the key file " + s.keyFile + ": without it nothing sealed opens again", "the note " + sealedFile(s.keyFile) + " beside it"}
	if s.signer.elsewhere() {
		return append(out, "the signer's seed and its own store, on its machine", "the signer's accounts file "+s.signer.accounts)
	}
	if s.signerStore != "" {
		out = append(out, "the signer's store (CRYPTOPAY_SIGNER_STORE): an older copy signs again what it has forgotten")
	}
	return append(out, "the seed's words: they are in the store, sealed with the key file")
}

// openCopy opens a store for a copy.
func openCopy(ctx context.Context, dsn string, create bool) (storage.Store, error) {
	kind, rest, _ := strings.Cut(dsn, ":")
	if kind == "memory" {
		return nil, errors.New("memory: is gone when this command ends")
	}
	var s storage.Store
	var err error
	if create {
		s, err = openStore(ctx, dsn, false, move.Positions.Table)
	} else {
		if _, missing := os.Stat(rest); kind == "sqlite" && errors.Is(missing, os.ErrNotExist) {
			return nil, nil
		}
		s, err = connectStore(dsn)
	}
	if err != nil {
		return nil, err
	}
	if err = s.Open(ctx, slices.Concat(tables(), []*storage.Table{move.Positions.Table})...); err == nil {
		return s, nil
	}
	if err = errors.Join(err, s.Close()); !create && errors.Is(err, storage.ErrSchema) {
		return nil, nil // it has nothing yet
	}
	return nil, err
}

// findKeys reads the key file, which must be there.
func findKeys(file string) (keyring, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("-key-file: %w: name the gateway's, or start the gateway first", err)
	}
	ring, _, err := loadKeys(file)
	return ring, err
}

// findStore connects to a store that a gateway has made. It makes and migrates nothing.
func findStore(dsn string) (storage.Store, error) {
	kind, rest, _ := strings.Cut(dsn, ":")
	if kind == "memory" {
		return nil, errors.New("memory: is the gateway's own: no other program sees it")
	}
	if kind == "sqlite" {
		if _, err := os.Stat(rest); err != nil {
			return nil, fmt.Errorf("%w: name the gateway's, or start the gateway first", err)
		}
	}
	return connectStore(dsn)
}
