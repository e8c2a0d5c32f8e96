package signerd

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Chain is what a Server needs of a network. Every chain.Client is one; none of its methods
// needs a node.
type Chain interface {
	keys.Chain
	ParseAddress(s string) (chain.Address, error)
}

// Config wires a Server. All fields but Allow, Mandates and Slog are required, and one of Seed and Keys.
type Config struct {
	Seed     *keys.Seed
	Keys     keys.Holder // such as hsm.Module, in place of a Seed
	Registry *chain.Registry
	Chains   map[chain.Network]Chain
	// Store keeps what was signed and counted, open with keys.LimitTables. No other program
	// may write it.
	Store  storage.Store
	Limits keys.Limits
	// Allow lists the only recipients of a currency. A currency that is not listed may be
	// paid to anybody, within its limits.
	Allow map[string][]Recipient
	// Mandates are what orders to pay are proved with: keys.SignerConfig.Mandates. With them
	// who can write to the App's database alone has nothing paid that the App did not order,
	// and nothing paid twice.
	// Defaults to believing the App.
	Mandates mandate.Keys
	Log      *Log
	Now      func() time.Time
	// Slog gets what was refused and what failed. Defaults to nowhere.
	Slog *slog.Logger
}

// Recipient is an address that may be paid, with the memo or tag that must be given: an
// exchange tells its customers apart by it.
type Recipient struct {
	Address string `json:"address"`
	Memo    string `json:"memo,omitempty"`
}

// Server signs for Clients. It is an http.Handler that answers requests over mutual TLS
// alone. Safe for concurrent use.
type Server struct {
	cfg    Config
	bound  *logged
	signer *keys.Signer
	allow  map[string]map[recipient]bool
	slots  chan struct{} // questions that are answered at once
	mux    http.ServeMux
}

// recipient is a Recipient as the network compares it.
type recipient struct {
	account chain.Address
	memo    string
}

// atOnce is how many questions are read and answered at once: one has up to maxBody.
const atOnce = 4

// New checks the configuration, and that the store has what the log has. The error wraps
// ErrRegistry where it has not.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if (cfg.Seed == nil) == (cfg.Keys == nil) || cfg.Registry == nil || len(cfg.Chains) == 0 || cfg.Store == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("signerd: Config: Seed or Keys, Registry, Chains, Store, Log and Now are required")
	}
	if cfg.Slog == nil {
		cfg.Slog = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, allow: map[string]map[recipient]bool{}, slots: make(chan struct{}, atOnce)}
	if err := errors.Join(s.checkLimits(), s.readAllow()); err != nil {
		return nil, err
	}
	if err := cfg.Log.missing(ctx, cfg.Store); err != nil {
		return nil, err
	}
	chains := map[chain.Network]keys.Chain{}
	for n, c := range cfg.Chains {
		chains[n] = c
	}
	s.bound = &logged{LimitedRegistry: keys.LimitedRegistry{Store: cfg.Store, Limits: cfg.Limits, Now: cfg.Now}, log: cfg.Log}
	var err error
	s.signer, err = keys.NewSigner(keys.SignerConfig{
		Seed: cfg.Seed, Keys: cfg.Keys, Chains: chains, KeyOf: hinted, Allow: s.allowed, Mandates: cfg.Mandates, Registry: s.bound,
	})
	if err != nil {
		return nil, err
	}
	if cfg.Log.torn > 0 {
		cfg.Slog.WarnContext(ctx, "log_tail_removed", slog.Int64("bytes", cfg.Log.torn)) // a crash cut the line off
	}
	s.mux.HandleFunc("POST "+signPath, s.sign)
	s.mux.HandleFunc("GET "+healthPath, s.health)
	return s, nil
}

