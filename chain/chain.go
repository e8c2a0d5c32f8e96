package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Network is the code of a chain as responses show it: "ETH", "TRX", "BTC" …
type Network string

// Address is a destination in the network's own canonical writing, as
// Client.ParseAddress returns it. Addresses compare by bytes.
type Address string

// Block identifies one block. Parent links it to the one before.
type Block struct {
	Height int64
	Hash   string
	Parent string
	Time   time.Time
}

// Tip is what a node says about the end of its chain.
type Tip struct {
	Head Block
	// Safe and Final are the heights that the network itself calls so;
	// −1 where it has no such notion.
	Safe  int64
	Final int64
}

// Transfer is one movement of value to one address, as a client saw it: already
// known to have been executed by the chain, and of the contract named.
type Transfer struct {
	Tx      string // hash, canonical lower case where hex
	Ordinal int    // place within the tx: output index, log ordinal inside the tx, −1 for a native coin's own value
	Block   Block  // zero while in the mempool
	// Currency is the code of a registered currency, "" where the asset is
	// none of them; Contract then says which one it was.
	Currency string
	Contract string
	From, To Address
	Memo     string
	// Amount is exact, in whole coins. A client never rounds it.
	Amount decimal.Decimal
	// Spends lists what the tx consumed, "txid:n" or "address/nonce": a
	// replacement shares one with what it replaces.
	Spends []string
	// Confirmable is the number of confirmations that this transfer needs at
	// least, beyond the currency's (an immature coinbase); usually 0.
	Confirmable int64
	// Unproven says that the value was seen only as a difference of balances or
	// in a way the node cannot prove; it goes to suspense, never to a payment.
	Unproven bool
	// Contradicted says that the token's contract moved another amount than it
	// logged: the transfer is Unproven too, and payouts of its currency are halted.
	Contradicted bool
}

// Scan is the answer to Client.Scan.
type Scan struct {
	// Rewound is how many blocks at the end of the trail are no longer on the
	// chain. Blocks continue from what is left of it.
	Rewound int
	// Blocks are ascending, each the parent of the next: Parent of the first is the last block
	// that is left of the trail. Of a client that read histories (FewWatch) they are those that
	// matter, and the head. Parent then is the block before it in the answer, or in the trail,
	// and heights have gaps.
	Blocks []ScannedBlock
}

// ScannedBlock is one block and what it moved to watched addresses.
type ScannedBlock struct {
	Block
	Transfers []Transfer
}

// Watch answers which addresses matter. It may say yes to one that is not
// watched (rarely), never no to one that is.
type Watch interface {
	// Sync reads addresses that were handed out by other processes. A client
	// calls it after it fetched a block and before it matches it.
	Sync(ctx context.Context) error
	Contains(a Address) bool
	// Open lists addresses whose balances are compared at each block, for transfers
	// of the native coin that only balances show: those that wait for one, and hot
	// ones. A client may compare a part of a long list. Other addresses are compared from
	// time to time: see Reconciler.
	Open() []Address
}

// FewWatch is a Watch that can list its addresses while they are few. A client can then ask its
// node for their histories, and read only the blocks that these name. Such a client that is no
// Multiplexer has a method FewAddresses() int, the most that it asks for: above 0 no addresses
// are taken ahead, as each of them would count.
type FewWatch interface {
	Watch
	// Few lists the addresses that were handed out and whose watch has not ended at a time: each
	// account once, where addresses share one. few is false where there are more than most: the
	// list then has no meaning.
	Few(ctx context.Context, most int, at time.Time) (list []Address, few bool, err error)
}

