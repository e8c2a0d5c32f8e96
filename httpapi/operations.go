package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// What an operator does by hand. Every route needs a reason, which is kept with the caller's
// client; dry_run has everything checked and nothing done.

func operator(c *Call, reason string, dry bool) cryptopay.Call {
	return cryptopay.Call{By: c.Who.Client, Reason: reason, DryRun: dry}
}

// blockchain is the network of a code or its alias, such as TRON. The operation refuses a code
// that is none.
func (h *Handler) blockchain(code string) chain.Network {
	if n, err := h.cfg.Registry.Network(code); err == nil {
		return n.Code
	}
	return chain.Network(code)
}

type onItsWayView struct {
	Blockchain   string   `json:"blockchain"`
	Intent       string   `json:"intent" about:"A withdrawal's id, or the library's own of a sweep or gas transfer."`
	Currency     string   `json:"currency"`
	Transactions []string `json:"transactions"`
}

type haltInput struct {
	Action     string `json:"action" rule:"required,enum=halt|lift"`
	Blockchain string `json:"blockchain" rule:"max=255" about:"Without it every one, unless currency is given."`
	Currency   string `json:"currency" rule:"max=255" about:"Combined code, such as USDTERC20."`
	Tenant     string `json:"for_tenant" rule:"max=255" about:"Only what is sent for this merchant."`
	Reason     string `json:"reason" rule:"required,max=1000"`
	DryRun     bool   `json:"dry_run"`
}

type haltEffect struct {
	Blockchains []string       `json:"blockchains"`
	OnItsWay    []onItsWayView `json:"on_its_way" about:"What was stored before the halt and may still land."`
}

type haltView struct {
	AuditID *string    `json:"audit_id" about:"null on a dry run"`
	Effect  haltEffect `json:"effect"`
}

func (h *Handler) setHalt(ctx context.Context, c *Call, in haltInput) (haltView, error) {
	scope := cryptopay.HaltScope{Network: h.blockchain(in.Blockchain), Currency: in.Currency, Tenant: in.Tenant}
	do := h.app.Operate.Halt
	if in.Action == "lift" {
		do = h.app.Operate.Lift
	}
	e, err := do(ctx, scope, operator(c, in.Reason, in.DryRun))
	if err != nil {
		return haltView{}, err
	}
	out := haltView{AuditID: orNull(e.Operation), Effect: haltEffect{Blockchains: []string{}, OnItsWay: []onItsWayView{}}}
	for _, n := range e.Networks {
		out.Effect.Blockchains = append(out.Effect.Blockchains, string(n))
	}
	for _, o := range e.OnItsWay {
		out.Effect.OnItsWay = append(out.Effect.OnItsWay, onItsWayView{string(o.Network), o.Intent, o.Currency, append([]string{}, o.Txs...)})
	}
	return out, nil
}

type haltRow struct {
	Blockchain *string `json:"blockchain" about:"null = the record that new blockchains copy"`
	Currency   *string `json:"currency"`
	Tenant     *string `json:"tenant"`
	Everywhere bool    `json:"everywhere" about:"It was set for every blockchain, and is lifted so."`
	Reason     string  `json:"reason"`
	By         string  `json:"by"`
	Since      string  `json:"since" format:"date-time"`
}

type haltList struct {
	Halts []haltRow `json:"halts"`
}

func (h *Handler) listHalts(ctx context.Context, _ *Call, _ struct{}) (haltList, error) {
	all, err := h.app.Operate.Halts(ctx)
	out := haltList{Halts: []haltRow{}}
	for _, x := range all {
		out.Halts = append(out.Halts, haltRow{
			Blockchain: orNull(string(x.Network)), Currency: orNull(x.Currency), Tenant: orNull(x.Tenant), Everywhere: x.Wide,
			Reason: x.Reason, By: x.By, Since: webhook.Timestamp(x.Since),
		})
	}
	return out, err
}

type helpInput struct {
	ID         string `path:"id" about:"A withdrawal's id, or the library's own of a sweep or gas transfer."`
	Blockchain string `json:"blockchain" rule:"required,max=255"`
	MaxCost    Number `json:"max_cost" about:"Of speed-up: what the network may take, in whole coins of its own. Without it the bound stays."`
	Reason     string `json:"reason" rule:"required,max=1000"`
	DryRun     bool   `json:"dry_run"`
}

type helpState struct {
	State      string  `json:"state"`
	Reason     *string `json:"reason"`
	Tx         *string `json:"transaction_hash"`
	MaxCost    string  `json:"max_cost" format:"decimal" about:"What the network may take, in its own coin."`
	Cancelling bool    `json:"cancelling"`
}

