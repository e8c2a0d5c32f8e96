package cardano

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// blockfrost is a provider's node.
type blockfrost struct {
	transport.Endpoint
	transport.Trust
	url string
}

func newBlockfrost(o *Options, b *transport.Budget) *blockfrost {
	header := o.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if o.Project != "" {
		header.Set("project_id", o.Project)
	}
	n := &blockfrost{
		Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: header, Max: o.MaxBody, Refusals: []int{400, 403, 404, 425}, Budget: b},
		url:      o.Blockfrost,
	}
	n.Hide(o.Blockfrost)
	return n
}

// provided is an answer's own word that it is none.
type provided struct {
	Status  int64  `json:"status_code"`
	Error   string `json:"error"`
	Message string `json:"message"`
}

func missing(err error) bool {
	var r *transport.ReplyError
	return errors.As(err, &r) && r.Code == http.StatusNotFound
}

func (n *blockfrost) answered(path string, raw []byte, err error, out any) error {
	if err != nil {
		n.Broke()
		return fmt.Errorf("%s: %w", path, err)
	}
	var refused provided
	if json.Unmarshal(raw, &refused) == nil && refused.Status != 0 {
		return &transport.ReplyError{Method: path, Code: refused.Status, Message: n.Redact(refused.Error + ": " + refused.Message)}
	}
	if json.Unmarshal(raw, out) != nil {
		return fmt.Errorf("%w: %s: its answer is not the JSON expected", chain.ErrNode, path)
	}
	return nil
}

func (n *blockfrost) get(ctx context.Context, path string, out any) error {
	raw, err := n.Get(ctx, n.url+path)
	return n.answered(path, raw, err, out)
}

func (n *blockfrost) ask(ctx context.Context, path string, out any) error {
	err := n.Check(func() error {
		var genesis struct {
			Magic int64 `json:"network_magic"`
		}
		if err := n.get(ctx, "/genesis", &genesis); err != nil {
			return err
		}
		return rightMagic(genesis.Magic)
	})
	if err != nil {
		return err
	}
	return n.get(ctx, path, out)
}

// pages reads a list to its end.
func pages[T any](ctx context.Context, n *blockfrost, path string, most int) (all []T, err error) {
	const page = 100
	for i := 1; ; i++ {
		var part []T
		mark := "?"
		if slices.Contains([]byte(path), '?') {
			mark = "&"
		}
		if err := n.ask(ctx, fmt.Sprintf("%s%scount=%d&page=%d", path, mark, page, i), &part); err != nil {
			return nil, err
		}
		if all = append(all, part...); len(part) < page {
			return all, nil
		}
		if len(all) > most {
			return nil, fmt.Errorf("%w: %s lists more than can be", chain.ErrNode, path)
		}
	}
}

// maxList is the most entries that are read of one list.
const maxList = 1_000_000

type providedBlock struct {
	Time   int64  `json:"time"`
	Height *int64 `json:"height"`
	Hash   string `json:"hash"`
	Parent string `json:"previous_block"`
	Slot   *int64 `json:"slot"`
	Count  int    `json:"tx_count"`
}

func (p *providedBlock) read() (chain.Block, error) {
	if p.Height == nil || p.Slot == nil || !isHash(p.Hash) || !isHash(p.Parent) || *p.Slot < zeroSlot || timeOf(*p.Slot).Unix() != p.Time {
		return chain.Block{}, fmt.Errorf("%w: block %.80q is none of this age, or its slot is not of its time", chain.ErrNode, p.Hash)
	}
	return chain.Block{Height: *p.Height, Hash: p.Hash, Parent: p.Parent, Time: timeOf(*p.Slot)}, nil
}

func (n *blockfrost) block(ctx context.Context, name string) (chain.Block, error) {
	var p providedBlock
	if err := n.ask(ctx, "/blocks/"+name, &p); err != nil {
		return chain.Block{}, err
	}
	return p.read()
}

func (n *blockfrost) tip(ctx context.Context) (chain.Block, error) { return n.block(ctx, "latest") }

func (n *blockfrost) at(ctx context.Context, _ chain.Block, height int64) (chain.Block, error) {
	b, err := n.block(ctx, strconv.FormatInt(height, 10))
	if err == nil && b.Height != height {
		err = fmt.Errorf("%w: asked for block %d, got %d", chain.ErrNode, height, b.Height)
	}
	return b, err
}

// view is a reading of the chain below a head.
type view struct {
	n   *blockfrost
	top int64
}

func (n *blockfrost) open(ctx context.Context) (reader, error) {
	head, err := n.tip(ctx)
	return &view{n, head.Height}, err
}

func (v *view) close()      {}
func (v *view) head() int64 { return v.top }