// Client is what one network can do. Every method may be called concurrently,
// returns when ctx ends, and answers from one consistent view of the node or
// with an error: an error, an unknown block or a node behind are never an empty
// result. Errors wrap ErrNode where the node is at fault.
type Client interface {
	Network() Network

	// ParseAddress validates and returns the canonical form. The error is an
	// *AddressError.
	ParseAddress(s string) (Address, error)

	// AddressOf is the address that belongs to a public key, in the form the
	// library uses for its own addresses.
	AddressOf(pub PublicKey) (Address, error)

	// Tip returns the head, and what the network calls safe and final. The
	// first call of a client also checks that the node is on the right chain.
	Tip(ctx context.Context) (Tip, error)

	// Scan reads at most max blocks that follow the trail, a list of blocks
	// already processed, oldest first, without other gaps than the client left
	// itself. An empty trail starts at the head: the answer is the head alone
	// without transfers. Where no entry of the trail is on the chain any more the
	// error is ErrDeepFork.
	Scan(ctx context.Context, trail []Block, w Watch, max int) (Scan, error)

	// EstimateFee says what sending this would cost, in the network's gas
	// currency. An empty To stands for a typical recipient, an empty From for a
	// typical sender that has enough.
	EstimateFee(ctx context.Context, in Intent) (Fee, error)

	// Build makes the unsigned transaction of an order. It neither signs nor
	// sends. ErrShort (wrapped) where the sender does not have what it takes;
	// ErrRejected where it can never be built as ordered.
	Build(ctx context.Context, o Order) (Unsigned, error)

	// Assemble puts the signatures in: one per digest, in order. It verifies
	// each and returns the bytes to store and then to broadcast.
	Assemble(u Unsigned, sigs []Signature) (Signed, error)

	// Broadcast sends what was stored. Already known is success. Any error is an
	// unknown outcome unless it wraps ErrRejected with proof that no node of the
	// network can ever accept the bytes. It wraps ErrOccupied where the node keeps
	// another transaction in its place and takes none that pays more.
	Broadcast(ctx context.Context, s Stored) error

	// Status tells what became of attempts, in the order asked. An attempt that
	// is not understood, or of which the node contradicts itself, is Unknown and
	// holds up no other. An error is the whole call's: the node was not reached, or
	// gave no answer.
	Status(ctx context.Context, attempts ...Attempt) ([]Status, error)

	// Inspector reads back what a payload does, for signers.
	Inspector
}

// Inspector decodes an unsigned payload with no help from whoever built it, so
// that a signer sees for itself what it is asked to sign.
type Inspector interface {
	// Inspect returns what the payload spends, pays and may cost, and the
	// digests to be signed. It needs no node.
	Inspect(payload []byte) (Unsigned, error)
}

