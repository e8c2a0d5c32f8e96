// Cardano by others' hands, for tests: transactions by @emurgo/cardano-serialization-lib-nodejs,
// and a ledger by the emulator of @lucid-evolution/provider. It reads a list of tasks from its
// input and writes as many results.
//
//   {"sign": {inputs: [{tx, index}], outputs: [{address, lovelace, tokens}], fee, ttl, memo, keys}}
//       writes and signs; answers {raw, tx, minFee, minAda: [of each output]}. tokens are
//       amounts by policy and name in hex, a dot between; keys are secrets in hex, of 32
//       bytes or, extended, of 64; a memo is a message of CIP-20, in lines of 64 bytes.
//   {"derive": {master, path, message}}
//       answers {public, signature} of a key of BIP32-Ed25519, whose master has 96 bytes.
//   {"submit": {utxos: [{tx, index, address, lovelace, tokens}], slot, raw}}
//       offers a transaction to a ledger with these outputs; answers {tx} or {error}.
//
//   node cardano.cjs NODE_MODULES <tasks >results
'use strict';
const path = require('path');
const C = require(path.join(process.argv[2], '@emurgo/cardano-serialization-lib-nodejs'));

const big = n => C.BigNum.from_str(String(n));
const bytes = hex => Buffer.from(hex, 'hex');

function value(lovelace, tokens) {
	const v = C.Value.new(big(lovelace));
	if (!tokens || Object.keys(tokens).length === 0) return v;
	const all = C.MultiAsset.new();
	for (const [contract, amount] of Object.entries(tokens)) {
		const [policy, name] = contract.split('.');
		all.set_asset(C.ScriptHash.from_bytes(bytes(policy)), C.AssetName.new(bytes(name)), big(amount));
	}
	v.set_multiasset(all);
	return v;
}

function lines(memo) {
	const out = [''];
	for (const letter of memo) {
		if (Buffer.byteLength(out[out.length - 1] + letter) > 64) out.push('');
		out[out.length - 1] += letter;
	}
	return out;
}

function sign(o) {
	const inputs = C.TransactionInputs.new();
	for (const i of o.inputs) inputs.add(C.TransactionInput.new(C.TransactionHash.from_hex(i.tx), i.index));
	const outputs = C.TransactionOutputs.new();
	const perByte = C.DataCost.new_coins_per_byte(big(4310));
	const minAda = [];
	for (const x of o.outputs) {
		const a = C.ByronAddress.is_valid(x.address) ? C.ByronAddress.from_base58(x.address).to_address() : C.Address.from_bech32(x.address);
		const out = C.TransactionOutput.new(a, value(x.lovelace, x.tokens));
		minAda.push(C.min_ada_for_output(out, perByte).to_str());
		outputs.add(out);
	}
	const body = C.TransactionBody.new_tx_body(inputs, outputs, big(o.fee));
	body.set_ttl(big(o.ttl));
	let tx;
	const none = C.TransactionWitnessSet.new().to_bytes();
	if (o.memo) {
		const metadata = C.GeneralTransactionMetadata.new();
		metadata.insert(big(674), C.encode_json_str_to_metadatum(JSON.stringify({ msg: lines(o.memo) }), C.MetadataJsonSchema.NoConversions));
		const aux = C.AuxiliaryData.new();
		aux.set_metadata(metadata);
		body.set_auxiliary_data_hash(C.hash_auxiliary_data(aux));
		tx = C.FixedTransaction.new_with_auxiliary(body.to_bytes(), none, aux.to_bytes(), true);
	} else {
		tx = C.FixedTransaction.new(body.to_bytes(), none, true);
	}
	for (const k of o.keys) tx.sign_and_add_vkey_signature(k.length === 64 ? C.PrivateKey.from_normal_bytes(bytes(k)) : C.PrivateKey.from_extended_bytes(bytes(k)));
	const raw = tx.to_bytes();
	const linear = C.LinearFee.new(big(44), big(155381));
	return {
		raw: Buffer.from(raw).toString('hex'), tx: tx.transaction_hash().to_hex(), minAda,
		minFee: C.min_fee(C.Transaction.from_bytes(raw), linear).to_str(),
	};
}

function derive(o) {
	let key = C.Bip32PrivateKey.from_bytes(bytes(o.master));
	for (const i of o.path) key = key.derive(i);
	const raw = key.to_raw_key();
	return { public: Buffer.from(raw.to_public().as_bytes()).toString('hex'), signature: raw.sign(bytes(o.message)).to_hex() };
}

async function submit(o) {
	const { Emulator } = require(path.join(process.argv[2], '@lucid-evolution/provider'));
	const ledger = new Emulator([]);
	ledger.slot = o.slot;
	for (const u of o.utxos) {
		const assets = { lovelace: BigInt(u.lovelace) };
		for (const [contract, amount] of Object.entries(u.tokens || {})) assets[contract.replace('.', '')] = BigInt(amount);
		ledger.ledger[u.tx + u.index] = { utxo: { txHash: u.tx, outputIndex: u.index, address: u.address, assets }, spent: false };
	}
	try {
		return { tx: await ledger.submitTx(o.raw) };
	} catch (e) {
		return { error: String((e && e.message) || e) };
	}
}

let input = '';
process.stdin.on('data', d => { input += d; });
process.stdin.on('end', async () => {
	const out = [];
	for (const t of JSON.parse(input)) out.push(t.sign ? sign(t.sign) : t.derive ? derive(t.derive) : await submit(t.submit));
	process.stdout.write(JSON.stringify(out));
});
