package withdrawal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// AddressInput asks whether an address can be paid out to. At least one of
// Currency, Blockchain and Type says on which network; what is given must agree.
type AddressInput struct {
	// Tenant is whose list of destinations counts for addresses that no key signs for. "" = nobody's.
	Tenant     string
	Address    string
	Currency   string // combined code
	Blockchain string // network or an alias of it
	Type       string // address type: "EVM", "TRX" …
	Token      string // symbol
	Memo       string // "" = not given
}

// AddressCheck is what is known of an address. Reason "" = it is valid.
type AddressCheck struct {
	Type     string          // of the network's addresses
	Network  chain.Network   // "" where only a type was given
	Token    string          // "" where none was given
	Currency *chain.Currency // nil where none was given
	Reason   string
}

// ValidateAddress looks at an address as Create would. Where only a type is
// given, the address need fit one network of that type, and whose it is there is
// not looked at. Errors: *InvalidError, and what wraps chain.ErrCurrency.
func (s *Service) ValidateAddress(ctx context.Context, in AddressInput) (AddressCheck, error) {
	networks, out, err := s.addressNetworks(&in)
	if err != nil {
		return AddressCheck{}, err
	}
	if len(networks) == 1 {
		if why := s.untag(networks[0].Code, &in.Address, &in.Memo); why != "" {
			out.Reason = "The memo is invalid: it " + why + "."
			return out, nil
		}
	}
	if len(networks) == 1 && out.Network != "" {
		_, err = s.destination(ctx, in.Tenant, networks[0].Code, in.Address)
	} else {
		err = s.anywhere(networks, in.Address)
	}
	var bad *chain.AddressError
	switch {
	case errors.As(err, &bad):
		out.Reason = "The address is invalid: " + bad.Reason + "."
	case err != nil:
		return AddressCheck{}, err
	case in.Memo != "":
		if why := memoError(networks[0], in.Memo); why != "" {
			out.Reason = "The memo is invalid: it " + why + "."
		}
	}
	return out, nil
}

// CheckAddress says what is wrong with a question by itself: the errors of
// ValidateAddress.
func (s *Service) CheckAddress(in AddressInput) error {
	_, _, err := s.addressNetworks(&in)
	return err
}

// anywhere is nil where the address is one of any of the networks.
func (s *Service) anywhere(networks []chain.NetworkInfo, address string) (err error) {
	for _, n := range networks {
		var to chain.Address
		if to, err = s.c.Parse(n.Code, address); err == nil {
			return s.Burned(n.Code, to)
		}
	}
	return err
}

// addressNetworks finds the networks that a question is about: one, or all of
// a type.
func (s *Service) addressNetworks(in *AddressInput) (networks []chain.NetworkInfo, out AddressCheck, err error) {
	bad := &InvalidError{}
	if in.Address == "" {
		bad.Add("address", "is required")
	}
	bad.AddLong("address", in.Address, maxAddress)
	bad.AddLong("memo", in.Memo, maxMemo)
	out, unknown := s.addressCurrency(in, bad)
	types := s.types()
	switch known := slices.Contains(types, in.Type); {
	case in.Type != "" && !known:
		bad.Add("type", "must be one of "+strings.Join(types, ", "))
	case in.Type != "" && out.Type != "" && in.Type != out.Type:
		bad.Add("type", "does not agree with the blockchain, whose addresses are "+out.Type)
	}
	if err := verdict(bad, unknown); err != nil {
		return nil, out, err
	}
	if out.Network == "" {
		out.Type = in.Type
	}
	for _, n := range s.c.Registry.Networks() {
		if n.Code == out.Network || out.Network == "" && n.AddressType == in.Type {
			networks = append(networks, n)
		}
	}
	return networks, out, nil
}

