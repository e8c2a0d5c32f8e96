// A Solana node for tests: the real runtime (LiteSVM: signatures, programs, rent,
// fees) behind the JSON-RPC of a validator. What is ours: slots, blocks, forks,
// commitment, history and the window of blockhashes. Each URL path is a chain of
// its own, made when it is first asked for. It makes blocks only when told to.
//
// What is said of versions of transactions follows Agave, not the client under test:
//   - version 1 on the wire (0x81 first, signatures last, a mask of settings instead of
//     budget instructions): SIMD-0385, proposals/0385-transaction-v1.md of
//     solana-foundation/solana-improvement-documents at 6aa1a471, and
//     message/src/versions/v1/message.rs of anza-xyz/solana-sdk at 122f32e5;
//   - which versions getBlock and getTransaction give, `accounts`, and base64 of version 1:
//     validate_version, build_json_accounts, encode_with_options and the test
//     test_v1_binary_encoding_uses_wire_format in transaction-status/src/lib.rs of
//     jito-foundation/jito-solana at b64857b5, which is Agave of August 2026 (the first
//     two also in anza-xyz/agave at 4afe2714). `none` and `signatures` look at no version;
//   - code and words of the refusal: rpc-client-api/src/custom_error.rs there;
//   - maxSupportedTransactionVersion is a u8: rpc-client-types/src/config.rs there;
//   - the fee of version 1: test of getFeeForMessage in rpc/src/rpc.rs there.
// LiteSVM 1.5.0 executes version 1 itself. No runtime knows a later version: test_later
// executes a transaction and shows it as one, with bytes that nobody can read.
//
//   node litesvm.cjs PORT NODE_MODULES
'use strict';
const http = require('http'), crypto = require('crypto'), path = require('path');
const vm = require(path.join(process.argv[3], 'litesvm/dist/internal.js'));

const FINAL = 31; // blocks that the finalized one is behind the head
const WINDOW = 150; // blocks in which a blockhash can be used
const SYSTEM = '11111111111111111111111111111111';
const TOKENS = ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'];

const A = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
function b58(bytes) {
	let n = BigInt('0x' + (Buffer.from(bytes).toString('hex') || '0')), s = '';
	for (; n > 0n; n /= 58n) s = A[Number(n % 58n)] + s;
	for (const b of bytes) { if (b) break; s = '1' + s; }
	return s;
}
function un58(s, size = 32) {
	let n = 0n;
	for (const c of s) {
		const i = A.indexOf(c);
		if (i < 0) fail(-32602, 'Invalid param: Invalid');
		n = n * 58n + BigInt(i);
	}
	const hex = n.toString(16).padStart(size * 2, '0');
	if (hex.length !== size * 2) fail(-32602, 'Invalid param: WrongSize');
	return Buffer.from(hex, 'hex');
}
const sha = (...parts) => { const h = crypto.createHash('sha256'); for (const p of parts) h.update(p); return h.digest(); };

class RPCError extends Error { constructor(code, message, data) { super(message); this.code = code; this.data = data; } }
function fail(code, message, data) { throw new RPCError(code, message, data); }

// readV1 takes the bytes of a transaction of version 1 apart.
function readV1(raw) {
	let i = 0;
	const take = n => { if (i + n > raw.length) fail(-32602, 'failed to deserialize'); i += n; return raw.subarray(i - n, i); };
	const t = { raw, sigs: [], keys: [], lookups: [], version: take(1)[0] & 127, instructions: [], priority: 0n };
	t.signers = take(3)[0];
	const mask = take(4).readUInt32LE();
	if (t.version !== 1 || mask > 31 || (mask & 3) % 3) fail(-32602, 'failed to deserialize');
	t.blockhash = b58(take(32));
	const [instructions, addresses] = take(2);
	for (let n = addresses; n > 0; n--) t.keys.push(b58(take(32)));
	if (mask & 3) t.priority = take(8).readBigUInt64LE();
	for (const bit of [4, 8, 16]) if (mask & bit) take(4);
	const heads = [...Array(instructions)].map(() => take(4));
	for (const h of heads) t.instructions.push({ program: h[0], accounts: take(h[1]), data: take(h.readUInt16LE(2)) });
	t.message = raw.subarray(0, i);
	for (let n = t.signers; n > 0; n--) t.sigs.push(take(64));
	if (i !== raw.length || !t.sigs.length || raw.length > 4096) fail(-32602, 'failed to deserialize');
	t.sig = b58(t.sigs[0]);
	return t;
}

