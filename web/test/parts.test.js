import test from 'node:test';
import assert from 'node:assert/strict';
import { Lines, drawn } from '../part/lines.js';
import { along, inPixels, near } from '../part/graph.js';
import { fieldsOf, wrong, written, entered, valuesOf } from '../part/form.js';
import { look, statusShape, statusPill, verdictWord } from '../part/status.js';
import { caseAlone, programOf } from '../part/program.js';
import { elements } from '../part/members.js';
import { casesOf } from '../part/casefiles.js';
import { duration, ago, bytes, clock, goDuration, line, plain, copied, sentence, figure } from '../app/text.js';

test('chunks become lines, by stream', () => {
  const l = new Lines();
  l.add('stdout', 'a\nb');
  l.add('stderr', 'warning\n');
  l.add('stdout', 'c\n\nd');
  assert.deepEqual(l.all.map((x) => [x.no, x.stream, x.text]), [[1, 'stdout', 'a'], [2, 'stdout', 'bc'], [3, 'stderr', 'warning'], [4, 'stdout', ''], [5, 'stdout', 'd']]);
});

test('a character split between chunks is whole', () => {
  const l = new Lines();
  const b = new TextEncoder().encode('ü\n');
  l.add('stdout', b.slice(0, 1));
  l.add('stdout', b.slice(1));
  assert.deepEqual(l.all.map((x) => x.text), ['ü']);
});

test('a progress bar is its last state', () => {
  const l = new Lines();
  l.add('stdout', '10%\r20%\r');
  assert.equal(drawn(l.all[0]).pieces[0].text, '20%');
  l.add('stdout', '30%\rdone\r\nnext\n');
  assert.deepEqual(l.all.map((x) => x.text), ['done', 'next']);
});

test('colours go on over lines and chunks', () => {
  const l = new Lines();
  l.add('stdout', '\u001b[31mred\nstill');
  l.add('stdout', ' red\n\u001b[0mplain');
  assert.deepEqual(l.all.map((x) => drawn(x).pieces.map((p) => p.cls)), [['f1'], ['f1'], ['']]);
});

test('what is kept is bounded', () => {
  const l = new Lines(1000);
  for (let i = 0; i < 1000; i++) l.add('stdout', `line ${i}\n`);
  assert.ok(l.size <= 1000 && l.dropped > 0);
  assert.equal(l.all.at(-1)?.text, 'line 999');
  assert.equal(l.all.at(-1)?.no, 1000);
});

test('lines without text are bounded, too', () => {
  const l = new Lines();
  for (let i = 0; i < 14; i++) l.add('stdout', '\n'.repeat(50000));
  assert.equal(l.all.length + l.dropped, 700000);
  assert.ok(l.all.length <= 600000, `${l.all.length} lines are kept`);
});

test('a progress bar takes the place of nothing but itself', () => {
  const l = new Lines(10000);
  l.add('stdout', 'before\n');
  for (let i = 0; i < 1000; i++) l.add('stdout', `${String(i).padStart(30)} of 1000\r`);
  l.add('stdout', '\nafter\n');
  l.add('stdout', 'end\n');
  assert.deepEqual([l.dropped, ...l.all.map((x) => x.text.trim())], [0, 'before', '999 of 1000', 'after', 'end']);
  assert.equal(l.size, l.all.reduce((n, x) => n + x.text.length, 0));
});

test('of a line without an end the beginning is kept, and its colours go on', () => {
  const l = new Lines();
  l.add('stdout', '\u001b[31m');
  for (let i = 0; i < 100; i++) l.add('stdout', 'x'.repeat(100000));
  l.add('stdout', '\u001b[32m\nnext\n');
  assert.ok(l.size < 100000, `${l.size} characters are kept`);
  assert.equal(drawn(l.all[0]).pieces[0].text.length + drawn(l.all[0]).cut, 1e7 + 5);
  assert.deepEqual(l.all.map((x) => drawn(x).pieces[0].cls), ['f1', 'f2']);
  l.add('stdout', `${'y'.repeat(100000)}\u001b[0m\rover`);
  assert.deepEqual([l.all[2].text, l.all[2].cut, drawn(l.all[2]).pieces[0].cls], ['over', 0, '']);
});

