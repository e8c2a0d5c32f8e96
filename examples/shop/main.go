// Shop is a small web shop that takes crypto payments: products, a cart, the checkout page,
// orders that are paid by events, a desk for the shopkeeper with refunds, and the REST interface
// behind the desk's own login. All of it is one program on one database.
//
//	go run ./examples/shop                                # simulated networks, a SQLite file
//	go run ./examples/shop -postgres postgres://…         # the same on Postgres
//	CRYPTOPAY_RPC_ETH=https://… go run ./examples/shop    # real nodes, real money
//
// On simulated networks each order's page has buttons that play the customer. The settings of
// nodes are those of examples/gateway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
)

// settings are what the program is started with.
type settings struct {
	addr     string
	base     string // public address; "" = what it listens on
	dir      string // of the SQLite file, the key and the seed
	postgres string // URL; "" = SQLite
	block    time.Duration
	nodes    nodes.Nodes // of real networks; none = simulated ones
	prices   map[string]string
}

func readSettings(args []string, env func(string) string) (s settings, err error) {
	f := flag.NewFlagSet("shop", flag.ContinueOnError)
	f.StringVar(&s.addr, "addr", "127.0.0.1:8090", "where to listen")
	f.StringVar(&s.base, "base-url", "", "public address, such as https://shop.example.com; defaults to where it listens")
	f.StringVar(&s.dir, "dir", ".", "folder of shop.db, shop.key and shop.seed, which are made at the first start: keep them together")
	f.StringVar(&s.postgres, "postgres", "", "`URL` of a Postgres database, in place of the SQLite file")
	f.DurationVar(&s.block, "block", 2*time.Second, "how often simulated networks make a block")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	var bad error
	s.nodes, err = nodes.Read(networks.Shipped(), env)
	s.prices, bad = s.nodes.Prices(env("CRYPTOPAY_PRICES"))
	return s, errors.Join(err, bad)
}

func main() {
	s, err := readSettings(os.Args[1:], os.Getenv)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		err = run(ctx, s, os.Stdout, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	default:
		fmt.Println("stopped; start it again and it goes on where it was")
	}
}

// run serves until ctx ends. Then it takes no more requests, finishes those in flight and what
// the App is at, and returns nil.
func run(ctx context.Context, s settings, out io.Writer, log *slog.Logger) (err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // the server has closed it
	if s, err = s.reachedAt(listener.Addr()); err != nil {
		return err
	}
	shop, err := open(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shop.close()) }()
	if err := shop.greet(ctx, out); err != nil {
		return err
	}

	server := &http.Server{Handler: shop.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	server.RegisterOnShutdown(shop.pay.Close) // live pages
	work, halt := context.WithCancel(ctx)
	defer halt()
	var both sync.WaitGroup
	var failed error
	both.Go(func() { failed = shop.work(work) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served: // the listener broke
	case <-ctx.Done():
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = server.Shutdown(last)
	}
	halt()
	both.Wait()
	return errors.Join(err, failed)
}

// reachedAt fills in the public address. Where money is simulated only this machine may reach
// the shop: whoever does can make some.
func (s settings) reachedAt(listening net.Addr) (settings, error) {
	at, ok := listening.(*net.TCPAddr)
	switch loopback := ok && at.IP.IsLoopback(); {
	case len(s.nodes.At) == 0 && !loopback:
		return s, errors.New("-addr must be on loopback while networks are simulated: whoever reaches the shop can pay with nothing")
	case s.base == "" && !loopback:
		return s, errors.New("-base-url is needed where -addr is not on loopback: links to payments begin with it")
	case s.base == "":
		s.base = "http://" + listening.String()
	}
	return s, nil
}

// greet prints the links. The first start makes the shopkeeper's password, and shows it once.
func (s *shop) greet(ctx context.Context, out io.Writer) error {
	password, err := s.firstOwner(ctx)
	if err != nil {
		return err
	}
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	p("shop       %s/", s.base)
	p("desk       %s/desk", s.base)
	if password != "" {
		p("           log in as %s with the password %s, which is shown this once", owner, password)
	}
	p("reference  %s%s/docs/", s.base, restPrefix)
	if s.world.simulated() {
		p("networks   simulated; the page of each order has buttons that play the customer")
		return nil
	}
	for _, c := range s.world.clients {
		hot, err := s.app.Hot(ctx, c.Network(), tenant)
		if err != nil {
			return err
		}
		p("network    %s; refunds leave from %s, which needs coins of yours for fees", c.Network(), hot)
	}
	return nil
}
