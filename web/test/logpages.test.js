import test from 'node:test';
import assert from 'node:assert/strict';
import { Lines, broken, drawn, lineAt } from '../part/lines.js';
import { beside, pageOf } from '../part/logpages.js';

/** A log of lines "0", "1", … in chunks of at most some bytes, behind a server that gives at most some chunks at a time. @param {number} lines @param {number} bytes @param {number} most */
function served(lines, bytes, most) {
  const text = Array.from({ length: lines }, (_, i) => `${i}\n`).join('');
  /** @type {any[]} */
  const chunks = [];
  for (let at = 0; at < text.length; at += bytes) chunks.push({ attempt: 1, seq: chunks.length + 1, stream: 'stdout', offset: at, size: Math.min(bytes, text.length - at), at: '', text: text.slice(at, at + bytes) });
  const seq = (/** @type {any} */ id) => Number(String(id).split('.')[1]);
  const asked = { bytes: 0 };
  const get = async (/** @type {any} */ q) => {
    let from = q.after ? seq(q.after) : q.offset !== undefined ? chunks.findIndex((c) => c.offset + c.size > q.offset) : 0;
    const until = q.before ? seq(q.before) - 1 : chunks.length;
    const tail = q.before && !q.after;
    if (from < 0) from = chunks.length;
    if (tail) for (from = until, asked.bytes = 0; from > 0 && asked.bytes < q.limit; asked.bytes += chunks[--from].size);
    let to = from;
    for (let size = 0; to < until && to - from < most && size < q.limit; size += chunks[to++].size);
    return { chunks: chunks.slice(from, to), next_cursor: `1.${to}`, prev_cursor: tail && from > 0 ? `1.${from + 1}` : undefined, more: to < until && to > from, status: 'completed' };
  };
  return { get, length: text.length, last: chunks.length };
}

/** @param {import('../part/logpages.js').Page} page */
function linesOf(page) {
  const lines = new Lines();
  for (const c of page.chunks) lines.add(c.stream, c.text || '', c);
  return lines;
}

for (const [name, bytes, most] of /** @type {[string, number, number][]} */ ([['large chunks', 64 << 10, 1e9], ['small chunks and short answers', 500, 300]])) {
  test(`a log is read from its end to its beginning and back, page by page: ${name}`, async () => {
    const count = 200000;
    const s = served(count, bytes, most);
    let page = await pageOf(s.get, { before: `1.${s.last + 1}` });
    let pages = 1;
    let lines = linesOf(page);
    assert.equal(lines.all.at(-1)?.text, String(count - 1));
    for (; page.earlier; pages++) {
      const seen = lines.all.slice(1, 40); // the first may be a part of a line
      page = await pageOf(s.get, beside(lines, 0, 40, page.earlier).before);
      lines = linesOf(page);
      assert.ok(lines.size < 1 << 20 && lines.dropped === 0, `${lines.size} characters`);
      for (const l of seen) {
        const i = lines.find(l);
        assert.equal(lines.all[i]?.text, l.text, 'what was seen is on the next page, too');
        assert.ok(i > 0);
      }
    }
    assert.equal(lines.all[0].text, '0');
    assert.ok(pages === 3, `${pages} pages`);
    while (page.later) {
      const end = lines.all.length - 2; // the last may be a part of a line
      const seen = lines.all.slice(end - 40, end);
      page = await pageOf(s.get, beside(lines, end - 40, end, page.earlier).after);
      lines = linesOf(page);
      for (const l of seen) assert.equal(lines.all[lines.find(l)]?.text, l.text);
    }
    assert.equal(lines.all.at(-1)?.text, String(count - 1));
    assert.ok(page.earlier);
  });
}

