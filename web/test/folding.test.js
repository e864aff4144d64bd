import test from 'node:test';
import assert from 'node:assert/strict';
import { folded, telling } from '../part/folding.js';

/** A layout with a column of 10 for each layer: boxes are 4 wide. @param {Record<string, {at: [number, number], needs?: string[]}>} tasks @returns {import('../part/graph.js').Layout} */
function layout(tasks) {
  const nodes = Object.entries(tasks).map(([task, { at: [layer, row] }]) => ({ task, x: 10 * layer, y: 10 * row, w: 4, h: 2 }));
  const box = (/** @type {string} */ task) => /** @type {(typeof nodes)[0]} */ (nodes.find((n) => n.task === task));
  const edges = Object.entries(tasks).flatMap(([to, t]) => (t.needs || []).map((from) => ({ from, to, points: [{ x: box(from).x + 4, y: box(from).y + 1 }, { x: box(to).x, y: box(to).y + 1 }] })));
  return { width: Math.max(...nodes.map((n) => n.x)) + 4, height: 100, nodes, edges };
}

const line = layout(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`t${i}`, { at: [i, 0], needs: i ? [`t${i - 1}`] : [] }])));

test('a line of 500 tasks is one box', () => {
  const { layout: l, chains } = folded(line);
  assert.deepEqual([l.nodes.map((n) => n.task), l.edges, l.width], [['t0'], [], 10]);
  assert.equal(chains.get('t0')?.length, 500);
});

test('the chain of the task that is chosen is drawn whole', () => {
  const { layout: l, chains } = folded(line, 't250');
  assert.deepEqual([l.nodes.length, l.edges.length, l.width, chains.size], [500, 499, line.width, 0]);
});

test('what a chain needs and what needs it stays, and columns that others have stay open', () => {
  const l = layout({ first: { at: [0, 0] }, a: { at: [1, 0], needs: ['first'] }, b: { at: [2, 0], needs: ['a'] }, c: { at: [3, 0], needs: ['b'] }, side: { at: [2, 1], needs: ['first'] }, last: { at: [4, 0], needs: ['c', 'side'] } });
  const f = folded(l);
  assert.deepEqual([...f.chains], [['a', ['a', 'b', 'c']]]);
  assert.deepEqual(f.layout.nodes.map((n) => [n.task, n.x]), [['first', 0], ['a', 10], ['side', 20], ['last', 30]]);
  assert.deepEqual(f.layout.edges.map((e) => [e.from, e.to]), [['first', 'a'], ['first', 'side'], ['a', 'last'], ['side', 'last']]);
  const out = f.layout.edges[2].points;
  assert.deepEqual([out[0], out.at(-1)], [{ x: 14, y: 1 }, { x: 30, y: 1 }]);
  for (const e of f.layout.edges) for (let i = 1; i < e.points.length; i++) assert.ok(e.points[i].x >= e.points[i - 1].x, 'edges lead forward');
});

test('two tasks, and tasks that others need, are no chain', () => {
  const l = layout({ a: { at: [0, 0] }, b: { at: [1, 0], needs: ['a'] }, c: { at: [2, 0], needs: ['b'] }, d: { at: [2, 1], needs: ['b'] } });
  assert.deepEqual([folded(l).layout, folded(l).chains.size], [l, 0]);
});

test('of a chain the task is shown that tells most', () => {
  const of = (/** @type {Record<string, string>} */ s) => telling(['a', 'b', 'c'], (t) => s[t]);
  assert.equal(of({ a: 'completed', b: 'running', c: 'pending' }), 'b');
  assert.equal(of({ a: 'completed', b: 'running', c: 'failed' }), 'c');
  assert.equal(of({ a: 'completed', b: 'completed', c: 'pending' }), 'b');
  assert.equal(of({}), 'a');
});
