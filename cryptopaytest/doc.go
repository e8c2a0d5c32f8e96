// Package cryptopaytest gives the tests of a host an App, simulated chains, a clock that
// stands still, a merchant and a customer:
//
//	h := cryptopaytest.New(t)
//	p := h.Payment("25", "USDTERC20")
//	p = h.Customer.Pays(p) // p.Status is payment.Completed
//
// It promises: nothing waits and nothing runs by itself. A call that moves money drives the
// App by Step and the chains by blocks until all comes to rest, and returns what it has come
// to. Keys, signatures and books are those of a real App; chains, prices and the clock are
// simulated. The same Options give the same ids, addresses and blocks.
//
// What went to merchants is in Host.Webhooks, what consumers hear in Host.Events. A Host is
// for one goroutine.
package cryptopaytest