test('a page of few lines, each longer than the window, leads on', async () => {
  const lines = new Lines();
  for (let i = 0; i < 8; i++) lines.add('stdout', 'x'.repeat(60000) + '\n', { attempt: 1, seq: 100 + i, offset: 60001 * i });
  const to = /** @type {any} */ (beside(lines, 0, 7, true));
  assert.deepEqual(to, { before: { before: '1.104' }, after: { after: '1.103', earlier: true } });
  const one = new Lines();
  one.add('stdout', 'x\n', { attempt: 2, seq: 7, offset: 0 });
  assert.deepEqual(beside(one, 0, 0, false), { before: { before: '2.8' }, after: { after: '2.6', earlier: false } });
});

test('a page around a byte has the line with it, and what is before and behind', async () => {
  const s = served(200000, 30000, 1e9);
  for (const at of [0, 1, 12345, 612345, s.length - 1]) {
    const page = await pageOf(s.get, { at: { attempt: 1, stream: 'stdout', at } });
    const lines = linesOf(page);
    const l = lines.all[lines.find({ attempt: 1, stream: 'stdout', at })];
    assert.ok(l.at <= at && l.at + l.text.length + 1 > at, `${l.at} for ${at}`);
    assert.equal(page.earlier, at > 200000);
    assert.equal(page.later, at < s.length - 200000);
  }
  assert.deepEqual(await pageOf(s.get, { at: { attempt: 1, stream: 'stdout', at: s.length } }), { chunks: [], earlier: false, later: false });
});

test('lines know their bytes', () => {
  const l = new Lines();
  l.add('stdout', 'ä\n\nb', { attempt: 1, seq: 1, offset: 100 });
  l.add('stderr', 'e\n', { attempt: 1, seq: 2, offset: 0 });
  l.add('stdout', new Uint8Array([0x63, 10, 0xff, 10]), { attempt: 1, seq: 3, offset: 105 });
  l.add('stdout', 'again', { attempt: 2, seq: 1, offset: 0 });
  assert.deepEqual(l.all.map((x) => [x.stream, x.attempt, x.at, x.text]), [['stdout', 1, 100, 'ä'], ['stdout', 1, 103, ''], ['stdout', 1, 104, 'bc'], ['stderr', 1, 0, 'e'], ['stdout', 1, 107, '\ufffd'], ['', 0, 0, 'Attempt 2'], ['stdout', 2, 0, 'again']]);
  const at = (/** @type {number} */ attempt, /** @type {string} */ stream, /** @type {number} */ byte) => l.find({ attempt, stream, at: byte });
  assert.deepEqual([at(1, 'stdout', 99), at(1, 'stdout', 101), at(1, 'stdout', 103), at(1, 'stdout', 105), at(1, 'stdout', 108), at(1, 'stdout', 109), at(1, 'stderr', 1), at(2, 'stdout', 4), at(2, 'stdout', 5), at(3, 'stdout', 0)], [-1, 0, 1, 2, 4, -1, 3, 6, -1, -1]);
});

test('raw lines keep what would be written over, and show control characters by their numbers', () => {
  const l = new Lines(undefined, true);
  l.add('stdout', '10%\r\u001b[31m20%\t\u0007\r\nnext\n');
  assert.deepEqual(l.all.map((x) => drawn(x, undefined, true).pieces), [[{ text: '10%⟨U+000D⟩⟨U+001B⟩[31m20%⟨U+0009⟩⟨U+0007⟩⟨U+000D⟩', cls: '' }], [{ text: 'next', cls: '' }]]);
});

test('broken lines have as many rows as they need at most', () => {
  const l = new Lines();
  l.add('stdout', `${'x'.repeat(100)}\n\n${'x'.repeat(101)}\n\u001b[31m${'x'.repeat(50)}\u001b[0m\n${'ä'.repeat(30)}\t\n`);
  const starts = broken(l.all, 50, false);
  assert.deepEqual([...starts], [0, 2, 3, 6, 7, 9]);
  assert.deepEqual([0, 1, 2, 3, 5, 6, 8, 9, 100].map((row) => lineAt(starts, row)), [0, 0, 1, 2, 2, 3, 4, 4, 4]);
  l.add('stdout', 'x'.repeat(5000));
  assert.equal(broken(l.all, 50, false)[6] - 9, Math.ceil((4096 + 40) / 50));
});
