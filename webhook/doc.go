// Package webhook tells merchants what happened, and never forgets to.
//
// It promises: an event is a row of the same storage.Change as what it tells
// about, so there is no event without its change and no change without its
// event; the bytes that were stored are the bytes that are signed and sent; a
// delivery that does not get a 2xx is tried again after 1 min, 5 min, 15 min,
// 1 h and 4 h by the library's clock (six attempts in all), survives restarts,
// and then stays as failed until the host replays it. Deliveries may be
// repeated and may arrive out of order; X-Webhook-Id stays the same.
//
// No receiver delays another merchant's: a Dispatcher shares its slots by merchant
// and host, an attempt ends by its time whatever the receiver does, and a host that
// does not answer is left alone for a while, which is no attempt. What has waited so
// for a day is tried all the same, so that it gets its six attempts. The oldest of what
// is more than Config.MaxUndelivered of one merchant is given up.
//
// Nothing is ever sent to a private, loopback, link-local or metadata address
// unless the host allows that range: the address is checked when the connection
// is made, after name resolution. Redirects are not followed, proxies of the
// environment are not used.
//
// Receivers check what they get with Verify.
package webhook
