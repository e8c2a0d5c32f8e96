// Gateway is the whole service as one program: the documented interface over
// one store, with simulated chains until it is given real ones.
//
//	go run ./examples/gateway
//	go run ./examples/gateway operator -help
//	go run ./examples/gateway mandates    # for a signer on another machine
//
// Its start prints how to make the first payment with curl. See README.md for
// all settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	s, err := readSettings(os.Args[1:], os.Getenv)
	if err = errors.Join(checkNames(s.all, os.Environ()), err); err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: s.logLevel}))
	switch {
	case len(s.command) > 0 && s.command[0] == mandatesCommand:
		err = printMandates(s.keyFile, os.Stdout)
	case len(s.command) > 0:
		err = operate(ctx, s, log, os.Stdout, os.Stderr)
	default:
		err = run(ctx, s, log)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends; then it stops taking requests, finishes those in
// flight and what the workers are at, and returns nil.
func run(ctx context.Context, s settings, log *slog.Logger) (err error) {
	g, err := open(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	return g.run(ctx)
}

// run serves and works until ctx ends, see above.
func (g *gateway) run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.s.addr)
	if err != nil {
		return err
	}
	if err := g.serveAt(listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := g.server(g.handler())
	if p := g.pages.Load(); p != nil {
		server.RegisterOnShutdown(p.Close)
	}
	figures, err := g.serveMetrics(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	g.greet(os.Stdout, "http://"+listener.Addr().String())

	work, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	var workers sync.WaitGroup
	workers.Go(func() { g.work(work) })
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	select {
	case err = <-served: // the listener broke
	case <-ctx.Done():
		g.log.Info("stopping")
		halt() // both at once: the program ends within its patience, and a few seconds
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.s.patience)
		defer cancel()
		err = server.Shutdown(patience)
	}
	halt()
	workers.Wait()
	err = errors.Join(err, figures.Close())
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

func (g *gateway) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
}

// serveMetrics serves /metrics, /readyz and /livez for operators at an address of its own, where
// one is set.
func (g *gateway) serveMetrics(ctx context.Context) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.metrics.handler())
	mux.HandleFunc("GET /readyz", g.health)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	s := g.server(mux)
	if g.s.metrics == "" {
		return s, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.s.metrics)
	if err != nil {
		return nil, fmt.Errorf("CRYPTOPAY_METRICS_ADDR: %w", err)
	}
	go func() {
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("metrics_not_served", "error", err)
		}
	}()
	_, _ = fmt.Fprintf(os.Stdout, "metrics are at http://%s/metrics\n", listener.Addr())
	return s, nil
}
