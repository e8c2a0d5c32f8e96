// A Solana node for tests: the real runtime (LiteSVM: signatures, programs, rent,
// fees) behind the JSON-RPC of a validator. What is ours: slots, blocks, forks,
// commitment, history and the window of blockhashes. Each URL path is a chain of
// its own, made when it is first asked for. It makes blocks only when told to.
//
// What it answers follows Agave, not the client under test; internal/nodes/solanatest/CHECKED.md
// says what was compared with which source. Version 1 of transactions (0x81 first, signatures
// last, a mask of settings instead of budget instructions) is SIMD-0385's.
// LiteSVM 1.5.0 executes version 1 itself. No runtime knows a later version: test_later
// executes a transaction and shows it as one, with bytes that nobody can read.
//
//   node litesvm.cjs PORT NODE_MODULES
'use strict';
const http = require('http'), crypto = require('crypto'), path = require('path');
const vm = require(path.join(process.argv[3], 'litesvm/dist/internal.js'));

const FINAL = 31; // blocks that the finalized one is behind the head
const WINDOW = 150; // blocks in which a blockhash can be used
const CACHED = 300; // blocks of which blockhashes and signatures are in memory
const RANGE = 500000; // slots that one list of blocks covers
const SYSTEM = '11111111111111111111111111111111';
const TOKENS = ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb'];

const A = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
function b58(bytes) {
	let n = BigInt('0x' + (Buffer.from(bytes).toString('hex') || '0')), s = '';
	for (; n > 0n; n /= 58n) s = A[Number(n % 58n)] + s;
	for (const b of bytes) { if (b) break; s = '1' + s; }
	return s;
}
function un58(s, size = 32, said = 'Invalid param: ') {
	let n = 0n;
	for (const c of s) {
		const i = A.indexOf(c);
		if (i < 0) fail(-32602, said + 'Invalid');
		n = n * 58n + BigInt(i);
	}
	const hex = n.toString(16).padStart(size * 2, '0');
	if (hex.length !== size * 2) fail(-32602, said + 'WrongSize');
	return Buffer.from(hex, 'hex');
}
// NEVER is the rent epoch of every account that pays no rent: all of a u64.
const NEVER = 18446744073709551615n;
// json writes numbers of 64 bits as they are: JSON's own writer has 53 bits.
const json = v => JSON.stringify(v, (k, x) => typeof x === 'bigint' ? `\uE000${x}` : x).replace(/"\uE000(-?\d+)"/g, '$1');
const sha = (...parts) => { const h = crypto.createHash('sha256'); for (const p of parts) h.update(p); return h.digest(); };

class RPCError extends Error { constructor(code, message, data) { super(message); this.code = code; this.data = data; } }
function fail(code, message, data) { throw new RPCError(code, message, data); }

// readV1 takes the bytes of a transaction of version 1 apart.
function readV1(raw) {
	let i = 0;
	const take = n => { if (i + n > raw.length) fail(-32602, 'failed to deserialize'); i += n; return raw.subarray(i - n, i); };
	const t = { raw, sigs: [], keys: [], lookups: [], version: take(1)[0] & 127, instructions: [], priority: 0n };
	[t.signers, t.readSigned, t.readOnly] = take(3);
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
	[t.signers, t.readSigned, t.readOnly] = [byte(), byte(), byte()];
	for (let n = len(); n > 0; n--) t.keys.push(b58(take(32)));
	t.blockhash = b58(take(32));
	t.instructions = [];
	for (let n = len(); n > 0; n--) t.instructions.push({ program: byte(), accounts: take(len()), data: take(len()) });
	if (t.version !== 'legacy') for (let n = len(); n > 0; n--) t.lookups.push({ table: b58(take(32)), writable: take(len()), readonly: take(len()) });
	if (i !== raw.length || !t.sigs.length || t.sigs.length !== t.signers) fail(-32602, 'failed to deserialize');
	t.sig = b58(t.sigs[0]);
	return t;
}

