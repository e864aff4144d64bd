import test from 'node:test';
import assert from 'node:assert/strict';
import { changes, hunks, wordsOf, linesOf } from '../part/changes.js';
import { rowsOf } from '../part/diff.js';

const shown = (/** @type {string} */ a, /** @type {string} */ b) => changes(linesOf(a), linesOf(b)).map((c) => c.op + c.text).join('|');

test('the shortest way from one text to the other', () => {
  assert.equal(shown('a\nb\nc\n', 'a\nb\nc\n'), ' a| b| c');
  assert.equal(shown('a\nb\nc\n', 'a\nc\n'), ' a|-b| c');
  assert.equal(shown('', 'a\n'), '+a');
  assert.equal(shown('a', ''), '-a');
  assert.equal(shown('', ''), '');
  assert.equal(shown('a\nb\nc\na\nb\nb\na\n', 'c\nb\na\nb\na\nc\n').split('|').filter((s) => s[0] !== ' ').length, 5);
});

test('what is kept and taken away is the one text, what is kept and put in the other', () => {
  let seed = 7;
  const random = (/** @type {number} */ n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 300; round++) {
    const text = () => Array.from({ length: random(12) }, () => 'abcd'[random(4)]);
    const [a, b] = [text(), text()];
    const all = changes(a, b);
    assert.deepEqual(all.filter((c) => c.op !== '+').map((c) => c.text), a);
    assert.deepEqual(all.filter((c) => c.op !== '-').map((c) => c.text), b);
    assert.deepEqual(all.filter((c) => c.a).map((c) => c.a), a.map((_, i) => i + 1));
    assert.deepEqual(all.filter((c) => c.b).map((c) => c.b), b.map((_, i) => i + 1));
    // No common subsequence is longer than what is kept.
    const l = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) l[i][j] = a[i] === b[j] ? l[i + 1][j + 1] + 1 : Math.max(l[i + 1][j], l[i][j + 1]);
    assert.equal(all.filter((c) => c.op === ' ').length, l[0][0]);
  }
});

test('texts that have nothing in common are told apart in bounded time', () => {
  const a = Array.from({ length: 30000 }, (_, i) => `a${i}`);
  const b = Array.from({ length: 30000 }, (_, i) => `b${i}`);
  const all = changes(['same', ...a], ['same', ...b]);
  assert.equal(all.length, 60001);
  assert.equal(all[0].op, ' ');
});

test('lines far from a change are left out', () => {
  const a = Array.from({ length: 100 }, (_, i) => String(i));
  const b = a.map((s) => (s === '20' || s === '24' || s === '80' ? s + '!' : s));
  const runs = hunks(changes(a, b), 3);
  assert.deepEqual(runs.map((h) => [h.rows[0].text, h.rows[h.rows.length - 1].text]), [['17', '27'], ['77', '83']]);
});

test('words of two lines', () => {
  const w = wordsOf('the quick fox', 'the slow  fox');
  assert.deepEqual(w?.a.filter((p) => p.only).map((p) => p.text), ['quick']);
  assert.deepEqual(w?.b.filter((p) => p.only).map((p) => p.text).join(''), 'slow ');
  assert.equal(wordsOf('abc', 'xyz'), null);
  assert.equal(wordsOf('x'.repeat(3000), 'x'), null);
});

test('100,000 lines that differ are one run, with each line beside the one in its place', () => {
  const text = (/** @type {string} */ s) => Array.from({ length: 100000 }, (_, i) => `${s}${i}`).join('\n');
  const all = changes(linesOf(`same\n${text('a')}`), linesOf(`same\n${text('b')}`));
  assert.deepEqual(hunks(all, 3).map((h) => [h.from, h.rows.length]), [[0, 200001]]);
  const rows = rowsOf(all);
  assert.equal(rows.length, 200001);
  assert.deepEqual([rows[1].change?.text, rows[1].other?.text], ['a0', 'b0']);
  assert.deepEqual([rows[200000].change?.text, rows[200000].other?.text], ['b99999', 'a99999']);
});

test('changes in every second line of a long text are found once each', () => {
  const a = Array.from({ length: 900 }, (_, i) => String(i));
  const b = a.map((s, i) => (i % 2 ? s : s + '!'));
  assert.deepEqual(hunks(changes(a, b), 3).map((h) => [h.from, h.rows.length]), [[0, 1350]]);
  assert.deepEqual(hunks(changes(a, a), 3), []);
});
