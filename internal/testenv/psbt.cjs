// Signs PSBTs with bitcoinjs-lib, for tests: somebody's own wallet, beside the client under test. It
// reads a list of tasks from its input and writes as many results.
//
//   {"xpub": {seed, path}}
//       answers {xpub, fingerprint}: the extended public key at a path of hardened steps, and the
//       fingerprint of the master key. seed is hex.
//   {"sign": {psbt, seeds, finalize, edit}}
//       signs every input with the keys that the PSBT says are of these seeds; answers {psbt} in
//       base64, or {tx} in hex where finalize is "tx". finalize "psbt" finalises the inputs. edit
//       changes the transaction first, as a thief would: {output: [i, script hex, units]},
//       {locktime}, {sequence: [i, n]}, {sighash}.
//
//   node psbt.cjs NODE_MODULES <tasks >results
'use strict';
const path = require('path');
const at = name => require(path.join(process.argv[2], name));
const { BIP32Factory } = at('bip32');
const bitcoin = at('bitcoinjs-lib');
const bip32 = BIP32Factory(at('tiny-secp256k1'));

const root = seed => bip32.fromSeed(Buffer.from(seed, 'hex'));
const hex = bytes => Buffer.from(bytes).toString('hex');

function xpub({ seed, path }) {
	const master = root(seed);
	return { xpub: master.derivePath(path).neutered().toBase58(), fingerprint: hex(master.fingerprint) };
}

function edited(psbt, edit) {
	const tx = psbt.data.globalMap.unsignedTx.tx;
	if (edit.output) {
		const [i, script, units] = edit.output;
		tx.outs[i] = { script: script ? Buffer.from(script, 'hex') : tx.outs[i].script, value: BigInt(units) };
	}
	if (edit.locktime !== undefined) tx.locktime = edit.locktime;
	if (edit.sequence) tx.ins[edit.sequence[0]].sequence = edit.sequence[1];
	const next = bitcoin.Psbt.fromBase64(psbt.toBase64()); // nothing that was computed before is kept
	if (edit.sighash) next.data.inputs.forEach(input => { input.sighashType = edit.sighash; });
	return next;
}

function sign({ psbt: text, seeds, finalize, edit }) {
	let psbt = bitcoin.Psbt.fromBase64(text);
	if (edit) psbt = edited(psbt, edit);
	for (const seed of seeds) {
		psbt.signAllInputsHD(root(seed), edit && edit.sighash ? [edit.sighash] : undefined);
	}
	if (finalize) psbt.finalizeAllInputs();
	return finalize === 'tx' ? { tx: psbt.extractTransaction(true).toHex() } : { psbt: psbt.toBase64() };
}

let input = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', d => { input += d; });
process.stdin.on('end', () => {
	process.stdout.write(JSON.stringify(JSON.parse(input).map(t => (t.xpub ? xpub(t.xpub) : sign(t.sign)))));
});
