import test from 'node:test';
import assert from 'node:assert/strict';
import { letters } from '../part/cells.js';
import { matrix, paired, keeping, flip, bandsOf, csv, outcome, growing, mostCols } from '../part/matrix.js';

let n = 0;
const x = (/** @type {any} */ o) => ({ id: `ex_${++n}`, action: 'code', status: 'completed', attempt: 1, verdict: 'ok', ...o });
const letter = new Map(Object.entries(letters).filter(([l]) => l !== 'U').map(([l, verdict]) => [verdict, l]));
const of = (/** @type {string[]} */ ...v) => ({ cells: v.map((verdict) => letter.get(verdict)).join(''), names: 'abc' });
const names = new Map([['abc', ['a', 'b', 'c']]]);

test('executions by cases', () => {
  const m = matrix([x({ labels: { run: '2', who: 'bo' }, status: 'failed', verdict: 'wrong_answer', digest: of('ok', 'wrong_answer') }), x({ labels: { run: '2', who: 'al' }, digest: of('ok', 'ok', 'ok') })], { rows: 'execution', cols: 'case', without: 'run', names });
  assert.deepEqual(m.cols, ['a', 'b', 'c']);
  assert.deepEqual(m.rows.map((r) => [r.title, r.passed, r.total]), [['who=al', 3, 3], ['who=bo', 1, 2]]);
  assert.equal(m.rows[1].cells.get('b')?.verdict, 'wrong_answer');
  assert.equal(m.rows[1].cells.get('c'), undefined);
});

test('executions that cannot be told apart are numbered, and what has no cases has a column of its own', () => {
  const m = matrix([x({ status: 'failed', verdict: 'compile_error' }), x({ digest: of('ok') })], { rows: 'execution', cols: 'case', names });
  assert.deepEqual(m.rows.map((r) => r.title), ['code', 'code #2']);
  assert.deepEqual(m.cols, [outcome, 'a']);
  assert.equal(m.rows[1].cells.get(outcome)?.verdict, 'compile_error');
});

test('cases without names are numbered, and a verdict without a letter is another', () => {
  const m = matrix([x({ digest: { cells: 'PU?' } }), x({ digest: { cells: 'N', names: 'gone' } })], { rows: 'action', cols: 'case' });
  assert.deepEqual(m.cols, ['1', '2', '3']);
  assert.deepEqual(m.cols.map((c) => [m.rows[0].cells.get(c)?.passed, m.rows[0].cells.get(c)?.verdict]), [[1, 'skipped'], [1, 'ok'], [0, 'other']]);
});

test('a pivot of two labels', () => {
  const m = matrix([
    x({ labels: { model: 'm1', problem: 'p10' } }), x({ labels: { model: 'm1', problem: 'p2' }, status: 'failed', verdict: 'timeout' }), x({ labels: { model: 'm1', problem: 'p2' } }),
    x({ labels: { model: 'm2', problem: 'p2' }, status: 'running', verdict: undefined }),
  ], { rows: 'label:model', cols: 'label:problem' });
  assert.deepEqual(m.cols, ['p2', 'p10']);
  const [m2, m1] = m.rows;
  assert.deepEqual([m1.title, m2.title], ['m1', 'm2']);
  assert.deepEqual([m1.cells.get('p2')?.passed, m1.cells.get('p2')?.n, m1.cells.get('p2')?.verdict], [1, 2, 'timeout']);
  assert.equal(m2.cells.get('p2')?.open, 1);
});

test('what flipped between two batches', () => {
  const was = matrix([x({ labels: { run: '1', who: 'al' }, digest: of('ok', 'timeout', 'oom') }), x({ labels: { run: '1', who: 'gone' }, digest: of('ok') })], { rows: 'execution', cols: 'case', without: 'run', names });
  const is = matrix([x({ labels: { run: '2', who: 'al' }, digest: of('wrong_answer', 'ok', 'timeout') })], { rows: 'execution', cols: 'case', without: 'run', names });
  const p = paired(is, was);
  assert.deepEqual(p.count, { better: 1, worse: 1, other: 1, same: 0, new: 0, gone: 1 });
  assert.deepEqual(p.rows.map((r) => r.key), ['who=al', 'who=gone']);
  assert.equal(flip(undefined, undefined), 'same');
});

