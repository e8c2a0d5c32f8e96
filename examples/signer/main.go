// Signer signs for an App on another machine, within limits of its own: the seed, what was
// signed and what was counted are here, and the App cannot touch them.
//
//	signer -config signer.json new        # makes the seed; prints its words once
//	signer -config signer.json words      # or takes the words of one, on standard input
//	signer -config signer.json accounts   # prints what the App derives addresses from
//	signer -config signer.json            # signs
//	signer -config signer.json rebuild    # makes the registry whole from the log
//
// With a module in the configuration there is no seed: accounts makes the keys in it.
//
// docs/signer.md says how to set it up.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

func main() {
	file := flag.String("config", "signer.json", "the configuration `file`")
	ahead := flag.Int("ahead", 1000, "addresses that accounts derives on networks without public derivation, or makes in a module")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *file, *ahead, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "signer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, ahead int, args []string) error {
	c, err := readConfig(file)
	if err != nil {
		return err
	}
	switch {
	case c.hasModule() && len(args) == 1 && (args[0] == "new" || args[0] == "words"):
		return errors.New("the keys are in the module, and no seed is: accounts makes them")
	case len(args) == 0:
		return c.serve(ctx)
	case len(args) == 1 && args[0] == "new":
		return c.newSeed()
	case len(args) == 1 && args[0] == "words":
		words, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<10))
		defer clear(words)
		return errors.Join(err, c.save(string(words)))
	case len(args) == 1 && args[0] == "accounts":
		return c.accounts(ctx, ahead)
	case len(args) == 1 && args[0] == "rebuild":
		return c.rebuild(ctx)
	}
	return errors.New("the commands are new, words, accounts and rebuild; without one it signs")
}

// newSeed makes the seed file, and prints the words that it comes from.
func (c *config) newSeed() error {
	words, err := keys.NewMnemonic(rand.Reader)
	if err != nil {
		return err
	}
	if err := c.save(words); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "these words are the seed; write them on paper, they are shown once:")
	fmt.Println(words)
	return nil
}

// save seals the seed of words in a new file.
func (c *config) save(words string) error {
	passphrase, err := c.passphrase()
	if err != nil {
		return err
	}
	defer clear(passphrase)
	seed, err := keys.FromMnemonic(words, "")
	if err != nil {
		return err
	}
	return seed.Save(c.path(c.Seed), passphrase, rand.Reader)
}

func (c *config) accounts(ctx context.Context, ahead int) error {
	encode := map[chain.Network]keys.Encode{}
	for n, client := range c.clients {
		encode[n] = client.AddressOf
	}
	public, err := c.public(ctx, encode, ahead)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(public)
}

// public is what the App derives addresses from.
func (c *config) public(ctx context.Context, encode map[chain.Network]keys.Encode, ahead int) (signerd.Accounts, error) {
	if c.hasModule() {
		m, names, err := c.openModule(ctx)
		if err != nil {
			return signerd.Accounts{}, err
		}
		public, err := signerd.MadeIn(ctx, m, names, encode, ahead)
		return public, errors.Join(err, m.Close())
	}
	seed, err := c.seed()
	if err != nil {
		return signerd.Accounts{}, err
	}
	more := c.simulatedAccounts()
	for i := range more {
		if more[i].XPub, err = seed.XPub(more[i].Path); err != nil {
			return signerd.Accounts{}, err
		}
	}
	return signerd.PublicOf(ctx, seed, c.registry, encode, ahead, more...)
}

// open opens the registry and the log.
func (c *config) open(ctx context.Context) (*sqlite.Store, *signerd.Log, error) {
	if err := sqlite.Migrate(ctx, c.path(c.Registry), keys.LimitTables()...); err != nil {
		return nil, nil, err
	}
	store, err := sqlite.Open(c.path(c.Registry), sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	if err := store.Open(ctx, keys.LimitTables()...); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	log, err := signerd.OpenLog(c.path(c.Log))
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return store, log, nil
}

func (c *config) rebuild(ctx context.Context) error {
	store, log, err := c.open(ctx)
	if err != nil {
		return err
	}
	lines, err := signerd.Rebuild(ctx, log, store, c.limits)
	fmt.Fprintln(os.Stderr, "lines of the log that are in the registry now:", lines)
	return errors.Join(err, log.Close(), store.Close())
}

func (c *config) serve(ctx context.Context) (err error) {
	var seed *keys.Seed
	var holder keys.Holder
	if c.hasModule() {
		m, _, e := c.openModule(ctx)
		if e != nil {
			return e
		}
		defer func() { err = errors.Join(err, m.Close()) }()
		holder = m
	} else if seed, err = c.seed(); err != nil {
		return err
	}
	tls, err := signerd.Files{Certificate: c.path(c.Certificate), Key: c.path(c.Key), CA: c.path(c.CA)}.ServerTLS()
	if err != nil {
		return err
	}
	mandates, err := c.mandates()
	if err != nil {
		return err
	}
	slogs := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if len(mandates) == 0 {
		slogs.Warn("mandates_missing", slog.String("hint", "who can write to the App's database alone is bounded by the limits only: name the file that the gateway's command mandates printed as mandates"))
	}
	store, log, err := c.open(ctx)
	if err != nil {
		return err
	}
	chains := map[chain.Network]signerd.Chain{}
	for n, client := range c.clients {
		chains[n] = client
	}
	server, err := signerd.New(ctx, signerd.Config{
		Seed: seed, Keys: holder, Registry: c.registry, Chains: chains, Store: store, Limits: c.limits, Allow: c.allow, Mandates: mandates,
		Log: log, Now: time.Now, Slog: slogs,
	})
	if err == nil {
		var l net.Listener
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen); err == nil {
			fmt.Println("signer is at https://" + l.Addr().String())
			err = server.Serve(ctx, l, tls)
		}
	}
	return errors.Join(err, log.Close(), store.Close())
}
