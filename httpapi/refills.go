package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Refills from cold addresses, which a person signs elsewhere.

type refillsInput struct {
	Tenant string `query:"for_tenant" rule:"required,max=64" about:"The merchant whose coins they are."`
	Limit  int    `query:"limit" rule:"min=1,max=100" default:"20"`
	Offset int    `query:"offset" rule:"min=0" default:"0"`
}

type refillPayload struct {
	Format  string  `json:"format" rule:"enum=psbt|transaction" about:"psbt: a PSBT (BIP 174) in base64. transaction: an unsigned transaction in hex."`
	Content string  `json:"content"`
	JSON    *string `json:"json" about:"The transaction as JSON, as eth_signTransaction takes it; null of a PSBT."`
}

type refillView struct {
	ProposalID  string         `json:"proposal_id"`
	Status      string         `json:"status" rule:"enum=open|sending|landed|expired|cancelled|gone"`
	Reason      *string        `json:"reason" about:"Why it ended as it did, or what its transaction waits for."`
	Blockchain  string         `json:"blockchain"`
	Currency    string         `json:"currency"`
	Amount      string         `json:"amount" format:"decimal" about:"What the hot address gets."`
	Fee         string         `json:"fee" format:"decimal" about:"In fee_currency: on BTC and LTC what the transaction costs, elsewhere the most that it may."`
	FeeCurrency string         `json:"fee_currency"`
	Cold        string         `json:"cold_address"`
	Hot         string         `json:"hot_address"`
	Tx          *string        `json:"transaction_hash" about:"null while it is not known: of Ethereum's kind it comes with the signature."`
	By          string         `json:"requested_by"`
	CreatedAt   string         `json:"created_at" format:"date-time"`
	ExpiresAt   string         `json:"expires_at" format:"date-time" about:"Until when it can be taken back."`
	Payload     *refillPayload `json:"payload" about:"What is to be signed; null in a list."`
}

type refillList struct {
	Refills []refillView `json:"refills"`
	Total   int64        `json:"total" about:"How many there are."`
	Limit   int          `json:"limit"`
	Offset  int          `json:"offset"`
}

// viewRefill shows a proposal, with what is to be signed where whole says so.
func (h *Handler) viewRefill(p *refill.Proposal, whole bool) (refillView, error) {
	c, err := h.cfg.Registry.Currency(p.Currency)
	if err != nil {
		return refillView{}, err
	}
	gas, err := h.cfg.Registry.Gas(p.Network)
	if err != nil {
		return refillView{}, err
	}
	out := refillView{
		ProposalID: p.ID, Status: string(p.Status), Reason: orNull(p.Reason), Blockchain: string(p.Network), Currency: p.Currency,
		Amount: p.Amount.Format(c.Scale, c.Scale), Fee: p.Fee.Format(gas.Scale, gas.Scale), FeeCurrency: gas.Code,
		Cold: string(p.From), Hot: string(p.To), Tx: orNull(p.Tx), By: p.By, CreatedAt: stamp(p.CreatedAt), ExpiresAt: stamp(p.ExpiresAt),
	}
	if !whole {
		return out, nil
	}
	text, err := h.app.Operate.ShowRefill(p)
	if err != nil {
		return refillView{}, err
	}
	out.Payload = &refillPayload{Format: "psbt", Content: base64.StdEncoding.EncodeToString(p.Payload)}
	if text != nil {
		out.Payload = &refillPayload{Format: "transaction", Content: string(p.Payload), JSON: orNull(string(text))}
	}
	return out, nil
}

func (h *Handler) listRefills(ctx context.Context, _ *Call, in refillsInput) (refillList, error) {
	out := refillList{Refills: []refillView{}, Limit: in.Limit, Offset: in.Offset}
	if _, err := h.app.Wallets.Tenant(ctx, in.Tenant); err != nil {
		return out, err
	}
	all, total, err := h.app.Operate.Refills(ctx, in.Tenant, in.Limit, in.Offset)
	if err != nil {
		return out, err
	}
	out.Total = total
	for i := range all {
		v, err := h.viewRefill(&all[i], false)
		if err != nil {
			return out, err
		}
		out.Refills = append(out.Refills, v)
	}
	return out, nil
}

type refillInput struct {
	ID     string `path:"id"`
	Tenant string `query:"for_tenant" rule:"required,max=64" about:"The merchant whose coins they are."`
}

