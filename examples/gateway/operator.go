package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/cryptopay-go/cryptopay/operator"
	"github.com/cryptopay-go/cryptopay/storage"
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
		App: g.app, Auth: g.auth, Close: g.store.Close,
		Reseal: func(ctx context.Context) error { return ring.resealSeed(ctx, g.store) },
	}, nil
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
		return nil, errors.New("-store memory: is the gateway's own: no other program sees it")
	}
	if kind == "sqlite" {
		if _, err := os.Stat(rest); err != nil {
			return nil, fmt.Errorf("-store: %w: name the gateway's, or start the gateway first", err)
		}
	}
	return connectStore(dsn)
}
