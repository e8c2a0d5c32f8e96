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
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/fxamacker/cbor/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/safehttp"
)

// ogmios is an own node, as Ogmios and Kupo show it.
type ogmios struct {
	transport.Endpoint
	transport.Trust
	url, kupo string
	known     headers
}

func newOgmios(o *Options, b *transport.Budget) *ogmios {
	n := &ogmios{
		Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody, Refusals: []int{400, 404, 500}, Budget: b},
		url:      o.Ogmios, kupo: o.Kupo,
	}
	n.Hide(o.Ogmios)
	n.Hide(o.Kupo)
	return n
}

// headers remembers blocks by hash. That a block is known does not say that it is on the chain.
type headers struct {
	mu   sync.Mutex
	list map[string]chain.Block
}

const maxHeaders = 4096

func (h *headers) get(hash string) (chain.Block, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.list[hash]
	return b, ok
}

func (h *headers) put(b chain.Block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.list == nil || len(h.list) >= maxHeaders {
		h.list = map[string]chain.Block{}
	}
	h.list[b.Hash] = b
}

// point is where a block is.
type point struct {
	Slot int64  `json:"slot"`
	ID   string `json:"id"`
}

func pointOf(b chain.Block) point { return point{slotOf(b.Time), b.Hash} }

type request struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// result decodes what was answered to a method.
func (n *ogmios) result(method string, raw []byte, out any) error {
	var r reply
	if json.Unmarshal(raw, &r) != nil || r.Error == nil && len(r.Result) == 0 {
		return fmt.Errorf("%w: Ogmios answered %s with something else", chain.ErrNode, method)
	}
	if r.Error != nil {
		return &transport.ReplyError{Method: method, Code: r.Error.Code, Message: n.Redact(r.Error.Message)}
	}
	if err := json.Unmarshal(r.Result, out); err != nil {
		return fmt.Errorf("%w: Ogmios answered %s with something else", chain.ErrNode, method)
	}
	return nil
}

// ask is one question over HTTP.
func (n *ogmios) ask(ctx context.Context, method string, params, out any) error {
	if err := n.rightChain(ctx); err != nil {
		return err
	}
	return n.post(ctx, method, params, out)
}

func (n *ogmios) post(ctx context.Context, method string, params, out any) error {
	body, err := json.Marshal(request{"2.0", method, params})
	if err != nil {
		return fmt.Errorf("cardano: request: %w", err)
	}
	raw, err := n.Post(ctx, n.url, body)
	if err != nil {
		n.Broke()
		return fmt.Errorf("%s: %w", method, err)
	}
	return n.result(method, raw, out)
}

// rightChain checks the network's magic, once per connection that works.
func (n *ogmios) rightChain(ctx context.Context) error {
	return n.Check(func() error {
		var genesis struct {
			Magic int64 `json:"networkMagic"`
		}
		if err := n.post(ctx, "queryNetwork/genesisConfiguration", map[string]string{"era": "shelley"}, &genesis); err != nil {
			return err
		}
		return rightMagic(genesis.Magic)
	})
}

func rightMagic(got int64) error {
	switch got {
	case mainMagic:
		return nil
	case 0:
		return fmt.Errorf("%w: it does not say which network it is of", chain.ErrNode)
	}
	return fmt.Errorf("%w: its network's magic is %d, the main network's is %d", chain.ErrWrongNet, got, mainMagic)
}

// index asks Kupo.
func (n *ogmios) index(ctx context.Context, path string, out any) error {
	raw, err := n.Get(ctx, n.kupo+path)
	if err != nil {
		return fmt.Errorf("kupo: %w", err)
	}
	if json.Unmarshal(raw, out) != nil {
		return fmt.Errorf("%w: Kupo answered something else", chain.ErrNode)
	}
	return nil
}

// session is a WebSocket, on which the node remembers where it reads, and its head when the
// reading began.
type session struct {
	n    *ogmios
	conn *websocket.Conn
	end  context.CancelFunc
	ctx  context.Context //nolint:containedctx // its own deadline, of all that is asked on it
	tip  struct {
		point
		Height int64 `json:"height"`
	}
}