// reserved are addresses that no transaction writes to, whatever it says.
const reserved = /^(1{32}$|Sysvar|NativeLoader|BPFLoader|LoaderV4|ComputeBudget1|Vote1|Stake1|Config1|Feature1|AddressLookupTab1e|Ed25519SigVerify|KeccakSecp256k|Secp256r1)/;
// writes says whether a transaction may write to one of its own accounts. A program that
// it calls is not among them.
function writes(t, i) {
	const open = i < t.signers ? i < t.signers - t.readSigned : i < t.keys.length - t.readOnly;
	return open && !reserved.test(t.keys[i]) && (!t.instructions.some(x => x.program === i) || t.keys.includes('BPFLoaderUpgradeab1e11111111111111111111111'));
}

// memos are the texts of a transaction as a list of signatures tells them.
function memos(t) {
	const all = t.instructions.filter(x => /^Memo[14S]/.test(t.keys[x.program] || '')).map(x => `[${x.data.length}] ${x.data}`);
	return all.length ? all.join('; ') : null;
}

// wrong is a validator's error of the runtime's words for it, and what it says of it.
function wrong(text) {
	let m = /err: InstructionError\((\d+), (\w+)(?:\((\d+)\))?/.exec(text);
	if (m) {
		const why = m[3] === undefined ? m[2] : { [m[2]]: Number(m[3]) };
		const said = m[2] === 'Custom' ? `custom program error: 0x${Number(m[3]).toString(16)}` : m[2];
		return [{ InstructionError: [Number(m[1]), why] }, `Error processing Instruction ${m[1]}: ${said}`];
	}
	m = /err: InsufficientFundsForRent { account_index: (\d+)/.exec(text);
	if (m) return [{ InsufficientFundsForRent: { account_index: Number(m[1]) } }, `Transaction results in an account (${m[1]}) with insufficient funds for rent`];
	const name = (/err: (\w+)/.exec(text) || [])[1] || text;
	return [name, {
		AccountNotFound: 'Attempt to debit an account but found no record of a prior credit.',
		AlreadyProcessed: 'This transaction has already been processed',
		BlockhashNotFound: 'Blockhash not found',
		InsufficientFundsForFee: 'Insufficient funds for fee',
		SignatureFailure: 'Transaction did not pass signature verification',
	}[name] || name];
}

// price is what a transaction offers for its compute units.
function fee(t) {
	if (t.version === 1) return 5000n * BigInt(t.signers) + t.priority;
	let limit = 0, price = 0n;
	for (const x of t.instructions) limit += /^(1{32}$|ComputeBudget1|BPFLoader|LoaderV4|Vote1|Ed25519SigVerify|KeccakSecp256k)/.test(t.keys[x.program]) ? 3000 : 200000;
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
		this.past = {}; // what accounts were, by commitment
		this.fresh();
		this.mine(FINAL + 9);
	}
	fresh() {
		this.svm = new vm.LiteSvm();
		this.svm.setBlockhashCheck(false);
		this.svm.setTransactionHistory(0n); // whether one is known is ours to say
	}
	get head() { return this.blocks.length - 1 - (this.fault.lag || 0); }
	get final() { return Math.max(0, this.head - FINAL); }
	// height is that of the newest block of a commitment, which is finalized where none is said.
	height(o = {}) {
		const h = { processed: this.head, confirmed: Math.max(this.final, this.head - (this.fault.processed || 0)) }[o.commitment] ?? this.final;
		if (o.minContextSlot > this.blocks[h].slot) fail(-32016, 'Minimum context slot has not been reached', { contextSlot: this.blocks[h].slot });
		return h;
	}
	// at is the chain with its accounts as they were after a block. What a test set is there
	// at once, whatever the commitment: no block has it.
	at(height) {
		if (height >= this.blocks.length - 1) return this;
		const back = this.blocks.length - 1 - height;
		let p = this.past[back];
		if (!p || p.fork !== this.fork || p.height > height || p.next <= height) {
			p = this.past[back] = Object.assign(Object.create(Chain.prototype), { done: 0, fork: this.fork, next: Infinity });
			p.fresh();
		}
		const last = this.ops.findLastIndex(o => o.key); // what comes after can be done later
		for (; p.done < this.ops.length; p.done++) {
			const o = this.ops[p.done];
			if (o.key) { p.set(o.key, o.account); continue; }
			if (o.height > height && p.done > last) break;
			if (o.height > height) { p.next = Math.min(p.next, o.height); continue; } // has to be done before what was set
			p.svm.warpToSlot(BigInt(this.blocks[o.height].slot));
			p.run(readTx(o.raw));
		}
		return Object.assign(p, { height });
	}
	account(key) { return this.svm.getAccount(un58(key)); }
	lamports(key) { return this.svm.getBalance(un58(key)) || 0n; }
	set(key, a) {
		this.svm.setAccount(un58(key), new vm.Account(BigInt(a.lamports), Buffer.from(a.data || '', 'base64'), un58(a.owner || SYSTEM), !!a.executable, 0n));
	}
	loaded(t) {
		const out = { writable: [], readonly: [] };
		for (const l of t.lookups) {
			const a = this.account(l.table);
			if (!a) fail(-32602, 'invalid transaction: Transaction loads an address table account that doesn\'t exist');
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
		const mint = b58(d.subarray(0, 32)), m = this.account(mint), amount = d.readBigUInt64LE(64);
		if (!m || b58(m.owner()) !== program || m.data().length < 82 || m.data()[45] !== 1) return null;
		const decimals = m.data()[44], digits = String(amount).padStart(decimals + 1, '0');
		const whole = digits.slice(0, digits.length - decimals), part = digits.slice(digits.length - decimals).replace(/0+$/, '');
		return { mint, owner: b58(d.subarray(32, 64)), programId: program, uiTokenAmount: { amount: String(amount), decimals, uiAmount: decimals > 19 ? null : Number(amount) / 10 ** decimals, uiAmountString: part ? whole + '.' + part : whole } };
	}
	// snap is what accounts hold. Tokens are looked for where a token program is named,
	// and not in programs.
	snap(keys, t) {
		const tokens = keys.some(k => TOKENS.includes(k)) ? keys.map((k, i) => {
			const held = !TOKENS.includes(k) && !t.instructions.some(x => x.program === i) && this.token(k);
			return held && { accountIndex: i, ...held };
		}).filter(Boolean) : [];
		return [keys.map(k => this.lamports(k)), tokens];
	}
	// run executes a transaction; null where no block can hold it.
	run(t) {
		const loaded = this.loaded(t), keys = [...t.keys, ...loaded.writable, ...loaded.readonly], cost = fee(t);
		const payer = this.lamports(t.keys[0]);
		const [preBalances, preTokenBalances] = this.snap(keys, t);
		const r = t.version === 'legacy' ? this.svm.sendLegacyTransaction(t.raw) : this.svm.sendVersionedTransaction(t.raw);
		const failed = r instanceof vm.FailedTransactionMetadata, meta = failed ? r.meta() : r;
		let err = null;
		if (failed) {
			const text = r.toString();
			if (!/InstructionError|InsufficientFundsForRent/.test(text) || payer < cost) return { rejected: text };
			err = wrong(text)[0];
			const now = this.lamports(t.keys[0]);
			if (now === payer) this.set(t.keys[0], { lamports: payer - cost }); // a validator takes the fee all the same
		}
		const [postBalances, postTokenBalances] = this.snap(keys, t);
		const inner = meta.innerInstructions().map((list, index) => ({ index, instructions: list.map(x => {
			const c = x.instruction();
			return { programIdIndex: c.programIdIndex(), accounts: [...c.accounts()], data: b58(c.data()), stackHeight: x.stackHeight() };
		}) })).filter(x => x.instructions.length);
		return { meta: {
			err, status: err ? { Err: err } : { Ok: null }, fee: cost, preBalances, postBalances, preTokenBalances, postTokenBalances,
			innerInstructions: inner, logMessages: meta.logs(), rewards: [], loadedAddresses: loaded, computeUnitsConsumed: meta.computeUnitsConsumed(),
			costUnits: meta.computeUnitsConsumed() + 720n * BigInt(t.signers),
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

const ctx = (c, height, value) => ({ context: { apiVersion: '4.3.0', slot: c.blocks[height].slot }, value });
const hidden = (c, h) => c.fault.gap && h >= c.fault.gap[0] && h <= c.fault.gap[1];
// first is the height of the first block that the node itself still has.
const first = c => c.fault.first || 0;
// kept says whether the node can give a block: its own, or one out of a long-term storage.
const kept = (c, h) => !hidden(c, h) && (h >= first(c) || c.fault.archive);
// confirmed is the height of a commitment at which blocks are told of.
function confirmed(c, o = {}) {
	if (o.commitment === 'processed') fail(-32602, 'Method does not support commitment below `confirmed`');
	return c.height(o);
}
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
	if (o.encoding !== 'base64' && o.encoding !== 'json') fail(-32602, 'the model encodes in base64 and json alone');
	return o;
}
// few refuses more inputs than a method takes.
function few(list, max) { if (list.length > max) fail(-32602, `Too many inputs provided; max ${max}`); return list; }
const encoded = o => x => ({
	version: checked(x.tx, o), transaction: o.encoding === 'json' ? read(x.tx) : [(x.tx.shown || x.tx).raw.toString('base64'), 'base64'],
	meta: o.rewards === false ? { ...x.meta, rewards: null } : x.meta,
});
// read is a transaction in the encoding json, as far as somebody reads it: the keys are those
// of its own, and what its tables gave is in its meta.
const read = t => ({ signatures: t.sigs.map(b58), message: { accountKeys: t.keys, recentBlockhash: t.blockhash, instructions: [] } });
const accounts = o => x => {
	const { err, status, fee, preBalances, postBalances, preTokenBalances, postTokenBalances } = x.meta;
	const loaded = writable => pubkey => ({ pubkey, writable, signer: false, source: 'lookupTable' });
	return {
		version: checked(x.tx, o),
		transaction: {
			signatures: x.tx.sigs.map(b58),
			accountKeys: [
				...x.tx.keys.map((pubkey, i) => ({ pubkey, writable: writes(x.tx, i), signer: i < x.tx.signers, source: 'transaction' })),
				...x.meta.loadedAddresses.writable.map(loaded(true)), ...x.meta.loadedAddresses.readonly.map(loaded(false)),
			],
		},
		meta: { err, status, fee, preBalances, postBalances, preTokenBalances, postTokenBalances, rewards: o.rewards === false ? undefined : [] },
	};
};
// show is an account. Without an encoding its data is a text alone, and short.
function show(a, o) {
	if (!a) return null;
	let d = Buffer.from(a.data());
	const space = d.length;
	if (o.dataSlice) d = d.subarray(o.dataSlice.offset, o.dataSlice.offset + o.dataSlice.length);
	if (o.encoding !== 'base64' && d.length > 128) fail(-32600, 'Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.');
	const data = o.encoding === 'base64' ? [d.toString('base64'), 'base64'] : o.encoding === 'base58' ? [b58(d), 'base58'] : b58(d);
	return { lamports: a.lamports(), owner: b58(a.owner()), data, executable: a.executable(), rentEpoch: NEVER, space };
}
function found(c, sig) {
	const k = c.known.get(sig);
	return k && k.height <= c.head && c.fault.forget !== sig ? k : null;
}
// preflight is what a validator finds out before it sends a transaction.
function preflight(c, t, o) {
	const refuse = ([err, said], logs) => fail(-32002, 'Transaction simulation failed: ' + said, {
		err, logs: logs || [], accounts: null, unitsConsumed: 0, loadedAccountsDataSize: 0, returnData: null, innerInstructions: null, replacementBlockhash: null,
		fee: null, preBalances: null, postBalances: null, preTokenBalances: null, postTokenBalances: null, loadedAddresses: null,
	});
	const h = c.height({ commitment: o.preflightCommitment, minContextSlot: o.minContextSlot });
	const r = t.version === 'legacy' ? c.at(h).svm.simulateLegacyTransaction(t.raw) : c.at(h).svm.simulateVersionedTransaction(t.raw);
	const text = r instanceof vm.FailedTransactionMetadata ? r.toString() : '';
	if (/err: SignatureFailure/.test(text)) refuse(wrong(text));
	healthy(c);
	if (!c.usable(t.blockhash, h + 1)) refuse(wrong('err: BlockhashNotFound'));
	const k = found(c, t.sig);
	if (k && k.height <= h) refuse(wrong('err: AlreadyProcessed'));
	if (text) refuse(wrong(text), r.meta().logs());
}
function healthy(c) {
	if (c.fault.unhealthy) fail(-32005, `Node is behind by ${c.fault.unhealthy} slots`, { numSlotsBehind: c.fault.unhealthy });
}
// wire decodes what a client sends, and refuses what is too long.
function wire(text, what) {
	const [long, longest] = text.slice(0, 2) >= 'gQ' ? [5464, 4096] : [1644, 1232];
	if (text.length > long) fail(-32602, `base64 encoded ${what} too large: ${text.length} bytes (max: encoded/raw ${long}/${longest})`);
	const raw = Buffer.from(text, 'base64');
	if (raw.length > longest) fail(-32602, `decoded ${what} too large: ${raw.length} bytes (max: ${longest} bytes)`);
	return raw;
}

const methods = {
	getHealth: c => { healthy(c); return 'ok'; },
	getGenesisHash: c => c.genesis,
	getSlot: (c, o) => c.blocks[c.height(o)].slot,
	getBlockHeight: (c, o) => c.height(o),
	getLatestBlockhash: (c, o) => { const h = c.height(o); return ctx(c, h, { blockhash: c.blocks[h].hash, lastValidBlockHeight: h + WINDOW }); },
	isBlockhashValid: (c, hash, o) => { un58(hash, 32, ''); const h = c.height(o); return ctx(c, h, c.usable(hash, h + 1)); },
	getBlocks: (c, from, to, o) => {
		if (to !== null && typeof to === 'object') [to, o] = [undefined, to];
		const end = confirmed(c, o), last = Math.min(to ?? from + RANGE, c.blocks[end].slot);
		if (last - from > RANGE) fail(-32602, `Slot range too large; max ${RANGE}`);
		return c.blocks.filter((b, h) => h <= end && b.slot >= from && b.slot <= last && kept(c, h)).map(b => b.slot);
	},
	getBlocksWithLimit: (c, from, limit, o) => {
		const end = confirmed(c, o);
		if (limit > RANGE) fail(-32602, `Limit too large; max ${RANGE}`);
		return c.blocks.filter((b, h) => h <= end && b.slot >= from && kept(c, h)).map(b => b.slot).slice(0, limit);
	},
	// Which error a slot without a block has depends on whether it is finalized: above
	// that, one that was skipped is just not available, as one that is still to come.
	getBlock: (c, slot, o = {}) => {
		const head = confirmed(c, o), h = c.blocks.findIndex(b => b.slot === slot), final = slot <= c.blocks[c.final].slot;
		if (!final && (h < 0 || h > head || hidden(c, h))) fail(-32004, `Block not available for slot ${slot}`);
		if ((c.fault.late || []).includes(h) || slot >= c.blocks[c.fault.untold]?.slot) fail(-32014, `Block status not yet available for slot ${slot}`);
		if ((c.fault.unstored || []).includes(h)) return null;
		const lowest = c.blocks[first(c)].slot;
		if (slot < lowest && !c.fault.archive) fail(-32001, `Block ${slot} cleaned up, does not exist on node. First available block: ${lowest}`);
		if (slot < lowest && h < 0) fail(-32009, `Slot ${slot} was skipped, or missing in long-term storage`);
		if (h < 0 || hidden(c, h)) fail(-32007, `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`);
		if (o.transactionDetails === 'accounts' && c.fault.noaccounts) fail(-32602, 'Invalid params: unknown variant `accounts`, expected one of `full`, `signatures`, `none`.');
		const b = c.blocks[h];
		const out = { blockHeight: h, blockTime: b.time, blockhash: b.hash, parentSlot: b.parentSlot, previousBlockhash: b.parent };
		if (o.rewards !== false) out.rewards = [];
		if (o.transactionDetails === 'signatures') out.signatures = b.txs.map(x => x.tx.sig);
		else if (o.transactionDetails !== 'none') {
			out.transactions = b.txs.map((o.transactionDetails === 'accounts' ? accounts : encoded)(options(o))).map(x => c.fault.partial ? { ...x, version: undefined, meta: null } : x);
		}
		return out;
	},
	getTransaction: (c, sig, o = {}) => {
		un58(sig, 64);
		const k = found(c, sig);
		if (!k || k.height > confirmed(c, o) || !kept(c, k.height)) return null;
		return { slot: c.blocks[k.height].slot, blockTime: c.blocks[k.height].time, transactionIndex: k.i, ...encoded(options({ ...o, rewards: true }))(c.blocks[k.height].txs[k.i]) };
	},
	// Where it is not asked for the history, only what is in memory is known.
	getSignatureStatuses: (c, sigs, o = {}) => ctx(c, c.head, few(sigs, 256).map(s => {
		un58(s, 64);
		const k = found(c, s);
		if (!k || k.height < c.final - CACHED && !(o.searchTransactionHistory && kept(c, k.height))) return null;
		const final = k.height <= c.final, err = c.blocks[k.height].txs[k.i].meta.err;
		return {
			slot: c.blocks[k.height].slot, confirmations: final ? null : c.head - k.height, err, status: err ? { Err: err } : { Ok: null },
			confirmationStatus: final ? 'finalized' : k.height <= c.height({ commitment: 'confirmed' }) ? 'confirmed' : 'processed',
		};
	})),
	getSignaturesForAddress: (c, address, o = {}) => {
		const limit = o.limit ?? 1000, all = [];
		un58(address);
		if (c.fault.nohistory) fail(-32011, 'Transaction history is not available from this node');
		if (limit === 0 || limit > 1000) fail(-32602, 'Invalid limit; max 1000');
		for (let h = confirmed(c, o); h >= 0; h--) for (const x of [...c.blocks[h].txs].reverse()) {
			const keys = [...x.tx.keys, ...x.meta.loadedAddresses.writable, ...x.meta.loadedAddresses.readonly], k = c.known.get(x.tx.sig);
			if (keys.includes(address) && kept(c, h)) all.push({ signature: x.tx.sig, slot: c.blocks[h].slot, err: x.meta.err, memo: memos(x.tx), blockTime: c.blocks[h].time, confirmationStatus: h <= c.final ? 'finalized' : 'confirmed', transactionIndex: k.i });
		}
		for (const signature of [o.before, o.until]) {
			if (signature && !(c.known.has(un58(signature, 64) && signature) && kept(c, c.known.get(signature).height))) fail(-32020, `Transaction ${signature} not found`);
		}
		const older = (a, b) => a.height !== b.height ? a.height < b.height : a.i < b.i;
		const place = x => ({ height: c.known.get(x.signature).height, i: x.transactionIndex });
		return all.filter(x => (!o.before || older(place(x), c.known.get(o.before))) && (!o.until || older(c.known.get(o.until), place(x)))).slice(0, limit);
	},
	getBalance: (c, key, o) => { const h = c.height(o); return ctx(c, h, c.at(h).lamports(key)); },
	getAccountInfo: (c, key, o = {}) => { const h = c.height(o); return ctx(c, h, show(c.at(h).account(key), o)); },
	getMultipleAccounts: (c, keys, o = {}) => { const h = c.height(o); return ctx(c, h, few(keys, 100).map(k => show(c.at(h).account(k), { encoding: 'base64', ...o }))); },
	// Whatever a transaction named, or a test set, is looked at: the runtime lists no accounts.
	getTokenAccountsByOwner: (c, owner, { programId, mint } = {}, o = {}) => {
		un58(owner);
		if (c.fault.unlisted) fail(-32010, `${owner} excluded from account secondary indexes; this RPC method unavailable for key`);
		if (mint || !programId) fail(-32602, 'the model lists by programs alone');
		if (!TOKENS.includes(programId)) fail(-32602, 'Invalid param: unrecognized Token program id');
		const h = c.height(o), now = c.at(h), keys = new Set();
		for (const x of c.ops) if (x.key) keys.add(x.key);
		for (const b of c.blocks.slice(0, h + 1)) for (const x of b.txs) for (const k of [...x.tx.keys, ...x.meta.loadedAddresses.writable, ...x.meta.loadedAddresses.readonly]) keys.add(k);
		const ours = [...keys].filter(k => { const t = now.token(k); return t && t.owner === owner && t.programId === programId; });
		return ctx(c, h, ours.map(pubkey => ({ pubkey, account: show(now.account(pubkey), o) })));
	},
	getMinimumBalanceForRentExemption: (c, n) => n > 10485760 ? fail(-32600, 'Invalid request') : c.svm.minimumBalanceForRentExemption(BigInt(n)),
	// There is no fee of a message whose blockhash the node does not know at the commitment.
	getFeeForMessage: (c, message, o) => {
		const b = wire(message, 'solana_message::versions::VersionedMessage'), n = b[0] & 128 ? b[1] : b[0], none = Buffer.alloc(64 * n), h = c.height(o);
		const t = readTx(Buffer.concat(b[0] > 128 ? [b, none] : [Buffer.from([n]), none, b]));
		return ctx(c, h, c.blocks.slice(Math.max(0, h - CACHED), h + 1).some(x => x.hash === t.blockhash) ? fee(t) : null);
	},
	getRecentPrioritizationFees: (c, keys = []) => { few(keys, 128).map(k => un58(k)); const all = (c.fault.prices || [0]).slice(0, 150); return all.map((prioritizationFee, i) => ({ slot: c.blocks[c.head].slot - all.length + 1 + i, prioritizationFee })); },
	sendTransaction: (c, text, o = {}) => {
		const t = readTx(o.encoding === 'base64' ? wire(text, 'solana_transaction::versioned::VersionedTransaction') : fail(-32602, 'the model decodes base64 alone'));
		c.loaded(t);
		if (!o.skipPreflight) preflight(c, t, o);
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
// refused is a request that does not get as far as a method, and its status.
function refused(req, body, limited) {
	if (req.method !== 'POST') return [405, 'Used HTTP Method is not allowed. POST or OPTIONS is required\n'];
	if (!/^application\/json/.test(req.headers['content-type'] || '')) return [415, 'Supplied content type is not allowed. Content-Type: application/json is required\n'];
	if (body.length > 51200) return [413, 'Request Entity Too Large\n'];
	// No validator's own: a public node's gate does this.
	if (limited) return [429, json({ jsonrpc: '2.0', error: { code: 429, message: 'Too many requests for a specific RPC call' }, id: null })];
}
http.createServer((req, res) => {
	const parts = [];
	req.on('data', d => parts.push(d));
	req.on('end', () => {
		if (!chains.has(req.url)) chains.set(req.url, new Chain(req.url));
		const c = chains.get(req.url), body = Buffer.concat(parts).toString(), test = body.includes('"method":"test_');
		const no = !test && refused(req, body, c.fault.limited);
		if (no) {
			if (no[0] === 429) res.setHeader('retry-after', String(c.fault.limited));
			res.statusCode = no[0];
			res.setHeader('content-type', no[0] === 429 ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8');
			res.end(no[1]);
			return;
		}
		res.setHeader('content-type', 'application/json; charset=utf-8');
		let q;
		try { q = JSON.parse(body); } catch { res.end('{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}'); return; }
		const out = Array.isArray(q) ? q.map(x => answer(c, x)) : answer(c, q);
		if (c.fault.lose && body.includes('sendTransaction')) { c.fault.lose = false; req.socket.destroy(); return; }
		res.end(json(out));
	});
}).listen(Number(process.argv[2]), '127.0.0.1');