// addressCurrency reads the currency, or the network alone, that a question
// names. The error says that there is no such currency; everything else is in bad.
func (s *Service) addressCurrency(in *AddressInput, bad *InvalidError) (out AddressCheck, err error) {
	switch {
	case in.Currency != "" || in.Blockchain != "" && in.Token != "":
		c, err := s.named(in.Currency, in.Blockchain, in.Token, bad)
		if c == nil {
			return out, err
		}
		out.Currency, out.Token, out.Network = c, c.Token, c.Network
	case in.Blockchain != "":
		n, err := s.c.Registry.Network(in.Blockchain)
		if err != nil {
			bad.Add("blockchain", "is not supported")
		}
		out.Network = n.Code
	case in.Type == "":
		bad.Add("currency", "is required, or blockchain, or type")
	case in.Token != "":
		if out.Token = in.Token; !s.knownToken(in.Token) {
			bad.Add("token", "is not supported")
		}
	}
	n, _ := s.c.Registry.Network(string(out.Network)) // the zero one where only a type was given
	out.Type = n.AddressType
	return out, nil
}

// named is currency with what is wrong about its fields put into bad.
func (s *Service) named(code, network, token string, bad *InvalidError) (*chain.Currency, error) {
	c, err := s.currency(code, network, token)
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		return c, err
	}
	for field, messages := range invalid.Fields {
		for _, m := range messages {
			bad.Add(field, m)
		}
	}
	return nil, nil
}

// types lists the address types.
func (s *Service) types() []string {
	var out []string
	for _, n := range s.c.Registry.Networks() {
		if !slices.Contains(out, n.AddressType) {
			out = append(out, n.AddressType)
		}
	}
	slices.Sort(out)
	return out
}

// parse gives an address its canonical form: also one that no key signs for, where the tenant's list
// of destinations has it.
func (s *Service) parse(ctx context.Context, tenant string, n chain.Network, address string) (chain.Address, error) {
	to, err := s.c.Parse(n, address)
	if err == nil || s.c.Rules == nil || tenant == "" {
		return to, err
	}
	vault, failed := s.c.Rules.Vault(ctx, tenant, n, address)
	if failed != nil || vault != "" {
		return vault, failed
	}
	return "", err
}

// destination is the canonical address, where a tenant's money may go to it.
func (s *Service) destination(ctx context.Context, tenant string, n chain.Network, address string) (chain.Address, error) {
	to, err := s.parse(ctx, tenant, n, address)
	if err != nil {
		return "", err
	}
	if err := s.Burned(n, to); err != nil {
		return "", err
	}
	use, own, err := s.c.Own(ctx, n, to)
	switch {
	case err != nil:
		return "", err
	case own && use != usePayment:
		return "", &chain.AddressError{Network: n, Address: address, Reason: "it belongs to this service"}
	}
	return to, nil
}

// usePayment is how Config.Own names an address handed out to a payment: paying
// to one is paying that payment.
const usePayment = "payment"

// Burned returns a *chain.AddressError for a canonical address that is known to have no key: also
// for a token's own contract, which is what a wallet shows beside the token's name. It does no I/O.
func (s *Service) Burned(n chain.Network, a chain.Address) error {
	switch {
	case burns(a):
		return &chain.AddressError{Network: n, Address: string(a), Reason: "nobody can spend what is sent there"}
	case s.c.Registry.ByContract(n, string(a)) != nil && a != "":
		return &chain.AddressError{Network: n, Address: string(a), Reason: "it is a token's contract: nobody can spend what is sent there"}
	}
	return nil
}

// burns reports whether an address is one that is known to have no key.
func burns(a chain.Address) bool {
	switch strings.ToLower(string(a)) {
	case "0x0000000000000000000000000000000000000000",
		"0x000000000000000000000000000000000000dead":
		return true
	}
	switch a {
	case "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb", // Tron's zero address
		"11111111111111111111111111111111",            // Solana's system program
		"1nc1nerator11111111111111111111111111111111", // Solana's incinerator
		"rrrrrrrrrrrrrrrrrrrrrhoLvTp",                 // XRP's ACCOUNT_ZERO
		"rrrrrrrrrrrrrrrrrrrrBZbvji",                  // XRP's ACCOUNT_ONE
		"1111111111111111111114oLvT2",                 // Bitcoin's empty hash160
		"1BitcoinEaterAddressDontSendf59kuE":
		return true
	}
	return false
}
