package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/wallet/house"
)

// settings are what the flags and the environment say.
type settings struct {
	addr          string
	store         string
	dev           bool
	clientID      string
	clientSecret  string
	apiKey        string
	mnemonic      string
	keyFile       string
	migrate       bool
	private       bool // callbacks to loopback and private addresses, and over http
	limits        bool
	privates      string // as they were set
	limiting      string
	halting       string
	fee           decimal.Decimal   // percent of a payment
	networkFee    string            // "none", "estimate" or a figure in coins
	percent       decimal.Decimal   // of a withdrawal
	flat          decimal.Decimal   // of a withdrawal, in coins
	all           *networks.Set     // every network that there is
	nodes         nodes.Nodes       // of real networks
	prices        map[string]string // in USD, that stay as they are
	poll          time.Duration
	verify        time.Duration   // between two looks at the books, 0 = none
	networks      []chain.Network // simulated
	retire        []string        // currencies, see cryptopay.Config.Retire
	elsewhere     []chain.Network // see cryptopay.Config.Elsewhere
	house         []house.Address // see cryptopay.Config.HouseAddresses
	upgraded      bool            // see cryptopay.App.Upgraded
	reseal        bool            // see cryptopay.App.Reseal
	unsealed      time.Time       // see cryptopay.Config.UnsealedUntil
	logLevel      slog.Level
	metrics       string         // where /metrics is served apart, "" = with the interface, of simulated chains alone
	base          string         // public address of the interface
	proxies       []netip.Prefix // see httpapi.Options.TrustedProxies
	reconcileHalt bool           // a difference between books and chain halts payouts
	exposed       bool           // simulated chains may be served to others than this machine
	patience      time.Duration
	signer        signer // on another machine
	signerStore   string // of the signer in this program, "" = that of the App
	ceilingsFile  string
	ceilings      *keys.Limits // of the signer in this program, nil = none
	config        string       // the settings file, "" = none
	tenants       []tenant     // of the settings file
	command       []string     // of the operator, see operator.go; none = serve
}

// real reports whether real chains are configured.
func (s *settings) real() bool { return len(s.nodes.At) > 0 }

// readSettings reads flags, then the environment for what flags leave open, then the settings
// file for what both leave open. Errors name the setting, or the place in the file, and never
// repeat a secret.
func readSettings(args []string, env func(string) string) (settings, error) {
	s, err := readWith(args, env, nil)
	if s.config == "" {
		return s, err
	}
	f, err := readFile(s.config, env)
	if err != nil {
		return s, err
	}
	s, err = readWith(args, func(name string) string {
		if v := env(name); v != "" {
			return v
		}
		return f.env[name]
	}, f.tenants)
	return s, f.located(err, env)
}

