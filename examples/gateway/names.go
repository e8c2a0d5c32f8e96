package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/examples/internal/nodes"
	"github.com/cryptopay-go/cryptopay/internal/yamlfile"
)

const (
	settingPrefix = "CRYPTOPAY_"
	testPrefix    = settingPrefix + "TEST_" // of this program's tests
)

// settingNames are the variables that are not of one network.
var settingNames = []string{
	"ADDR", "ALLOW_PRIVATE_CALLBACKS", "API_KEY", "BASE_URL", "CLIENT_ID", "CLIENT_SECRET", "CONFIG", "ELSEWHERE", "HOUSE_ADDRESSES", "KEY_FILE", "LOG",
	"METRICS_ADDR", "MNEMONIC", "NETWORKS", "NETWORK_FEE", "POLL", "PRICES", "RATE_LIMITS", "RECONCILE_HALT", "REGISTRY", "RESEAL", "RETIRE", "SIGNER_ACCOUNTS",
	"SIGNER_CA", "SIGNER_CERTIFICATE", "SIGNER_KEY", "SIGNER_LIMITS", "SIGNER_STORE", "SIGNER_URL", "STORE", "TRANSACTION_FEE", "TRUSTED_PROXIES",
	"UNSEALED_UNTIL", "UPGRADED", "VERIFY", "WITHDRAWAL_FEE",
}

// checkNames refuses variables that begin as settings do and are none: a node whose name
// is misspelt would be a network that is simulated.
func checkNames(all *networks.Set, environ []string) (err error) {
	known := knownNames(all)
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, settingPrefix) && !strings.HasPrefix(name, testPrefix) && !slices.Contains(known, name) {
			err = errors.Join(err, fmt.Errorf("%s is no setting; the nearest is %s", name, yamlfile.Nearest(name, known)))
		}
	}
	return err
}

func knownNames(all *networks.Set) []string {
	var out []string
	for _, n := range settingNames {
		out = append(out, settingPrefix+n)
	}
	for _, n := range all.Networks() {
		for _, name := range nodes.Settings() {
			out = append(out, settingPrefix+name+"_"+string(n.Code))
		}
	}
	for _, c := range all.Currencies() {
		out = append(out, settingPrefix+"CONTRACT_"+c.Code)
	}
	return out
}