// longestSession bounds a reading: where a chain gets shorter, a node answers only when it has
// grown again.
const longestSession = time.Minute

func (n *ogmios) dial(ctx context.Context) (*session, error) {
	if err := n.rightChain(ctx); err != nil {
		return nil, err
	}
	s := &session{n: n}
	s.ctx, s.end = context.WithTimeout(ctx, longestSession)
	base := n.HTTP.Transport
	if bounded, ok := base.(*safehttp.Transport); ok {
		base = bounded.Base // which takes no change of protocols; the session is bounded itself
	}
	client := &http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	conn, resp, err := websocket.Dial(s.ctx, "ws"+strings.TrimPrefix(n.url, "http"), &websocket.DialOptions{HTTPClient: client, HTTPHeader: n.Header.Clone()})
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		defer s.end()
		n.Broke()
		return nil, s.broken(err)
	}
	s.conn = conn
	conn.SetReadLimit(n.Max)
	return s, nil
}

// broken keeps the cause and drops what identifies the node.
func (s *session) broken(err error) error {
	if cause := s.ctx.Err(); cause != nil {
		return fmt.Errorf("%w: %w", chain.ErrNode, cause)
	}
	return fmt.Errorf("%w: %s", chain.ErrNode, s.n.Redact(err.Error()))
}

func (s *session) close() {
	_ = s.conn.CloseNow()
	s.end()
}

func (s *session) send(method string, params any) error {
	body, err := json.Marshal(request{"2.0", method, params})
	if err != nil {
		return fmt.Errorf("cardano: request: %w", err)
	}
	s.n.Budget.Note(1)
	if err := s.conn.Write(s.ctx, websocket.MessageText, body); err != nil {
		return s.broken(err)
	}
	return nil
}

func (s *session) receive(method string, out any) error {
	_, raw, err := s.conn.Read(s.ctx)
	if err != nil {
		return s.broken(err)
	}
	return s.n.result(method, raw, out)
}

func (s *session) call(method string, params, out any) error {
	if err := s.send(method, params); err != nil {
		return err
	}
	return s.receive(method, out)
}

const notFound = 1000 // Ogmios: none of the points is on the chain

// meet has the node read on from a point. ok is false where that is not on its chain. It
// reads the head anew.
func (s *session) meet(p any) (ok bool, err error) {
	const method = "findIntersection"
	var met struct {
		Tip json.RawMessage `json:"tip"`
	}
	err = s.call(method, map[string]any{"points": []any{p}}, &met)
	if refused := (*transport.ReplyError)(nil); errors.As(err, &refused) && refused.Code == notFound {
		return false, nil
	}
	if err == nil && (json.Unmarshal(met.Tip, &s.tip) != nil || !isHash(s.tip.ID)) {
		err = fmt.Errorf("%w: Ogmios does not say what its head is", chain.ErrNode)
	}
	return err == nil, err
}

func isHash(s string) bool {
	_, ok := parseHash(s)
	return ok
}

// wireBlock is a block in an answer.
type wireBlock struct {
	ID           string `json:"id"`
	Ancestor     string `json:"ancestor"`
	Height       int64  `json:"height"`
	Slot         int64  `json:"slot"`
	Transactions []struct {
		ID   string `json:"id"`
		CBOR string `json:"cbor"`
	} `json:"transactions"`
}

// next reads the n blocks after the point that was met.
func (s *session) next(n int) ([]block, error) {
	const method = "nextBlock"
	for range n + 1 { // the first answer names the point
		if err := s.send(method, nil); err != nil {
			return nil, err
		}
	}
	var out []block
	for i := range n + 1 {
		var step struct {
			Direction string     `json:"direction"`
			Block     *wireBlock `json:"block"`
		}
		if err := s.receive(method, &step); err != nil {
			return nil, err
		}
		switch {
		case step.Direction == "backward" && i == 0:
		case step.Direction == "backward":
			return nil, fmt.Errorf("%w: the chain changed while it was read", chain.ErrNode)
		case step.Direction == "forward" && i > 0 && step.Block != nil:
			b, err := step.Block.read()
			if err != nil {
				return nil, err
			}
			s.n.known.put(b.Block)
			out = append(out, b)
		default:
			return nil, fmt.Errorf("%w: Ogmios answered %s out of turn", chain.ErrNode, method)
		}
	}
	return out, nil
}