// Optional abilities of a Client.
type (
	// Mempool sees transfers before they are in a block.
	Mempool interface {
		// Pending returns transfers to watched addresses that wait to be mined.
		Pending(ctx context.Context, w Watch) ([]Transfer, error)
	}
	// Balancer reads what an address holds at the head, in whole coins.
	Balancer interface {
		Balance(ctx context.Context, currency string, a Address) (decimal.Decimal, error)
	}
	// Metered is a client that counts the calls to its nodes.
	Metered interface {
		// Usage tells of each node. It asks none. Safe for concurrent use.
		Usage() []Usage
	}
	// Deliverer knows recipients that cannot take a payment.
	Deliverer interface {
		// Deliverable looks at the recipient as things are now. The error is an
		// *AddressError where it cannot take the payment; any other says nothing.
		Deliverable(ctx context.Context, currency string, to Address, memo string, a ledger.Amount) error
	}
	// Tagger takes apart an address that carries a memo: an X-address of the XRP
	// Ledger, a muxed account of Stellar. ok is false for every other address.
	Tagger interface {
		Untag(a Address) (account Address, memo string, ok bool)
	}
	// VaultParser is a network on which programs hold coins at addresses that no key signs for,
	// such as the vault of a multisignature program. ParseAddress refuses them, as most are no
	// wallets.
	VaultParser interface {
		// ParseVault gives such an address its canonical form, or is an *AddressError. Whether it
		// can take a payment a Deliverer says.
		ParseVault(s string) (Address, error)
	}
	// Multiplexer gives one account any number of addresses, on networks where an
	// account of its own for each payment would cost its reserve. A payment to such
	// an address arrives at the account, and Scan reports the address as To where
	// both are watched. Untag takes it apart again.
	Multiplexer interface {
		Tagger
		Multiplex(account Address, id uint32) (Address, error)
	}
	// Noncer reads the next nonce of an address at the head, pending not counted.
	Noncer interface {
		Nonce(ctx context.Context, a Address) (uint64, error)
	}
	// Historian lists executed transfers to an address between two heights,
	// whatever the cursor says: for RecoverDeposits.
	Historian interface {
		History(ctx context.Context, a Address, from, to int64) ([]Transfer, error)
	}
	// Sponsored is a network on which another address than the sender can pay the
	// network: its Build takes Intent.Payer, whose key signs too.
	Sponsored interface {
		// Sponsored reports whether an intent's fee can be another's.
		Sponsored(in Intent) bool
	}
	// Coster is a network that may take more for a transaction than its payload tells, as to
	// make the recipient's account.
	Coster interface {
		// MostCost is the most that the network may take for a payload, in units of its gas
		// currency: at least what Inspect says. It needs no node.
		MostCost(payload []byte) (ledger.Amount, error)
	}
	// ParentPayer is a network of outputs on which a transaction that waits can be
	// paid for by one that spends what it returns to us (child pays for parent).
	ParentPayer interface {
		// ChildFee is the price of a transaction with one of our outputs as input and one
		// as output, at which it and its parent together pay what EstimateFee asks for,
		// and an eighth more than the parent does alone. The parent is signed, and has
		// paid so much, in units of the gas currency.
		ChildFee(ctx context.Context, in Intent, parent []byte, paid ledger.Amount) (Fee, error)
	}
	// ColdSpender is a network on which coins of a cold address are spent by a transaction
	// that is made here and signed elsewhere. A descriptor says which keys spend them; none
	// of them is private. On a network of accounts it is the address itself.
	ColdSpender interface {
		// ColdAddress is the address whose coins the keys of a descriptor spend. It needs no
		// node. The error wraps ErrRejected where the descriptor is none.
		ColdAddress(descriptor string) (Address, error)
		// ProposeCold makes a transaction that pays Intent.Amount to Intent.To from the
		// descriptor's address, at a fee of at most Intent.MaxCost. On a network of outputs it
		// spends some of Order.Coins, which lie there, and the rest goes back, or with Intent.All
		// as many as fit, which pay all that they are less the fee; coins that
		// the node knows to be spent are left out. On a network of accounts it has the
		// address's next nonce, and the address pays the fee. tx is its hash, whoever signs
		// it; "" where the hash depends on the signature. ErrShort: the address has too little
		// for the amount or the fee; ErrTooDear: the fee is more; ErrOccupied: a transaction of the
		// address waits; errors.ErrUnsupported: no key signs for the address.
		ProposeCold(ctx context.Context, descriptor string, o Order) (u Unsigned, tx string, err error)
		// AcceptCold reads what came back for a payload of ProposeCold that spends coins of an
		// address, and makes the signed transaction of it. It needs no node. The error wraps
		// ErrRejected, and names what is not as it was proposed, or which signature is missing
		// or wrong.
		AcceptCold(from Address, payload, signed []byte) (Signed, error)
	}
	// ColdFinder is a ColdSpender on a network of accounts, where a node is asked what became
	// of a transaction that anybody may have signed and sent.
	ColdFinder interface {
		ColdSpender
		// FindCold says what became of a payload of ProposeCold. hint is a hash that its
		// transaction may have, "" = none is known. Included: tx is its hash. Conflicted: another
		// transaction, Status.By where it is known, has the nonce.
		FindCold(ctx context.Context, from Address, payload []byte, hint string) (tx string, st Status, err error)
		// ShowCold writes a payload as JSON, for people and for tools that sign it. It needs no
		// node.
		ShowCold(from Address, payload []byte) ([]byte, error)
	}
	// ManyBalancer reads many balances at once, each as Balancer does.
	ManyBalancer interface {
		// Balances reads what each address holds of a currency at the head, in the order
		// asked, exactly, in whole coins. nil: this read does not say, ask Balance. It takes
		// about one call for 100 addresses, and never one for each. The error wraps
		// errors.ErrUnsupported where the node cannot read many at once now.
		Balances(ctx context.Context, currency string, list []Address) ([]*decimal.Decimal, error)
	}
	// Reconciler finds native coins that came without a transaction's own value, on
	// networks where contracts pay by inner calls. Amounts are exact, in whole coins of
	// the gas currency.
	Reconciler interface {
		// Holdings reads what each address held after a block that was scanned, in the
		// order asked, of any number of addresses. ErrNoState where the node no longer
		// has the state of that block.
		Holdings(ctx context.Context, at Block, list []Address) ([]decimal.Decimal, error)
		// Spent is what each sender paid with its transactions up to and with a block, in
		// the order asked. ErrNoState as in Holdings.
		Spent(ctx context.Context, at Block, senders []Sender) ([]Spent, error)
		// Received lists the transfers of the native coin to the addresses after block
		// from, up to and with block to, found by comparing balances, with the
		// identities of Scan. ErrNoState as in Holdings, and where so many blocks moved coins
		// that fewer have to be asked about.
		Received(ctx context.Context, list []Address, from, to Block) ([]Transfer, error)
	}
	// OnDemand is a chain whose blocks are made when somebody asks for them: a simulated
	// one. Its newest block is never too old.
	OnDemand interface {
		OnDemand() bool
	}
	// Development is a network that its client makes up, so that its coins are worth
	// nothing.
	Development interface {
		// DevelopmentAddresses are of keys that anybody can make again. nil where an
		// address could be taken for one of a real network.
		DevelopmentAddresses() AddressSource
	}
	// Locator tells on which block a height is now: for the fork walk and audits.
	Locator interface {
		BlockAt(ctx context.Context, height int64) (Block, error)
	}
)