// readTx takes a transaction's bytes apart.
function readTx(raw) {
	if (raw[0] & 128) return readV1(raw);
	let i = 0;
	const byte = () => { if (i >= raw.length) fail(-32602, 'failed to deserialize'); return raw[i++]; };
	const len = () => { let n = 0; for (let s = 0; ; s += 7) { const b = byte(); n |= (b & 127) << s; if (b < 128) return n; } };
	const take = n => { if (i + n > raw.length) fail(-32602, 'failed to deserialize'); i += n; return raw.subarray(i - n, i); };
	const t = { raw, sigs: [], keys: [], lookups: [], version: 'legacy' };
	for (let n = len(); n > 0; n--) t.sigs.push(take(64));
	t.message = raw.subarray(i);
	if (raw[i] & 128 && byte() !== 128) fail(-32602, 'failed to deserialize');
	if (t.message[0] & 128) t.version = 0;
	t.signers = byte(); byte(); byte();
	for (let n = len(); n > 0; n--) t.keys.push(b58(take(32)));
	t.blockhash = b58(take(32));
	t.instructions = [];
	for (let n = len(); n > 0; n--) t.instructions.push({ program: byte(), accounts: take(len()), data: take(len()) });
	if (t.version !== 'legacy') for (let n = len(); n > 0; n--) t.lookups.push({ table: b58(take(32)), writable: take(len()), readonly: take(len()) });
	if (i !== raw.length || !t.sigs.length || t.sigs.length !== t.signers) fail(-32602, 'failed to deserialize');
	t.sig = b58(t.sigs[0]);
	return t;
}

// price is what a transaction offers for its compute units.
function fee(t) {
	if (t.version === 1) return 5000n * BigInt(t.signers) + t.priority;
	let limit = 200000 * t.instructions.length, price = 0n;
	for (const x of t.instructions) {
		if (t.keys[x.program] !== 'ComputeBudget111111111111111111111111111111') continue;
		if (x.data[0] === 2) limit = x.data.readUInt32LE(1);
		if (x.data[0] === 3) price = x.data.readBigUInt64LE(1);
	}
	return 5000n * BigInt(t.signers) + (BigInt(Math.min(limit, 1400000)) * price + 999999n) / 1000000n;
}