// readWith reads flags, and what they leave open from env.
func readWith(args []string, env func(string) string, tenants []tenant) (settings, error) {
	s := settings{patience: 30 * time.Second, tenants: tenants, all: networks.Shipped()}
	var noRegistry, noNodes error
	if file := env("CRYPTOPAY_REGISTRY"); file != "" {
		if all, err := networks.Read(file); err != nil {
			noRegistry = fmt.Errorf("CRYPTOPAY_REGISTRY: %w", err)
		} else {
			s.all = all
		}
	}
	s.nodes, noNodes = nodes.Read(s.all, env)
	var simulated, level string
	or := func(name, otherwise string) string {
		if v := env(name); v != "" {
			return v
		}
		return otherwise
	}
	f := flag.NewFlagSet("gateway", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&s.config, "config", or("CRYPTOPAY_CONFIG", ""), "settings file; the environment and flags win over it (CRYPTOPAY_CONFIG)")
	f.StringVar(&s.addr, "addr", or("CRYPTOPAY_ADDR", "127.0.0.1:8080"), "where to listen (CRYPTOPAY_ADDR)")
	f.StringVar(&s.store, "store", or("CRYPTOPAY_STORE", "sqlite:cryptopay.db"), "memory, sqlite:FILE, postgres://… or mysql://… (CRYPTOPAY_STORE)")
	f.Lookup("store").DefValue = "sqlite:cryptopay.db" // that of the environment may have a password
	f.BoolVar(&s.dev, "dev", !s.real(), "serve /dev/ to play the customers and the miners; only with simulated chains")
	f.StringVar(&s.keyFile, "key-file", or("CRYPTOPAY_KEY_FILE", ""), "file of the keys that seal what is stored, newest first; made where it is missing (CRYPTOPAY_KEY_FILE); defaults to FILE.key beside the database")
	f.StringVar(&simulated, "networks", or("CRYPTOPAY_NETWORKS", ""), "simulated networks, comma-separated (CRYPTOPAY_NETWORKS); defaults to all")
	f.StringVar(&s.metrics, "metrics-addr", or("CRYPTOPAY_METRICS_ADDR", ""), "where to serve /metrics, apart from the interface (CRYPTOPAY_METRICS_ADDR); defaults to the interface's address with simulated chains, and to nowhere with real ones")
	f.StringVar(&s.base, "base-url", or("CRYPTOPAY_BASE_URL", ""), "public address of the interface, for the links of paged answers and of the pages that customers pay on (CRYPTOPAY_BASE_URL); defaults to where it listens on loopback, elsewhere the first are paths, and the second are not served")
	f.BoolVar(&s.exposed, "expose-simulation", false, "serve simulated chains, and /dev/ without a token, on an address that is not loopback")
	f.BoolVar(&s.migrate, "migrate", false, "bring a store on Redis that an earlier version made to this one; stop every other process first (SQL stores are brought along at each start)")
	f.StringVar(&level, "log", or("CRYPTOPAY_LOG", "info"), "debug, info, warn or error (CRYPTOPAY_LOG)")
	if err := f.Parse(args); err != nil {
		var usage strings.Builder
		f.SetOutput(&usage)
		f.PrintDefaults()
		return s, fmt.Errorf("%w\nflags:\n%s", err, usage.String())
	}
	if s.command = f.Args(); len(s.command) > 0 && s.command[0] != operatorCommand && !slices.Equal(s.command, []string{mandatesCommand}) {
		return s, fmt.Errorf("there is no command %q: there are %s and %s, and flags of the gateway go before it", s.command[0], operatorCommand, mandatesCommand)
	}
	s.clientID, s.clientSecret = env("CRYPTOPAY_CLIENT_ID"), env("CRYPTOPAY_CLIENT_SECRET")
	s.apiKey, s.mnemonic = env("CRYPTOPAY_API_KEY"), env("CRYPTOPAY_MNEMONIC")
	s.privates, s.limiting = env("CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS"), env("CRYPTOPAY_RATE_LIMITS")
	s.private, s.limits = s.privates == "1", s.limiting != "off"
	s.halting = or("CRYPTOPAY_RECONCILE_HALT", "on")
	s.reconcileHalt = s.halting == "on"
	s.signer = readSigner(env)
	s.signerStore, s.ceilingsFile = env("CRYPTOPAY_SIGNER_STORE"), env("CRYPTOPAY_SIGNER_LIMITS")
	s.upgraded, s.reseal = env("CRYPTOPAY_UPGRADED") == "1", env("CRYPTOPAY_RESEAL") == "1"
	s.retire = listOf(env("CRYPTOPAY_RETIRE"))
	for _, n := range listOf(env("CRYPTOPAY_ELSEWHERE")) {
		s.elsewhere = append(s.elsewhere, chain.Network(n))
	}
	for _, a := range listOf(env("CRYPTOPAY_HOUSE_ADDRESSES")) {
		n, address, _ := strings.Cut(a, ":")
		address, memo, _ := strings.Cut(address, "#")
		s.house = append(s.house, house.Address{Network: chain.Network(n), Address: chain.Address(address), Memo: memo})
	}
	percent, flat, _ := strings.Cut(or("CRYPTOPAY_WITHDRAWAL_FEE", "0"), "+")
	s.networkFee = or("CRYPTOPAY_NETWORK_FEE", "none")
	if noRegistry != nil {
		return s, noRegistry // what else is said may be of its networks
	}
	errs := errors.Join(
		noNodes,
		s.checkCredentials(),
		s.checkAddresses(),
		s.checkSigner(),
		number(&s.fee, "CRYPTOPAY_TRANSACTION_FEE", or("CRYPTOPAY_TRANSACTION_FEE", "0.50")),
		number(&s.percent, "CRYPTOPAY_WITHDRAWAL_FEE", percent),
		number(&s.flat, "CRYPTOPAY_WITHDRAWAL_FEE", orZero(flat)),
		s.logLevel.UnmarshalText([]byte(level)),
		s.readNetworks(simulated),
		s.readPrices(env("CRYPTOPAY_PRICES")),
		s.readPoll(or("CRYPTOPAY_POLL", "5s")),
		s.readVerify(or("CRYPTOPAY_VERIFY", verifyEvery)),
		s.readUnsealed(env("CRYPTOPAY_UNSEALED_UNTIL")),
		s.readProxies(env("CRYPTOPAY_TRUSTED_PROXIES")),
		s.check(),
		checkDSN("CRYPTOPAY_STORE", s.store),
		s.checkRegistry(),
		s.checkTenants(),
	)
	return s, errs
}

// listOf takes a comma-separated list apart.
func listOf(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
}

func orZero(v string) string {
	if v == "" {
		return "0"
	}
	return v
}