test('a formula stays a text in a table of other programs', () => {
  assert.equal(csv(matrix([x({ labels: { who: '=1+1' }, digest: { cells: 'P', names: 'q' } })], { rows: 'label:who', cols: 'case', names: new Map([['q', ['"q"']]]) })), '"","passed","of","""q"""\r\n"\'=1+1","1","1","ok"\r\n');
});

test('what another program could take for a formula is quoted, wherever it begins', () => {
  for (const name of ['=1', '+1', '-1', '@a', '\t=1', '\r=1', '\n=1', '＝1', '＋1', '－1', '＠a']) {
    const text = csv(matrix([x({ labels: { who: name } })], { rows: 'label:who', cols: 'outcome' }));
    assert.ok(text.includes(`"'${name}"`), JSON.stringify(text));
  }
});

test('columns beyond the most are counted, not written', () => {
  const [head, row] = csv(matrix([x({ digest: { cells: 'P'.repeat(mostCols + 7) } })], { rows: 'execution', cols: 'case' })).split('\r\n').map((l) => l.split(','));
  assert.equal(head.length, 3 + mostCols + 1);
  assert.equal(head.at(-1), '"7 more columns are left out"');
  assert.equal(row.length, head.length);
  assert.deepEqual(row.slice(1, 3), [`"${mostCols + 7}"`, `"${mostCols + 7}"`]);
});

test('of rows and columns without a cell in common, those with a kept cell are left', () => {
  const all = Array.from({ length: 3000 }, (_, i) => x({ digest: { cells: i % 1000 ? 'P' : 'M', names: `n${i}` } }));
  const m = matrix(all, { rows: 'execution', cols: 'case', names: new Map(all.map((_, i) => [`n${i}`, [`c${i}`]])) });
  const left = keeping(m.rows.map((r) => ({ key: r.key, now: r.cells })), m.cols, (c) => !!c && c.passed < c.n);
  assert.deepEqual(left.cols, ['c2000', 'c1000', 'c0']);
  assert.equal(left.rows.length, 3);
  assert.deepEqual(paired(m, m).count, { better: 0, worse: 0, other: 0, same: 3000, new: 0, gone: 0 });
});

test('a cell that only the earlier batch has is kept by what is asked of it', () => {
  const was = matrix([x({ digest: of('ok', 'ok') })], { rows: 'execution', cols: 'case', names });
  const is = matrix([x({ digest: of('ok') })], { rows: 'execution', cols: 'case', names });
  const left = keeping([{ now: is.rows[0].cells, before: was.rows[0].cells }], ['a', 'b'], (now, before) => flip(before, now) !== 'same');
  assert.deepEqual([left.rows.length, left.cols], [1, ['b']]);
});

test('a label with the name of what every object has is a label', () => {
  const m = matrix([x({ labels: { constructor: 'a' } }), x({ labels: {} }), x({})], { rows: 'label:constructor', cols: 'label:toString' });
  assert.deepEqual(m.rows.map((r) => r.key), ['', 'a']);
  assert.deepEqual(m.cols, ['']);
});

test('a batch grows while it is empty or something in it is open', () => {
  assert.equal(growing([]), true);
  assert.equal(growing([x({}), x({ status: 'running' })]), true);
  assert.equal(growing([x({}), x({ status: 'failed' })]), false);
});

test('the map of a long matrix is a picture, not a line', () => {
  for (const [rows, cols] of [[10000, 1], [5000, 1], [300, 2], [1, 1], [30, 100], [10000, 3]]) {
    const { size, rows: high, bands } = bandsOf(rows, cols);
    assert.ok(high * bands >= rows && high * (bands - 1) < rows, `${rows}×${cols}: ${bands} bands of ${high}`);
    assert.ok(bands * cols * size <= 900 && high * size <= 240, `${rows}×${cols}: ${bands * cols * size}×${high * size} pixels`);
  }
  assert.ok(bandsOf(10000, 1).size >= 3);
  assert.deepEqual(bandsOf(10000, 900), { size: 1, rows: 10000, bands: 1 });
});