func (w *wireBlock) read() (block, error) {
	b := block{Block: chain.Block{Height: w.Height, Hash: w.ID, Parent: w.Ancestor, Time: timeOf(w.Slot)}}
	if !isHash(w.ID) || !isHash(w.Ancestor) || w.Height <= 0 || w.Slot < zeroSlot {
		return b, fmt.Errorf("%w: block %.80q is none of this age", chain.ErrNode, w.ID)
	}
	for _, x := range w.Transactions {
		if x.CBOR == "" {
			return b, fmt.Errorf("%w: it leaves out the bytes of transactions: start Ogmios with --include-transaction-cbor", chain.ErrNode)
		}
		t, err := readHex(x.ID, x.CBOR)
		if err != nil {
			return b, fmt.Errorf("%w: block %d: %w", chain.ErrNode, w.Height, err)
		}
		b.txs = append(b.txs, t)
	}
	return b, nil
}

// readHex reads a transaction and holds it against its id.
func readHex(id, text string) (*tx, error) {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, errors.New("a transaction is not hex")
	}
	t, err := readTx(raw)
	if err != nil {
		return nil, fmt.Errorf("transaction %.80q: %w", id, err)
	}
	if t.id != id {
		return nil, fmt.Errorf("transaction %.80q is another by its bytes: %s", id, t.id)
	}
	return t, nil
}

// before is a point of the chain that Kupo knows before a slot.
func (n *ogmios) before(ctx context.Context, slot int64) (point, error) {
	var at *struct {
		Slot int64  `json:"slot_no"`
		Hash string `json:"header_hash"`
	}
	if err := n.index(ctx, "/checkpoints/"+strconv.FormatInt(slot-1, 10), &at); err != nil {
		return point{}, err
	}
	if at == nil || !isHash(at.Hash) || at.Slot >= slot {
		return point{}, fmt.Errorf("%w: Kupo knows no block before slot %d: start it earlier, with --since", chain.ErrNode, slot)
	}
	return point{at.Slot, at.Hash}, nil
}

// mostSteps is how many blocks are read to come from a point that Kupo knows to another.
const mostSteps = 500

// whole reads the block at a point. The error is follow.ErrTorn where it is not on the chain.
func (n *ogmios) whole(ctx context.Context, s *session, p point) (block, error) {
	from, err := n.before(ctx, p.Slot)
	if err != nil {
		return block{}, err
	}
	gone := fmt.Errorf("%w: block %s of slot %d is not on the chain", follow.ErrTorn, p.ID, p.Slot)
	for range mostSteps {
		ok, err := s.meet(from)
		if err != nil {
			return block{}, err
		}
		if !ok || s.tip.Slot < p.Slot || s.tip.Slot <= from.Slot {
			return block{}, gone
		}
		next, err := s.next(1)
		switch {
		case err != nil:
			return block{}, err
		case len(next) == 0 || slotOf(next[0].Time) > p.Slot:
			return block{}, gone
		case next[0].Hash == p.ID:
			return next[0], nil
		}
		from = pointOf(next[0].Block)
	}
	return block{}, fmt.Errorf("%w: Kupo knows no block near slot %d: it is behind", chain.ErrNode, p.Slot)
}

// header is the block at a point, which is on the chain. The error is follow.ErrTorn where it
// is not.
func (n *ogmios) header(ctx context.Context, s *session, p point) (chain.Block, error) {
	b, ok := n.known.get(p.ID)
	if !ok {
		full, err := n.whole(ctx, s, p)
		return full.Block, err
	}
	on, err := s.stands(ctx, b)
	if err == nil && !on {
		err = fmt.Errorf("%w: block %s is not on the chain", follow.ErrTorn, p.ID)
	}
	return b, err
}

