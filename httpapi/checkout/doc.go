// Package checkout is the page that a customer pays on, as a handler for any net/http mux.
//
// It promises: a payment's page is behind a link that nobody can guess and that changes
// nothing; a link that is unknown, too old or of another store gets one and the same answer;
// the page says in plain words what has come and what is still to do, in the customer's
// language, with and without script; it loads nothing from anywhere else and runs nothing
// that a merchant or a customer wrote.
//
//	pages, err := checkout.New(app, checkout.Options{BaseURL: "https://pay.example.com"})
//	mux.Handle("/checkout/", pages)
//	api, err := httpapi.New(app, httpapi.Options{CheckoutURL: pages.URL, …})
//
// # Links
//
// Handler.URL makes the link of a payment out of Config.Keys and the payment's id: nothing is
// stored. A link works while one of Config.Keys made it, and until Options.Keep after the
// payment's window. Leaving a key out of Config.Keys revokes every link that it made.
//
// # Live
//
// An open page hears by server-sent events. All viewers of a payment in one process share one
// read, and what a merchant's customers look at is read again only when the merchant's event
// stream has moved. The handler starts work with the first viewer and ends it with the last.
// Where no stream can be had, the page asks again by itself; without script it offers a
// link that does.
//
// The page informs. What a merchant delivers follows the payment's events, not the page.
package checkout