func (v *view) stands(ctx context.Context, b chain.Block) (bool, error) {
	got, err := v.n.block(ctx, b.Hash)
	if missing(err) {
		return false, nil
	}
	return got.Hash == b.Hash && got.Height == b.Height, err
}

func (v *view) after(ctx context.Context, last chain.Block, n int) ([]block, error) {
	var list []providedBlock
	path := "/blocks/" + last.Hash + "/next"
	if err := v.n.ask(ctx, path+"?count="+strconv.Itoa(min(n, 100)), &list); err != nil {
		return nil, err
	}
	list = list[:min(n, len(list))]
	out := make([]block, len(list))
	for i := range list {
		b, err := list[i].read()
		if err != nil {
			return nil, err
		}
		out[i].Block = b
		if out[i].txs, err = v.n.transactions(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// transactions are all of a block, as many as it says that it has.
func (n *blockfrost) transactions(ctx context.Context, p *providedBlock) ([]*tx, error) {
	if p.Count == 0 {
		return nil, nil
	}
	type item struct {
		ID   string `json:"tx_hash"`
		CBOR string `json:"cbor"`
	}
	list, err := pages[item](ctx, n, "/blocks/"+p.Hash+"/txs/cbor", 100_000)
	if err != nil {
		return nil, err
	}
	if len(list) != p.Count {
		return nil, fmt.Errorf("%w: block %s has %d transactions, it gives %d", chain.ErrNode, p.Hash, p.Count, len(list))
	}
	out := make([]*tx, len(list))
	for i, x := range list {
		if out[i], err = readHex(x.ID, x.CBOR); err != nil {
			return nil, fmt.Errorf("%w: block %s: %w", chain.ErrNode, p.Hash, err)
		}
	}
	return out, nil
}

func (n *blockfrost) parameters(ctx context.Context) (params, error) {
	var got struct {
		PerByte   int64  `json:"min_fee_a"`
		Fixed     int64  `json:"min_fee_b"`
		MaxSize   int64  `json:"max_tx_size"`
		PerOutput string `json:"coins_per_utxo_size"`
	}
	if err := n.ask(ctx, "/epochs/latest/parameters", &got); err != nil {
		return params{}, err
	}
	per, err := strconv.ParseInt(got.PerOutput, 10, 64)
	if err != nil {
		per = 0
	}
	return checked(params{PerByte: got.PerByte, Fixed: got.Fixed, MaxSize: got.MaxSize, PerOutput: per})
}

type amount struct {
	Unit     string `json:"unit"`
	Quantity string `json:"quantity"`
}

type providedOutput struct {
	Address    string   `json:"address"`
	Amount     []amount `json:"amount"`
	Index      uint32   `json:"output_index"`
	Collateral bool     `json:"collateral"` // made only where scripts did not agree
	Script     *string  `json:"reference_script_hash"`
	By         *string  `json:"consumed_by_tx"`
}

func (n *blockfrost) outputs(ctx context.Context, id [32]byte) ([]providedOutput, error) {
	var got struct {
		Hash    string           `json:"hash"`
		Outputs []providedOutput `json:"outputs"`
	}
	err := n.ask(ctx, fmt.Sprintf("/txs/%x/utxos", id), &got)
	if missing(err) {
		return nil, nil
	}
	if err == nil && got.Hash != hex.EncodeToString(id[:]) {
		err = fmt.Errorf("%w: asked for the outputs of %x, it tells of %.80q", chain.ErrNode, id, got.Hash)
	}
	return got.Outputs, err
}

// of finds an output among those of its transaction, each of which is read once.
func (n *blockfrost) of(ctx context.Context, read map[[32]byte][]providedOutput, o outpoint) (*providedOutput, error) {
	list, ok := read[o.id]
	if !ok {
		var err error
		if list, err = n.outputs(ctx, o.id); err != nil {
			return nil, err
		}
		read[o.id] = list
	}
	for i := range list {
		if list[i].Index == o.index {
			return &list[i], nil
		}
	}
	return nil, nil
}

func (n *blockfrost) unspent(ctx context.Context, list []outpoint) ([]*output, error) {
	read, out := map[[32]byte][]providedOutput{}, make([]*output, len(list))
	for i, at := range list {
		p, err := n.of(ctx, read, at)
		if err != nil {
			return nil, err
		}
		if p == nil || p.By != nil {
			continue
		}
		o := &output{index: p.Index, script: p.Script != nil, tokens: assets{}}
		if o.address, err = bytesOf(chain.Address(p.Address)); err != nil {
			return nil, fmt.Errorf("%w: output %s is of no address", chain.ErrNode, at)
		}
		for _, a := range p.Amount {
			policy, name := "ada", "lovelace"
			if a.Unit != name {
				const long = 56
				if len(a.Unit) < long {
					return nil, fmt.Errorf("%w: a native token cannot be read", chain.ErrNode)
				}
				policy, name = a.Unit[:long], a.Unit[long:]
			}
			if err := o.add(policy, name, a.Quantity); err != nil {
				return nil, err
			}
		}
		out[i] = o
	}
	return out, nil
}

func (n *blockfrost) spenders(ctx context.Context, list []outpoint) ([]spender, error) {
	read, out := map[[32]byte][]providedOutput{}, make([]spender, len(list))
	blocks := map[string]chain.Block{}
	for i, at := range list {
		p, err := n.of(ctx, read, at)
		if err != nil {
			return nil, err
		}
		if p == nil || p.By == nil {
			continue
		}
		if out[i].tx = *p.By; !isHash(out[i].tx) {
			out[i].err = fmt.Errorf("%w: it does not tell what spent %s", follow.ErrTorn, at)
			continue
		}
		b, ok := blocks[out[i].tx]
		if !ok {
			if b, err = n.blockOf(ctx, out[i].tx); errors.Is(err, follow.ErrTorn) {
				out[i].err = err
				continue
			} else if err != nil {
				return nil, err
			}
			blocks[out[i].tx] = b
		}
		out[i].block = b
	}
	return out, nil
}

// blockOf is the block of a transaction. The error is follow.ErrTorn where it is in none.
func (n *blockfrost) blockOf(ctx context.Context, id string) (chain.Block, error) {
	var at struct {
		Block string `json:"block"`
	}
	err := n.ask(ctx, "/txs/"+id, &at)
	if err == nil && !isHash(at.Block) {
		err = fmt.Errorf("%w: transaction %s is in no block", follow.ErrTorn, id)
	}
	if err == nil {
		var b chain.Block
		if b, err = n.block(ctx, at.Block); err == nil {
			return b, nil
		}
	}
	if missing(err) { // it named that itself, before a fork perhaps
		err = follow.Torn(err)
	}
	return chain.Block{}, err
}

func (n *blockfrost) waits(ctx context.Context, id string) (bool, error) {
	var got struct {
		Tx struct {
			Hash string `json:"hash"`
		} `json:"tx"`
	}
	err := n.ask(ctx, "/mempool/"+id, &got)
	if missing(err) {
		return false, nil
	}
	if err == nil && got.Tx.Hash != id {
		err = fmt.Errorf("%w: asked whether %s waits, it tells of %.80q", chain.ErrNode, id, got.Tx.Hash)
	}
	return err == nil, err
}

func (n *blockfrost) balance(ctx context.Context, a chain.Address) (int64, error) {
	list, err := pages[providedOutput](ctx, n, "/addresses/"+string(a)+"/utxos", maxList)
	if missing(err) {
		return 0, nil // one that was never paid
	}
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, p := range list {
		for _, x := range p.Amount {
			if x.Unit != "lovelace" {
				continue
			}
			v, err := strconv.ParseInt(x.Quantity, 10, 64)
			if err != nil || v < 0 || v > maxLovelace-sum {
				return 0, fmt.Errorf("%w: an amount cannot be read, or is more than there is", chain.ErrNode)
			}
			sum += v
		}
	}
	return sum, nil
}

func (n *blockfrost) paying(ctx context.Context, a chain.Address, _ chain.Block, from, to int64) ([]block, error) {
	type item struct {
		ID     string `json:"tx_hash"`
		Height int64  `json:"block_height"`
	}
	list, err := pages[item](ctx, n, fmt.Sprintf("/addresses/%s/transactions?from=%d&to=%d", a, from, to), maxList)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []block
	for _, x := range list {
		if !isHash(x.ID) || x.Height < from || x.Height > to {
			return nil, fmt.Errorf("%w: it lists %.80q of block %d between %d and %d", chain.ErrNode, x.ID, x.Height, from, to)
		}
		var raw struct {
			CBOR string `json:"cbor"`
		}
		if err := n.ask(ctx, "/txs/"+x.ID+"/cbor", &raw); err != nil {
			return nil, err
		}
		t, err := readHex(x.ID, raw.CBOR)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", chain.ErrNode, err)
		}
		if len(out) == 0 || out[len(out)-1].Height != x.Height {
			b, err := n.at(ctx, chain.Block{}, x.Height)
			if err != nil {
				return nil, err
			}
			out = append(out, block{Block: b})
		}
		out[len(out)-1].txs = append(out[len(out)-1].txs, t)
	}
	return out, nil
}

func (n *blockfrost) submit(ctx context.Context, raw []byte) (id string, err error) {
	var genesis json.RawMessage
	if err := n.ask(ctx, "/genesis", &genesis); err != nil {
		return "", err
	}
	const path = "/tx/submit"
	answer, err := n.PostKind(ctx, n.url+path, "application/cbor", raw)
	err = n.answered(path, answer, err, &id)
	return id, err
}