// checkLimits refuses limits of what is not served, and networks without one.
func (s *Server) checkLimits() error {
	err := s.cfg.Limits.Check()
	for n := range s.cfg.Limits.Costs {
		if _, ok := s.cfg.Chains[n]; !ok {
			err = errors.Join(err, fmt.Errorf("signerd: limits of costs: network %s is not served", n))
		}
	}
	for n := range s.cfg.Chains {
		if len(s.cfg.Limits.Costs[n]) == 0 {
			err = errors.Join(err, fmt.Errorf("signerd: limits of costs: name one for %s", n))
		}
	}
	for code := range s.cfg.Limits.Pays {
		if _, e := s.currency(code); e != nil {
			err = errors.Join(err, fmt.Errorf("signerd: limits of %s: %w", code, e))
		}
	}
	return err
}

// currency returns the network of a currency that is served.
func (s *Server) currency(code string) (Chain, error) {
	c, err := s.cfg.Registry.Currency(code)
	if err != nil {
		return nil, err
	}
	n, ok := s.cfg.Chains[c.Network]
	if !ok || c.Code != code {
		return nil, fmt.Errorf("network %s is not served, or the code is written %s", c.Network, c.Code)
	}
	return n, nil
}

func (s *Server) readAllow() (err error) {
	for code, list := range s.cfg.Allow {
		c, e := s.currency(code)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("signerd: recipients of %s: %w", code, e))
			continue
		}
		s.allow[code] = map[recipient]bool{}
		for _, one := range list {
			a, e := c.ParseAddress(one.Address)
			if v, ok := c.(chain.VaultParser); ok && e != nil {
				if vault, err := v.ParseVault(one.Address); err == nil {
					a, e = vault, nil
				}
			}
			if e != nil {
				err = errors.Join(err, fmt.Errorf("signerd: recipients of %s: %w", code, e))
				continue
			}
			s.allow[code][recipientOf(c, a, one.Memo)] = true
		}
	}
	return err
}

// recipientOf takes an address apart that carries its memo.
func recipientOf(c Chain, a chain.Address, memo string) recipient {
	if t, ok := c.(chain.Tagger); ok {
		if account, own, tagged := t.Untag(a); tagged {
			return recipient{account, own}
		}
	}
	return recipient{a, memo}
}

// allowed is keys.SignerConfig.Allow.
func (s *Server) allowed(_ context.Context, in chain.Intent, _ ledger.Amount) error {
	list, listed := s.allow[in.Currency]
	if listed && !list[recipientOf(s.cfg.Chains[in.Network], in.To, in.Memo)] {
		return fmt.Errorf("the recipient of %s is not on the list of %s", in.ID, in.Currency)
	}
	return nil
}

// hints are what a question says about addresses, in its context.
type (
	hints   map[place]chain.KeyRef
	hintKey struct{}
	place   struct {
		network chain.Network
		address chain.Address
	}
)

// hinted is keys.SignerConfig.KeyOf. The keys.Signer derives the address from the key.
func hinted(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
	all, _ := ctx.Value(hintKey{}).(hints)
	ref, ok := all[place{n, a}]
	return ref, ok, nil
}

// logged writes what was bound to the log, before it is handed out.
type logged struct {
	keys.LimitedRegistry
	mu  sync.Mutex
	log *Log
	// unwritten is true while the last binding could not be stored.
	unwritten atomic.Bool
}

// Bind implements keys.Registry.
func (l *logged) Bind(ctx context.Context, b keys.Binding) error {
	return l.BindMany(ctx, []keys.Binding{b})[0]
}

