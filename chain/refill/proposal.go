package refill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// Proposal is a transaction of cold coins that a person signs elsewhere. Amounts are in units of
// Currency, and Fee in units of its network's gas currency.
type Proposal struct {
	ID       string         `db:"proposal_id"`
	Number   int64          `db:"number"` // 1, 2 … of the tenant and currency
	Tenant   string         `db:"tenant"`
	Network  chain.Network  `db:"network"`
	Currency string         `db:"currency"`
	From     chain.Address  `db:"from_address"` // the cold address, to which the rest goes back
	To       chain.Address  `db:"to_address"`   // the hot address
	Amount   ledger.Amount  `db:"amount"`       // that To gets
	Fee      ledger.Amount  `db:"fee"`          // where coins are outputs; else the most that the network may take
	Inputs   []string       `db:"inputs,json"`  // outpoints, or what an account has in their place: see chain.Unsigned
	Outputs  []chain.Output `db:"outputs,json"`
	Payload  []byte         `db:"payload"` // that is signed: see chain.ColdSpender
	// Tx is its hash. On networks whose hashes depend on the signature it is "" until the transaction
	// came back, or is in a block.
	Tx   string `db:"tx"`
	Seal string `db:"seal"` // covers all of the above, By and ExpiresAt, and a Tx that does not depend on the signature

	Raw       []byte    `db:"raw"` // signed; empty until it came back
	Status    Status    `db:"status"`
	Reason    string    `db:"reason"`       // why it ended as it did; of one that is Sending notSent, notTaken or notMined; "" = all is well
	By        string    `db:"requested_by"` // who asked for it
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// unnamed reports whether the transaction has its hash from the signature: what it spends is then the
// nonce of the cold address.
func (p *Proposal) unnamed() bool {
	return len(p.Inputs) == 1 && strings.HasPrefix(p.Inputs[0], string(p.From)+"/")
}

// live reports whether the proposal may still land by what this package does.
func (p *Proposal) live() bool { return p.Status == Open || p.Status == Sending }

// Proposals is the table, in tenants' partitions. Due is when a live one is looked at.
var Proposals = storage.NewTable[Proposal]("refill_proposals", storage.Index("currency", "number"), storage.Index("tx"), storage.Index("created_at"))

// Reasons of a proposal that is Sending.
const (
	notSent  = "halted"    // a halt keeps its transaction from being sent
	notTaken = "not_taken" // no node takes its transaction, which is sent again
	notMined = "not_mined" // its transaction has waited at nodes for minedIn: it pays too little
)

// minedIn is how long a transaction may wait to be mined. The host is told of one that waits longer.
const minedIn = 6 * time.Hour

// Errors of this package.
var (
	// ErrNotFound: the tenant has no such proposal.
	ErrNotFound = errors.New("refill: no such proposal")
	// ErrUnable: nobody knows how the cold coins are signed elsewhere.
	ErrUnable = errors.New("refill: no cold address is set for the currency, it needs a descriptor, or nobody can sign for it elsewhere")
	// ErrAltered: the stored proposal is not the one that was made.
	ErrAltered = errors.New("refill: the proposal's stored row was edited")
)

// StateError says that a proposal is not in a status that allows what was asked.
type StateError struct {
	ID      string
	Current Status
}

func (e *StateError) Error() string { return fmt.Sprintf("refill: proposal %s is %s", e.ID, e.Current) }

// Source is where the coins of a currency come from.
type Source struct {
	Address    chain.Address // the cold address
	Descriptor string        // of its keys; on a network of accounts Address
	Hot        chain.Address // where they go
	Coins      []chain.Coin  // networks of outputs: that the books know at Address
	Lies       ledger.Amount // networks of accounts: what lies at Address by the books
}

// sealer makes and checks seals of the store.
type sealer interface {
	Make(t mandate.Terms) (string, error)
	Check(ctx context.Context, text string, t mandate.Terms) error
}

// Config wires a Service. All fields are required unless said otherwise.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	Clients  map[chain.Network]chain.Client
	Seals    sealer
	Now      func() time.Time
	Log      *slog.Logger // Defaults to discarding.
	// Source tells of a tenant's cold coins. The error is ErrUnable where they cannot be signed for
	// elsewhere.
	Source func(ctx context.Context, tenant string, c *chain.Currency) (Source, error)
	// Worth says what an amount of a currency is worth in units of its network's gas currency.
	// Needed for tokens.
	Worth func(ctx context.Context, currency string, a ledger.Amount) (ledger.Amount, error)
	// Lasts is how long a proposal may be signed. Defaults to 48 hours.
	Lasts time.Duration
	// Lease is how long one worker keeps a proposal. Defaults to one minute.
	Lease time.Duration
}

