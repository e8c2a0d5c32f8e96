// Package hsm keeps keys in a hardware module, by PKCS#11.
//
// It promises: every key is made in the module, and never was outside of it. A key that the
// module would give away, or that came from elsewhere, signs nothing. No key is made twice
// under one name, and no address of a key is given out before the key has signed. A PIN that
// the module refused is not tried again, as a few wrong ones lock it.
//
// A module derives nothing, so each address has a key pair of its own in it. Its label is the
// KeyRef that a Seed derives the key of this place under. Keys of secp256k1 sign with
// CKM_ECDSA, keys of ed25519 with CKM_EDDSA. What is lost with the module is lost: its own
// backup is the only one, see docs/signer.md.
//
// It links with cgo. Without it (CGO_ENABLED=0) it builds, and Open fails.
package hsm

// Config names a module's token. All of it is required.
type Config struct {
	Library string // file of the module's PKCS#11 library
	Token   string // label
	PIN     []byte // of the user; Open keeps a copy
}
