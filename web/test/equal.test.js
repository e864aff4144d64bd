import test from 'node:test';
import assert from 'node:assert/strict';

// The module of the table asks for the width of the window.
Object.assign(globalThis, { matchMedia: () => ({ matches: false }) });
const { foldedColumns } = await import('../part/equal.js');

/** Rows of cells, each as a letter: P passed, W wrong, T out of time, a point is not a cell. @param {string[]} texts @param {string[]} [before] */
const rows = (texts, before) => texts.map((text, i) => ({ now: cells(text), before: before && cells(before[i]) }));
const verdicts = new Map([['P', 'ok'], ['W', 'wrong_answer'], ['T', 'timeout'], ['-', '']]);
const cells = (/** @type {string} */ text) => new Map([...text].flatMap((l, i) => (l === '.' ? [] : [/** @type {const} */ ([`c${i}`, { n: 1, passed: Number(l === 'P'), open: Number(l === '-'), verdict: verdicts.get(l) || '', id: `ex_${i}` }])])));
const cols = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => `c${i}`);

const folded = (/** @type {string[]} */ texts, /** @type {string[]} */ keep = [], /** @type {string[]|undefined} */ before = undefined) => {
  const f = foldedColumns(rows(texts, before), cols(texts[0].length), keep, 'case');
  return [f.cols.join(' '), [...f.groups].map(([first, g]) => `${first}: ${g.word} (${g.title})`).join('; ')];
};

test('columns that are equal in every row are one, in the place of the first', () => {
  assert.deepEqual(folded(['PPWPPPT', 'PPPPPPT']), ['c0 c2 c6', 'c0: 5 cases that all pass (c0, c1, c3, c4, c5)']);
  assert.deepEqual(folded(['WPWWW', 'WPWWW']), ['c0 c1', 'c0: 4 cases: Wrong answer (c0, c2, c3, c4)']);
  assert.deepEqual(folded(['PPPP', 'WWWW', '....']), ['c0', 'c0: 4 cases alike (c0, c1, c2, c3)']);
});

test('three equal columns stay three, and so do those of which one is kept', () => {
  assert.deepEqual(folded(['PPPW', 'PPPW']), ['c0 c1 c2 c3', '']);
  assert.deepEqual(folded(['PPPPWWWW'], ['c2']), ['c0 c1 c2 c3 c4', 'c4: 4 cases: Wrong answer (c4, c5, c6, c7)']);
});

test('a cell that is missing, or open, or was otherwise before, tells columns apart', () => {
  assert.deepEqual(folded(['PPPPP', '.PPPP']), ['c0 c1', 'c1: 4 cases that all pass (c1, c2, c3, c4)']);
  assert.deepEqual(folded(['----P']), ['c0 c4', 'c0: 4 cases: not ended (c0, c1, c2, c3)']);
  assert.deepEqual(folded(['PPPPP'], [], ['WPPPP']), ['c0 c1', 'c1: 4 cases that all pass (c1, c2, c3, c4)']);
  assert.deepEqual(folded(['.....'], [], ['PPPPW']), ['c0 c4', 'c0: 4 cases: none (c0, c1, c2, c3)']);
});

test('columns are folded where their cells are the same, and only there', () => {
  let seed = 5;
  const random = (/** @type {number} */ n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  for (let round = 0; round < 200; round++) {
    const height = 1 + random(4);
    const texts = Array.from({ length: height }, () => Array.from({ length: 12 }, () => 'PPPW.'[random(5)]).join(''));
    const column = (/** @type {string} */ c) => texts.map((t) => t[Number(c.slice(1))]).join('');
    const all = cols(12).map(column);
    const f = foldedColumns(rows(texts), cols(12), [], 'case');
    for (const c of cols(12)) {
      const same = all.filter((o) => o === column(c)).length;
      assert.equal(f.cols.includes(c), same < 4 || cols(12).find((o) => column(o) === column(c)) === c, `${texts.join(' ')} ${c}`);
    }
  }
});

test('a name that every object has is a column', () => {
  const f = foldedColumns([{ now: new Map(['constructor', 'toString', '__proto__', 'a'].map((c) => [c, { n: 1, passed: 1, open: 0, verdict: 'ok', id: 'ex_1' }])) }], ['constructor', 'toString', '__proto__', 'a'], [], 'column');
  assert.deepEqual(f.cols, ['constructor']);
});

test('cells of more than one execution are equal where as many passed and are open', () => {
  const cell = (/** @type {number} */ n, /** @type {number} */ passed, /** @type {number} */ open) => ({ n, passed, open, verdict: passed === n ? 'ok' : 'oom', id: 'ex_1' });
  const row = (/** @type {any[]} */ ...all) => ({ now: new Map(all.map((c, i) => [`c${i}`, c])) });
  const f = foldedColumns([row(cell(4, 4, 0), cell(4, 3, 0), cell(4, 3, 1), ...Array.from({ length: 4 }, () => cell(4, 3, 0)))], cols(7), [], 'column');
  assert.deepEqual([f.cols, [...f.groups].map(([c, g]) => [c, g.word])], [['c0', 'c1', 'c2'], [['c1', '5 columns: 3/4 passed']]]);
  const many = Array.from({ length: 20000 }, (_, i) => cell(20000, i, 0));
  assert.equal(foldedColumns([row(...many, ...many)], cols(40000), [], 'column').cols.length, 40000, 'too much is told apart');
});