type helpEffect struct {
	Before helpState `json:"before"`
	After  helpState `json:"after"`
}

type helpView struct {
	AuditID *string    `json:"audit_id" about:"null on a dry run"`
	Effect  helpEffect `json:"effect"`
}

func viewHelp(e *cryptopay.Effect, gas *chain.Currency) helpView {
	state := func(x outgoing.Help) helpState {
		return helpState{string(x.State), orNull(string(x.Reason)), orNull(x.Tx), x.MaxCost.Format(gas.Scale, gas.Scale), x.Cancelling}
	}
	return helpView{AuditID: orNull(e.Operation), Effect: helpEffect{state(e.Before), state(e.After)}}
}

func (h *Handler) speedUp(ctx context.Context, c *Call, in helpInput) (helpView, error) {
	gas, err := h.cfg.Registry.Gas(h.blockchain(in.Blockchain))
	if err != nil {
		return helpView{}, err
	}
	most, err := gas.Units(in.MaxCost.Decimal(), ledger.Down)
	if err != nil || in.MaxCost.Given && most <= 0 {
		return helpView{}, fail(http.StatusBadRequest, "invalid_request", "The request is invalid.", map[string]any{"max_cost": []string{"must be above 0"}})
	}
	e, err := h.app.Operate.SpeedUp(ctx, h.blockchain(in.Blockchain), in.ID, most, operator(c, in.Reason, in.DryRun))
	return viewHelp(&e, gas), err
}

func (h *Handler) cancelTransaction(ctx context.Context, c *Call, in helpInput) (helpView, error) {
	gas, err := h.cfg.Registry.Gas(h.blockchain(in.Blockchain))
	if err != nil {
		return helpView{}, err
	}
	e, err := h.app.Operate.CancelTransaction(ctx, h.blockchain(in.Blockchain), in.ID, operator(c, in.Reason, in.DryRun))
	return viewHelp(&e, gas), err
}

type fillInput struct {
	Blockchain string `json:"blockchain" rule:"required,max=255"`
	Address    string `json:"address" rule:"required,max=255"`
	Nonce      *int   `json:"nonce" rule:"required,min=0"`
	Reason     string `json:"reason" rule:"required,max=1000"`
	DryRun     bool   `json:"dry_run"`
}

type doneView struct {
	AuditID *string `json:"audit_id" about:"null on a dry run"`
	Effect  string  `json:"effect"`
}

func (h *Handler) fillNonce(ctx context.Context, c *Call, in fillInput) (doneView, error) {
	id, err := h.app.Operate.FillNonce(ctx, h.blockchain(in.Blockchain), chain.Address(in.Address), int64(*in.Nonce), 0, operator(c, in.Reason, in.DryRun))
	return doneView{orNull(id), fmt.Sprintf("nonce %d is used up", *in.Nonce)}, err
}

type adoptInput struct {
	Blockchain string    `json:"blockchain" rule:"required,max=255"`
	Addresses  *[]string `json:"addresses" about:"Without it all of which the blockchain knows more transactions than this service."`
	Reason     string    `json:"reason" rule:"required,max=1000"`
	DryRun     bool      `json:"dry_run"`
}

type nonceView struct {
	Address string  `json:"address"`
	Ours    int64   `json:"own_nonce"`
	Chain   uint64  `json:"chain_nonce"`
	AuditID *string `json:"audit_id" about:"null on a dry run"`
}

type adoptView struct {
	AuditID *string     `json:"audit_id" about:"Of the last in effect; null on a dry run, or where none was adopted."`
	Effect  []nonceView `json:"effect" about:"Those that were adopted; each is recorded for itself."`
}

func (h *Handler) adoptNonces(ctx context.Context, c *Call, in adoptInput) (adoptView, error) {
	var only []chain.Address
	if in.Addresses != nil {
		for _, a := range *in.Addresses {
			only = append(only, chain.Address(a))
		}
	}
	done, err := h.app.Operate.AdoptNonces(ctx, h.blockchain(in.Blockchain), only, operator(c, in.Reason, in.DryRun))
	out := adoptView{Effect: []nonceView{}}
	for _, n := range done {
		out.AuditID = orNull(n.Operation)
		out.Effect = append(out.Effect, nonceView{string(n.Address), n.Ours, n.Chain, out.AuditID})
	}
	return out, err
}

type retryInput struct {
	ID         string `path:"id"`
	Blockchain string `json:"blockchain" rule:"required,max=255"`
	Reason     string `json:"reason" rule:"required,max=1000"`
	DryRun     bool   `json:"dry_run"`
}

