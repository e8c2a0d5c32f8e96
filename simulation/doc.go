// Package simulation is everything around the library in one seed: merchants,
// customers, attackers, operators, receivers of webhooks, chains of both
// families with their nodes, and whatever goes wrong between them. It drives
// the public Go API of any number of processes over one store, and proves after
// every step that no money was lost, made up, or sent twice.
//
// It promises:
//
//   - A run is a function of its World value: who acts, which fault strikes, at
//     which call of the store a process is paused or dies. Nothing else is asked:
//     no goroutine, no wall clock, no random source but the seed's. The same
//     World on the same code gives the same Result.Hash.
//   - Every process runs as a coroutine that can be stopped before and after
//     each call of its store, so that any two of them can be interleaved there,
//     a lease can run out while its holder sleeps, and a process can die with an
//     unanswered commit that happened or did not.
//   - One judge says what is expected. It knows the documented interface alone and
//     sees what a host can see: requests and answers, views, webhooks, the chains, and
//     what passes the store and the signer. Result.Promises counts how often each of
//     its promises was asked and could have failed.
//   - A failing run tells its story, is cut down to what is needed by Shrink,
//     and names the flags that replay it.
//
// A host gives its own store, changes the App's Config, and lets actors of its
// own take part: see Options and the example.
package simulation