// Sender is an address of ours, and the hashes of all transactions that were ever signed
// for it with nonces from First on, landed or not.
type Sender struct {
	Address Address
	First   uint64
	Txs     []string
}

// Spent is what a Sender paid: the values and fees of its transactions from First on.
type Spent struct {
	Paid  decimal.Decimal
	Nonce uint64 // the next one after the block
	// Strange says that the address sent a transaction that is not among Txs. Paid then
	// lacks it.
	Strange bool
}

// Family says how a network keeps value.
type Family string

// The families.
const (
	AccountFamily Family = "account" // balances and nonces: deposits are forwarded
	UTXOFamily    Family = "utxo"    // outputs: deposits are spent where they are
)

// PublicKey is a serialised public key: 33 bytes compressed secp256k1, or 32
// bytes ed25519.
type PublicKey []byte

// KeyRef names a private key to a Signer: a derivation path, never the key.
type KeyRef string

// Derived is an address made from public material alone.
type Derived struct {
	Address Address
	Index   uint32
	Key     KeyRef
}

// AddressSource derives addresses without a private key.
type AddressSource interface {
	// Derive returns count addresses of the network from index from on. Deterministic:
	// what is stored is derived again and compared before it is shown or paid. The
	// error wraps ErrNoSource where the source has no keys of the network.
	Derive(ctx context.Context, n Network, from uint32, count int) ([]Derived, error)
}

// Purpose says what an intent is for.
type Purpose string

// The purposes of what we send.
const (
	ForWithdrawal Purpose = "withdrawal" // to somebody else
	ForSweep      Purpose = "sweep"      // a deposit address to the hot address
	ForGas        Purpose = "gas"        // the hot address to a deposit address, to pay a sweep's fee
	ForCancel     Purpose = "cancel"     // to ourselves: fills a nonce, takes inputs back, or pays for a parent
)

// Intent is a decision to send, before any transaction exists.
type Intent struct {
	ID       string
	Purpose  Purpose
	Tenant   string
	Network  Network
	Currency string
	From     Address // the sending address; "" on UTXO networks: any coin of the tenant
	FromKey  KeyRef
	// Payer pays the network instead of From, on networks that are Sponsored; ""
	// = From does.
	Payer    Address
	PayerKey KeyRef
	To       Address
	Memo     string
	Amount   ledger.Amount // in the currency's units; All ignores it
	// All sends everything the address holds, less the fee for a native coin.
	All bool
	// MaxCost bounds what the network may take, in units of the gas currency.
	MaxCost ledger.Amount
	// Confirmations after which the owner wants to be told that it is executed.
	Confirmations int64
	// Mandate of a withdrawal proves that the order was given: see package mandate. "" =
	// none.
	Mandate string
}

// Fee is a price for getting something into the chain.
type Fee struct {
	Currency string        // the gas currency
	Cost     ledger.Amount // expected
	Max      ledger.Amount // the most it may take; what the sender must have
	// Least is what the network takes the transfer for as things are: a sender that has at
	// least this much and less than Max sends it, with less room for a rising price. 0 where
	// the sender must have Max.
	Least  ledger.Amount
	Params []byte // the client's own, given back to Build
}

// Coin is an unspent output of ours.
type Coin struct {
	Outpoint string // "txid:n"
	Address  Address
	Key      KeyRef
	Amount   ledger.Amount
}

// Order is all that Build needs: nothing is chosen behind outgoing's back.
type Order struct {
	Intent  Intent
	Also    []Intent // UTXO networks: withdrawals of amounts that the same transaction pays
	Fee     Fee
	Nonce   uint64  // account networks
	Coins   []Coin  // UTXO networks: exactly these are spent
	Change  Address // UTXO networks: where the rest goes
	Attempt int     // 1, 2 … of this intent
}

