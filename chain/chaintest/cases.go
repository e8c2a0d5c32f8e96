package chaintest

import (
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
)

// cases lists every promise in the order in which a new client is best made to
// keep them.
func cases() []testCase {
	return slices.Concat(addressCases(), scanCases(), effectCases(), forkCases(), faultCases(), sendCases(), lostCases(), abilityCases(), strictCases())
}

// What a case can need of a network.

func nothing(*kit) string { return "" }

func all(needs ...func(*kit) string) func(*kit) string {
	return func(k *kit) string {
		for _, n := range needs {
			if why := n(k); why != "" {
				return why
			}
		}
		return ""
	}
}

func lacking(missing bool, what string) string {
	if missing {
		return what
	}
	return ""
}

func tokens(k *kit) string  { return lacking(k.Token == "", "it has no tokens") }
func batches(k *kit) string { return lacking(!k.Batch, "it has no transactions of several payments") }
func memos(k *kit) string   { return lacking(!k.Memo, "it has no memos") }
func reorgs(k *kit) string  { return lacking(k.Reorg == nil, "it cannot be made to fork") }
func returns(k *kit) string {
	return lacking(!k.Returns, "what a fork undid does not come back by itself")
}

func accounts(k *kit) string { return lacking(k.Family != chain.AccountFamily, "it has no nonces") }
func outputs(k *kit) string  { return lacking(k.Family != chain.UTXOFamily, "it has no outputs") }
func replaces(k *kit) string { return lacking(!k.Replaceable, "its transactions cannot be replaced") }
func finality(k *kit) string { return lacking(k.Finality > 100, "its finality is too far behind") }
func canLag(k *kit) string   { return lacking(k.Lag == nil, "its node cannot be made to lag") }
func canFail(k *kit) string  { return lacking(k.Fail == nil, "its node cannot be made to fail") }
func canHide(k *kit) string {
	return lacking(k.Partial == nil, "its node cannot be made to answer in parts")
}

func canLose(k *kit) string {
	return lacking(k.LoseAnswer == nil, "its node cannot be made to lose an answer")
}

func canMistake(k *kit) string {
	return lacking(k.WrongChain == nil, "there is no node of another chain")
}

func effects(e Effect) func(*kit) string {
	return func(k *kit) string {
		return lacking(!slices.Contains(k.Effects, e), "its payments cannot be "+string(e))
	}
}

// able asks for an optional ability of the client.
func able[T any](what string) func(*kit) string {
	return func(k *kit) string {
		_, ok := k.Client.(T)
		return lacking(!ok, "the client is no "+what)
	}
}