class Chain {
	constructor(name) {
		this.name = name;
		this.genesis = b58(sha('genesis', name));
		this.ops = []; // all that changed accounts: {height, raw} or {height, key, account}
		this.fault = {};
		this.fork = 0;
		this.blocks = [{ slot: 0, hash: this.genesis, parent: SYSTEM, parentSlot: 0, time: 1760000000, txs: [] }];
		this.pool = [];
		this.known = new Map(); // signature -> {height, tx}
		this.fresh();
		this.mine(FINAL + 9);
	}
	fresh() {
		this.svm = new vm.LiteSvm();
		this.svm.setBlockhashCheck(false);
		this.svm.setTransactionHistory(0n); // whether one is known is ours to say
	}
	get head() { return this.blocks.length - 1 - (this.fault.lag || 0); }
	height(commitment) { return commitment === 'finalized' || commitment === undefined ? Math.max(0, this.head - FINAL) : this.head; }
	account(key) { return this.svm.getAccount(un58(key)); }
	lamports(key) { return this.svm.getBalance(un58(key)) || 0n; }
	set(key, a) {
		this.svm.setAccount(un58(key), new vm.Account(BigInt(a.lamports), Buffer.from(a.data || '', 'base64'), un58(a.owner || SYSTEM), !!a.executable, 0n));
	}
	loaded(t) {
		const out = { writable: [], readonly: [] };
		for (const l of t.lookups) {
			const a = this.account(l.table);
			if (!a) fail(-32002, 'Transaction simulation failed: address table account does not exist', { err: 'AddressLookupTableNotFound' });
			const d = Buffer.from(a.data()), at = i => b58(d.subarray(56 + 32 * i, 88 + 32 * i));
			out.writable.push(...[...l.writable].map(at));
			out.readonly.push(...[...l.readonly].map(at));
		}
		return out;
	}
	token(key) {
		const a = this.account(key);
		if (!a) return null;
		const program = b58(a.owner()), d = Buffer.from(a.data());
		if (!TOKENS.includes(program) || d.length < 165 || d.length > 165 && d[165] !== 2 || d[108] === 0) return null;
		const mint = b58(d.subarray(0, 32)), m = this.account(mint), decimals = m ? m.data()[44] : 0, amount = d.readBigUInt64LE(64);
		return { mint, owner: b58(d.subarray(32, 64)), programId: program, uiTokenAmount: { amount: String(amount), decimals, uiAmount: Number(amount) / 10 ** decimals, uiAmountString: String(Number(amount) / 10 ** decimals) } };
	}
	snap(keys) {
		return [keys.map(k => Number(this.lamports(k))), keys.map((k, i) => { const t = this.token(k); return t && { accountIndex: i, ...t }; }).filter(Boolean)];
	}
	// run executes a transaction; null where no block can hold it.
	run(t) {
		const loaded = this.loaded(t), keys = [...t.keys, ...loaded.writable, ...loaded.readonly], cost = fee(t);
		const payer = this.lamports(t.keys[0]);
		const [preBalances, preTokenBalances] = this.snap(keys);
		const r = t.version === 'legacy' ? this.svm.sendLegacyTransaction(t.raw) : this.svm.sendVersionedTransaction(t.raw);
		const failed = r instanceof vm.FailedTransactionMetadata, meta = failed ? r.meta() : r;
		let err = null;
		if (failed) {
			const text = r.toString();
			if (!/InstructionError|InsufficientFundsForRent/.test(text) || payer < cost) return { rejected: text };
			err = { InstructionError: [0, text.slice(0, 200)] };
			const now = this.lamports(t.keys[0]);
			if (now === payer) this.set(t.keys[0], { lamports: payer - cost }); // a validator takes the fee all the same
		}
		const [postBalances, postTokenBalances] = this.snap(keys);
		const inner = meta.innerInstructions().map((list, index) => ({ index, instructions: list.map(x => {
			const c = x.instruction();
			return { programIdIndex: c.programIdIndex(), accounts: [...c.accounts()], data: b58(c.data()), stackHeight: x.stackHeight() };
		}) })).filter(x => x.instructions.length);
		return { meta: {
			err, status: err ? { Err: err } : { Ok: null }, fee: Number(cost), preBalances, postBalances, preTokenBalances, postTokenBalances,
			innerInstructions: inner, logMessages: meta.logs(), rewards: null, loadedAddresses: loaded, computeUnitsConsumed: Number(meta.computeUnitsConsumed()),
		} };
	}
	usable(hash, height) { // in a block at that height
		for (let h = height - 1; h >= 0 && h >= height - 1 - WINDOW; h--) if (this.blocks[h].hash === hash) return true;
		return false;
	}
	mine(n) {
		for (; n > 0; n--) {
			const last = this.blocks[this.blocks.length - 1], height = this.blocks.length;
			const slot = last.slot + 1 + (height % 7 === 3 ? 2 : 0) + (this.fault.skip || 0);
			const b = { slot, parentSlot: last.slot, parent: last.hash, time: last.time + Math.ceil((slot - last.slot) * 0.4), txs: [] };
			this.svm.warpToSlot(BigInt(slot));
			for (const t of this.pool) {
				if (this.known.has(t.sig) || !this.usable(t.blockhash, height)) continue;
				const out = this.run(t);
				if (out.rejected) continue;
				this.ops.push({ height, raw: t.raw });
				b.txs.push({ tx: t, meta: out.meta });
				this.known.set(t.sig, { height, i: b.txs.length - 1 });
			}
			this.pool = [];
			b.hash = b58(sha('block', last.hash, String(slot), String(this.fork), ...b.txs.map(x => x.tx.sig)));
			this.blocks.push(b);
		}
		return this.blocks.length - 1;
	}
	reorg(depth, drop = []) {
		const keep = this.blocks.length - depth, gone = this.blocks.splice(keep), waiting = this.pool;
		this.fresh();
		const ops = this.ops;
		this.ops = [];
		for (const o of ops) {
			if (o.height >= keep) continue;
			this.ops.push(o);
			if (o.raw) this.run(readTx(o.raw)); else this.set(o.key, o.account);
		}
		const back = gone.flatMap(b => b.txs.map(x => x.tx));
		for (const t of back) this.known.delete(t.sig);
		this.pool = [];
		this.fork++;
		this.mine(depth + 1);
		this.pool = [...back, ...waiting].filter(t => !drop.includes(t.sig));
	}
}

