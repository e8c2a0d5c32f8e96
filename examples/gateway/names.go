package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
)

const (
	settingPrefix = "CRYPTOPAY_"
	testPrefix    = settingPrefix + "TEST_" // of this program's tests
)

// settingNames are the variables that are not of one network.
var settingNames = []string{
	"ADDR", "ALLOW_PRIVATE_CALLBACKS", "API_KEY", "BASE_URL", "CLIENT_ID", "CLIENT_SECRET", "CONFIG", "ELSEWHERE", "HOUSE_ADDRESSES", "KEY_FILE", "LOG",
	"METRICS_ADDR", "MNEMONIC", "NETWORKS", "NETWORK_FEE", "POLL", "PRICES", "RATE_LIMITS", "RESEAL", "RETIRE", "SIGNER_ACCOUNTS",
	"SIGNER_CA", "SIGNER_CERTIFICATE", "SIGNER_KEY", "SIGNER_URL", "STORE", "TRANSACTION_FEE",
	"UNSEALED_UNTIL", "UPGRADED", "WITHDRAWAL_FEE",
}

// checkNames refuses variables that begin as settings do and are none: a node whose name
// is misspelt would be a network that is simulated.
func checkNames(environ []string) (err error) {
	known := knownNames()
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, settingPrefix) && !strings.HasPrefix(name, testPrefix) && !slices.Contains(known, name) {
			err = errors.Join(err, fmt.Errorf("%s is no setting; the nearest is %s", name, nearest(name, known)))
		}
	}
	return err
}

func knownNames() []string {
	var out []string
	for _, n := range settingNames {
		out = append(out, settingPrefix+n)
	}
	for _, n := range chain.Networks() {
		for _, name := range nodes.Settings() {
			out = append(out, settingPrefix+name+"_"+string(n.Code))
		}
	}
	for _, c := range chain.Mainnet() {
		out = append(out, settingPrefix+"CONTRACT_"+c.Code)
	}
	return out
}

// nearest is the known name that takes the fewest changes of a character.
func nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return changes(name, a) - changes(name, b) })
}

// changes is the edit distance of two names.
func changes(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