// BindMany is Bind of each.
func (l *logged) BindMany(ctx context.Context, bs []keys.Binding) []error {
	l.mu.Lock() // the log has what was bound first before what was bound next
	defer l.mu.Unlock()
	errs := l.LimitedRegistry.BindMany(ctx, bs)
	var lines []Line
	for i, err := range errs {
		switch {
		case err == nil:
			l.unwritten.Store(false)
			lines = append(lines, lineOf(&bs[i], l.Now()))
		case !errors.Is(err, chain.ErrRefused) && !errors.Is(err, storage.ErrMalformed) && ctx.Err() == nil:
			l.unwritten.Store(true)
		}
	}
	if len(lines) == 0 {
		return errs
	}
	if err := l.log.append(lines); err != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
	}
	return errs
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || s.cfg.Now().After(r.TLS.PeerCertificates[0].NotAfter) {
		w.Header().Set("Connection", "close")
		http.Error(w, "a valid client certificate is needed", http.StatusForbidden)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// sign answers POST /v1/sign.
func (s *Server) sign(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		return
	}
	rs, said, err := readQuestion(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		s.cfg.Slog.WarnContext(r.Context(), "question_refused", slog.String("client", client(r)), slog.String("error", err.Error()))
		http.Error(w, err.Error(), status)
		return
	}
	sigs, errs := s.signer.SignMany(context.WithValue(r.Context(), hintKey{}, said), rs)
	out := reply{Answers: make([]answer, len(rs))}
	for i, err := range errs {
		log := s.cfg.Slog.With(slog.String("client", client(r)), slog.String("intent", rs[i].Intent.ID), slog.String("attempt", rs[i].Attempt))
		switch {
		case err == nil:
			for _, sig := range sigs[i] {
				out.Answers[i].Signatures = append(out.Answers[i].Signatures, sig)
			}
		case errors.Is(err, chain.ErrRefused):
			out.Answers[i].Refused = err.Error()
			log.WarnContext(r.Context(), "signature_refused", slog.String("error", err.Error()))
		case r.Context().Err() != nil: // who asked has hung up, and asks again
			log.WarnContext(r.Context(), "question_dropped", slog.String("error", err.Error()))
		default:
			out.Answers[i].Failed = err.Error()
			log.ErrorContext(r.Context(), "signature_failed", slog.String("error", err.Error()))
		}
	}
	if r.Context().Err() == nil {
		write(w, http.StatusOK, out)
	}
}

// client names who asks, by its certificate.
func client(r *http.Request) string { return r.TLS.PeerCertificates[0].Subject.CommonName }

// readQuestion reads a body that has one question and nothing that is not understood.
func readQuestion(body io.Reader) ([]chain.SignRequest, hints, error) {
	in := json.NewDecoder(body)
	in.DisallowUnknownFields()
	var q question
	if err := in.Decode(&q); err != nil {
		return nil, nil, fmt.Errorf("the body is no question: %w", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the body has more than one question")
	}
	if len(q.Requests) == 0 {
		return nil, nil, fmt.Errorf("a question has 1 to %d requests", maxRequests)
	}
	said := hints{}
	for _, h := range q.Hints {
		said[place{h.Network, h.Address}] = h.Key
	}
	rs := make([]chain.SignRequest, len(q.Requests))
	for i := range rs {
		var err error
		if rs[i], err = q.Requests[i].fromWire(); err != nil {
			return nil, nil, err
		}
	}
	return rs, said, nil
}

// health answers GET /v1/health.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	end, ok := s.cfg.Log.ends()
	h := health{OK: ok, Lines: end.Lines, Hash: hex.EncodeToString(end.Hash[:])}
	if !ok {
		h.Error = "the last write to the log failed"
	}
	if s.bound.unwritten.Load() {
		h.OK, h.Error = false, "the last write to the store failed"
	}
	if _, err := s.cfg.Store.Rows(r.Context(), keys.SignedAttempts.Table, storage.Keys(storage.System, "health")...); err != nil {
		h.OK, h.Error = false, "the store does not answer"
	}
	if module, ok := s.cfg.Keys.(interface{ Ready(context.Context) error }); ok && module.Ready(r.Context()) != nil {
		h.OK, h.Error = false, "the module does not answer"
	}
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	write(w, status, h)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who does not hear it asks again
}

// Times of an exchange, as the server sees it.
const (
	readTime  = 30 * time.Second
	writeTime = 60 * time.Second
	patience  = 10 * time.Second
)

// Serve answers at l until ctx ends, and finishes what it is at.
func (s *Server) Serve(ctx context.Context, l net.Listener, t *tls.Config) error {
	server := &http.Server{
		Handler: s, TLSConfig: t, ErrorLog: slog.NewLogLogger(s.cfg.Slog.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		down <- server.Shutdown(last)
	})
	err := server.ServeTLS(l, "", "")
	if stop() {
		return err // the listener broke
	}
	return <-down
}