// MaxCost is what the network may take for all that the order pays.
func (o *Order) MaxCost() (ledger.Amount, error) {
	return sum(o.Intent, o.Also, func(in *Intent) ledger.Amount { return in.MaxCost })
}

// Amount is what the order pays others: that of Intent.All is not known here, and 0.
func (o *Order) Amount() (ledger.Amount, error) {
	return sum(o.Intent, o.Also, func(in *Intent) ledger.Amount { return in.Amount })
}

func sum(in Intent, also []Intent, of func(*Intent) ledger.Amount) (ledger.Amount, error) {
	all := of(&in)
	for i := range also {
		var err error
		if all, err = all.Add(of(&also[i])); err != nil {
			return 0, err
		}
	}
	return all, nil
}

// Output is one payment that a transaction makes.
type Output struct {
	To       Address
	Currency string
	Amount   ledger.Amount
	Change   bool // back to ourselves
}

// Unsigned is a transaction ready to be signed.
type Unsigned struct {
	Network Network
	Payload []byte // the client's serialisation; Inspect reads it
	// Spends lists "address/nonce" or outpoints: what makes two attempts conflict.
	// Where a network has neither, it names the transaction itself: "tx/" and its
	// hash. Two attempts then never conflict, and each dies of its time alone.
	Spends  []string
	Outputs []Output
	Memo    string
	MaxCost ledger.Amount // the most the network can take
	Digests []Digest
}

// Digest is one thing to sign and the address whose key must sign it.
type Digest struct {
	Hash [32]byte
	From Address
	// Whole says that the payload itself is signed, as ed25519 does on Solana;
	// Hash is then its SHA-256.
	Whole bool
}

// Signed is what a key signs of a payload for this digest.
func (d Digest) Signed(payload []byte) []byte {
	if d.Whole {
		return payload
	}
	return d.Hash[:]
}

// Signature is 65 bytes r‖s‖v for secp256k1 (v 0 or 1), 64 for ed25519.
type Signature []byte

// Signed is a complete transaction.
type Signed struct {
	Tx  string // hash
	Raw []byte
}

// SignRequest is what a Signer gets: what is meant, and what would be signed.
type SignRequest struct {
	Intent   Intent
	Also     []Intent // see Order
	Attempt  string   // unique; the same attempt is signed for one payload only
	Unsigned Unsigned
	Keys     []KeyRef // one per digest
	// Endings are the texts of mandate.Ending that the orders have: which of their earlier
	// transactions are dead. Without them a transaction is refused that does not exclude
	// those before it.
	Endings []string
}

// Signer gives signatures and nothing else. It checks for itself that the
// payload does what the intent says, within its own limits, and refuses to sign
// two different payloads for one attempt, two intents for one nonce or input, or two
// transactions for one withdrawal that could both be included in a block.
// Errors wrap ErrRefused where it refuses for good.
type Signer interface {
	Sign(ctx context.Context, r SignRequest) ([]Signature, error)
}

// ManySigner is a Signer that answers many requests with few calls to the store of what it
// signed. It checks each request by itself, and signs or refuses it: signatures i and error
// i belong to request i.
type ManySigner interface {
	Signer
	SignMany(ctx context.Context, rs []SignRequest) ([][]Signature, []error)
}

// Pinger is an optional ability of a Signer that is elsewhere: whether it can be reached now.
// It signs nothing.
type Pinger interface {
	Ping(ctx context.Context) error
}

// Stored is a signed transaction that was committed to a store. Only packages
// under chain/ can make one, after the commit: sending before storing cannot
// be written.
type Stored = proof.Stored

// Attempt identifies one signed transaction of ours to Status.
type Attempt struct {
	Tx     string
	Raw    []byte
	Spends []string
	// MaxCost is Unsigned.MaxCost, 0 where it is not known. On UTXO networks it is what the
	// transaction costs: a client whose node keeps no index of transactions gives it back as
	// Status.Cost.
	MaxCost ledger.Amount
}

// State is what the network says of an attempt.
type State string

