package solanatest

import (
	"encoding/base64"
	"strconv"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// Message is a transaction in the words of @solana/kit: what it is given to sign, or
// what it reads in the bytes of one. Keys and Signed are only read.
type Message struct {
	Version      int           `json:"version"`
	Blockhash    string        `json:"blockhash"`
	Payer        string        `json:"payer,omitempty"` // base64 of the secret key
	Signers      []string      `json:"signers,omitempty"`
	Config       *Config       `json:"config,omitempty"`
	Instructions []Instruction `json:"instructions"`
	Keys         []string      `json:"keys,omitempty"`
	Signed       bool          `json:"signed,omitempty"` // by all of its signers
}

// Config are the settings of a transaction of version 1, each a number.
type Config struct {
	PriorityFee string `json:"priorityFeeLamports,omitempty"`
	Units       string `json:"computeUnitLimit,omitempty"`
	Size        string `json:"loadedAccountsDataSizeLimit,omitempty"`
	Heap        string `json:"heapSize,omitempty"`
}

// Instruction is one of a Message; Data is base64.
type Instruction struct {
	Program  string    `json:"program"`
	Accounts []Account `json:"accounts,omitempty"`
	Data     string    `json:"data"`
}

// Account is one that an instruction names.
type Account struct {
	Address  string `json:"address"`
	Signer   bool   `json:"signer"`
	Writable bool   `json:"writable"`
}

// Encoded is what @solana/kit makes of a Message.
type Encoded struct {
	Wire       string   `json:"wire"`    // base64
	Message    string   `json:"message"` // base64
	Signatures []string `json:"signatures"`
}

// Encode has @solana/kit sign and write messages.
func Encode(t testing.TB, all ...Message) (out []Encoded) {
	t.Helper()
	var tasks []map[string]Message
	for _, m := range all {
		tasks = append(tasks, map[string]Message{"encode": m})
	}
	testenv.Kit(t, tasks, &out)
	require.Len(t, out, len(all))
	return out
}

// Decode has @solana/kit read the bytes of transactions.
func Decode(t testing.TB, all ...[]byte) (out []Message) {
	t.Helper()
	var tasks []map[string][]byte
	for _, raw := range all {
		tasks = append(tasks, map[string][]byte{"decode": raw})
	}
	testenv.Kit(t, tasks, &out)
	require.Len(t, out, len(all))
	return out
}

// MessageOf puts instructions in the words of @solana/kit.
func MessageOf(payer sdk.PrivateKey, signers []sdk.PrivateKey, blockhash string, config Config, instructions ...sdk.Instruction) Message {
	secret := base64.StdEncoding.EncodeToString
	m := Message{Version: 1, Blockhash: blockhash, Payer: secret(payer), Config: &config}
	for _, s := range signers {
		m.Signers = append(m.Signers, secret(s))
	}
	for _, x := range instructions {
		data, err := x.Data()
		if err != nil {
			panic(err)
		}
		to := Instruction{Program: x.ProgramID().String(), Data: secret(data)}
		for _, a := range x.Accounts() {
			to.Accounts = append(to.Accounts, Account{a.PublicKey.String(), a.IsSigner, a.IsWritable})
		}
		m.Instructions = append(m.Instructions, to)
	}
	return m
}

// SendV1 is Send as a transaction of version 1, signed and written by @solana/kit.
func (n *Node) SendV1(signers []sdk.PrivateKey, instructions ...sdk.Instruction) string {
	n.t.Helper()
	var id string
	made := n.version1(signers, instructions...)
	n.Call(&id, "test_put", made.Wire)
	require.Equal(n.t, made.Signatures[0], id)
	return id
}

// SendLater is SendV1 of a transaction that the node shows as one of a later version:
// what it does is real, and nobody can read its bytes.
func (n *Node) SendLater(version int, signers []sdk.PrivateKey, instructions ...sdk.Instruction) (id string) {
	n.t.Helper()
	n.Call(&id, "test_later", n.version1(signers, instructions...).Wire, version)
	return id
}

func (n *Node) version1(signers []sdk.PrivateKey, instructions ...sdk.Instruction) Encoded {
	n.t.Helper()
	n.salt++
	config := Config{Units: strconv.Itoa(600_000), Size: strconv.Itoa(64 << 20), PriorityFee: strconv.Itoa(int(n.salt))}
	return Encode(n.t, MessageOf(n.Payer, signers, n.Blockhash().String(), config, instructions...))[0]
}