test('an open line that is dropped goes on in a new one', () => {
  const l = new Lines(1000);
  l.add('stderr', 'name? ');
  for (let i = 0; i < 200; i++) l.add('stdout', `line ${i}\n`);
  l.add('stderr', 'Ann\n');
  assert.equal(l.all.at(-1)?.text, 'Ann');
  assert.equal(l.size, l.all.reduce((n, x) => n + x.text.length, 0));
});

test('a long line is cut, and says so', () => {
  const l = new Lines();
  l.add('stdout', 'x'.repeat(10000) + '\n');
  const d = drawn(l.all[0]);
  assert.equal(d.cut, 10000 - 4096);
});

test('a layout of the server is scaled to the nodes of the page', () => {
  const l = inPixels({ width: 5, height: 1, nodes: [{ task: 'a', x: 0, y: 0, w: 2, h: 1 }, { task: 'b', x: 3, y: 0, w: 2, h: 1 }], edges: [{ from: 'a', to: 'b', points: [{ x: 2, y: 0.5 }, { x: 3, y: 0.5 }] }] });
  assert.equal(l.nodes[1].w, 176);
  assert.equal(l.edges[0].points[1].x, 264);
});

test('a form keeps numbers as they are typed', () => {
  const fields = fieldsOf(JSON.stringify({ type: 'object', required: ['n'], properties: { n: { type: 'integer' }, s: { type: 'string' }, b: { type: 'boolean' }, o: { type: 'array' }, e: { enum: ['x', 'y'] } } }));
  assert.ok(fields);
  assert.equal(written(fields, { n: '12345678901234567890', s: 'a"b', b: 'true', o: '[1.0]', e: 'x' }), '{"n": 12345678901234567890, "s": "a\\"b", "b": true, "o": [1.0], "e": "x"}');
  assert.notEqual(wrong(fields[0], ''), '');
  assert.notEqual(wrong(fields[0], '1x'), '');
  assert.notEqual(wrong(fields[3], '[1,'), '');
  assert.equal(wrong(fields[0], '-1.5e3'), '');
  const many = Array.from({ length: 200 }, (_, i) => `p${i}`);
  assert.deepEqual(fieldsOf(JSON.stringify({ type: 'object', properties: Object.fromEntries(many.map((n) => [n, { type: 'string' }])) }))?.map((f) => f.name), many);
  const picked = fieldsOf('{"type": "object", "required": ["e"], "properties": {"e": {"enum": [1, "1", 12345678901234567890, null, true]}, "list": {"enum": [[1]]}}}') || [];
  assert.deepEqual(picked.map((f) => f.type), ['pick', 'json']);
  assert.deepEqual(picked[0].options, ['1', '"1"', '12345678901234567890', 'null', 'true']);
  assert.equal(written(picked, { e: '"1"' }), '{"e": "1"}');
  assert.equal(written(picked, { e: '1' }), '{"e": 1}');
  assert.deepEqual(valuesOf(picked, '{"e": null}'), { e: 'null' });
  assert.equal(valuesOf(picked, '{"e": 2}'), null);
  assert.notEqual(wrong(picked[0], ''), '');
  const bounded = fieldsOf(JSON.stringify({ type: 'object', properties: { n: { type: 'integer', minimum: 3, maximum: 9 } } }));
  assert.ok(bounded);
  assert.deepEqual(['2', '3', '9', '10'].map((text) => wrong(bounded[0], text)), ['It is less than 3.', '', '', 'It is more than 9.']);
  assert.equal(fieldsOf('{"type": "array"}'), null);
  assert.equal(fieldsOf(''), null);
});

test('JSON goes into a form and comes back, unless the form would lose something', () => {
  const fields = fieldsOf(JSON.stringify({ type: 'object', required: ['s'], properties: { n: { type: 'integer' }, s: { type: 'string' }, t: { type: 'string' }, b: { type: 'boolean' }, o: { type: 'array' }, e: { enum: ['x', 'y'] } } }));
  assert.ok(fields);
  for (const text of ['{"n": 12345678901234567890, "s": "a\\"b", "b": true, "o": [1.0], "e": "x"}', '{"s": ""}', '{"n": -1.50e3, "s": "x", "o": {"a": [{}]}}']) {
    const values = valuesOf(fields, ` ${text}\n`);
    assert.ok(values, text);
    assert.equal(written(fields, values), text);
  }
  assert.deepEqual(valuesOf(fields, ''), {});
  for (const text of ['{', '[]', '7', '{"other": 1}', '{"n": "7"}', '{"n": null}', '{"s": 7}', '{"s": "two\\nlines"}', '{"t": ""}', '{"b": "true"}', '{"e": "z"}', '{"e": ""}']) assert.equal(valuesOf(fields, text), null, text);
});