// The states of an attempt. Only Conflicted-at-finality and a final revert are
// proof of death; Unknown proves nothing.
const (
	Unknown  State = "unknown"  // not understood, or no node knows it
	Pending  State = "pending"  // in a mempool
	Included State = "included" // in a block
	// Conflicted: another tx took its nonce or input, in a block; or it was only
	// valid for a time, which is over, and By is empty.
	Conflicted State = "conflicted"
)

// AtHeight finds a height in blocks that are sorted by height.
func AtHeight(blocks []Block, height int64) (b Block, found bool) {
	i, found := slices.BinarySearchFunc(blocks, height, func(b Block, height int64) int { return cmp.Compare(b.Height, height) })
	if found {
		b = blocks[i]
	}
	return b, found
}

// Status is one attempt's state at the node's head.
type Status struct {
	State         State
	Block         Block // where it, or what conflicts with it, was included
	Confirmations int64
	Final         bool // Block can no longer be undone, by the network's own word or never where it has none
	Executed      bool // Included: it did what it says; false = reverted
	// Shortfall is how much less than ordered reached the recipient of an executed
	// transfer, in units of its currency, rounded up: a token may take a fee. 0 = nothing
	// is missing.
	Shortfall ledger.Amount
	// Cost is what the network took, in units of the gas currency, rounded up. 0 of a transaction
	// in a block: the node cannot say.
	Cost ledger.Amount
	// By is the conflicting tx, where known.
	By string
}

// Errors that clients, signers and outgoing share.
var (
	ErrNode     = errors.New("chain: the node failed or contradicts itself")
	ErrBehind   = errors.New("chain: the node is behind what was already seen")
	ErrDeepFork = errors.New("chain: no block of the trail is on the chain any more")
	ErrWrongNet = errors.New("chain: the node is on another chain")
	ErrUnits    = errors.New("chain: a token has other decimals on chain than in the Registry")
	ErrShort    = errors.New("chain: the sending address does not hold enough")
	ErrRejected = errors.New("chain: can never be accepted by the network")
	ErrRefused  = errors.New("chain: the signer refuses")
	// ErrNoState is a node that no longer has the state of an old block. It is ErrNode.
	ErrNoState = fmt.Errorf("%w: it no longer has the state of this block", ErrNode)
	// ErrOccupied is a node that keeps another transaction in the place of the one that it
	// was sent. The outcome is unknown. It is ErrNode.
	ErrOccupied = fmt.Errorf("%w: it keeps another transaction in the place of this one", ErrNode)
	ErrTooDear  = errors.New("chain: the fee is above what the intent allows")
	ErrNoSource = errors.New("chain: no source derives addresses of network")
)

// DearError says that a transaction may cost Need, and that its intent allows Most, both in
// units of the network's gas currency. It is ErrTooDear. A client's Build returns it; the
// payout side may then raise the bound to Need.
type DearError struct{ Need, Most ledger.Amount }

func (e *DearError) Error() string {
	return fmt.Sprintf("%v: it may cost %d units, %d are allowed", ErrTooDear, e.Need, e.Most)
}

func (e *DearError) Unwrap() error { return ErrTooDear }

// UnfitError names coins that this transaction cannot spend, because of what their senders put into
// them: the payout side spends others in their place. A client's Build returns it.
type UnfitError struct {
	Outpoints []string
	Ever      bool  // no transaction of ours can
	Err       error // why
}

func (e *UnfitError) Error() string { return e.Err.Error() + ": " + strings.Join(e.Outpoints, ", ") }

func (e *UnfitError) Unwrap() error { return e.Err }

// Usage counts the calls of this process to one node.
type Usage struct {
	Node    string        // its name where a client has several
	Total   int64         // calls since this client was made
	Minute  int           // calls in the last minute, with those under way
	Most    int           // calls in any minute; 0 = no bound
	Waiting int           // calls that wait, as Most leaves no room for them
	Waited  time.Duration // for how long calls have waited without a break
	Resting time.Duration // for how long the node is not asked, as it has said; 0 = it is
}

// LimitedError is a node that was asked too often. It is chain.ErrNode.
type LimitedError struct {
	After time.Duration // the node's own word for how long to wait; 0 = none
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("%v: it was asked too often: ask less, or another (wait %s)", ErrNode, e.After)
}

// Unwrap makes it ErrNode.
func (e *LimitedError) Unwrap() error { return ErrNode }

// AddressError says why an address is not one.
type AddressError struct {
	Network Network
	Address string
	Reason  string
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("chain: not a %s address: %s", e.Network, e.Reason)
}
