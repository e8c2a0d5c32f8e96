// Transactions of Solana by @solana/kit, for tests: a second hand beside the client
// under test. It reads a list of tasks from its input and writes as many results.
//
//   {"encode": {version, blockhash, payer, signers, config, instructions}}
//       signs and encodes; answers {wire, message, signatures}. payer and signers are
//       secret keys, base64 of 64 bytes; config is what kit calls it, numbers as text;
//       an instruction is {program, accounts: [{address, signer, writable}], data}.
//   {"decode": wire}
//       answers what kit reads: {version, keys, blockhash, config, instructions, signed}.
//
//   node kit.cjs NODE_MODULES <tasks >results
'use strict';
const path = require('path');
const kit = require(path.join(process.argv[2], '@solana/kit'));

const b64 = bytes => Buffer.from(bytes).toString('base64');
const from64 = text => new Uint8Array(Buffer.from(text, 'base64'));

async function encode(o) {
	const payer = await kit.createKeyPairSignerFromBytes(from64(o.payer));
	const signers = new Map();
	for (const s of o.signers || []) { const k = await kit.createKeyPairSignerFromBytes(from64(s)); signers.set(k.address, k); }
	let m = kit.createTransactionMessage({ version: o.version });
	m = kit.setTransactionMessageFeePayerSigner(payer, m);
	m = kit.setTransactionMessageLifetimeUsingBlockhash({ blockhash: o.blockhash, lastValidBlockHeight: 0n }, m);
	if (o.config) {
		const { priorityFeeLamports, ...rest } = o.config;
		const config = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, Number(v)]));
		if (priorityFeeLamports !== undefined) config.priorityFeeLamports = BigInt(priorityFeeLamports);
		m = kit.setTransactionMessageConfig(config, m);
	}
	m = kit.appendTransactionMessageInstructions((o.instructions || []).map(x => ({
		programAddress: kit.address(x.program),
		accounts: (x.accounts || []).map(a => ({
			address: kit.address(a.address), role: (a.signer ? 2 : 0) + (a.writable ? 1 : 0),
			...(a.signer && a.address !== payer.address ? { signer: signers.get(a.address) } : {}),
		})),
		data: from64(x.data || ''),
	})), m);
	const tx = await kit.signTransactionMessageWithSigners(m);
	const text = kit.getBase58Decoder();
	return { wire: kit.getBase64EncodedWireTransaction(tx), message: b64(tx.messageBytes), signatures: Object.values(tx.signatures).map(s => text.decode(s)) };
}

async function decode(wire) {
	const tx = kit.getTransactionDecoder().decode(from64(wire));
	const c = kit.getCompiledTransactionMessageDecoder().decode(tx.messageBytes);
	const m = kit.decompileTransactionMessage(c);
	let signed = true;
	for (const [address, signature] of Object.entries(tx.signatures)) {
		const key = await kit.getPublicKeyFromAddress(kit.address(address));
		signed = signed && !!signature && await kit.verifySignature(key, signature, tx.messageBytes);
	}
	return {
		version: m.version, keys: c.staticAccounts, blockhash: m.lifetimeConstraint.blockhash, signed,
		config: m.config && Object.fromEntries(Object.entries(m.config).map(([k, v]) => [k, String(v)])),
		instructions: m.instructions.map(x => ({
			program: x.programAddress, data: b64(x.data || []),
			accounts: x.accounts?.length ? x.accounts.map(a => ({ address: a.address, signer: a.role >= 2, writable: a.role % 2 === 1 })) : undefined,
		})),
	};
}

let input = '';
process.stdin.on('data', d => { input += d; });
process.stdin.on('end', async () => {
	const out = [];
	for (const t of JSON.parse(input)) out.push(t.encode ? await encode(t.encode) : await decode(t.decode));
	process.stdout.write(JSON.stringify(out));
});
