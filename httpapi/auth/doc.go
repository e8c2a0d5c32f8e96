// Package auth keeps who may call the API: OAuth applications, the access tokens
// that they are given, and API keys. It knows nothing of HTTP.
//
// # What it promises
//
//   - What is stored opens nothing. Client secrets, tokens and API keys have 256
//     bits from Config.Random, but for those that an operator chooses, and are kept as HMAC-SHA-256 under Config.Key, which
//     is not in the store. A secret is given out once, when it is made, and is
//     never printed: the types that carry one print as stars.
//   - Nothing is cached. Every Check reads the token and its application, so a
//     revocation, a deletion or a narrowed scope made by any process counts from
//     the next request on, in all of them.
//   - A token never has more scopes than its application. The role is the
//     application's as it is now.
//   - A token ends at its expiry: it is valid before that instant of the injected
//     clock, and not at it.
//   - An application's number is never given out again, and its tokens carry it:
//     a new application under an old client id does not revive them.
//   - An unknown client and a wrong secret take the same reads and the same
//     comparison. Many wrong credentials make their address wait, see BackoffError
//     and WithAddress: nobody waits for what others sent from elsewhere.
//
// Tokens may be minted without end by whoever has the secret. Purge forgets
// those that have outlived their use; how many requests a client may make is for
// package limit to say.
package auth
