package ledger_test

import (
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// 100 USDT are due unless the name says otherwise, the platform's fee is 1 %.
func TestGolden_MoneyIn(t *testing.T) {
	t.Parallel()
	runAll(t, []scene{
		{
			name: "full, fee by merchant", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -100, w +99, P +1"},
			want: "c -100, w 99, P 1", history: "deposit +99 = 99",
		},
		{
			name: "full, by merchant, n = 1", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -100, w +98, P +1, N +1"},
			want: "c -100, w 98, P 1, N 1", history: "deposit +98 = 98",
		},
		{
			name: "full, fee by user", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -101, w +100, P +1"},
			want: "c -101, w 100, P 1", history: "deposit +100 = 100",
		},
		{
			name: "full, by user, n = 1", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -102, w +100, P +1, N +1"},
			want: "c -102, w 100, P 1, N 1", history: "deposit +100 = 100",
		},
		{
			name: "short in tolerance, by user 100.6 of 101", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -100.6, w +99.603961, P +0.996039"},
			want: "c -100.6, w 99.603961, P 0.996039", history: "deposit +99.603961 = 99.603961",
		},
		{
			name: "partial 40, window ends, by merchant", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -40, w +39.6, P +0.4"},
			want: "c -40, w 39.6, P 0.4", history: "deposit +39.6 = 39.6",
		},
		{
			name: "over 150, by merchant", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -150, w +148.5, P +1.5"},
			want: "c -150, w 148.5, P 1.5", history: "deposit +148.5 = 148.5",
		},
		{
			name: "floating, 0.05 ETH at 2000, seen at 1900", asset: "ETH",
			txs:  []string{"credit/d/1 deposit: c -0.05, w +0.0495, P +0.0005"},
			want: "c -0.05, w 0.0495, P 0.0005", history: "deposit +0.0495 = 0.0495",
		},
		{
			name: "late, default", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -100, S +100"},
			want: "c -100, S 100",
		},
		{
			name: "late, policy credit", asset: "USDT",
			txs:  []string{"credit/d/1 deposit: c -100, w +99, P +1"},
			want: "c -100, w 99, P 1", history: "deposit +99 = 99",
		},
		{name: "60 + 40, the 40 dropped before final", asset: "USDT"},
		{
			name: "two deposits 60 + 40", asset: "USDT",
			txs: []string{
				"credit/d1/1 deposit: c -60, w +59.4, P +0.6",
				"credit/d2/1 deposit: c -40, w +39.6, P +0.4",
			},
			want: "c -100, w 99, P 1", history: "deposit +59.4 = 59.4; deposit +39.6 = 99",
		},
		{
			name: "the 40 reversed, funds still there", asset: "USDT",
			given: "c -100, w +99, P +1",
			txs:   []string{"reverse/d2/1 adjustment: w -39.6, P -0.4, c +40"},
			want:  "c -60, w 59.4, P 0.6", history: "adjustment -39.6 = 59.4",
		},
		{
			name: "100 reversed, 80 of 99 withdrawn", asset: "USDT",
			given: "c -20, w +19, P +1",
			txs:   []string{"reverse/d/1 adjustment: w -19, R -80, P -1, c +100"},
			want:  "c 80, R -80", history: "adjustment -19 = 0", deficit: true,
		},
		{
			name: "same, 10 of the 19 held", asset: "USDT",
			given: "c -20, w +19, H +10, P +1",
			txs:   []string{"reverse/d/1 adjustment: w -9, R -90, P -1, c +100"},
			want:  "c 80, w 10, H 10, R -90", history: "adjustment -9 = 10", deficit: true,
		},
		{
			name: "that deposit mined again (generation 2)", asset: "USDT",
			given: "c +80, R -80",
			txs: []string{
				"credit/d/2 deposit: c -100, w +99, P +1",
				"recover/d/2 adjustment: w -80, R +80",
			},
			want: "c -20, w 19, P 1", history: "deposit +99 = 99; adjustment -80 = 19",
		},
		{
			name: "wrong token, listed: 50 USDC, credited by hand", asset: "USDC",
			txs: []string{
				"credit/d/1 deposit: c -50, S +50",
				"adjust/1 adjustment: S -50, w +50",
			},
			want: "c -50, w 50", history: "adjustment +50 = 50",
		},
		{
			name: "wrong token, listed: 50 USDC, refunded", asset: "USDC",
			txs: []string{
				"credit/d/1 deposit: c -50, S +50",
				"refund/1 refund: S -50, c +50",
			},
		},
		{name: "unlisted token; below the dust limit", asset: "USDT"},
		{
			name: "fee-on-transfer: 100 sent, 99 arrive", asset: "USDT",
			txs: []string{
				"credit/d/1 deposit: c -99, w +98.01, P +0.99",
				"cost/net/hash fee: N -0.99, c +0.99",
			},
			want: "c -98.01, w 98.01, P 0.99, N -0.99", history: "deposit +98.01 = 98.01",
		},
		{
			name: "operator tops up a hot address, 1 ETH", asset: "ETH",
			txs:  []string{"topup/net/hash deposit: c -1, F +1"},
			want: "c -1, F 1",
		},
	})
}

func TestGolden_Forwarding(t *testing.T) {
	t.Parallel()
	runAll(t, []scene{
		{
			name: "1 ETH swept, gas 0.0004", asset: "ETH",
			given: "c -1.1, w +1, F +0.1",
			txs:   []string{"cost/net/hash fee: N -0.0004, c +0.0004"},
			want:  "c -1.0996, w 1, F 0.1, N -0.0004",
		},
		{
			name: "token swept: fund 0.00004, sweep 0.0001", asset: "ETH",
			given: "c -0.1, F +0.1",
			txs: []string{
				"cost/net/fund fee: N -0.00004, c +0.00004",
				"cost/net/sweep fee: N -0.0001, c +0.0001",
			},
			want: "c -0.09986, F 0.1, N -0.00014",
		},
		{
			name: "SPL swept, account closed: fee 0.00001, rent back 0.00203928", asset: "SOL",
			txs:  []string{"cost/net/hash fee: c -0.00202928, N +0.00202928"},
			want: "c -0.00202928, N 0.00202928",
		},
		{name: "XRP reserve, SOL rent minimum in hot", asset: "XRP", given: "c -10, F +10", want: "c -10, F 10"},
	})
}

// The platform's fee is 0.5 %, the quoted network fee 2 USDT.
func TestGolden_MoneyOut(t *testing.T) {
	t.Parallel()
	runAll(t, []scene{
		{
			name: "create 100, final_amount false", asset: "USDT", given: "c -200, w +200",
			txs:  []string{"hold/1 withdrawal: H +100"},
			want: "c -200, w 200, H 100",
		},
		{
			name: "create 100, final_amount true", asset: "USDT", given: "c -200, w +200",
			txs:  []string{"hold/1 withdrawal: H +102.5"},
			want: "c -200, w 200, H 102.5",
		},
		{
			name: "completed, false: recipient 97.5", asset: "USDT", given: "c -200, w +200",
			txs: []string{
				"hold/1 withdrawal: H +100",
				"settle/1 withdrawal: H -100, w -100, c +97.5, P +0.5, N +2",
			},
			want: "c -102.5, w 100, P 0.5, N 2", history: "withdrawal -100 = 100",
		},
		{
			name: "completed, true: recipient 100", asset: "USDT", given: "c -200, w +200",
			txs: []string{
				"hold/1 withdrawal: H +102.5",
				"settle/1 withdrawal: H -102.5, w -102.5, c +100, P +0.5, N +2",
			},
			want: "c -100, w 97.5, P 0.5, N 2", history: "withdrawal -102.5 = 97.5",
		},
		{
			name: "its gas 0.0006 ETH (a replacement: only what landed)", asset: "ETH", given: "c -1, F +1",
			txs:  []string{"cost/net/hash fee: N -0.0006, c +0.0006"},
			want: "c -0.9994, F 1, N -0.0006",
		},
		{
			name: "price_amount 100 USD in BTC at 60000", asset: "BTC", given: "c -0.01, w +0.01",
			txs: []string{
				"hold/1 withdrawal: H +0.00166666",
				"settle/1 withdrawal: H -0.00166666, w -0.00166666, c +0.00163833, P +0.00000833, N +0.00002",
			},
			want: "c -0.00836167, w 0.00833334, P 0.00000833, N 0.00002", history: "withdrawal -0.00166666 = 0.00833334",
		},
		{
			name: "cancelled, refused, never broadcast", asset: "USDT", given: "c -200, w +200",
			txs: []string{
				"hold/1 withdrawal: H +100",
				"release/1 withdrawal: H -100",
			},
			want: "c -200, w 200",
		},
		{
			name: "reverted and final; or our cancel landed", asset: "USDT", given: "c -200, w +200, c -1 ETH, F +1 ETH",
			txs: []string{
				"hold/1 withdrawal: H +100",
				"release/1 withdrawal: H -100",
				"cost/net/hash fee: N -0.0006 ETH, c +0.0006 ETH",
			},
			want: "c -200, w 200, c -0.9994 ETH, F 1 ETH, N -0.0006 ETH",
		},
		{
			name: "batch .01 + .02 + .03 BTC, quoted .00002 each, real fee .00004", asset: "BTC", given: "c -1, w +1",
			txs: []string{
				"hold/1 withdrawal: H +0.01002", "hold/2 withdrawal: H +0.02002", "hold/3 withdrawal: H +0.03002",
				"settle/1 withdrawal: H -0.01002, w -0.01002, c +0.01, N +0.00002",
				"settle/2 withdrawal: H -0.02002, w -0.02002, c +0.02, N +0.00002",
				"settle/3 withdrawal: H -0.03002, w -0.03002, c +0.03, N +0.00002",
				"cost/net/hash fee: N -0.00004, c +0.00004",
			},
			want:    "c -0.93996, w 0.93994, N 0.00002",
			history: "withdrawal -0.01002 = 0.98998; withdrawal -0.02002 = 0.96996; withdrawal -0.03002 = 0.93994",
		},
		{
			name: "to a payment address of ours", asset: "USDT", given: "c -200, w +200",
			txs: []string{
				"hold/1 withdrawal: H +100",
				"settle/1 withdrawal: H -100, w -100, c +97.5, P +0.5, N +2",
				"credit/d/1 deposit: c -97.5, w2 +96.525, P +0.975",
			},
			want: "c -200, w 100, w2 96.525, P 1.475, N 2", history: "withdrawal -100 = 100",
		},
		{
			name: "transfer to_sub 10", asset: "USDT", given: "c -200, w +200",
			txs: []string{
				"hold/1 transfer: H +10",
				"settle/1 transfer: H -10, w -10, w2 +10",
			},
			want: "c -200, w 190, w2 10", history: "transfer_out -10 = 190",
		},
		{
			name: "transfer to_master 10", asset: "USDT", given: "c -200, w2 +200",
			txs: []string{
				"hold/1 transfer: H2 +10",
				"settle/1 transfer: H2 -10, w2 -10, w +10",
			},
			want: "c -200, w2 190, w 10", history: "transfer_in +10 = 10",
		},
		{
			name: "operator takes earned fees out", asset: "USDT", given: "c -100, w +99, P +1, c -1 ETH, F +1 ETH",
			txs: []string{
				"payout/1 adjustment: P -1, c +1",
				"cost/net/hash fee: N -0.0006 ETH, c +0.0006 ETH",
			},
			want: "c -99, w 99, c -0.9994 ETH, F 1 ETH, N -0.0006 ETH",
		},
	})
}

// The figures beside the legs: what is computed, not posted.
func TestGolden_Figures(t *testing.T) {
	t.Parallel()
	fiat := func(units string, rate string) string {
		a, err := ledger.ParseAmount(units, 8)
		require.NoError(t, err)
		r, err := ledger.ParseDecimal(rate)
		require.NoError(t, err)
		v, err := ledger.MulRound(a, 8, r, 2, ledger.Down)
		require.NoError(t, err)
		return ledger.PlainString(v)
	}
	require.Equal(t, "94.05", fiat("0.0495", "1900"))
	require.Equal(t, "99.00", fiat("99", "1"))
	require.Equal(t, "0.00", fiat("0", "1900"))

	converted, err := ledger.Quo(decimal.New(100, 0), decimal.New(60000, 0), 8, ledger.Down)
	require.NoError(t, err)
	require.Equal(t, "0.00166666", converted.Format(8, 8))

	received, err := ledger.ParseAmount("100.6", 6)
	require.NoError(t, err)
	fee, err := received.MulDiv(1, 101, ledger.Down)
	require.NoError(t, err)
	require.Equal(t, "0.996039", fee.Format(6, 6))
}
