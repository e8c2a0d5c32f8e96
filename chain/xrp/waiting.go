package xrp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// place is what a server has at the Sequence of a transaction that is in no validated
// ledger.
type place int

const (
	free    place = iota // nothing, or the server cannot tell
	waiting              // this very transaction, in its queue or its open ledger
	other                // another one
)

// place asks the queue, then the open ledger, then the one that closed last. The method tx
// is no help: rippled remembers for half an hour whatever was submitted to it, also what
// it refused, and Clio knows validated transactions alone. Clio passes questions about
// these ledgers on to its rippled.
func (c *Client) place(ctx context.Context, t *sent) (place, error) {
	var answer struct {
		Data struct {
			Sequence uint32 `json:"Sequence"`
		} `json:"account_data"`
		Queue struct {
			Transactions []struct {
				Sequence uint32 `json:"seq"`
				Fee      string `json:"fee"`
				Last     uint32 `json:"LastLedgerSequence"`
			} `json:"transactions"`
		} `json:"queue_data"`
	}
	err := c.node.ask(ctx, "account_info", params{"account": t.account.text(), "ledger_index": "current", "queue": true}, &answer)
	if err != nil {
		return free, unlessSaid(err)
	}
	for _, q := range answer.Queue.Transactions {
		if q.Sequence != t.sequence {
			continue
		}
		if q.Fee == strconv.FormatUint(t.fee, 10) && q.Last == t.lastLedger {
			return waiting, nil
		}
		return other, nil
	}
	if answer.Data.Sequence <= t.sequence {
		return free, nil
	}
	for _, name := range []string{"current", "closed"} {
		ids, err := c.unvalidated(ctx, name)
		if err != nil {
			return free, unlessSaid(err)
		}
		if slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, t.tx()) }) {
			return waiting, nil
		}
	}
	return other, nil
}

// unvalidated lists the transactions of a ledger that need not be validated.
func (c *Client) unvalidated(ctx context.Context, name string) ([]string, error) {
	var answer struct {
		Ledger struct {
			Transactions []string `json:"transactions"`
		} `json:"ledger"`
	}
	err := c.node.ask(ctx, "ledger", params{"ledger_index": name, "transactions": true}, &answer)
	return answer.Ledger.Transactions, err
}

// unlessSaid is nil for what the server itself answered: that it has no such account, is
// not in step, or, being Clio, reaches no rippled.
func unlessSaid(err error) error {
	var r *replyError
	if errors.As(err, &r) {
		return nil
	}
	return err
}
