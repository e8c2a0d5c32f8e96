package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/cryptopay-go/cryptopay/storage"
)

type auditInput struct {
	Tenant     string `query:"for_tenant" rule:"max=64" about:"The log of one merchant: policy, destinations, approvals, what was done with its money."`
	Blockchain string `query:"blockchain" rule:"max=255" about:"The log of one blockchain. Without both it is that of the service: what concerns all, and credentials."`
	After      int    `query:"after" rule:"min=0" default:"0" about:"The number of the entry before the first that is wanted: next of the page before."`
	Limit      int    `query:"limit" rule:"min=1,max=100" default:"20"`
}

type auditEntry struct {
	Number     int64   `json:"number" about:"From 1, without a gap in its log."`
	AuditID    string  `json:"audit_id"`
	Time       string  `json:"time" format:"date-time"`
	Operation  string  `json:"operation"`
	By         string  `json:"by"`
	Reason     string  `json:"reason"`
	Blockchain *string `json:"blockchain"`
	Tenant     *string `json:"tenant"`
	Object     string  `json:"object" about:"What it is about: the id of a withdrawal, a deposit or a credential, an address, a scope."`
	Before     string  `json:"before"`
	After      string  `json:"after"`
	Previous   string  `json:"previous_hash" about:"SHA-256 in hex; empty in the first entry."`
	Hash       string  `json:"hash" about:"SHA-256 in hex, over the entry and previous_hash."`
}

type auditList struct {
	Entries []auditEntry `json:"entries"`
	Next    int64        `json:"next" about:"The after of the next page. A page with fewer entries than limit is the last for now."`
}

func (h *Handler) listAudit(ctx context.Context, _ *Call, in auditInput) (auditList, error) {
	p := storage.System
	switch {
	case in.Tenant != "" && in.Blockchain != "":
		return auditList{}, fail(http.StatusBadRequest, "invalid_request", "The request is invalid.", map[string]any{"blockchain": []string{"cannot be given beside for_tenant"}})
	case in.Tenant != "":
		if _, err := h.app.Wallets.Tenant(ctx, in.Tenant); err != nil {
			return auditList{}, err
		}
		p = storage.Tenant(in.Tenant)
	case in.Blockchain != "":
		n, err := h.cfg.Registry.Network(in.Blockchain)
		if err != nil {
			return auditList{}, err
		}
		p = storage.Network(string(n.Code))
	}
	page, err := h.app.Operate.AuditLog(ctx, p, int64(in.After), in.Limit)
	out := auditList{Entries: make([]auditEntry, len(page)), Next: int64(in.After)}
	for i := range page {
		op := &page[i]
		out.Entries[i] = auditEntry{
			Number: op.Number, AuditID: op.ID, Time: stamp(op.At), Operation: string(op.Kind), By: op.By, Reason: op.Reason,
			Blockchain: orNull(string(op.Network)), Tenant: orNull(op.Tenant), Object: op.Object, Before: op.Before, After: op.After,
			Previous: hex.EncodeToString(op.Previous), Hash: hex.EncodeToString(op.Hash),
		}
		out.Next = op.Number
	}
	return out, err
}