// Service is safe for concurrent use and by several processes on one store.
type Service struct {
	c      Config
	unread storage.Unreadable
}

// New checks the configuration. It does no I/O.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Registry == nil || c.Seals == nil || c.Now == nil || c.Source == nil {
		return nil, errors.New("refill: Store, Registry, Seals, Now and Source are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Lasts == 0 {
		c.Lasts = 48 * time.Hour
	}
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	c.Store = storage.Joined(c.Store)
	return &Service{c: c}, nil
}

// terms are what the seal covers, without the Store.
func (p *Proposal) terms() mandate.Terms {
	sum, tx := sha256.New(), p.Tx
	if p.unnamed() {
		tx = ""
	}
	said, err := json.Marshal([]any{p.From, p.Fee, p.Inputs, p.Outputs, tx, p.ExpiresAt.UnixMicro()})
	if err != nil {
		return mandate.Terms{} // texts and numbers always encode
	}
	_, _ = sum.Write(said)
	_, _ = sum.Write(p.Payload)
	return mandate.Terms{
		Tenant: p.Tenant, Order: p.ID, Kind: "refill", Network: p.Network, Currency: p.Currency, To: p.To,
		Amount: p.Amount, By: p.By, Decision: hex.EncodeToString(sum.Sum(nil)),
	}
}

// Contradicts says in which way the row of a proposal is not what was made, "" = in none. The error is
// the store's.
func (s *Service) Contradicts(ctx context.Context, part storage.Partition, id string, p *Proposal) (why string, err error) {
	if p.ID != id || storage.Tenant(p.Tenant) != part || id != idOf(p.Currency, p.Number) {
		return "it names another tenant or proposal", nil
	}
	err = s.c.Seals.Check(ctx, p.Seal, p.terms())
	if errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrForged) || errors.Is(err, mandate.ErrKey) {
		return err.Error(), nil
	}
	spender, ok := s.c.Clients[p.Network].(chain.ColdSpender)
	if err != nil || !ok || !p.unnamed() || !p.live() || len(p.Raw) == 0 {
		return "", err
	}
	// The seal cannot cover a hash that comes with the signature.
	tx, err := spender.AcceptCold(p.From, p.Payload, p.Raw)
	if !errors.Is(err, errors.ErrUnsupported) && (err != nil || tx.Tx != p.Tx) {
		return "its signed transaction, or the hash, is not of what was proposed", nil //nolint:nilerr // it says so
	}
	return "", nil
}

// Authorize gives a proposal its seal under the newest key. It writes nothing.
func (s *Service) Authorize(p *Proposal) (err error) {
	p.Seal, err = s.c.Seals.Make(p.terms())
	return err
}

func idOf(currency string, number int64) string { return fmt.Sprintf("refill-%s-%d", currency, number) }

// ProposalChanged is the event of a proposal: it was made, or has another status or reason. Amount is in
// coins of Currency, and Fee in coins of FeeIn, the network's gas currency.
type ProposalChanged struct {
	ProposalID string        `json:"proposal_id"`
	From       Status        `json:"from"` // "" = it was made
	To         Status        `json:"to"`
	Network    chain.Network `json:"network"`
	Currency   string        `json:"currency"`
	Cold       chain.Address `json:"cold_address"`
	Hot        chain.Address `json:"hot_address"`
	Amount     string        `json:"amount"`
	Fee        string        `json:"fee"`
	FeeIn      string        `json:"fee_currency"`
	Tx         string        `json:"tx"` // "" = it is not known before the transaction is signed
	Reason     string        `json:"reason,omitempty"`
	By         string        `json:"by"` // who asked for it
	ExpiresAt  time.Time     `json:"expires_at"`
}

// EventKind implements stream.Body.
func (ProposalChanged) EventKind() string { return "refill.proposal_changed" }

// Kinds reads the events of this package.
func Kinds() stream.Kinds { return stream.KindOf[ProposalChanged]() }

// told is the event of a proposal that was in another status before.
func (s *Service) told(p *Proposal, from Status, now time.Time) (storage.Event, error) {
	e := ProposalChanged{
		ProposalID: p.ID, From: from, To: p.Status, Network: p.Network, Currency: p.Currency, Cold: p.From, Hot: p.To,
		Tx: p.Tx, Reason: p.Reason, By: p.By, ExpiresAt: p.ExpiresAt,
	}
	if c, err := s.c.Registry.Currency(p.Currency); err == nil {
		e.Amount = c.Decimal(p.Amount).String()
	}
	if gas, err := s.c.Registry.Gas(p.Network); err == nil {
		e.Fee, e.FeeIn = gas.Decimal(p.Fee).String(), gas.Code
	}
	return stream.Tell(e, p.ID, now)
}