func (h *Handler) getRefill(ctx context.Context, _ *Call, in refillInput) (refillView, error) {
	p, err := h.app.Operate.Refill(ctx, in.Tenant, in.ID)
	if err != nil {
		return refillView{}, err
	}
	return h.viewRefill(&p, true)
}

type proposeInput struct {
	Tenant   string `json:"for_tenant" rule:"required,max=64" about:"The merchant whose coins they are."`
	Currency string `json:"currency" rule:"required,max=255" about:"Combined code, such as USDTERC20."`
	Amount   Number `json:"amount" rule:"required" about:"What the hot address gets, in whole coins."`
	Reason   string `json:"reason" rule:"required,max=1000"`
	DryRun   bool   `json:"dry_run"`
}

type refillDone struct {
	AuditID *string    `json:"audit_id" about:"null on a dry run, and where it was done before"`
	Effect  refillView `json:"effect"`
}

func (h *Handler) refillDone(p *refill.Proposal, audit string, err error) (refillDone, error) {
	if err != nil {
		return refillDone{}, err
	}
	v, err := h.viewRefill(p, true)
	return refillDone{orNull(audit), v}, err
}

func (h *Handler) proposeRefill(ctx context.Context, c *Call, in proposeInput) (refillDone, error) {
	cur, err := h.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return refillDone{}, err
	}
	amount, err := cur.Units(in.Amount.Decimal(), ledger.Down)
	if err != nil || amount <= 0 || !cur.Decimal(amount).Equal(in.Amount.Decimal()) {
		return refillDone{}, bad("amount", "must be above 0, with at most the currency's decimals")
	}
	p, audit, err := h.app.Operate.ProposeRefill(ctx, in.Tenant, in.Currency, amount, operator(c, in.Reason, in.DryRun))
	return h.refillDone(&p, audit, err)
}

type takeInput struct {
	ID     string `path:"id"`
	Tenant string `json:"for_tenant" rule:"required,max=64" about:"The merchant whose coins they are."`
	Signed string `json:"signed" rule:"required,max=1000000" about:"The signed transaction in hex; on BTC and LTC also a PSBT in base64, with its signatures or finalised."`
	Reason string `json:"reason" rule:"required,max=1000"`
	DryRun bool   `json:"dry_run"`
}

func (h *Handler) takeRefill(ctx context.Context, c *Call, in takeInput) (refillDone, error) {
	p, audit, err := h.app.Operate.TakeRefill(ctx, in.Tenant, in.ID, []byte(in.Signed), operator(c, in.Reason, in.DryRun))
	if errors.Is(err, chain.ErrRejected) { // it names what is not as it was proposed
		return refillDone{}, bad("signed", err.Error())
	}
	return h.refillDone(&p, audit, err)
}

type endRefillInput struct {
	ID     string `path:"id"`
	Tenant string `json:"for_tenant" rule:"required,max=64" about:"The merchant whose coins they are."`
	Reason string `json:"reason" rule:"required,max=1000"`
	DryRun bool   `json:"dry_run"`
}

func (h *Handler) cancelRefill(ctx context.Context, c *Call, in endRefillInput) (refillDone, error) {
	p, audit, err := h.app.Operate.CancelRefill(ctx, in.Tenant, in.ID, operator(c, in.Reason, in.DryRun))
	return h.refillDone(&p, audit, err)
}

// refillRoutes are those of refills from cold addresses.
func (h *Handler) refillRoutes(post func(path, name, about string, do operation) Route) []Route {
	get := func(path, name, about string, do operation) Route {
		return Route{
			Method: http.MethodGet, Path: "/manage/operations/" + path, Name: name, Group: "Operations", About: about,
			Policy: operate, Status: http.StatusOK, Errors: []Failure{invalidRequest, notFound}, do: do,
		}
	}
	return []Route{
		get("refills/", "listRefills", "Lists proposals of refills from cold addresses, newest first.", endpoint(h.listRefills)),
		get("refills/{id}/", "getRefill", "Shows a proposal, with what is to be signed.", endpoint(h.getRefill)),
		post("refills/", "proposeRefill", "Makes the transaction that brings coins from a cold address to the hot one. Somebody signs it elsewhere.", endpoint(h.proposeRefill)),
		post("refills/{id}/take/", "takeRefill", "Takes back what was signed for a proposal, checks it, and has it sent.", endpoint(h.takeRefill)),
		post("refills/{id}/cancel/", "cancelRefill", "Ends a proposal that did not come back.", endpoint(h.cancelRefill)),
	}
}