func number(to *decimal.Decimal, name, v string) (err error) {
	if *to, err = ledger.ParseDecimal(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (s *settings) readUnsealed(day string) (err error) {
	if day == "" {
		return nil
	}
	if s.unsealed, err = time.Parse(time.DateOnly, day); err != nil {
		return errors.New("CRYPTOPAY_UNSEALED_UNTIL: must be a day, such as 2027-01-31")
	}
	return nil
}

// readProxies reads addresses and prefixes of proxies.
func (s *settings) readProxies(list string) error {
	for _, v := range listOf(list) {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			var a netip.Addr
			if a, err = netip.ParseAddr(v); err == nil && a.Zone() == "" {
				a = a.Unmap()
				p = netip.PrefixFrom(a, a.BitLen())
			}
		}
		switch {
		case !p.IsValid() || p.Addr().Is4In6():
			return errors.New("CRYPTOPAY_TRUSTED_PROXIES must be addresses or prefixes, comma-separated, such as 10.0.0.5,192.168.0.0/24")
		case p.Bits() == 0:
			return errors.New("CRYPTOPAY_TRUSTED_PROXIES must not be all addresses: every caller could then name any address as its own")
		}
		s.proxies = append(s.proxies, p.Masked())
	}
	return nil
}

// readNetworks decides which networks are simulated.
func (s *settings) readNetworks(list string) error {
	if s.real() {
		return nil
	}
	known := s.all.Registry()
	if list == "" {
		for _, n := range chain.Networks() {
			s.networks = append(s.networks, n.Code)
		}
		return nil
	}
	for _, code := range strings.Split(list, ",") {
		n, err := known.Network(strings.TrimSpace(code))
		if err != nil {
			return fmt.Errorf("CRYPTOPAY_NETWORKS: %w", err)
		}
		s.networks = append(s.networks, n.Code)
	}
	return nil
}

// readPrices reads the fixed prices of test chains.
func (s *settings) readPrices(list string) (err error) {
	if list != "" && !s.real() {
		return errors.New("CRYPTOPAY_PRICES is for nodes of test chains (CRYPTOPAY_RPC_…): simulated ones have prices of their own, see /dev/rate")
	}
	s.prices, err = s.nodes.Prices(list)
	return err
}

func (s *settings) readPoll(v string) (err error) {
	if s.poll, err = time.ParseDuration(v); err != nil || s.poll < 50*time.Millisecond || s.poll > time.Minute {
		return errors.New("CRYPTOPAY_POLL must be between 50ms and 1m")
	}
	return nil
}

// dialAll refuses settings of nodes that no client can be made of.
func (s *settings) dialAll() error {
	registry, err := s.nodes.Registry()
	if err != nil {
		return err
	}
	_, err = s.nodes.Clients(registry, nil, nil)
	return err
}

// check refuses what does not go together.
func (s *settings) check() error {
	switch {
	case s.dev && s.real():
		return errors.New("-dev plays customers and miners on simulated chains: leave it out, or leave the CRYPTOPAY_RPC_… settings out")
	case !slices.Contains([]string{"", "on", "off"}, s.limiting):
		return errors.New("CRYPTOPAY_RATE_LIMITS must be on or off")
	case !slices.Contains([]string{"on", "off"}, s.halting):
		return errors.New("CRYPTOPAY_RECONCILE_HALT must be on or off")
	case !slices.Contains([]string{"", "0", "1"}, s.privates):
		return errors.New("CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS must be 1 or 0")
	case (s.clientID == "") != (s.clientSecret == ""):
		return errors.New("set both CRYPTOPAY_CLIENT_ID and CRYPTOPAY_CLIENT_SECRET, or neither")
	case s.networkFee != "none" && s.networkFee != "estimate":
		if _, err := ledger.ParseDecimal(s.networkFee); err != nil {
			return fmt.Errorf("CRYPTOPAY_NETWORK_FEE must be none, estimate or a figure: %w", err)
		}
	}
	if err := s.dialAll(); err != nil {
		return err
	}
	if s.keyFile == "" {
		s.keyFile = "cryptopay.key"
		if file, ok := strings.CutPrefix(s.store, "sqlite:"); ok {
			s.keyFile = file + ".key"
		}
	}
	return nil
}

// checkDSN refuses a kind of store that there is none of.
func checkDSN(name, dsn string) error {
	kind, rest, _ := strings.Cut(dsn, ":")
	if !slices.Contains([]string{"memory", "sqlite", "postgres", "postgresql", "mysql", "redis", "rediss"}, kind) || kind == "sqlite" && rest == "" {
		return fmt.Errorf("%s must be memory, sqlite:FILE, postgres://…, mysql://… or redis://…", name)
	}
	return nil
}

// checkCredentials refuses a chosen secret or API key that could be guessed.
func (s *settings) checkCredentials() (err error) {
	for name, v := range map[string]string{"CRYPTOPAY_CLIENT_SECRET": s.clientSecret, "CRYPTOPAY_API_KEY": s.apiKey} {
		if v == "" {
			continue
		}
		if why := auth.Weak(v); why != "" {
			err = errors.Join(err, fmt.Errorf("%s %s", name, why))
		}
	}
	return err
}

// checkAddresses refuses to play customers and miners for strangers: with simulated chains
// money is made by whoever asks for it.
func (s *settings) checkAddresses() error {
	if s.base != "" {
		if u, err := url.Parse(s.base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
			return errors.New("CRYPTOPAY_BASE_URL must be such as https://pay.example.com")
		}
	}
	if s.real() || s.exposed {
		return nil
	}
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return fmt.Errorf("CRYPTOPAY_ADDR: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("all chains are simulated, as no CRYPTOPAY_RPC_… names a node, and CRYPTOPAY_ADDR %s is not loopback: "+
		"anybody who reaches it could make money; name a node, or set -expose-simulation", s.addr)
}

// plural is "1 block" or "2 blocks".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