func (h *Handler) retrySweep(ctx context.Context, c *Call, in retryInput) (doneView, error) {
	id, waited, err := h.app.Operate.RetrySweep(ctx, h.blockchain(in.Blockchain), in.ID, operator(c, in.Reason, in.DryRun))
	return doneView{orNull(id), "it waited for " + waited}, err
}

type resumeInput struct {
	Blockchain string `json:"blockchain" rule:"required,max=255"`
	Height     *int   `json:"height" rule:"required,min=0" about:"Of the last block that is right, at or below the fork."`
	Reason     string `json:"reason" rule:"required,max=1000"`
	DryRun     bool   `json:"dry_run"`
}

func (h *Handler) resumeNetwork(ctx context.Context, c *Call, in resumeInput) (doneView, error) {
	id, err := h.app.Operate.ResumeNetwork(ctx, h.blockchain(in.Blockchain), int64(*in.Height), operator(c, in.Reason, in.DryRun))
	return doneView{orNull(id), fmt.Sprintf("read again after block %d", *in.Height)}, err
}

type recoverInput struct {
	Blockchain string `json:"blockchain" rule:"required,max=255"`
	Address    string `json:"address" rule:"required,max=255"`
	From       *int   `json:"from_height" rule:"required,min=0"`
	To         int    `json:"to_height" rule:"min=0" about:"Without it as far as the blockchain was read."`
	Reason     string `json:"reason" rule:"required,max=1000"`
	DryRun     bool   `json:"dry_run"`
}

type recoverView struct {
	AuditID *string `json:"audit_id" about:"null on a dry run"`
	Effect  struct {
		Found int `json:"found" about:"Transfers that were not known."`
	} `json:"effect"`
}

func (h *Handler) recoverDeposits(ctx context.Context, c *Call, in recoverInput) (recoverView, error) {
	found, id, err := h.app.Operate.RecoverDeposits(ctx, h.blockchain(in.Blockchain), chain.Address(in.Address), int64(*in.From), int64(in.To), operator(c, in.Reason, in.DryRun))
	out := recoverView{AuditID: orNull(id)}
	out.Effect.Found = found
	return out, err
}

// operationRoutes are those of an operator.
func (h *Handler) operationRoutes() []Route {
	post := func(path, name, about string, do operation) Route {
		return Route{
			Method: http.MethodPost, Path: "/manage/operations/" + path, Name: name, Group: "Operations", About: about,
			Policy: operate, Status: http.StatusOK, Writes: true, Errors: []Failure{invalidRequest, invalidCurrency, notFound, invalidState}, do: do,
		}
	}
	return append([]Route{
		{
			Method: http.MethodGet, Path: "/manage/operations/halts/", Name: "listHalts", Group: "Operations", About: "Lists what operators have halted.",
			Policy: operate, Status: http.StatusOK, do: endpoint(h.listHalts),
		},
		{
			Method: http.MethodGet, Path: "/manage/operations/audit/", Name: "listAudit", Group: "Operations",
			About:  "Lists what people did, with who and why, as a chain of hashes: of one merchant, of one blockchain, or of the service.",
			Policy: operate, Status: http.StatusOK, Errors: []Failure{invalidRequest, invalidCurrency, notFound}, do: endpoint(h.listAudit),
		},
		post("halts/", "setHalt", "Halts what is sent, everywhere or of one blockchain, currency or tenant, or lifts that again.", endpoint(h.setHalt)),
		post("transactions/{id}/speed-up/", "speedUpTransaction", "Replaces a transaction now by one with a higher fee.", endpoint(h.speedUp)),
		post("transactions/{id}/cancel/", "cancelTransaction", "Has the nonce or the coins of a transaction go back to ourselves.", endpoint(h.cancelTransaction)),
		post("nonces/fill/", "fillNonce", "Uses up a nonce that others wait behind.", endpoint(h.fillNonce)),
		post("nonces/adopt/", "adoptNonces", "Goes on with the blockchain's nonces where they are beyond ours.", endpoint(h.adoptNonces)),
		post("networks/resume/", "resumeNetwork", "Ends the halt after a deep fork: the blockchain is read again from below it.", endpoint(h.resumeNetwork)),
		post("deposits/recover/", "recoverDeposits", "Reads again what one of our addresses received.", endpoint(h.recoverDeposits)),
		post("sweeps/{id}/retry/", "retrySweep", "Has a sweep that waits looked at now.", endpoint(h.retrySweep)),
	}, h.refillRoutes(post)...)
}