test('words for numbers', () => {
  assert.deepEqual([0, 0.2, 12.4, 999.7, 1500, 9960, 59000, 59700, 61000, 3.7e6, 2e8].map((n) => duration(n)), ['0 ms', '< 1 ms', '12 ms', '1.0 s', '1.5 s', '10 s', '59 s', '1 min 00 s', '1 min 01 s', '1 h 01 min', '2 d 7 h']);
  assert.deepEqual([0, 42000, 300000, 7.3e6, 2e8].map(ago), ['just now', '42 s ago', '5 min ago', '2 h ago', '2 d ago']);
  assert.deepEqual([0, 999, 1536, 64e6, 999.6e6, 3e9].map(bytes), ['0 B', '999 B', '1.5 KB', '64 MB', '1.0 GB', '3.0 GB']);
  assert.deepEqual(['1m30s', '500ms', 2, '2d', 'x', ''].map(goDuration), [90000, 500, 2000, 172800000, NaN, NaN]);
  assert.equal(line('a\nb\tc'.repeat(200), 10), 'a␊b ca␊b c…');
  assert.equal(plain('a\r\nb\u202e'), 'a\nb⟨U+202E⟩');
});

test('what has no picture is seen, wherever Unicode has it', () => {
  const seen = (/** @type {number} */ n) => `a⟨U+${n.toString(16).toUpperCase().padStart(4, '0')}⟩b`;
  for (const n of [0x80, 0x9f, 0xad, 0x34f, 0x61c, 0x115f, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x2028, 0x202a, 0x2060, 0x2064, 0x2069, 0x206f, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d173, 0xe0001, 0xe0041, 0xe0100, 0xe01ef]) {
    assert.equal(plain(`a${String.fromCodePoint(n)}b`), seen(n), n.toString(16));
    assert.equal(copied(`a${String.fromCodePoint(n)}b`), 'ab', n.toString(16));
  }
  for (const kept of ['👩‍💻', '❤️', '🏳️‍🌈', '👨‍👩‍👧‍👦', '👍🏽', '1️⃣', '👩🏽‍🚀', 'می‌خواهم', 'क्‍ष', '日本語', 'é', 'a\tb\nc']) {
    assert.equal(plain(kept), kept);
    assert.equal(copied(kept), kept);
  }
  assert.equal(plain('😀\ufe0f\u{e0154}\u{e0155}'), '😀⟨U+FE0F⟩⟨U+E0154⟩⟨U+E0155⟩'); // bytes hidden behind an emoji
  assert.equal(plain('😀\u200dx'), '😀⟨U+200D⟩x');
  assert.equal(plain('می\u200c'), 'می⟨U+200C⟩');
});

test('a megabyte is looked through at once', () => {
  for (const s of ['x'.repeat(1 << 20), 'é'.repeat(1 << 20), '👩‍💻'.repeat(1 << 18), '\u200b'.repeat(1 << 18)]) {
    const begun = process.cpuUsage().user;
    plain(s);
    assert.ok(process.cpuUsage().user - begun < 2e6, s.slice(0, 2));
  }
});

test('a program goes back into its form, unless the form would lose something', () => {
  const p = programOf({ language: 'c', source: 'x', stdin: { text: 'in' }, limits: { wall: '5s', memory: 64000000 }, cases: undefined });
  assert.deepEqual(p && [p.language, p.source, p.stdin, p.interactive, p.wall, p.memory, p.cases], ['c', 'x', 'in', false, '5s', '64000000', []]);
  assert.equal(programOf({ language: 'c', source: 'x', interactive: true })?.interactive, true);
  assert.deepEqual(programOf({ language: 'c', source: 'x', cases: [{ name: '1', stdin: 'a', expect: { text: 'b' } }] })?.cases, [{ stdin: 'a', expect: 'b' }]);
  for (const more of [{ args: ['a'] }, { files: {} }, { stdin: { base64: 'AA==' } }, { limits: { cpu: '1s' } }, { cases: [{ stdin: { blob: 'b' } }] }]) {
    assert.equal(programOf({ language: 'c', source: 'x', ...more }), null, JSON.stringify(more));
  }
  assert.deepEqual(programOf({ language: 'c', source: 'x', cases: [{ name: 'mine', stdin: 'a', expect: 'b' }] })?.cases, [{ name: 'mine', stdin: 'a', expect: 'b' }]);
  assert.equal(programOf(null), null);
});