func (n *ogmios) open(ctx context.Context) (reader, error) {
	s, err := n.begin(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// begin opens a session and reads the head.
func (n *ogmios) begin(ctx context.Context) (*session, error) {
	s, err := n.dial(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.meet("origin"); err != nil {
		s.close()
		return nil, err
	}
	if s.tip.Height <= 0 {
		s.close()
		return nil, fmt.Errorf("%w: Ogmios does not say what its head is", chain.ErrNode)
	}
	return s, nil
}

func (s *session) head() int64 { return s.tip.Height }

func (s *session) stands(_ context.Context, b chain.Block) (bool, error) { return s.meet(pointOf(b)) }

func (s *session) after(_ context.Context, last chain.Block, n int) ([]block, error) {
	ok, err := s.meet(pointOf(last))
	if err != nil {
		return nil, err
	}
	if n = int(min(int64(n), s.tip.Height-last.Height)); !ok || n <= 0 {
		return nil, fmt.Errorf("%w: the chain changed while it was read", chain.ErrNode)
	}
	return s.next(n)
}

func (n *ogmios) tip(ctx context.Context) (chain.Block, error) {
	s, err := n.begin(ctx)
	if err != nil {
		return chain.Block{}, err
	}
	defer s.close()
	return n.header(ctx, s, s.tip.point)
}

func (n *ogmios) at(ctx context.Context, head chain.Block, height int64) (chain.Block, error) {
	s, err := n.begin(ctx)
	if err != nil {
		return chain.Block{}, err
	}
	defer s.close()
	const spacing, tries = 20, 40 // seconds between blocks, on average
	slot := slotOf(head.Time) - (head.Height-height)*spacing
	for range tries {
		from, err := n.before(ctx, slot)
		if err != nil {
			return chain.Block{}, err
		}
		if ok, err := s.meet(from); err != nil || !ok {
			return chain.Block{}, errors.Join(err, fmt.Errorf("%w: Kupo and Ogmios are not on the same chain", chain.ErrNode))
		}
		next, err := s.next(1)
		if err != nil || len(next) == 0 {
			return chain.Block{}, errors.Join(err, fmt.Errorf("%w: the chain changed while it was read", chain.ErrNode))
		}
		b := next[0].Block
		if ahead := height - b.Height; ahead >= 0 && ahead < mostSteps {
			return s.climb(b, ahead)
		}
		slot = slotOf(b.Time) + (height-b.Height)*spacing
	}
	return chain.Block{}, fmt.Errorf("%w: block %d was not found by its time", chain.ErrNode, height)
}

// climb goes so many blocks up.
func (s *session) climb(b chain.Block, steps int64) (chain.Block, error) {
	for steps > 0 {
		next, err := s.after(s.ctx, b, int(min(steps, 20)))
		if err != nil || len(next) == 0 {
			return chain.Block{}, errors.Join(err, fmt.Errorf("%w: the chain changed while it was read", chain.ErrNode))
		}
		b, steps = next[len(next)-1].Block, steps-int64(len(next))
	}
	return b, nil
}

type lovelace struct {
	ADA struct {
		Lovelace int64 `json:"lovelace"`
	} `json:"ada"`
}

func (n *ogmios) parameters(ctx context.Context) (params, error) {
	var got struct {
		PerByte   int64    `json:"minFeeCoefficient"`
		Fixed     lovelace `json:"minFeeConstant"`
		PerOutput int64    `json:"minUtxoDepositCoefficient"`
		MaxSize   struct {
			Bytes int64 `json:"bytes"`
		} `json:"maxTransactionSize"`
	}
	if err := n.ask(ctx, "queryLedgerState/protocolParameters", nil, &got); err != nil {
		return params{}, err
	}
	return checked(params{PerByte: got.PerByte, Fixed: got.Fixed.ADA.Lovelace, MaxSize: got.MaxSize.Bytes, PerOutput: got.PerOutput})
}

func checked(p params) (params, error) {
	if !p.sane() {
		return p, fmt.Errorf("%w: %w", chain.ErrNode, errParams)
	}
	return p, nil
}

// mostAsked is how many outputs one question names.
const mostAsked = 100

func (n *ogmios) unspent(ctx context.Context, list []outpoint) ([]*output, error) {
	found := map[outpoint]*output{}
	for part := range slices.Chunk(list, mostAsked) {
		type reference struct {
			Transaction struct {
				ID string `json:"id"`
			} `json:"transaction"`
			Index uint32 `json:"index"`
		}
		refs := make([]reference, len(part))
		for i, o := range part {
			refs[i].Transaction.ID, refs[i].Index = hex.EncodeToString(o.id[:]), o.index
		}
		var got []struct {
			reference
			Address string                            `json:"address"`
			Value   map[string]map[string]json.Number `json:"value"`
			Script  json.RawMessage                   `json:"script"`
		}
		if err := n.ask(ctx, "queryLedgerState/utxo", map[string]any{"outputReferences": refs}, &got); err != nil {
			return nil, err
		}
		for _, x := range got {
			o := &output{index: x.Index, script: len(x.Script) > 0, tokens: assets{}}
			id, ok := parseHash(x.Transaction.ID)
			var err error
			if o.address, err = bytesOf(chain.Address(x.Address)); err != nil || !ok {
				return nil, fmt.Errorf("%w: an output of Ogmios's cannot be read", chain.ErrNode)
			}
			for policy, names := range x.Value {
				for name, count := range names {
					if err := o.add(policy, name, string(count)); err != nil {
						return nil, err
					}
				}
			}
			found[outpoint{id, x.Index}] = o
		}
	}
	out := make([]*output, len(list))
	for i, o := range list {
		out[i] = found[o]
	}
	return out, nil
}

// add puts what is told of a value into an output: "ada" and "lovelace", or a policy and a name
// in hex.
func (o *output) add(policy, name, count string) error {
	v, err := strconv.ParseUint(count, 10, 63)
	if err != nil {
		return fmt.Errorf("%w: a value cannot be read", chain.ErrNode)
	}
	if policy == "ada" {
		o.coin = v
		return nil
	}
	p, err := hex.DecodeString(policy)
	t, e := hex.DecodeString(name)
	if err != nil || e != nil || len(p) != 28 || len(t) > 32 {
		return fmt.Errorf("%w: a native token cannot be read", chain.ErrNode)
	}
	if o.tokens[cbor.ByteString(p)] == nil {
		o.tokens[cbor.ByteString(p)] = map[cbor.ByteString]uint64{}
	}
	o.tokens[cbor.ByteString(p)][cbor.ByteString(t)] = v
	return nil
}

// match is what Kupo says of an output.
type match struct {
	Value struct {
		Coins int64 `json:"coins"`
	} `json:"value"`
	Created kupoPoint `json:"created_at"`
	Spent   *struct {
		kupoPoint
		Tx *string `json:"transaction_id"`
	} `json:"spent_at"`
}

type kupoPoint struct {
	Slot int64  `json:"slot_no"`
	Hash string `json:"header_hash"`
}

func (n *ogmios) spenders(ctx context.Context, list []outpoint) ([]spender, error) {
	out := make([]spender, len(list))
	if len(list) == 0 {
		return out, n.rightChain(ctx)
	}
	s, err := n.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	for i, o := range list {
		var found []match
		if err := n.index(ctx, fmt.Sprintf("/matches/%d@%x", o.index, o.id), &found); err != nil {
			return nil, err
		}
		if len(found) == 0 || found[0].Spent == nil {
			continue
		}
		at := found[0].Spent
		if at.Tx == nil || !isHash(*at.Tx) || !isHash(at.Hash) || len(found) > 1 {
			out[i].err = fmt.Errorf("%w: Kupo does not tell what spent %s", follow.ErrTorn, o)
			continue
		}
		out[i].tx = *at.Tx
		out[i].block, err = n.header(ctx, s, point{at.Slot, at.Hash})
		if errors.Is(err, follow.ErrTorn) {
			out[i].err = err
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (n *ogmios) waits(ctx context.Context, id string) (bool, error) {
	s, err := n.dial(ctx)
	if err != nil {
		return false, err
	}
	defer s.close()
	var acquired json.RawMessage
	if err := s.call("acquireMempool", nil, &acquired); err != nil {
		return false, err
	}
	var has bool
	err = s.call("hasTransaction", map[string]string{"id": id}, &has)
	return has, err
}

// matches checks that Kupo has indexed an address up to a slot, on the chain that Ogmios is on:
// without, that it knows nothing says nothing.
func (n *ogmios) matches(ctx context.Context, a chain.Address, slot int64) error {
	var patterns []json.RawMessage
	if err := n.index(ctx, "/patterns/"+string(a), &patterns); err != nil {
		return err
	}
	if len(patterns) == 0 {
		return fmt.Errorf("%w: Kupo does not match address %s: add a pattern of all addresses of ours", chain.ErrNode, a)
	}
	var points []kupoPoint
	if err := n.index(ctx, "/checkpoints", &points); err != nil {
		return err
	}
	newest := kupoPoint{Slot: -1}
	for _, p := range points {
		if p.Slot > newest.Slot {
			newest = p
		}
	}
	if newest.Slot < slot {
		return fmt.Errorf("%w: Kupo has come to slot %d of %d", chain.ErrBehind, newest.Slot, slot)
	}
	s, err := n.dial(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if on, err := s.meet(point{newest.Slot, newest.Hash}); err != nil || !on {
		return errors.Join(err, fmt.Errorf("%w: Kupo and Ogmios are not on the same chain", chain.ErrNode))
	}
	return nil
}

func (n *ogmios) balance(ctx context.Context, a chain.Address) (int64, error) {
	head, err := n.tip(ctx)
	if err != nil {
		return 0, err
	}
	if err := n.matches(ctx, a, slotOf(head.Time)); err != nil {
		return 0, err
	}
	var found []match
	if err := n.index(ctx, "/matches/"+string(a)+"?unspent", &found); err != nil {
		return 0, err
	}
	var sum int64
	for _, m := range found {
		if m.Value.Coins < 0 || m.Value.Coins > maxLovelace-sum {
			return 0, fmt.Errorf("%w: Kupo tells more ada than there is", chain.ErrNode)
		}
		sum += m.Value.Coins
	}
	return sum, nil
}

func (n *ogmios) paying(ctx context.Context, a chain.Address, head chain.Block, from, to int64) ([]block, error) {
	ends := [2]chain.Block{}
	for i, height := range []int64{from, to} {
		if ends[i] = head; height < head.Height {
			var err error
			if ends[i], err = n.at(ctx, head, height); err != nil {
				return nil, err
			}
		}
	}
	first, last := slotOf(ends[0].Time), slotOf(ends[1].Time)
	if err := n.matches(ctx, a, last); err != nil {
		return nil, err
	}
	var found []match
	if err := n.index(ctx, fmt.Sprintf("/matches/%s?created_after=%d&created_before=%d", a, first, last), &found); err != nil {
		return nil, err
	}
	var points []point
	for _, m := range found {
		if p := (point{m.Created.Slot, m.Created.Hash}); !slices.Contains(points, p) && p.Slot >= first && p.Slot <= last {
			points = append(points, p)
		}
	}
	slices.SortFunc(points, func(p, q point) int { return int(p.Slot - q.Slot) })
	s, err := n.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	out := make([]block, len(points))
	for i, p := range points {
		if out[i], err = n.whole(ctx, s, p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (n *ogmios) submit(ctx context.Context, raw []byte) (string, error) {
	var took struct {
		Transaction struct {
			ID string `json:"id"`
		} `json:"transaction"`
	}
	params := map[string]any{"transaction": map[string]string{"cbor": hex.EncodeToString(raw)}}
	err := n.ask(ctx, "submitTransaction", params, &took)
	return took.Transaction.ID, err
}