const ctx = (c, height, value) => ({ context: { apiVersion: '3.0.0', slot: c.blocks[height].slot }, value });
const hidden = (c, h) => c.fault.gap && h >= c.fault.gap[0] && h <= c.fault.gap[1];
// checked is the version that is shown, where the client says that it takes it.
function checked(t, o) {
	const max = o.maxSupportedTransactionVersion, v = t.shown ? t.shown.version : t.version;
	if (max === undefined && v === 'legacy') return undefined;
	if (v !== 'legacy' && !(v <= max)) fail(-32015, `Transaction version (${v}) is not supported by the requesting client. Please try the request again with the following configuration parameter: "maxSupportedTransactionVersion": ${v}`);
	return v;
}
function options(o) {
	const max = o.maxSupportedTransactionVersion;
	if (max !== undefined && !(Number.isInteger(max) && max >= 0 && max <= 255)) fail(-32602, `Invalid params: invalid value: integer \`${max}\`, expected u8.`);
	if (o.encoding !== 'base64') fail(-32602, 'the model encodes in base64 alone');
	return o;
}
const encoded = o => x => ({ version: checked(x.tx, o), transaction: [(x.tx.shown || x.tx).raw.toString('base64'), 'base64'], meta: x.meta });
const accounts = o => x => {
	const { err, status, fee, preBalances, postBalances, preTokenBalances, postTokenBalances } = x.meta;
	const named = source => pubkey => ({ pubkey, writable: true, signer: x.tx.keys.indexOf(pubkey) >= 0 && x.tx.keys.indexOf(pubkey) < x.tx.signers, source });
	return {
		version: checked(x.tx, o),
		transaction: {
			signatures: x.tx.sigs.map(b58),
			accountKeys: [...x.tx.keys.map(named('transaction')), ...[...x.meta.loadedAddresses.writable, ...x.meta.loadedAddresses.readonly].map(named('lookupTable'))],
		},
		meta: { err, status, fee, preBalances, postBalances, preTokenBalances, postTokenBalances },
	};
};
const show = (a, size) => a && { lamports: Number(a.lamports()), owner: b58(a.owner()), data: [Buffer.from(a.data()).toString('base64'), 'base64'], executable: a.executable(), rentEpoch: 18446744073709552000, space: a.data().length };
function found(c, sig) {
	const k = c.known.get(sig);
	return k && k.height <= c.head && c.fault.forget !== sig ? k : null;
}
function simulated(c, t) {
	const r = t.version === 'legacy' ? c.svm.simulateLegacyTransaction(t.raw) : c.svm.simulateVersionedTransaction(t.raw);
	if (!(r instanceof vm.FailedTransactionMetadata)) return;
	const text = r.toString();
	if (/SignatureFailure/.test(text)) fail(-32003, 'Transaction signature verification failure');
	fail(-32002, 'Transaction simulation failed: ' + text.slice(0, 200), { err: text.slice(0, 200), logs: [] });
}