test('names of what every object has are words like others', () => {
  for (const word of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    assert.equal(look(word).word, word);
    assert.equal(verdictWord(word), word);
    assert.ok(statusShape(word));
    assert.ok(statusPill({ status: word }));
    const fields = fieldsOf(JSON.stringify({ type: 'object', properties: JSON.parse(`{"${word}": {"type": "string"}}`) })) || [];
    assert.equal(entered({}, fields[0]), '');
    assert.equal(written(fields, {}), '{}');
    assert.equal(written(fields, { [word]: 'x' }), `{"${word}": "x"}`);
  }
});

test('sentences of the server begin with a capital, and names stay as they are', () => {
  for (const [text, want] of [['it is resumed', 'It is resumed'], ['1st for key "db"', '1st for key "db"'], ['queue "default" is paused', 'Queue "default" is paused'], ['ex_06h0 ends', 'ex_06h0 ends'], ['ann has given it', 'ann has given it'], ['iteration ends', 'iteration ends'], ['', '']]) {
    assert.equal(sentence(text), want);
  }
});

test('times in sentences of the server are by the clock of the browser, and what others wrote stays as it is', () => {
  const now = Date.parse('2026-11-27T23:59:00Z');
  for (const [text, want] of [
    ['sleeping until 02:53:34Z', `Sleeping until ${clock('2026-11-28T02:53:34Z')}`], ['asked at 23:10:00Z', `asked at ${clock('2026-11-27T23:10:00Z')}`],
    ['due 2026-11-29 02:43:17Z', `due ${clock('2026-11-29T02:43:17Z')}`], ['the question is "At 02:53:34Z, \\"or\\" 03:00:00Z?"', 'The question is "At 02:53:34Z, \\"or\\" 03:00:00Z?"'],
    ['due 2026-13-99 02:43:17Z', 'due 2026-13-99 02:43:17Z'],
  ]) assert.equal(sentence(text, now), want);
});

test('files make cases in the order of their names', async () => {
  const file = (/** @type {string} */ name, text = name) => ({ name, size: text.length, arrayBuffer: async () => /** @type {ArrayBuffer} */ (new TextEncoder().encode(text).buffer) });
  assert.deepEqual(await casesOf([file('10.in'), file('10.ans'), file('9.out'), file('9.in'), file('x.in')]), [
    { name: '9', stdin: '9.in', expect: '9.out' }, { name: '10', stdin: '10.in', expect: '10.ans' }, { name: 'x', stdin: 'x.in', expect: '' }]);
  assert.deepEqual(await casesOf([]), []);
  for (const [bad, why] of /** @type {const} */ ([[['a.txt'], /a\.txt: the files of a case/], [['a.out'], /a\.in is missing/], [['a.in', 'a.out', 'a.ans'], /two files/]])) {
    await assert.rejects(casesOf(bad.map((n) => file(n))), why);
  }
  await assert.rejects(casesOf([file('a.in'), file('a.out', '')]), /a\.out is empty/);
  await assert.rejects(casesOf([{ name: 'a.in', size: 9 << 20, arrayBuffer: async () => new ArrayBuffer(0) }]), /more than 8 MB/);
  await assert.rejects(casesOf([{ name: 'a.in', size: 1, arrayBuffer: async () => new Uint8Array([255]).buffer }]), /a\.in is not a text/);
  assert.equal((await casesOf([file('a.in', '\ufeffx')]))[0].stdin, '\ufeffx');
});

test('figures are shown in what their names say', () => {
  const at = new Date(2026, 0, 2, 3, 4, 5).getTime() / 1000;
  assert.equal(figure('retention_last_pass_timestamp_seconds', at), '2026-01-02 03:04:05');
  assert.equal(figure('retention_seconds', 720 * 3600), '30 d 0 h');
  assert.equal(figure('store_bytes', 1500), '1.5 KB');
  assert.equal(figure('commits', 12345), '12,345');
});

test('of a large graph there is what is near the view, the edges that cross it and the box that has the focus', () => {
  const nodes = Array.from({ length: 1000 }, (_, i) => ({ task: `t${i}`, x: 300 * (i % 100), y: 80 * Math.floor(i / 100), w: 176, h: 52 }));
  const edges = nodes.slice(1).map((n, i) => ({ from: nodes[i].task, to: n.task, points: [{ x: nodes[i].x + 176, y: nodes[i].y + 26 }, { x: n.x, y: n.y + 26 }] }));
  const long = { from: 't0', to: 't99', points: [{ x: 176, y: 26 }, { x: 15000, y: 400 }, { x: 29700, y: 26 }] };
  const l = { width: 30000, height: 800, nodes, edges: [...edges, long] };
  const extents = l.edges.map((e) => ({ x: Math.min(...e.points.map((p) => p.x)), y: Math.min(...e.points.map((p) => p.y)), w: Math.abs(e.points[0].x - /** @type {any} */ (e.points.at(-1)).x), h: Math.max(...e.points.map((p) => p.y)) - Math.min(...e.points.map((p) => p.y)) }));
  const seen = near(l, extents, { x: 15000, y: 0, w: 600, h: 200 }, 't0');
  assert.deepEqual(seen.nodes.map((n) => n.task).sort(), ['t0', ...[0, 1, 2, 3, 4, 5].flatMap((y) => [49, 50, 51, 52].map((x) => `t${100 * y + x}`))].sort());
  assert.ok(seen.edges.includes(long), 'an edge that begins and ends outside is drawn where it crosses');
  assert.ok(seen.edges.length < 40);
  assert.equal(seen.left, 0);
  const dense = { ...l, edges: Array.from({ length: 2500 }, () => long) };
  assert.deepEqual([near(dense, dense.edges.map(() => extents[999]), { x: 0, y: 0, w: 9, h: 9 }, '').edges.length, near(dense, dense.edges.map(() => extents[999]), { x: 0, y: 0, w: 9, h: 9 }, '').left], [2000, 500]);
});

test('arrow keys follow the edges of a graph, to the nearest end, and stay within a layer', () => {
  const node = (task, x, y) => ({ task, x, y, w: 1, h: 1 });
  const edge = (from, to) => ({ from, to, points: [] });
  const l = { width: 9, height: 9, nodes: [node('a', 0, 2), node('b', 4, 0), node('c', 4, 3), node('d', 4, 6), node('e', 8, 2)], edges: [edge('a', 'd'), edge('a', 'c'), edge('b', 'e'), edge('c', 'e')] };
  const way = (from, key) => along(l, from, 'Arrow' + key);
  assert.equal(way('a', 'Right'), 'c');
  assert.equal(way('c', 'Left'), 'a');
  assert.equal(way('e', 'Left'), 'c');
  assert.deepEqual(['Up', 'Down'].map((k) => way('c', k)), ['b', 'd']);
  assert.equal(way('d', 'Right'), '');
  assert.equal(way('a', 'Up'), '');
  assert.equal(along(l, 'nowhere', 'ArrowRight'), '');
  assert.equal(along(l, 'a', 'Enter'), '');
});

test('what is copied has no control characters, and keeps its lines', () => {
  assert.equal(copied('a\tb\r\nc\u001b[31md\u202ee\u0000'), 'a\tb\r\nc[31mde');
});

test('defaults and arguments of calls keep their digits', () => {
  const numbers = ['9007199254740993', '18446744073709551616', '1e400', '-0', '0.30000000000000004000', '1.0', '"9007199254740993"'];
  for (const n of numbers) {
    const fields = fieldsOf(`{"type": "object", "properties": {"n": {"default": ${n}, "type": "number"}}}`) || [];
    assert.equal(fields[0].otherwise, n);
    const alone = caseAlone(`{"language": "python", "cases": [{"name": "a", "call": {"args": [1]}}, {"call": {"args": [${n}, {"x": [${n}]}]}, "expect": ${n}}]}`, '2');
    assert.equal(alone, `{"language": "python", "cases": [{"call": {"args": [${n}, {"x": [${n}]}]}, "expect": ${n}, "name": "2"}]}`);
  }
  assert.equal(caseAlone('{"cases": []}', '1'), '');
  assert.equal(caseAlone('{}', '1'), '');
  assert.equal(fieldsOf('{"type": "object", "properties": {"e": {"type": "string", "enum": ["", "a"]}}}')?.[0].type, 'pick');
  assert.deepEqual(elements(' [1, "a,]", [2, {"b": "]"}] , null ]'), ['1', '"a,]"', '[2, {"b": "]"}]', 'null']);
  assert.deepEqual(elements('{}'), []);
});