const methods = {
	getHealth: () => 'ok',
	getGenesisHash: c => c.genesis,
	getSlot: (c, o = {}) => c.blocks[c.height(o.commitment)].slot,
	getBlockHeight: (c, o = {}) => c.height(o.commitment),
	getLatestBlockhash: (c, o = {}) => { const h = c.height(o.commitment); return ctx(c, h, { blockhash: c.blocks[h].hash, lastValidBlockHeight: h + WINDOW }); },
	isBlockhashValid: (c, hash, o = {}) => ctx(c, c.height(o.commitment), c.usable(hash, c.height(o.commitment) + 1)),
	getBlocks: (c, from, to, o) => {
		if (typeof to === 'object') [to, o] = [undefined, to];
		const end = c.height((o || {}).commitment);
		return c.blocks.filter((b, h) => h <= end && b.slot >= from && b.slot <= (to ?? Infinity) && !hidden(c, h)).map(b => b.slot);
	},
	getBlocksWithLimit: (c, from, limit, o = {}) => methods.getBlocks(c, from, undefined, o).slice(0, limit),
	getBlock: (c, slot, o = {}) => {
		const h = c.blocks.findIndex(b => b.slot === slot);
		if (slot > c.blocks[c.height(o.commitment)].slot) fail(-32004, `Block not available for slot ${slot}`);
		if (h < 0 || hidden(c, h)) fail(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`);
		if ((c.fault.late || []).includes(h)) fail(-32014, `Block status not yet available for slot ${slot}`);
		const b = c.blocks[h];
		const out = { blockHeight: h, blockTime: b.time, blockhash: b.hash, parentSlot: b.parentSlot, previousBlockhash: b.parent };
		if (o.transactionDetails === 'signatures') out.signatures = b.txs.map(x => x.tx.sig);
		else if (o.transactionDetails !== 'none') {
			out.transactions = b.txs.map((o.transactionDetails === 'accounts' ? accounts : encoded)(options(o))).map(x => c.fault.partial ? { ...x, meta: null } : x);
		}
		return out;
	},
	getTransaction: (c, sig, o = {}) => {
		const k = found(c, sig);
		if (!k || k.height > c.height(o.commitment)) return null;
		return { slot: c.blocks[k.height].slot, blockTime: c.blocks[k.height].time, ...encoded(options(o))(c.blocks[k.height].txs[k.i]) };
	},
	getSignatureStatuses: (c, sigs) => ctx(c, c.head, sigs.map(s => {
		const k = found(c, s);
		if (!k) return null;
		const final = k.height <= c.head - FINAL, err = c.blocks[k.height].txs[k.i].meta.err;
		return { slot: c.blocks[k.height].slot, confirmations: final ? null : c.head - k.height, err, status: err ? { Err: err } : { Ok: null }, confirmationStatus: final ? 'finalized' : 'confirmed' };
	})),
	getSignaturesForAddress: (c, address, o = {}) => {
		const all = [];
		for (let h = c.height(o.commitment); h >= 0; h--) for (const x of [...c.blocks[h].txs].reverse()) {
			const keys = [...x.tx.keys, ...x.meta.loadedAddresses.writable, ...x.meta.loadedAddresses.readonly];
			if (keys.includes(address)) all.push({ signature: x.tx.sig, slot: c.blocks[h].slot, err: x.meta.err, memo: null, blockTime: c.blocks[h].time, confirmationStatus: 'confirmed' });
		}
		const from = o.before ? all.findIndex(x => x.signature === o.before) + 1 : 0, to = all.findIndex(x => x.signature === o.until);
		return all.slice(from, to < 0 ? undefined : to).slice(0, o.limit || 1000);
	},
	getBalance: (c, key) => ctx(c, c.head, Number(c.lamports(key))),
	getAccountInfo: (c, key) => ctx(c, c.head, show(c.account(key))),
	getMultipleAccounts: (c, keys) => ctx(c, c.head, keys.map(k => show(c.account(k)))),
	getMinimumBalanceForRentExemption: (c, n) => Number(c.svm.minimumBalanceForRentExemption(BigInt(n))),
	getFeeForMessage: (c, message) => {
		const b = Buffer.from(message, 'base64'), n = b[0] & 128 ? b[1] : b[0], none = Buffer.alloc(64 * n);
		return ctx(c, c.head, Number(fee(readTx(Buffer.concat(b[0] > 128 ? [b, none] : [Buffer.from([n]), none, b])))));
	},
	getRecentPrioritizationFees: c => (c.fault.prices || [0]).map((prioritizationFee, i) => ({ slot: c.blocks[c.head].slot - i, prioritizationFee })),
	sendTransaction: (c, text, o = {}) => {
		const t = readTx(o.encoding === 'base64' ? Buffer.from(text, 'base64') : fail(-32602, 'only base64'));
		if (!o.skipPreflight) {
			if (c.known.has(t.sig)) fail(-32002, 'Transaction simulation failed: This transaction has already been processed', { err: 'AlreadyProcessed' });
			if (!c.usable(t.blockhash, c.blocks.length)) fail(-32002, 'Transaction simulation failed: Blockhash not found', { err: 'BlockhashNotFound' });
			simulated(c, t);
		}
		if (!c.fault.swallow && !c.pool.some(x => x.sig === t.sig)) c.pool.push(t);
		return t.sig;
	},
	// What no validator has.
	test_mine: (c, n) => c.mine(n),
	test_reorg: (c, depth, drop) => { c.reorg(depth, drop); return null; },
	test_set: (c, key, account) => { c.set(key, account); c.ops.push({ height: c.blocks.length - 1, key, account }); return null; },
	test_put: (c, text) => { const t = readTx(Buffer.from(text, 'base64')); c.pool.push(t); return t.sig; },
	test_later: (c, text, version) => {
		const t = readTx(Buffer.from(text, 'base64'));
		t.shown = { version, raw: Buffer.concat([Buffer.from([128 | version]), sha('later', t.raw), t.raw.subarray(1)]) };
		c.pool.push(t);
		return t.sig;
	},
	test_fault: (c, fault) => { Object.assign(c.fault, fault); return null; },
};

const chains = new Map();
function answer(c, q) {
	try {
		if (!methods[q.method]) fail(-32601, 'Method not found');
		if (c.fault.fail && !q.method.startsWith('test_')) fail(-32603, 'Internal error');
		return { jsonrpc: '2.0', result: methods[q.method](c, ...(q.params || [])), id: q.id };
	} catch (e) {
		return { jsonrpc: '2.0', error: { code: e.code && typeof e.code === 'number' ? e.code : -32603, message: String(e.message), data: e.data }, id: q.id };
	}
}
http.createServer((req, res) => {
	const parts = [];
	req.on('data', d => parts.push(d));
	req.on('end', () => {
		if (!chains.has(req.url)) chains.set(req.url, new Chain(req.url));
		const c = chains.get(req.url), q = JSON.parse(Buffer.concat(parts).toString());
		const out = Array.isArray(q) ? q.map(x => answer(c, x)) : answer(c, q);
		if (c.fault.lose && JSON.stringify(q).includes('sendTransaction')) { c.fault.lose = false; req.socket.destroy(); return; }
		res.setHeader('content-type', 'application/json');
		res.end(JSON.stringify(out));
	});
}).listen(Number(process.argv[2]), '127.0.0.1');
